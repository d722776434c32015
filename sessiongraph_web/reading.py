"""Exact reads of one log: pages of events with their classes and partners, and the relations of an event."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec

from sessiongraph_web import documents, logs
from sessiongraph_web.answers import EventTrace, EventView, instant
from sessiongraph_web.corpus import Located, View, log_limits
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.models import (
    SURFACE_TYPES,
    Event,
    InvalidSurface,
    Replace,
    Resume,
    Surface,
)
from sessiongraph_web.repair import OpenTurn
from sessiongraph_web.surface import Fold

PAGE_CHARS: Final = 400_000  # text on one page of events, after clipping
STRING_CHARS: Final = 16_000  # a longer string of an event is clipped on pages; the event's own page has it whole
MOST_PARTNERS: Final = 200


@dataclass(frozen=True, slots=True)
class Classes:
    """The surface class of any event of a log, without an entry for each."""

    replaced_by: dict[int, int]  # ordinal → seq of the event that took its place
    fault_ordinal: int | None
    inherited_count: int

    def surface(self, event: Event) -> Surface:
        if self.fault_ordinal is not None and event.ordinal >= self.fault_ordinal:
            return "unknown"
        if event.ordinal in self.replaced_by:
            return "shadowed"
        on_surface = event.type in SURFACE_TYPES and (
            event.surface_op == "append" or isinstance(event.surface_op, Replace)
        )
        return "current" if on_surface else "log-only"


class LogReader:
    """Reads one log for one operation, with the index as a map where there is one."""

    def __init__(self, view: View, located: Located) -> None:
        self.view, self.located = view, located
        self.limits = log_limits(view.settings)

    def events(self, resume: Resume | None = None) -> Iterator[Event]:
        """Yield the events from a resume point on."""
        for unit in logs.read(
            self.located.path, resume=resume or Resume(), version=self.version, limits=self.limits
        ):
            if isinstance(unit, Event):
                yield unit

    @property
    def version(self) -> int:
        return int(self.located.row["version"])

    def from_ordinal(self, ordinal: int) -> Iterator[Event]:
        """Yield the events from a record on, reading from the nearest frame before it."""
        found = self.events(self.view.resume_point(self.located, ordinal=ordinal))
        return (event for event in found if event.ordinal >= ordinal)

    def ordinals_of_seq(self, seq: int) -> list[int]:
        """Return the ordinals of every event that carries a seq, reading only the stretches that may hold one."""
        with self.view.database_of(self.located) as connection:
            stretches = _stretches(connection, self.located.log_id, seq) if connection else [(Resume(), None)]
        found: list[int] = []
        for resume, until in stretches:
            units = logs.read(
                self.located.path, resume=resume, version=self.version, limits=self.limits, until=until
            )
            found += [u.ordinal for u in units if isinstance(u, Event) and _carries(u, seq)]
        return sorted(set(found))

    def record_count(self) -> int:
        """Return how many records the log holds (without an index by reading it)."""
        with self.view.database_of(self.located) as connection:
            if connection:
                row = connection.execute(
                    "SELECT max(last_ordinal) + 1 FROM frame WHERE log_id = ?", (self.located.log_id,)
                ).fetchone()
                return int(row[0] or 0)
        return sum(1 for _ in self.events())

    def ordinal_at(self, time: int) -> int:
        """Return the first record at or after a moment; the last one if there is none."""
        last = 0
        for event in self.events():
            last = event.ordinal
            if event.time is not None and event.time >= time:
                break
        return last

    def classes(self, events: Iterable[Event]) -> Classes:
        """Return what is needed to class some events: from the index, else by folding the log."""
        ordinals = [event.ordinal for event in events]
        with self.view.database_of(self.located) as connection:
            if connection is None:
                return self._folded_classes()
            session = connection.execute(
                "SELECT surface_fault_ordinal, inherited_count FROM session WHERE log_id = ?",
                (self.located.log_id,),
            ).fetchone()
            if session is None:
                return self._folded_classes()
            rows = connection.execute(
                "SELECT ordinal, by_seq FROM shadow WHERE log_id = ? AND ordinal BETWEEN ? AND ?",
                (self.located.log_id, min(ordinals, default=0), max(ordinals, default=-1)),
            ).fetchall()
        return Classes(dict(map(tuple, rows)), session[0], session[1])

    def closers(self) -> list[Event]:
        """Return the closing events that an open turn at the end of the log would get."""
        turn, last = OpenTurn(), None
        if (carried := self._carried()) is not None:
            turn = OpenTurn.from_carried(carried["turn"])
            last = next(reversed(list(self.from_ordinal(max(0, self.record_count() - 1)))), None)
        else:
            for event in self.events():
                turn.push(event)
                last = event
        if not turn.is_open or last is None:
            return []
        return turn.closers(ordinal=last.ordinal + 1, seq=(last.seq or 0) + last.count, time=last.time)

    def trace(self, event: Event) -> EventTrace:
        """Return the relations of an event; INVALID_SURFACE where the fold stopped before it."""
        if event.seq is None:
            raise SessionGraphError("SESSION_QUERY_INVALID_SURFACE")
        classes = self.classes([event])
        if classes.surface(event) == "unknown":
            raise SessionGraphError("SESSION_QUERY_INVALID_SURFACE")
        with self.view.database_of(self.located) as connection:
            relations = _indexed_relations(connection, self.located.log_id, event) if connection else None
        chain, replaced, derived = relations or self._folded_relations(event)
        sources = event.source_event_seqs
        return EventTrace(
            session_id=self.located.id,
            log_id=self.located.log_id,
            seq=event.seq,
            type=event.type,
            time=instant(event.time),
            surface=classes.surface(event),
            replaced_by=chain[0] if chain else None,
            replacement_chain=chain,
            replaced_event_seqs=replaced,
            source_event_seqs=[] if sources is None or isinstance(sources, InvalidSurface) else sources,
            derived_event_seqs=derived,
        )

    def _carried(self) -> dict[str, Any] | None:
        with self.view.database_of(self.located) as connection:
            if connection is None:
                return None
            row = connection.execute(
                "SELECT carried FROM log WHERE log_id = ?", (self.located.log_id,)
            ).fetchone()
        carried: dict[str, Any] | None = msgspec.json.decode(row[0]) if row else None
        return carried

    def _fold(self) -> tuple[Fold, dict[int, tuple[int, int]], list[Event]]:
        """Fold the whole log: the fold, {ordinal: (ordinal, seq) of the replacer}, and the surface events."""
        fold, replacers, cited = Fold(), {}, []
        for event in self.events():
            change = fold.push(event)
            for node in change.shadowed:
                replacers[node.ordinal] = (event.ordinal, event.seq or 0)
            if event.source_event_seqs:
                cited.append(event)
        return fold, replacers, cited

    def _folded_classes(self) -> Classes:
        fold, replacers, _ = self._fold()
        return Classes({ordinal: by[1] for ordinal, by in replacers.items()}, fold.fault_ordinal, 0)

    def _folded_relations(self, event: Event) -> tuple[list[int], list[int], list[int]]:
        _, replacers, cited = self._fold()
        chain, at = [], event.ordinal
        while at in replacers:
            at, seq = replacers[at]
            chain.append(seq)
        replaced = [ordinal for ordinal, by in replacers.items() if by[0] == event.ordinal]
        derived = [e.seq for e in cited if e.seq is not None and event.seq in _sources(e)]
        return chain, replaced, derived


def page(events: Iterator[Event], limit: int) -> tuple[list[Event], bool]:
    """Take events up to the limit or the page's size; say whether there are more."""
    taken: list[Event] = []
    size = 0
    for event in events:
        if len(taken) == limit or (taken and size > PAGE_CHARS):
            return taken, True
        taken.append(event)
        size += min(_measure(event.data), PAGE_CHARS)
    return taken, False


def views(events: list[Event], classes: Classes, *, turn: int | None, clip: bool) -> list[EventView]:
    """Return events as answers show them; `turn` is the one that was open before the first."""
    partners = _partners(events)
    shown = []
    for event in events:
        own = event.data.get("turn")
        turn = own if type(own) is int else turn
        data, clipped = clip_strings(event.data) if clip else (event.data, False)
        shown.append(
            EventView(
                ordinal=event.ordinal,
                seq=event.seq,
                type=event.type,
                time=instant(event.time),
                turn=turn,
                surface=classes.surface(event),
                inherited=event.ordinal < classes.inherited_count,
                synthetic=event.synthetic,
                replaced_by=classes.replaced_by.get(event.ordinal),
                partner=partners.get(event.ordinal),
                data=data,
                clipped=clipped,
            )
        )
    return shown


def _partners(events: list[Event]) -> dict[int, int]:
    """Return {ordinal: ordinal of its partner} for the calls and results of a page, both ways."""
    pairs = documents.Pairs()
    partners: dict[int, int] = {}
    for event in events:
        call = pairs.push(event)
        if call is not None:
            partners |= {call: event.ordinal, event.ordinal: call}
    return partners


def clip_strings(value: Any) -> tuple[Any, bool]:
    """Shorten every long string of an event's data to its beginning and end."""
    if isinstance(value, str):
        if len(value) <= STRING_CHARS:
            return value, False
        half = STRING_CHARS // 2
        return f"{value[:half]}\n… {len(value) - STRING_CHARS:,} characters …\n{value[-half:]}", True
    if isinstance(value, list):
        parts = [clip_strings(item) for item in value]
        return [part for part, _ in parts], any(clipped for _, clipped in parts)
    if isinstance(value, dict):
        pairs_ = {key: clip_strings(item) for key, item in value.items()}
        return {key: part for key, (part, _) in pairs_.items()}, any(clipped for _, clipped in pairs_.values())
    return value, False


def _measure(value: Any) -> int:
    """Return about how many characters a value shows on a page."""
    if isinstance(value, str):
        return min(len(value), STRING_CHARS)
    if isinstance(value, list):
        return sum(_measure(item) + 1 for item in islice(value, PAGE_CHARS))
    if isinstance(value, dict):
        return sum(len(key) + _measure(item) for key, item in value.items())
    return 4


def _stretches(connection: sqlite3.Connection, log_id: int, seq: int) -> list[tuple[Resume, int | None]]:
    rows = connection.execute(
        """
        SELECT offset, first_ordinal, line, first_seq, end FROM frame
        WHERE log_id = ? AND first_seq <= ? AND last_seq >= ? ORDER BY offset
        """,
        (log_id, seq, seq),
    )
    return [(Resume(row[0], row[1], row[2], row[3] or 0), row[4]) for row in rows]


def _indexed_relations(
    connection: sqlite3.Connection, log_id: int, event: Event
) -> tuple[list[int], list[int], list[int]]:
    chain: list[int] = []
    at = event.ordinal
    while row := connection.execute(
        "SELECT by_ordinal, by_seq FROM shadow WHERE log_id = ? AND ordinal = ?", (log_id, at)
    ).fetchone():
        at = row[0]
        chain.append(row[1])
    replaced = connection.execute(
        "SELECT seq FROM shadow WHERE log_id = ? AND by_ordinal = ? ORDER BY place", (log_id, event.ordinal)
    )
    derived = connection.execute(
        "SELECT seq FROM citation WHERE log_id = ? AND source_seq = ? ORDER BY ordinal", (log_id, event.seq)
    )
    return chain, [row[0] for row in replaced], [row[0] for row in derived]


def _sources(event: Event) -> list[int]:
    sources = event.source_event_seqs
    return [] if sources is None or isinstance(sources, InvalidSurface) else sources


def _carries(event: Event, seq: int) -> bool:
    return event.seq is not None and event.seq <= seq < event.seq + event.count
