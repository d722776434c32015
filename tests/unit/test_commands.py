"""Help pages: as wide as they say in every language, and click's own words."""

from __future__ import annotations

import ast
import gettext as catalogues
import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiongraph_web import commands, console, language


@given(st.text(st.sampled_from("ab 广告，。“”（）[]-: "), max_size=80), st.integers(10, 40))
def test_a_text_is_broken_into_lines_that_fit_and_nothing_is_lost(text: str, width: int) -> None:
    """No line is wider than asked, but for a piece that cannot be broken."""
    lines = list(commands.wrapped(text, width))

    assert "".join("".join(lines).split()) == "".join(text.split())
    for line in lines:
        pieces = list(commands.wrapped(line, 1))
        assert console.columns(line) <= width or len(pieces) == 1


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("只看这个工具的调用和结果；可重复。", 20, ["只看这个工具的调用和", "结果；可重复。"]),
        ("按什么顺序。  [默认：relevance]", 20, ["按什么顺序。", "[默认：relevance]"]),
        ("显示“状态”，再结束", 8, ["显示“状", "态”，再", "结束"]),
        ("one two three", 8, ["one two", "three"]),
        ("averyverylongword", 5, ["averyverylongword"]),
        ("", 5, []),
    ],
)
def test_lines_break_at_spaces_and_between_wide_characters(text: str, width: int, lines: list[str]) -> None:
    """Punctuation stays with the character it belongs to; a word is not cut."""
    assert list(commands.wrapped(text, width)) == lines


def said_by_click() -> Iterator[str | tuple[str, str]]:
    """Yield every sentence that the installed click looks up."""
    for path in Path(click.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("_", "ngettext")
            ):
                texts = [part.value for part in node.args if isinstance(part, ast.Constant)]
                yield texts[0] if node.func.id == "_" and texts else tuple(texts[:2])


def test_what_click_is_given_words_for_is_what_it_says() -> None:
    """None of its sentences is misspelt here, and none is there for a version that is gone."""
    assert [words for words in commands.CLICK if words not in set(said_by_click())] == []


def test_click_speaks_the_language_of_the_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a command runs, and not a moment longer: the process may be another program's."""
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    before = catalogues.textdomain()
    for locale, word in (("zh_CN.UTF-8", "命令"), ("C", "Commands"), ("fr_FR.UTF-8", "Commands")):
        monkeypatch.setitem(os.environ, "LANG", locale)
        with commands.spoken():
            assert catalogues.gettext("Commands") == word
            assert language.gettext("Commands") == word
        assert (catalogues.textdomain(), catalogues.gettext("Commands")) == (before, "Commands")
        assert language.current() == "en"
