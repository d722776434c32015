"""The answers of the model tools as text, in the layouts that models of the original family know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sessiongraph_web import documents
from sessiongraph_web.answers import (
    Branch,
    EventTrace,
    EventView,
    Hit,
    Lineage,
    SessionHit,
    SessionSummary,
    Snippet,
)
from sessiongraph_web.models import Event, Instant

MOST_BYTES: Final = 256 * 1024
EXCERPT_CHARS: Final = 60  # on each side of the longest hit
NO_SESSIONS: Final = "No prior session matches found."
NO_EVENTS: Final = "No prior event matches found."
CAPPED: Final = "\nResult cap reached. Narrow the query or add filters to find additional matches."
BUILDING: Final = "\nThe index is still being built, so matches may be missing; ask again in a moment."
OUTSIDE_PARENT: Final = "[outside workspace]"
OUTSIDE_ANCESTOR: Final = "- [outside workspace boundary]"
OUTSIDE_SUBTREE: Final = "- [outside workspace subtree]"
_MAX_EXACT: Final = 2**53
_INDEX: Final = re.compile("0|[1-9][0-9]{0,9}", re.ASCII)
_MAX_INDEX: Final = 2**32 - 2
_LONE: Final = re.compile("[\ud800-\udfff]")
_POINT_LIMITS: Final = (-6, 21)  # decimal exponents between which JavaScript writes a number without `e`


def fit(parts: Iterable[str], rest: str) -> str:
    """Join the parts of an answer; one that is too long ends with a whole part, and says where the rest is."""
    shown: list[str] = []
    size = 0
    for part in parts:
        added = len(part.encode("utf-8", "surrogatepass")) + 1
        if size + added > MOST_BYTES:
            if added > MOST_BYTES:  # no border could ever be reached
                kept = part.encode("utf-8", "surrogatepass")[: MOST_BYTES - size]
                shown.append(kept.decode("utf-8", "ignore") + "…")
            return "\n".join([*shown, "", f"[Cut at {MOST_BYTES // 1024} KiB. For the rest: {rest}]"])
        shown.append(part)
        size += added
    return "\n".join(shown)


def heading(session: SessionSummary) -> str:
    return f"Session {session.id} — {session.title}"


def session_hits(hits: Sequence[SessionHit], *, capped: bool) -> Iterator[str]:
    """Tell the best match of each session."""
    if not hits:
        yield NO_SESSIONS
        return
    yield f"Session search results ({len(hits)}):"
    for number, hit in enumerate(hits, 1):
        session = hit.session
        parent = OUTSIDE_PARENT if session.parent_elsewhere else session.parent_session or "root"
        yield (
            f"\n{number}. {heading(session)}\n"
            f"   Created: {_when(session.created_at)}\n"
            f"   Parent: {parent}\n"
            f"   Availability: {_availability(session)}\n"
            f"   Best match: {_place(hit.best)}\n"
            f"   Snippet: {hit.best.snippet.text}"
        )
    if capped:
        yield CAPPED


def event_hits(session: SessionSummary, hits: Sequence[Hit], *, capped: bool) -> Iterator[str]:
    """Tell the matches inside one session."""
    yield f"{heading(session)}\n"
    if not hits:
        yield NO_EVENTS
        return
    yield f"Event search results ({len(hits)}):"
    for number, hit in enumerate(hits, 1):
        yield f"{number}. {_place(hit)}\n   Snippet: {hit.snippet.text}"
    if capped:
        yield CAPPED


def lineage(answer: Lineage) -> Iterator[str]:
    """Tell the relatives of a session, those outside the view as one mark for each way that leads to them."""
    yield heading(answer.session)
    yield f"Created: {_when(answer.session.created_at)}"
    yield f"Availability: {_availability(answer.session)}\n"
    yield "Ancestors (nearest first):"
    yield from (_relative(ancestor) for ancestor in answer.ancestors)
    if not answer.complete:
        yield OUTSIDE_ANCESTOR
    elif not answer.ancestors:
        yield "- none (target is a root session)"
    yield "\nDescendants:"
    yield from _descendants(answer.descendants) if answer.descendants else ["- none"]


def relations(session: SessionSummary, trace: EventTrace) -> Iterator[str]:
    """Tell what replaced an event, and what it cites."""
    yield heading(session)
    yield f"Target: {_place(trace)}"
    yield f"Replaced by: {_numbers([] if trace.replaced_by is None else [trace.replaced_by])}"
    yield f"Replacement chain: {_numbers(trace.replacement_chain)}"
    yield f"Events replaced by target: {_numbers(trace.replaced_event_seqs)}"
    yield f"Events cited directly as sources: {_numbers(trace.source_event_seqs)}"
    yield f"Direct derived events: {_numbers(trace.derived_event_seqs)}"


def event(
    title: str, seq: int, record: Any, before: Sequence[EventView] = (), after: Sequence[EventView] = ()
) -> Iterator[str]:
    """Tell one whole event, and what its neighbours say; `title` is the heading of its session."""
    yield title
    yield f"Target event seq {seq}:"
    yield f"```json\n{to_json(record)}\n```"
    for name, neighbours in (("Before", before), ("After", after)):
        if neighbours:
            yield f"\n{name}:"
            yield from (_neighbour(shown) for shown in neighbours)


def to_json(value: Any, indent: str = "") -> str:
    """Write JSON as JavaScript does: numbers in its spelling, keys that are array indexes first, two spaces."""
    if isinstance(value, str):
        return _LONE.sub(lambda lone: f"\\u{ord(lone[0]):04x}", json.dumps(value, ensure_ascii=False))
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return _number(float(value)) if abs(value) > _MAX_EXACT or isinstance(value, float) else str(value)
    inner = indent + "  "
    if isinstance(value, Mapping):
        items = [f"{to_json(key)}: {to_json(value[key], inner)}" for key in sorted(value, key=_key_order)]
        marks = "{}"
    else:
        items, marks = [to_json(item, inner) for item in value], "[]"
    if not items:
        return marks
    return f"{marks[0]}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{marks[1]}"


def excerpt(snippet: Snippet) -> str:
    """Return the surroundings of the longest hit, which stands in brackets."""
    text = snippet.text
    if not snippet.matches:
        return text
    start, end = max(snippet.matches, key=lambda match: match[1] - match[0])
    first, last = max(0, start - EXCERPT_CHARS), min(len(text), end + EXCERPT_CHARS)
    shown = f"{text[first:start]}[{text[start:end]}]{text[end:last]}"
    return f"{'…' if first else ''}{shown}{'…' if last < len(text) else ''}"


def _descendants(branches: Sequence[Branch]) -> Iterator[str]:
    waiting = [(branch, 0) for branch in reversed(branches)]
    while waiting:
        branch, depth = waiting.pop()
        yield "  " * depth + (_relative(branch.session) if branch.session else OUTSIDE_SUBTREE)
        waiting += [(below, depth + 1) for below in reversed(branch.descendants)]


def _relative(session: SessionSummary) -> str:
    return f"- {session.id} — {session.title} | {_when(session.created_at)} | {_availability(session)}"


def _place(found: Hit | EventTrace) -> str:
    return f"seq {_seq(found.seq)} | {found.type} | {found.surface} | {_when(found.time)}"


def _neighbour(shown: EventView) -> str:
    line = f"- seq {_seq(shown.seq)} | {shown.type} | {_when(shown.time)}"
    text = _semantic_text(shown)
    return (
        f"{line}\n" + "\n".join(f"  {row}" for row in text.split("\n"))
        if text
        else f"{line} | (no semantic text)"
    )


def _semantic_text(shown: EventView) -> str:
    """Return all that an event says: messages with their calls, whoever wrote them, and no titles."""
    data = shown.data
    if shown.type == "user/message":
        return documents.blocks_text(data.get("content"))
    if shown.type == "assistant/message":
        message = data.get("message")
        return documents.blocks_text(message.get("content") if isinstance(message, dict) else None)
    if shown.type == "tool/call":
        return documents.blocks_text([data | {"type": "tool-call"}])
    normalised = Event(shown.ordinal, shown.seq, shown.type, None, data)
    texts = documents.extract(normalised, tool_result_chars=-1)
    return "\n".join(text.text for text in texts if text.kind != "title")


def _availability(session: SessionSummary) -> str:
    return "live, persisted" if session.live else "persisted"


def _when(moment: Instant | None) -> str:
    return moment.iso if moment else "unknown"


def _seq(seq: int | None) -> str:
    return "unknown" if seq is None else str(seq)


def _numbers(values: Sequence[int]) -> str:
    return ", ".join(map(str, values)) or "none"


def _key_order(key: str) -> tuple[bool, int]:
    is_index = _INDEX.fullmatch(key) is not None and int(key) <= _MAX_INDEX
    return (False, int(key)) if is_index else (True, 0)


def _number(value: float) -> str:
    """Spell a number as JavaScript does: the shortest digits that mean it, with `e` only far from the point."""
    if value != value or value in (float("inf"), float("-inf")):
        return "null"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    before, _, after = mantissa.partition(".")
    digits = (before + after).lstrip("0")
    if not digits.strip("0"):
        return "0"
    # The point stands behind so many digits: zeros that led were no digits, those that trail need not be written.
    point = len(before) + int(exponent or 0) - (len(before + after) - len(digits))
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    if not _POINT_LIMITS[0] < point <= _POINT_LIMITS[1]:
        tail = f".{digits[1:]}" if digits[1:] else ""
        return f"{sign}{digits[0]}{tail}e{point - 1:+d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    whole = digits[:point].ljust(point, "0")
    return f"{sign}{whole}.{digits[point:]}" if digits[point:] else sign + whole
