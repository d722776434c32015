"""Makes long texts ready to be shown: clipped, coloured, and within what a page may weigh."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from markupsafe import Markup

from sessiongraph_web import markup, terminal
from sessiongraph_web.cards import Body
from sessiongraph_web.language import ngettext

PAGE_BYTES: Final = 110_000  # of HTML for all bodies of a page
MAX_BODY_CHARS: Final = 12_000
MAX_OUTPUT_CHARS: Final = 6_000
MIN_BODY_BYTES: Final = 360  # what every body gets, however many there are
TAIL_SHARE: Final = 3  # one third of clipped output is its end
TASK_BYTES: Final = 160  # of HTML round the text of a task
COLOURS_SECONDS: Final = 1.0  # for all code of a page
MAX_DIFF_LINES: Final = 200  # on each side; the comparison is quadratic
DIFF_CONTEXT: Final = 3

Render = Callable[[str], Markup]


class Allowance:
    """Shares the weight of a page among its bodies: what one does not use, later ones may."""

    def __init__(self, bodies: int, total: int = PAGE_BYTES) -> None:
        self._left = total
        self._waiting = max(1, bodies)
        self._colouring = 0.0

    def take(self) -> int:
        """Return how many bytes the next body may weigh."""
        share = self._left // max(1, self._waiting)
        return max(MIN_BODY_BYTES, min(4 * share, self._left - MIN_BODY_BYTES * (self._waiting - 1)))

    @contextmanager
    def coloured(self) -> Iterator[bool]:
        """Say whether there is time left for colours, and count what the block takes of it."""
        began = time.monotonic()
        yield self._colouring < COLOURS_SECONDS
        self._colouring += time.monotonic() - began

    def spend(self, weight: int) -> None:
        """Count what a body weighed, in bytes."""
        self._left = max(0, self._left - weight)
        self._waiting = max(1, self._waiting - 1)


def tasks(items: list[tuple[str, str]], allowance: Allowance) -> list[tuple[str, str]]:
    """Return as many tasks of a list as the allowance takes: text and status each."""
    room = allowance.take()
    taken: list[tuple[str, str]] = []
    spent = 0
    for text, status in items:
        weight = len(markup.plain(text).encode()) + TASK_BYTES
        if taken and weight > room:
            break
        room -= weight
        spent += weight
        taken.append((text, status))
    allowance.spend(spent)
    return taken


def plain(text: str, allowance: Allowance) -> Body:
    """Show a text as it stands."""
    html, left_out = _fit(text, markup.plain, allowance, MAX_BODY_CHARS)
    return Body(html, "plain", left_out)


def markdown(text: str, allowance: Allowance) -> Body:
    """Show a text as Markdown."""
    html, left_out = _fit(text, markup.markdown, allowance, MAX_BODY_CHARS)
    return Body(html, "markdown", left_out)


def code(text: str, language: str | None, allowance: Allowance) -> Body:
    """Show source code."""
    with allowance.coloured() as may_colour:
        shown = language if may_colour else None
        html, left_out = _fit(text, lambda part: markup.code(part, shown), allowance, MAX_OUTPUT_CHARS)
    return Body(html, "code", left_out)


def output(text: str, allowance: Allowance) -> Body:
    """Show what a tool printed: its head and its tail, for errors tend to come last."""
    room = max(allowance.take(), MIN_BODY_BYTES * 2)
    limit = fitting(text, min(len(text), MAX_OUTPUT_CHARS), room)
    html, left_out = _head_and_tail(text, limit)
    while len(html.encode()) > room and limit > MIN_BODY_BYTES:
        limit = limit * room * 9 // (len(html.encode()) * 10)
        html, left_out = _head_and_tail(text, limit)
    allowance.spend(len(html.encode()))
    return Body(html, "terminal", left_out)


def data(value: Any, allowance: Allowance) -> Body:
    """Show a value as indented JSON."""
    return code(json.dumps(value, ensure_ascii=False, indent=2, default=str), "json", allowance)


def diff(old: str, new: str, allowance: Allowance) -> tuple[Body, int, int]:
    """Show a change line by line; return it with the numbers of lines added and removed."""
    before, after = old.splitlines(), new.splitlines()
    left_out = len("\n".join(before[MAX_DIFF_LINES:])) + len("\n".join(after[MAX_DIFF_LINES:]))
    lines = list(
        difflib.unified_diff(
            [line[:MAX_BODY_CHARS] for line in before[:MAX_DIFF_LINES]],
            [line[:MAX_BODY_CHARS] for line in after[:MAX_DIFF_LINES]],
            n=DIFF_CONTEXT,
            lineterm="",
        )
    )[2:]
    html, clipped = _fit("\n".join(lines), markup.diff, allowance, MAX_OUTPUT_CHARS)
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    return Body(html, "diff", left_out + clipped), added, removed


def _fit(text: str, render: Render, allowance: Allowance, most: int) -> tuple[Markup, int]:
    """Render as much of a text's beginning as the allowance takes."""
    room = allowance.take()
    length = fitting(text, min(len(text), most), room)
    html = render(text[:length])
    while len(html.encode()) > room and length > MIN_BODY_BYTES // 6:
        length = min(length - 1, length * room * 9 // (len(html.encode()) * 10))
        html = render(text[:length])
    allowance.spend(len(html.encode()))
    return html, len(text) - length


def fitting(text: str, length: int, room: int) -> int:
    """Return about how much of a text fits when nothing but escapes is added; rendering is dear, this is not."""
    weight = len(markup.plain(text[:length]).encode())
    return length if weight <= room else max(1, length * room // weight)


def _head_and_tail(text: str, limit: int) -> tuple[Markup, int]:
    if len(text) <= limit:
        return markup.shell_output(text), 0
    tail = limit // TAIL_SHARE
    head = limit - tail
    left_out = len(text) - limit
    gap = markup.gap(
        "… " + ngettext("%(num)s character left out", "%(num)s characters left out", left_out) + " …"
    )
    return markup.shell_output(text[:head]) + gap + markup.shell_output(_whole_escapes(text[-tail:])), left_out


def _whole_escapes(text: str) -> str:
    """Begin at a line's start, so that no cut escape sequence is taken for text."""
    _, line_end, rest = text.partition("\n")
    return rest if line_end and rest else terminal.plain(text)
