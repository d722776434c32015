"""Texts of a log inside a Markdown document: whatever they hold, the document stays what we wrote."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sessiongraph_web import inert, markup

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

HOSTILE = [
    "</details>\n\n## Turn 99\n\n### Prompt\nforged",
    "# Title\n\nSetext\n===\n\n---\ntitle: x\n---",
    "<script>alert(1)</script>\n\n<img src=http://evil/x.png onerror=alert(1)>\n<!-- -->",
    "![](http://evil/x.png) ![a][b] ![[embed]]\n\n[b]: http://evil/y.png",
    "[click](javascript:alert(1)) <javascript:alert(1)> [d](data:text/html,x) [ok](https://a.example/?a=1&b=<2>)",
    "```\nopen fence\n\n## inside",
    "~~~html\n<b>\n~~~~~~\n</details>",
    "````mermaid\ngraph\n```\n````",
    "    indented\n\ttabs\n- list\n  1. nested\n     ```\n     code\n     ```\n> quote\n> > more\n>\n> # h",
    "| a | b |\n|---|---|\n| `x\\|y` | <br> |\n| only |",
    "* * *\n***\n___\n+ x\n1) y\n1234567890. z",
    "`` ` `` ``` x ``` &lt;b&gt; &#96;&#96;&#96; &#10;# x &#32;&#32;&#32;&#32;code",
    "\\\n\\<b>\\`\\\\`x`\\",
    "{{ 7*7 }} {% raw %} $$x$$ <?php ?> <![CDATA[x]]>",
    "a\u202eb\x00c\x1b[31m\r\n\rd\u2028e",
    "*" * 50 + "a" + "*" * 50,
    "[" * 500,
    "",
    " \n\t\n ",
]
PIECES = (
    *("`", "```", "~~~", "<", ">", "</details>", "#", "-", "*", "_", "|", "[", "]", "(", ")", "!", "\\", "\n"),
    *("    ", "\t", " ", "1.", "a", "http://x", "&lt;", "\n\n", "=", "javascript:", "---", "中"),
)
TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    st.text(max_size=60),
)


def document(text: str) -> list[Token]:
    """Return the parts between our own lines round a text, which must have survived."""
    tokens = READER.parse(f"## Before\n\n{text}\n\n## After\n")
    assert next(token.content for token in tokens if token.type == "inline") == "Before"
    assert (tokens[-3].type, tokens[-3].tag, tokens[-2].content) == ("heading_open", "h2", "After")
    return tokens[3:-3]


def spans(tokens: list[Token]) -> list[Token]:
    return [child for token in tokens for child in token.children or []]


def shown(text: str) -> str:
    """Return what a reader sees of a text, white space aside."""
    return re.sub(r"\s+", "", markup.visible(text))


@given(TEXTS)
def test_a_literal_text_shows_its_own_characters_and_nothing_else(text: str) -> None:
    """Parsed, it is paragraphs of text and line breaks; what is read is what was there."""
    tokens = document(inert.literal(text))
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}
    assert {token.type for token in spans(tokens)} <= {"text", "text_special", "hardbreak"}
    assert shown("".join(token.content for token in spans(tokens))) == shown(text.replace("\r", "\n"))


@given(TEXTS)
def test_a_line_is_one_line(text: str) -> None:
    """A title cannot begin anything, nor go on below."""
    written = inert.line(text)
    assert "\n" not in written
    tokens = document(written)
    assert len(tokens) == (3 if shown(text) else 0)
    assert shown("".join(token.content for token in spans(tokens))) == shown(text)


@given(TEXTS)
def test_a_fence_holds_its_text(text: str) -> None:
    """No run of ticks inside ends it."""
    (token,) = document(inert.fence(text, "python"))
    kept = markup.visible(text.replace("\r\n", "\n").replace("\r", "\n")).removesuffix("\n")
    assert (token.type, token.info, token.content) == ("fence", "python", kept + "\n")


@given(TEXTS)
def test_code_in_a_line_holds_its_text(text: str) -> None:
    """An id with ticks in it stays one span."""
    tokens = spans(document(f"- id: {inert.code(text)}"))
    assert [token.type for token in tokens] == ["text", "code_inline"]
    assert shown(tokens[1].content) == shown(text)


@given(TEXTS)
def test_rewritten_markdown_does_nothing(text: str) -> None:
    """No HTML, no image, no heading among ours, no link but of three schemes."""
    tokens = document(inert.rewrite(text))
    types = {token.type for token in [*tokens, *spans(tokens)]}
    assert not types & {"html_block", "html_inline", "image"}
    assert not [token for token in tokens if token.type == "heading_open" and token.tag in ("h1", "h2", "h3")]
    hrefs = [str(token.attrs["href"]) for token in spans(tokens) if token.type == "link_open"]
    assert [href for href in hrefs if href.partition(":")[0] not in ("http", "https", "mailto")] == []
    assert {token.info for token in tokens if token.type == "fence"} <= inert.LANGUAGES | {""}


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_folded_stays_behind_its_line(text: str) -> None:
    """Neither the line nor the block inside can close the fold."""
    tokens = document(inert.folded(text, [inert.fence(text)]))
    opening, inside, closing = tokens
    summary = html.escape(" ".join(markup.visible(text.replace("\r", "\n")).split()))
    assert opening.content.strip() == f"<details><summary>{summary}</summary>"
    assert (inside.type, closing.content.strip()) == ("fence", "</details>")


def test_ordinary_markdown_keeps_its_form() -> None:
    """Headings go down, images become words, all else stays what it was."""
    text = (
        "# Why\n\nIt **was** *slow*, see [docs](https://d.example/a_b) and `x|y`:\n\n1. one\n2. two\n"
        "   - deep\n\n```python\nprint(1)\n```\n\n| a | b |\n|:--|--|\n| 1 | ~~2~~ |\n\n> quoted\n\n![chart](http://e/x.png)\n"
    )
    assert inert.rewrite(text) == (
        "#### Why\n\nIt **was** *slow*, see [docs](<https://d.example/a_b>) and `x|y`:\n\n1. one\n2. two\n\n"
        "   - deep\n\n```python\nprint(1)\n```\n\n| a | b |\n|---|---|\n| 1 | ~~2~~ |\n\n> quoted\n\n"
        "\\[image: chart\\]"
    )


def test_a_text_too_long_to_parse_is_shown_as_it_stands() -> None:
    """Its cost stays bounded, and it is still inert."""
    text = "[" * (inert.MAX_MARKDOWN_CHARS + 1)
    (token,) = document(inert.rewrite(text))
    assert (token.type, token.content) == ("fence", text + "\n")
