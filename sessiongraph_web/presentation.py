"""Prepares answers for who reads them: programs get plain data, pages get what their templates draw."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from markupsafe import Markup

from sessiongraph_web import bodies, eventtypes, facts, loose, markup, terminal, transcripts
from sessiongraph_web.answers import (
    Answer,
    Branch,
    EventPage,
    EventView,
    Lineage,
    SessionPage,
    SessionSummary,
)
from sessiongraph_web.cards import Turn
from sessiongraph_web.language import gettext
from sessiongraph_web.models import Instant

MAX_EVENT_BYTES: Final = 130_000  # of HTML of an event on its own page
MAX_RAW_BYTES: Final = 70_000  # of HTML of the same record as it was written
COLOURED_CHARS: Final = 30_000  # more than this is shown without colours
ROW_CHARS: Final = 160
IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})  # shown in place, never SVG


def encode(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON-able data: moments in ISO 8601, nothing that strict JSON does not know."""
    encoded: dict[str, Any] = msgspec.to_builtins(answer, enc_hook=_encode_other)
    return encoded


def envelope(answer: Answer) -> dict[str, Any]:
    """Return the body of a JSON twin."""
    return {"ok": True} | encode(answer)


def transcript(page: SessionPage, *, focused: bool = False) -> list[Turn]:
    """Return a page of a session as turns of cards."""
    return transcripts.tell(page, focused=focused)


@dataclass(frozen=True, slots=True)
class Row:
    """One event in a list of events: what it is, and the beginning of what it says."""

    event: EventView
    about: str


def rows(events: list[EventView]) -> list[Row]:
    """Return events as rows of a list."""
    return [Row(event, _about(event)) for event in events]


@dataclass(frozen=True, slots=True)
class WholeEvent:
    """An event as its own page shows it: as it is understood, and as it was written, if it was.

    `left_out` characters of each are only in its JSON. `label` is what its type is called, if it is a known one.
    """

    label: str | None
    text: Markup
    left_out: int
    raw: Markup | None
    raw_left_out: int
    before: list[Row]
    after: list[Row]


def event(page: EventPage) -> WholeEvent:
    """Return what the page of an event shows."""
    text, left_out = _record(page.target.data, MAX_EVENT_BYTES)
    raw, raw_left_out = (None, 0) if page.raw is None else _record(page.raw, MAX_RAW_BYTES)
    shown = eventtypes.shown(page.target.type)
    return WholeEvent(
        label=None if shown.how == "raw" else shown.said,
        text=text,
        left_out=left_out,
        raw=raw,
        raw_left_out=raw_left_out,
        before=rows(page.before),
        after=rows(page.after),
    )


def _record(value: Mapping[str, Any], room: int) -> tuple[Markup, int]:
    """Show as much of a record as there is room for; say how many characters are left out."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    shown = text[: bodies.fitting(text, min(len(text), room), room)]
    html = markup.code(shown, "json" if len(shown) <= COLOURED_CHARS else None)
    if len(html.encode()) > room:  # with its colours
        html = markup.code(shown, None)
    return html, len(text) - len(shown)


@dataclass(frozen=True, slots=True)
class Outlined:
    """One line of a family tree in text, `depth` levels in. `session` is None for what lies outside the view."""

    depth: int
    session: SessionSummary | None
    role: str


def outline(answer: Lineage) -> list[Outlined]:
    """Return a lineage as indented lines, oldest ancestor first."""
    lines = [] if answer.complete else [Outlined(0, None, "outside")]
    for ancestor in reversed(answer.ancestors):
        lines.append(Outlined(len(lines), ancestor, "ancestor"))
    lines.append(Outlined(len(lines), answer.session, "self"))
    return lines + list(_descend(answer.descendants, len(lines)))


def _descend(branches: list[Branch], depth: int) -> Iterator[Outlined]:
    waiting = [(branch, depth) for branch in reversed(branches)]
    while waiting:
        branch, level = waiting.pop()
        yield Outlined(level, branch.session, branch.link or "outside")
        waiting += [(child, level + 1) for child in reversed(branch.descendants)]


def _about(event: EventView) -> str:
    data = loose.mapping(event.data)
    text = loose.texts(data.get("content")) or loose.texts(loose.at(data, "message.content"))
    if not text and event.type == "tool/call":
        text = f"{loose.said(data.get('name'))} {loose.said(data.get('arguments') or '')}"
    if not text:
        text = _queued(data) or _calls(data) or _described(event)
    return markup.clip(" ".join(terminal.plain(text[: ROW_CHARS * 3]).split()), ROW_CHARS)


def _calls(data: Mapping[str, Any]) -> str:
    """Say what an answer without words asks for."""
    blocks = map(loose.mapping, loose.items(loose.at(data, "message.content")))
    return ", ".join(
        gettext("calls %(tool)s", tool=loose.said(block.get("name")))
        for block in blocks
        if block.get("type") == "tool-call"
    )


def _queued(data: Mapping[str, Any]) -> str:
    """Say which messages were put into the inbox."""
    messages = map(loose.mapping, loose.items(data.get("inserted")))
    said = " ".join(loose.texts(message.get("content")) for message in messages).strip()
    return gettext("queued: %(text)s", text=said) if said else ""


def _described(event: EventView) -> str:
    """Say what an event without a text of its own is, and the facts that its type is known for."""
    shown = eventtypes.shown(event.type)
    if shown.how == "raw":
        return loose.said(event.data)
    return " · ".join(filter(None, [shown.said, facts.note(event, shown)]))


def _encode_other(value: object) -> object:
    if isinstance(value, Instant):
        return value.iso
    raise NotImplementedError(f"an answer holds a {type(value).__name__}")
