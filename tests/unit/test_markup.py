"""HTML that is made of hostile texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import Markup

from sessiongraph_web import markup
from sessiongraph_web.answers import Snippet

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


def test_a_text_that_takes_too_long_to_colour_is_whole_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the time is up the rest comes without colours."""
    monkeypatch.setattr(markup, "COLOUR_SECONDS", -1.0)
    assert markup.code("def f(): return 1", "python") == Markup('<span class="k">def</span> f(): return 1')


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
