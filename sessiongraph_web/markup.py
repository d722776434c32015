"""The one place that makes HTML from texts of a log: everything here is escaped, filtered and bounded.

Templates escape by themselves; what they print as it stands is a `Markup` from this module.
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES

from sessiongraph_web import terminal
from sessiongraph_web.answers import Snippet
from sessiongraph_web.kept import Kept

LINK_SCHEMES: Final = frozenset({"http", "https", "mailto"})
LINK_RELATION: Final = "noopener noreferrer nofollow"
# A log names the lexer: these are in use, and none takes more than seconds on input made to be slow.
_LANGUAGES: Final = """
    bash c c++ clojure cmake console cpp cs csharp css dart diff docker dockerfile elixir erlang go graphql groovy
    haskell html ini java javascript js json jsx julia kotlin latex less lua make makefile markdown matlab md
    nginx objective-c ocaml perl php
    powershell proto protobuf ps1 py python py3 pycon r rb ruby rs rust scala scss sh
    shell sql swift terraform tf toml ts tsx typescript vue xml yaml yml zig zsh
"""
LANGUAGES: Final = frozenset(_LANGUAGES.split())
# Classes of tokens that the style colours; others say nothing to a reader, and every span weighs.
_COLOURED: Final = """
    k kd kn kp kr kt ow kc nt  s s1 s2 sa sb sc dl sd se sh si sx sr ss ld  m mb mf mh mi il mo
    nf fm nb bp na nd  nc nn ne no nv vc vg vi  c ch cm cp cpf c1 cs  gd gi gh gu gs
"""
COLOURED: Final = frozenset(_COLOURED.split())
COLOUR_SECONDS: Final = 0.1  # for one text; hostile ones may take quadratic time
KEPT_BYTES: Final = 3 * 1024 * 1024  # of HTML that is remembered: some thirty pages of a session
ENTRY_BYTES: Final = 300  # that a remembered text takes beside its HTML
HEADING_LEVEL: Final = 3  # of an answer's highest heading: it lies below the page's and the turn's

_JSON: Final = re.compile(
    r"""
    (?P<s>"[^"\\]*+(?:\\.[^"\\]*+)*+"?) (?P<colon>\s*+:)? | (?P<m>-?\d[\d.eE+-]*+) | (?P<kc>true|false|null)
    | (?P<c>//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)
    """,
    re.VERBOSE | re.DOTALL,
)
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
# By what a text is and its digest; the HTML is all the text's own.
_kept: Final[Kept[Markup]] = Kept(KEPT_BYTES)


def visible(text: str) -> str:
    """Return the text with control characters and those that reorder or hide text written out."""
    return text if text.isprintable() else _HIDDEN.sub(_spell, text)


def clip(text: str, length: int) -> str:
    """Return at most `length` characters of a text, with an ellipsis where some were left out."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def snippet(excerpt: Snippet) -> Markup:
    """Return an excerpt with its matches marked."""
    pieces: list[Markup] = []
    position = 0
    for start, end in excerpt.matches:
        pieces.append(plain(excerpt.text[position:start]))
        pieces += Markup("<mark>"), plain(excerpt.text[start:end]), Markup("</mark>")
        position = end
    pieces.append(plain(excerpt.text[position:]))
    return Markup("").join(pieces)


def plain(text: str) -> Markup:
    """Escape a text, with what it hides written out."""
    return escape(visible(text))


def diff(text: str) -> Markup:
    """Render the lines of a unified diff, each in a span that says what became of it."""
    return Markup("").join(_diff_line(line) for line in text.split("\n")) if text else Markup("")


def gap(words: str) -> Markup:
    """Render a remark that stands between two parts of a text on a line of its own."""
    return Markup('\n<span class="gap">{}</span>\n').format(words)


def markdown(text: str) -> Markup:
    """Render Markdown: no raw HTML, links of three schemes only, images as links that fetch nothing."""
    return _remembered("markdown", text, _markdown)


def _markdown(text: str) -> Markup:
    parser = _parser()
    tokens = parser.parse(visible(text))
    _rank_headings(tokens)
    html = parser.renderer.render(tokens, parser.options, {})
    return Markup(html)  # noqa: S704 - the parser's rules below escape all they are given


def code(text: str, language: str | None) -> Markup:
    """Colour source code by a language's name; a name nobody knows colours nothing."""
    name = (language or "").lower()
    if name == "json":
        return _spans(_json_tokens(visible(text)))
    if name not in LANGUAGES:
        return plain(text)
    return _remembered(f"code {name}", text, lambda code: _spans(_tokens(_lexer(name), visible(code))))


def shell_output(text: str) -> Markup:
    """Render what a terminal showed: colours as classes, every other escape dropped."""
    return _spans((piece.classes, visible(piece.text)) for piece in terminal.pieces(text))


def _remembered(kind: str, text: str, make: Callable[[str], Markup]) -> Markup:
    """Return the HTML of a text, made anew only if it was not lately."""
    key = kind, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()
    found = _kept.get(key)
    if found is None:
        began = time.monotonic()
        found = make(text)
        if time.monotonic() - began < COLOUR_SECONDS:  # else its code may be plain for want of time
            _kept.put(key, found, sys.getsizeof(found) + ENTRY_BYTES)
    return found


def _spell(match: re.Match[str]) -> str:
    return f"‹U+{ord(match.group()):04X}›"


def _diff_line(line: str) -> Markup:
    name = {"+": "added", "-": "removed", "@": "hunk"}.get(line[:1], "same")
    return Markup('<span class="{}">{}</span>\n').format(name, plain(line))


def _spans(pieces: Iterable[tuple[str, str]]) -> Markup:
    """Wrap each run of text in a span of its classes; neighbours of one class share a span."""
    html = [
        f'<span class="{name}">{escape(text)}</span>' if name else str(escape(text))
        for name, text in _merged(pieces)
    ]
    return Markup("".join(html))  # noqa: S704 - names are ours, and texts are escaped


def _merged(pieces: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    held_name, held = "", ""
    for name, text in pieces:
        if name != held_name and held:
            yield held_name, held
            held = ""
        held_name, held = name, held + text
    if held:
        yield held_name, held


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


def _tokens(lexer: Lexer, text: str) -> Iterator[tuple[str, str]]:
    """Yield classes and texts; what takes too long to colour comes plain."""
    deadline = time.monotonic() + COLOUR_SECONDS
    end = 0
    for start, kind, value in lexer.get_tokens_unprocessed(text):
        yield _token_class(kind), value
        end = start + len(value)
        if time.monotonic() > deadline:
            break
    yield "", text[end:]


def _json_tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield classes and texts as `_tokens` does, thirty times as fast: most of what tools are given is JSON."""
    end = 0
    for found in _JSON.finditer(text):
        if found.start() > end:
            yield "", text[end : found.start()]
        kind = found.lastgroup or ""
        end = found.end("s") if kind in ("s", "colon") else found.end()
        yield "nt" if kind == "colon" else kind, text[found.start() : end]
    yield "", text[end:]


@cache
def _token_class(kind: Any) -> str:
    """Return the class of a kind of token, or of the nearest kind above it that is coloured."""
    while kind and STANDARD_TYPES.get(kind) not in COLOURED:
        kind = kind.parent
    return STANDARD_TYPES[kind] if kind else ""


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False})
    parser.enable(["table", "strikethrough"])
    parser.validateLink = _is_safe_link  # type: ignore[method-assign]
    rules: dict[str, Callable[..., str]] = {
        "image": _image,
        "fence": _fence,
        "code_block": _fence,
        "link_open": _link_open,
        "table_open": _table_open,
        "table_close": _table_close,
    }
    for name, rule in rules.items():
        parser.add_render_rule(name, rule)
    return parser


def _is_safe_link(url: str) -> bool:
    try:
        return urlsplit(url).scheme.lower() in LINK_SCHEMES
    except ValueError:
        return False


def _link_open(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, _env: Any) -> str:
    tokens[index].attrSet("rel", LINK_RELATION)
    return renderer.renderToken(tokens, index, options, _env)


def _image(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Show a link (plain text where it stands inside another link) instead of fetching an image."""
    token = tokens[index]
    words = f"[image: {renderer.renderInlineAsText(token.children or [], options, env)}]"
    if any(other.type == "link_open" for other in tokens[:index]):
        return str(escape(words))
    source = str(token.attrs.get("src", ""))
    return str(Markup('<a rel="{}" href="{}">{}</a>').format(LINK_RELATION, source, words))


def _fence(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    token = tokens[index]
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else None
    return str(
        Markup('<pre class="code" tabindex="0"><code>{}</code></pre>').format(code(token.content, language))
    )


def _rank_headings(tokens: Sequence[Token]) -> None:
    """Give headings levels without gaps, below those of the page."""
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    ranks = {tag: rank for rank, tag in enumerate(sorted({token.tag for token in headings}))}
    for token in headings:
        token.tag = f"h{min(6, HEADING_LEVEL + ranks[token.tag])}"


def _table_open(*_: Any) -> str:
    return '<div class="scroll" tabindex="0"><table>\n'


def _table_close(*_: Any) -> str:
    return "</table></div>\n"
