"""Text for a terminal: harmless, and as wide as it says."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiongraph_web import console
from sessiongraph_web.answers import Branch, Lineage, Relative
from sessiongraph_web.console import Screen
from tests import answered

HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x00\x7f\x9b2J \u202eevil\u2069 \u200b\u2028\ufeff"


def columns(text: str) -> int:
    """Return the width of text on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def is_harmless(text: str) -> bool:
    return not any(c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


@given(st.text())
def test_no_text_reaches_a_terminal_with_a_control_in_it(text: str) -> None:
    """Whatever a log holds, what is printed has no control, format or bidi character but line ends and tabs."""
    assert is_harmless(console.safe(text).replace("\t", ""))


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])))
def test_harmless_text_is_printed_as_it_is(text: str) -> None:
    """Letters of every script, marks, symbols and spaces are left alone."""
    assert console.safe(text) == text


@given(st.text(), st.integers(2, 60))
def test_a_line_is_never_wider_than_asked(text: str, width: int) -> None:
    """A line fits its columns, wide characters counted as two, whatever it holds."""
    line = console.one_line(text, width)
    assert columns(line) <= width
    assert "\n" not in line


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("short", 10, "short"),
        ("exactly ten", 11, "exactly ten"),
        ("one too many", 11, "one too ma…"),
        ("广告广告广告", 12, "广告广告广告"),
        ("广告广告广告", 11, "广告广告广…"),
        ("广告广告广告", 10, "广告广告…"),
        ("two\nlines\tand  spaces", 40, "two lines and spaces"),
        ("e\u0301" * 5, 5, "e\u0301" * 5),
    ],
)
def test_lines_are_cut_at_columns(text: str, width: int, expected: str) -> None:
    """A text that does not fit ends with an ellipsis in the last columns it has."""
    assert console.one_line(text, width) == expected


def test_a_hostile_session_is_printed_harmlessly() -> None:
    """Titles, ids, working directories, models, types and data of a log cannot command a terminal."""
    summary = answered.summary(title=HOSTILE, id=HOSTILE, cwd=HOSTILE, models=[HOSTILE])
    page = answered.page(
        answered.event(HOSTILE, {HOSTILE: HOSTILE, "text": HOSTILE}),
        answered.user(HOSTILE, 1),
        children=[Relative(id=HOSTILE, title=HOSTILE)],
        session=summary,
    )
    lineage = Lineage(
        session=summary,
        ancestors=[summary],
        complete=True,
        descendants=[Branch(session=summary, link="fork", descendants=[])],
    )
    screen = Screen(80)
    assert all(map(is_harmless, [*console.session(page, screen), *console.lineage(lineage, screen)]))


def test_a_lineage_is_indented_by_generation() -> None:
    """Ancestors lead to the session, descendants follow, and what lies outside is one line."""
    parent, child = answered.summary(id="parent", title="P"), answered.summary(id="child", title="C")
    outside = Branch(session=None, link=None, descendants=[])
    lineage = Lineage(
        session=answered.summary(id="self", title="S"),
        ancestors=[parent],
        complete=False,
        descendants=[Branch(session=child, link="fork", descendants=[]), outside],
    )
    when = "2026-09-21 14:13:20 UTC"
    assert list(console.lineage(lineage, Screen(80))) == [
        "(an ancestor lies outside this view)",
        f"parent P {when}",
        f"  self S {when}",
        f"    child C {when}",
        "    (sessions outside this view)",
    ]
