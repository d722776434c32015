"""Markdown that cannot act: texts of a log, written so that no viewer runs, fetches or misplaces anything."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from sessiongraph_web import markup

MAX_MARKDOWN_CHARS: Final = 50_000  # a longer text is shown as it stands: parsing it is dear
HEADING_LEVEL: Final = 4  # of a text's highest heading: the three above it are the document's own
MAX_ITEM_NUMBER: Final = 999_999_999  # of an ordered list
# A viewer may do something with a fence of a name it knows (draw it, run it), so only these keep theirs.
LANGUAGES: Final = frozenset({
    "bash", "c", "cpp", "csharp", "css", "diff", "go", "html", "ini", "java", "javascript", "js", "json",
    "kotlin", "lua", "make", "makefile", "markdown", "md", "php", "powershell", "python", "py", "ruby", "rust",
    "rs", "scala", "sh", "shell", "sql", "swift", "text", "toml", "ts", "tsx", "typescript", "xml", "yaml", "yml",
    "zsh",
})  # fmt: skip
# An underscore inside a word is no mark, and names are full of them.
_SPECIAL: Final = re.compile(r"[\\`*\[\]<>&|~$#{}!]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_LINE_START: Final = re.compile(r"(?m)^(\d{1,9}(?=[.)])|(?=[-+=:]))")
_LEAD: Final = re.compile(r"(?m)^[ \t]+")
_BARE_PIPE: Final = re.compile(r"(?<!\\)\|")
_TICKS: Final = re.compile(r"`+")
_NO_BREAK_SPACE: Final = "\u00a0"


def literal(text: str) -> str:
    """Return a text that shows exactly its own characters, line by line."""
    paragraphs = re.split(r"\n[ \t]*\n", _clean(text).strip("\n"))
    return "\n\n".join(
        "\\\n".join(_indented(line) for line in paragraph.split("\n") if line.strip())
        for paragraph in paragraphs
        if paragraph.strip()
    )


def line(text: str) -> str:
    """Return a text on one line that shows its own characters."""
    return _guarded(_escaped(" ".join(_clean(text).split())))


def code(text: str) -> str:
    """Return a text as code inside a line."""
    flat = " ".join(_clean(text).split())
    ticks = "`" * (max(map(len, _TICKS.findall(flat)), default=0) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") or not flat else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"


def fence(text: str, language: str = "") -> str:
    """Return a text as a block of code that nothing in it can end."""
    shown = _clean(text).removesuffix("\n")
    ticks = "`" * max(3, max(map(len, _TICKS.findall(shown)), default=0) + 1)
    return f"{ticks}{language if language in LANGUAGES else ''}\n{shown}\n{ticks}"


def folded(summary: str, blocks: Iterable[str]) -> str:
    """Return blocks behind a line that unfolds them; the line shows a text's own characters."""
    shown = html.escape(" ".join(_clean(summary).split()))
    return "\n\n".join([f"<details><summary>{shown}</summary>", *blocks, "</details>"])


def rewrite(text: str) -> str:
    """Return the Markdown of a text anew, from what it parses to: no HTML, no image, headings below our own."""
    if len(text) > MAX_MARKDOWN_CHARS:
        return fence(text)
    return _blocks(SyntaxTreeNode(_parser().parse(_clean(text))).children)


def _clean(text: str) -> str:
    return markup.visible(text.replace("\r\n", "\n").replace("\r", "\n"))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)


def _guarded(text: str) -> str:
    """Keep the beginnings of lines from being read as lists, rules or underlines."""
    return _LINE_START.sub(lambda found: f"{found[1]}\\", _LEAD.sub("", text))


def _indented(text: str) -> str:
    lead = len(text) - len(text.lstrip(" \t"))
    spaces = _NO_BREAK_SPACE * len(text[:lead].expandtabs(4))
    return spaces + _guarded(_escaped(text[lead:].rstrip()))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = _is_link  # type: ignore[method-assign]
    return parser


def _is_link(url: str) -> bool:
    try:
        return urlsplit(url).scheme.lower() in markup.LINK_SCHEMES
    except ValueError:
        return False


def _blocks(nodes: Sequence[SyntaxTreeNode]) -> str:
    return "\n\n".join(filter(None, map(_block, nodes)))


def _block(node: SyntaxTreeNode) -> str:
    match node.type:
        case "paragraph" | "inline":
            return _inline(node.children)
        case "heading":
            level = min(6, HEADING_LEVEL - 1 + int(node.tag[1:]))
            return f"{'#' * level} {' '.join(_inline(node.children).split())}"
        case "bullet_list" | "ordered_list":
            return _list(node)
        case "blockquote":
            return _prefixed(_blocks(node.children), "> ", "> ")
        case "fence" | "code_block":
            return fence(node.content, next(iter(node.info.lower().split()), ""))
        case "hr":
            return "* * *"
        case "table":
            return _table(node)
    return literal(node.content)


def _list(node: SyntaxTreeNode) -> str:
    start = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
    items = []
    for number, item in enumerate(node.children):
        marker = "- " if start is None else f"{min(start + number, MAX_ITEM_NUMBER)}. "
        items.append(_prefixed(_blocks(item.children), marker, " " * len(marker)))
    return "\n".join(items)


def _table(node: SyntaxTreeNode) -> str:
    rows = [
        f"| {' | '.join(_cell(cell) for cell in row.children)} |"
        for part in node.children
        for row in part.children
    ]
    columns = len(node.children[0].children[0].children)
    return "\n".join([rows[0], "|" + "---|" * columns, *rows[1:]])


def _cell(node: SyntaxTreeNode) -> str:
    return _BARE_PIPE.sub(r"\\|", " ".join(_inline(node.children).split()))


def _prefixed(text: str, first: str, rest: str) -> str:
    head, *others = text.split("\n")
    return "\n".join([(first + head).rstrip(), *((rest + line).rstrip() for line in others)])


def _inline(nodes: Sequence[SyntaxTreeNode]) -> str:
    spans = nodes[0].children if len(nodes) == 1 and nodes[0].type == "inline" else nodes
    return _guarded("".join(_span(span) for span in spans))


def _span(node: SyntaxTreeNode) -> str:
    match node.type:
        case "softbreak":
            return "\n"
        case "hardbreak":
            return "\\\n"
        case "code_inline":
            return code(node.content)
        case "em" | "strong" | "s":
            return _marked(_spans(node), {"em": "*", "strong": "**", "s": "~~"}[node.type])
        case "link":
            href = str(node.attrs["href"]).replace("&", "&amp;")
            return f"[{_spans(node)}](<{href}>)"
        case "image":
            return rf"\[image: {_spans(node) or _escaped(str(node.attrs.get('src', '')))}\]"
    return _escaped(node.content.replace("\n", " "))


def _spans(node: SyntaxTreeNode) -> str:
    return "".join(_span(child) for child in node.children)


def _marked(text: str, mark: str) -> str:
    inner = text.strip()
    return f"{mark}{inner}{mark}" if inner else text
