"""HTML that is made of hostile texts."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from pygments.lexers import get_lexer_by_name

from sessiongraph_web import markup
from sessiongraph_web.answers import Snippet
from sessiongraph_web.kept import Kept

PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</textarea></pre></code></script><svg onload=alert(1)>",
    '" autofocus onfocus=alert(1) x="',
    "'-alert(1)-'",
    "{{7*7}} ${7*7} {% raw %}",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<!--",
    "<style>*{display:none}</style>",
    "<a href=//evil.example>x</a>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "]]><svg/onload=alert(3)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>1</script>)",
    "[x](vbscript:x)",
    "[x](//evil.example)",
    "[x](/status/rebuild)",
    "<javascript:alert(1)>",
    "![x](https://evil.example/pixel.png)",
    '![a"onerror="alert(1)](https://evil.example/x.png "t")',
    "[![x](https://evil.example/a.png)](https://evil.example)",
    "[x]: javascript:alert(1)\n\n[x]",
    "```<script>\nx\n```",
    '```html" onload="x\n<script>1</script>\n```',
    "| <b>a</b> |\n|---|\n| <script>1</script> |",
    "# <script>1</script>",
)
HARMLESS_TAGS = frozenset(
    (
        *(
            "a",
            "p",
            "h3",
            "h4",
            "h5",
            "h6",
            "ul",
            "ol",
            "li",
            "pre",
            "code",
            "span",
            "em",
            "strong",
            "s",
            "blockquote",
        ),
        *("hr", "br", "table", "thead", "tbody", "tr", "th", "td", "div"),
    )
)


class _Tags(HTMLParser):
    """Collects what a browser would make of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("text", PAYLOADS)
@pytest.mark.parametrize("render", [markup.markdown, lambda t: markup.code(t, "html"), markup.shell_output])
def test_hostile_text_stays_text(render: Callable[[str], Markup], text: str) -> None:
    """Only harmless elements with harmless attributes come out, and links of three schemes."""
    html = render(text)
    for tag, attributes in _Tags(html).tags:
        assert tag in HARMLESS_TAGS
        assert set(attributes) <= {"class", "href", "rel", "title", "tabindex"}
        if tag == "a":
            assert attributes["rel"] == "noopener noreferrer nofollow"
            assert re.match(r"(?:https?|mailto):", attributes["href"] or "")


def test_an_image_becomes_a_link() -> None:
    """An image is named, and fetched by nobody."""
    assert markup.markdown("![a <b>](https://e.example/x.png)") == Markup(
        '<p><a rel="noopener noreferrer nofollow" href="https://e.example/x.png">[image: a &lt;b&gt;]</a></p>\n'
    )


def test_an_image_inside_a_link_is_named_only() -> None:
    """Links do not nest."""
    assert markup.markdown("[![a](https://e.example/x.png)](https://e.example)").count("<a ") == 1


def test_headings_lie_below_those_of_the_page() -> None:
    """The highest heading of an answer is of the third level, and no level is left out."""
    assert markup.markdown("## a\n###### b\n## c") == Markup("<h3>a</h3>\n<h4>b</h4>\n<h3>c</h3>\n")


def test_code_is_coloured_by_class() -> None:
    """Known languages get spans with Pygments' class names; text is all there."""
    html = markup.code("x = '<'", "python")
    assert html.striptags() == "x = '<'"
    assert '<span class="s1">&#39;&lt;&#39;</span>' in html


@pytest.mark.parametrize("language", [None, "", "no-such-language", "x" * 10_000, "python\0"])
def test_unknown_languages_colour_nothing(language: str | None) -> None:
    """Whatever a fence says, its text is shown."""
    assert markup.code("a < b", language) == Markup("a &lt; b")


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\u202e", "‹U+202E›"),
        ("\u2066", "‹U+2066›"),
        ("\u200f", "‹U+200F›"),
        ("\u200b", "‹U+200B›"),
        ("\U000e0041", "‹U+E0041›"),
        ("\x1b", "‹U+001B›"),
        ("\x00", "‹U+0000›"),
        ("\x7f", "‹U+007F›"),
        ("\x9b", "‹U+009B›"),
        ("\t\n", "\t\n"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("广告", "广告"),
    ],
)
def test_hidden_characters_are_written_out(hidden: str, shown: str) -> None:
    """What reorders, hides or controls text is seen; tabs, line ends and joined emoji stay."""
    assert markup.visible(hidden) == shown
    assert markup.markdown(f"a{hidden}b").striptags() == " ".join(f"a{shown}b".split())


def test_matches_are_marked_by_code_points() -> None:
    """Offsets count code points, whatever the text needs in escapes or bytes."""
    excerpt = Snippet(text="<广告> 😀SDK", matches=[(1, 3), (6, 9)])
    assert markup.snippet(excerpt) == Markup("&lt;<mark>广告</mark>&gt; 😀<mark>SDK</mark>")


@pytest.mark.parametrize(
    ("text", "length", "clipped"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("a  bcd", 4, "a…"), ("", 1, "")]
)
def test_clip_never_exceeds_its_length(text: str, length: int, clipped: str) -> None:
    """A clipped text with its ellipsis is as long as it may be at most."""
    assert markup.clip(text, length) == clipped


@pytest.mark.parametrize("language", sorted(markup.LANGUAGES))
def test_every_listed_language_is_known(language: str) -> None:
    """A listed language keeps all of a text, whatever its case."""
    assert markup.code("a < b\n", language.upper()).striptags() == "a < b"


def test_the_style_colours_the_classes_that_code_has() -> None:
    """A class that the style says nothing of would only weigh, or fall under a rule that means another thing."""
    style = (Path(markup.__file__).parent / "static" / "style.css").read_text("utf-8")
    rules = re.findall(r"^\.code :is\(([^)]+)\)", style, re.MULTILINE)
    assert {name.strip().removeprefix(".") for rule in rules for name in rule.split(",")} == markup.COLOURED


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "class A(B):\n    x: int = f(1, 'a')  # why\n    def __init__(self): ...\n"),
        ("bash", 'for i in *.py; do echo "$i" | wc -l; done # all\n'),
        ("html", "<p class='a'>&amp; <!-- no --></p>\n"),
        ("diff", "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"),
    ],
)
def test_code_has_coloured_classes_alone(language: str, text: str) -> None:
    """Whatever a lexer tells apart, only what is coloured is in a span; the text is whole."""
    html = markup.code(text, language)
    assert set(re.findall(r'class="([^"]*)"', html)) <= markup.COLOURED
    assert unescape(re.sub(r"<[^>]+>", "", html)) == text


def _coloured(pieces: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what is coloured of a JSON text, Pygments' finer kinds of text and numbers as one."""
    kinds = {"s2": "s", "mi": "m", "mf": "m", "c1": "c", "cm": "c"}
    return [(kinds.get(name, name), text) for name, text in pieces if name]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(value=JSON, indent=st.sampled_from([None, 1, 2]), ascii_=st.booleans())
def test_json_is_coloured_as_the_library_would(value: Any, indent: int | None, ascii_: bool) -> None:
    """Names, texts, numbers and words of any JSON have the colours that the library's slower lexer gives them."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_)
    lexer = get_lexer_by_name("json", stripnl=False, ensurenl=False)
    theirs = [(markup._token_class(kind), part) for _, kind, part in lexer.get_tokens_unprocessed(text)]
    ours = list(markup._json_tokens(text))
    assert _coloured(ours) == _coloured(theirs)
    assert "".join(part for _, part in ours) == text


@pytest.mark.parametrize(
    ("text", "coloured"),
    [
        ('{"a": "cut', [("nt", '"a"'), ("s", '"cut')]),
        ('{"a": "cut\\', [("nt", '"a"'), ("s", '"cut')]),
        ("// why\n{/* no */}", [("c", "// why"), ("c", "/* no */")]),
        ("/* open", [("c", "/* open")]),
        ("a 'b' -", []),
    ],
)
def test_what_is_no_whole_json_is_whole_all_the_same(text: str, coloured: list[tuple[str, str]]) -> None:
    """A text that is cut, or was never JSON, is all there."""
    pieces = list(markup._json_tokens(text))
    assert _coloured(pieces) == coloured
    assert "".join(part for _, part in pieces) == text


@pytest.mark.parametrize("text", ['"', '"\\', '"a" ', "/*", "-", "1.", '\\"', '"a"' + " " * 50, "*/", "tru"])
def test_colouring_json_takes_time_by_its_length_alone(text: str) -> None:
    """Text made to be slow is looked at once: twice as much of it takes no four times the steps."""
    pattern = markup._JSON
    assert pattern.groups
    pieces = list(markup._json_tokens(text * 20_000))
    assert "".join(part for _, part in pieces) == text * 20_000


@pytest.mark.parametrize("render", [markup.markdown, lambda text: markup.code(text, "python")])
def test_a_text_is_rendered_once(render: Callable[[str], Markup], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same text asked for again is the same HTML; as Markdown and as code in Markdown it is not."""
    monkeypatch.setattr(markup, "_kept", Kept(10_000))
    text = "# *one*"
    assert render(text) is render(text)
    assert markup.markdown(text) != markup.code(text, "markdown")
    assert markup.code(text, "python") != markup.code(text, "markdown")


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many texts are rendered, those that are kept weigh no more than they may."""
    monkeypatch.setattr(markup, "_kept", kept := Kept(10_000))
    for number in range(500):
        markup.markdown(f"text number {number} " * 5)
    assert 5_000 < kept.weight <= 10_000


def test_a_text_that_takes_too_long_to_colour_is_whole_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the time is up the rest comes without colours, until it is rendered again."""
    with monkeypatch.context() as late:
        late.setattr(markup, "COLOUR_SECONDS", -1.0)
        assert markup.code("def f(): return 1", "python") == Markup('<span class="k">def</span> f(): return 1')
    assert '<span class="k">return</span>' in markup.code("def f(): return 1", "python")


def test_html_is_made_in_one_place() -> None:
    """No other module makes markup of its own, and no template trusts a text."""
    package = Path(markup.__file__).parent
    makers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Markup", "escape")
    }
    assert makers <= {"markup.py", "web/render.py"}
    templates = (package.parent / "templates").rglob("*.html")
    assert [path.name for path in templates if re.search(r"\|\s*safe\b|autoescape", path.read_text())] == []
