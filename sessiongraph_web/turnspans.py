"""The turns of one log as spans: gathered while the log is read, or asked of the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from sessiongraph_web import documents
from sessiongraph_web.models import Event, Kind, Text

OPENING_CHARS: Final = 60  # of what a turn begins with
_ANSWERING: Final[tuple[Kind, ...]] = ("assistant", "tool_call")


class TurnSpan(NamedTuple):
    """Neighbouring turns of a log: their numbers, where they begin, when, and what they begin with."""

    first: int
    last: int
    ordinal: int
    started: int | None
    ended: int | None
    bad_ends: int
    failures: int  # calls that failed
    kind: Kind | None = None  # of the opening: the first prompt, else the first answer or call
    opening: str = ""  # on one line, masked


class Summed(NamedTuple):
    """The spans of a log as they were in one state of it."""

    state: Hashable
    offset: int  # up to which its bytes were read, and what they are known by
    fingerprint: str
    records: int
    step: int
    spans: list[TurnSpan]


class TurnSpans:
    """Gathers spans while a log is read."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._spans: list[TurnSpan] = []

    def note(self, turn: int | None, event: Event, texts: Sequence[Text]) -> None:
        """Count an event that says something to its turn."""
        if turn is None or not texts:
            return
        last = self._spans[-1] if self._spans and self._spans[-1].last == turn else None
        kind, opening = self._opening(texts, last.kind if last else None)
        bad = sum(text.kind == "turn_end" for text in texts)
        failed = documents.is_failure(event)
        span = TurnSpan(turn, turn, event.ordinal, event.time, event.time, bad, failed, kind, opening)
        if last:
            span = _joined([self._spans.pop(), span])
        self._spans.append(span)

    def together(self, most: int) -> list[TurnSpan]:
        """Return the spans in the order of the log, put together so that they are not many more than `most`."""
        step = max((span.last for span in self._spans), default=0) // most + 1
        groups = [list(spans) for _, spans in groupby(self._spans, lambda span: span.first // step)]
        return [_joined(spans) for spans in groups[: 2 * most]]

    def _opening(self, texts: Iterable[Text], known: Kind | None) -> tuple[Kind | None, str]:
        """Return what of an event its turn may begin with, where nothing better is known of it."""
        wanted = ("user",) if known else ("user", *_ANSWERING)
        found = [text for text in texts if text.kind in wanted and known != "user"]
        if not found:
            return None, ""
        return found[0].kind, _on_one_line(self._mask(found[0].text)[:OPENING_CHARS])


def step(connection: sqlite3.Connection, log_id: int, most: int) -> int:
    """Return how many turns are put together so that the spans of a log are not many more than `most`."""
    row = connection.execute("SELECT ifnull(max(last_turn), 0) FROM frame WHERE log_id = ?", (log_id,)).fetchone()
    return int(row[0]) // most + 1


def of_index(connection: sqlite3.Connection, log_id: int, step: int, most: int, first: int = 0) -> list[TurnSpan]:
    """Return at most so many spans of what the index holds from a record on, as `TurnSpans.together` would."""
    rows = connection.execute(
        """
        SELECT min(turn), max(turn), min(ordinal), min(time), max(time), sum(kind = 'turn_end'), sum(failed),
               min(CASE WHEN kind = 'user' THEN ordinal END),
               min(CASE WHEN kind IN ('assistant', 'tool_call') THEN ordinal END)
        FROM entry WHERE log_id = ? AND ordinal >= ? AND turn IS NOT NULL AND NOT synthetic
        GROUP BY turn / ? ORDER BY min(ordinal) LIMIT ?
        """,
        (log_id, first, step, most),
    ).fetchall()
    wanted = [row[8] if row[7] is None else row[7] for row in rows]
    openings = _openings(connection, log_id, [ordinal for ordinal in wanted if ordinal is not None])
    return [
        TurnSpan._make((*row[:7], *openings.get(ordinal, (None, ""))))
        for row, ordinal in zip(rows, wanted, strict=True)
    ]


def extended(spans: Iterable[TurnSpan], more: Iterable[TurnSpan], step: int) -> list[TurnSpan]:
    """Return the spans of a log with those of what was appended to it."""
    found = {span.first // step: span for span in spans}
    for span in more:
        key = span.first // step
        found[key] = _joined([found[key], span]) if key in found else span
    return list(found.values())


def _openings(connection: sqlite3.Connection, log_id: int, ordinals: list[int]) -> dict[int, tuple[Kind, str]]:
    rows = connection.execute(
        """
        SELECT entry.ordinal, kind, substr(text, 1, ?2) FROM json_each(?3) AS wanted
        CROSS JOIN entry ON log_id = ?1 AND ordinal = wanted.value AND kind IN ('user', 'assistant', 'tool_call')
        """,
        (log_id, OPENING_CHARS, msgspec.json.encode(ordinals).decode()),
    ).fetchall()
    return {row[0]: (row[1], _on_one_line(row[2])) for row in rows}


def _joined(spans: Sequence[TurnSpan]) -> TurnSpan:
    times = [time for span in spans for time in (span.started, span.ended) if time is not None]
    asked = (span for span in spans if span.kind == "user")
    opening = next(asked, None) or next((span for span in spans if span.kind), spans[0])
    return TurnSpan(
        min(span.first for span in spans),
        max(span.last for span in spans),
        spans[0].ordinal,
        min(times, default=None),
        max(times, default=None),
        sum(span.bad_ends for span in spans),
        sum(span.failures for span in spans),
        opening.kind,
        opening.opening,
    )


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
