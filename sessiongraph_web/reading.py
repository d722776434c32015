"""Exact reads of one log: pages of events with their classes and partners, and the relations of an event."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from types import EllipsisType
from typing import Any, Final, overload

from sessiongraph_web import documents, logs
from sessiongraph_web.answers import EventTrace, EventView, instant
from sessiongraph_web.corpus import Located, View, log_limits
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.framemap import Stretch
from sessiongraph_web.logmap import LogMap
from sessiongraph_web.models import Event, InvalidSurface, Replace, Resume, Surface
from sessiongraph_web.surface import classify

PAGE_CHARS: Final = 400_000  # text on one page of events, after clipping
STRING_CHARS: Final = 16_000  # a longer string of an event is clipped on pages; the event's own page has it whole
LOOK_BACK: Final = 256  # records before a page that are read for its turn, where more could be passed over
MOST_PARTNERS: Final = 20  # of a page's calls and results whose partner is looked for elsewhere in the log
MOST_SOURCES: Final = 20  # of the events that one of them cites, or that cite it


class LogReader:
    """Reads one log for one operation: what is known of the whole log says where the asked part is."""

    def __init__(self, view: View, located: Located) -> None:
        self.located = located
        self.limits = log_limits(view.settings)
        self.meter = logs.Meter()  # what the events of this operation cost
        self._view = view
        view.will_read(located)

    @cached_property
    def map(self) -> LogMap:
        return self._view.map_of(self.located)

    def events(self, resume: Resume | None = None, until: int | None = None) -> Iterator[Event]:
        """Yield the events from a resume point on."""
        for unit in logs.read(
            self.located.path,
            resume=resume or Resume(),
            version=self.located.row["version"],
            limits=self.limits,
            meter=self.meter,
            until=until,
        ):
            if isinstance(unit, Event):
                yield unit

    def window(self, ordinal: int) -> tuple[int | None, Iterator[Event]]:
        """Return the turn that is open before a record, and the events from it on, closers included."""
        stretch = self.map.stretch_at(ordinal)
        if stretch is None:
            return self._from(None, None, ordinal)
        skip = ordinal - stretch.first_ordinal - LOOK_BACK
        if skip > 0 and self.map.is_regular(stretch):
            turn, found = self._from(_beginning(stretch, skip), ..., ordinal)
            if turn is not ...:
                return turn, found
        return self._from(_beginning(stretch), stretch.first_turn, ordinal)

    @overload
    def _from(
        self, resume: Resume | None, turn: int | None, ordinal: int
    ) -> tuple[int | None, Iterator[Event]]: ...

    @overload
    def _from(
        self, resume: Resume | None, turn: EllipsisType, ordinal: int
    ) -> tuple[int | EllipsisType | None, Iterator[Event]]: ...

    def _from(
        self, resume: Resume | None, turn: int | EllipsisType | None, ordinal: int
    ) -> tuple[int | EllipsisType | None, Iterator[Event]]:
        """Read from a resume point, where this turn is open (`...`: it is not known), up to a record: return the
        turn that is open there, and the events from it on."""
        found = chain(self.events(resume), self._closers())
        for event in found:
            if event.ordinal >= ordinal:
                return turn, chain([event], found)
            if turn is ...:
                stated, _ = documents.turn_of(event, None)
                turn = ... if stated is None else stated
            if turn is not ...:
                _, turn = documents.turn_of(event, turn)
        return turn, iter(())

    def at(self, ordinal: int) -> Event:
        """Return the event at a position; nothing there is EVENT_NOT_FOUND."""
        found = next(self.window(ordinal)[1], None)
        if found is None or found.ordinal != ordinal:
            raise SessionGraphError("SESSION_QUERY_EVENT_NOT_FOUND")
        return found

    def ordinals_of_seq(self, seq: int) -> list[int]:
        """Return the ordinals of every event that carries a seq; none is EVENT_NOT_FOUND."""
        found = [event.ordinal for event in self._carrying(seq)]
        found = found or [closer.ordinal for closer in self.closers if closer.seq == seq]
        if not found:
            raise SessionGraphError("SESSION_QUERY_EVENT_NOT_FOUND")
        return found

    def ordinal_at(self, time: int) -> int:
        """Return the first record at or after a moment, the last one if there is none; as if no clock was ever
        turned back, so that a few looks at the map tell where to begin."""
        low, high = 0, self.map.records  # what lies before `low` is earlier
        while high - low > 1:
            middle = (low + high) // 2
            moment = self.map.moment(middle)
            if moment is not None and moment[1] < time:
                low = max(middle, moment[0])
            else:
                high = middle
        last = low
        for event in self.window(low)[1]:
            if event.synthetic:
                break
            last = event.ordinal
            if event.time is not None and event.time >= time:
                break
        return last

    @cached_property
    def closers(self) -> list[Event]:
        """The closing events that an open turn at the end of the log gets, unless a process still writes it."""
        if not self.map.open_turn.is_open or self._view.locks.is_held(self.located.path) is True:
            return []
        end = max(0, self.map.records - 1)
        stretch = self.map.stretch_at(end)
        skip = max(0, end - stretch.first_ordinal - 1) if stretch and self.map.is_regular(stretch) else 0
        *_, last = self.events(_beginning(stretch, skip) if stretch else None)
        return self.map.open_turn.closers(
            ordinal=last.ordinal + 1, seq=(last.seq or 0) + last.count, time=last.time
        )

    def _closers(self) -> Iterator[Event]:
        yield from self.closers

    def surface(self, event: Event) -> Surface:
        """Return the surface class of an event."""
        shadowed = self.map.replaced_by(event.ordinal, event.ordinal)
        return classify(event.type, event.ordinal, shadowed=shadowed, fault_ordinal=self.map.fault_ordinal)

    def views(self, turn: int | None, events: list[Event], *, clip: bool) -> list[EventView]:
        """Return neighbouring events as answers show them; `turn` is the one that was open before the first."""
        replaced_by = self.map.replaced_by(events[0].ordinal, events[-1].ordinal) if events else {}
        partners = self._partners(events)
        shown = []
        for event in events:
            own, turn = documents.turn_of(event, turn)
            data, clipped = clip_strings(event.data) if clip and _may_be_long(event) else (event.data, False)
            shown.append(
                EventView(
                    ordinal=event.ordinal,
                    seq=event.seq,
                    type=event.type,
                    time=instant(event.time),
                    turn=own,
                    surface=classify(
                        event.type, event.ordinal, shadowed=replaced_by, fault_ordinal=self.map.fault_ordinal
                    ),
                    inherited=event.ordinal < self.map.inherited_count,
                    synthetic=event.synthetic,
                    replaced_by=replaced_by.get(event.ordinal),
                    partner=partners.get(event.ordinal),
                    data=data,
                    clipped=clipped,
                )
            )
        return shown

    def trace(self, event: Event) -> EventTrace:
        """Return the relations of an event; INVALID_SURFACE where the fold stopped before it."""
        surface = self.surface(event)
        if event.seq is None or surface == "unknown":
            raise SessionGraphError("SESSION_QUERY_INVALID_SURFACE")
        chain = list(self._chain(event.ordinal))
        return EventTrace(
            session_id=self.located.id,
            log_id=self.located.log_id,
            seq=event.seq,
            type=event.type,
            time=instant(event.time),
            surface=surface,
            replaced_by=chain[0] if chain else None,
            replacement_chain=chain,
            replaced_event_seqs=self.map.replaced(event.ordinal),
            source_event_seqs=_sources(event),
            derived_event_seqs=[seq for _, seq in self._citing(event.seq)],
        )

    def _chain(self, ordinal: int) -> Iterator[int]:
        while (by := self.map.replacer(ordinal)) is not None:
            ordinal, seq = by
            yield seq

    def _citing(self, seq: int) -> list[tuple[int, int]]:
        closing = [(c.ordinal, c.seq) for c in self.closers if c.seq is not None and seq in _sources(c)]
        return [*self.map.citing(seq), *closing]

    def _carrying(self, seq: int) -> list[Event]:
        """Return every event that carries a seq, reading only the stretches that may hold one."""
        found: dict[int, Event] = {}
        for stretch in self.map.stretches_with(seq):
            event = self._where_expected(stretch, seq)
            if event is not None:
                return [event]
            events = self.events(_beginning(stretch), stretch.end)
            found |= {event.ordinal: event for event in events if carries(event, seq)}
        return [found[ordinal] for ordinal in sorted(found)]

    def _where_expected(self, stretch: Stretch, seq: int) -> Event | None:
        """Return the event with a seq that stands where it must if the numbers of a stretch have no gaps."""
        if stretch.first_seq is None or not self.map.is_regular(stretch):
            return None
        event = next(self.events(_beginning(stretch, seq - stretch.first_seq)), None)
        return event if event and carries(event, seq) else None

    def _partners(self, events: list[Event]) -> dict[int, int]:
        """Return {ordinal: ordinal of its partner} for calls and results: on the page by call id, both ways;
        where the other one is elsewhere in the log, by what the result cites."""
        partners = _pairs(events)
        alone = [event for event in events if _is_pairable(event) and event.ordinal not in partners]
        for event in alone[:MOST_PARTNERS]:
            other = self._call_of(event) if event.type == "tool/result" else self._result_of(event)
            if other is not None:
                partners[event.ordinal] = other
        return partners

    def _call_of(self, result: Event) -> int | None:
        calls = (call for seq in _sources(result)[:MOST_SOURCES] for call in self._carrying(seq))
        return next((call.ordinal for call in calls if _answers(result, call)), None)

    def _result_of(self, call: Event) -> int | None:
        citing = [] if call.seq is None else self._citing(call.seq)
        results = (self.at(ordinal) for ordinal, _ in citing[:MOST_SOURCES])
        return next((result.ordinal for result in results if _answers(result, call)), None)


def page(events: Iterator[Event], limit: int) -> tuple[list[Event], bool]:
    """Take events up to the limit or the page's size; say whether there are more."""
    taken: list[Event] = []
    most = size = measured = 0
    for event in events:
        if len(taken) == limit:
            return taken, True
        if most > PAGE_CHARS:  # else no measure is needed to know that they are not too large
            size += sum(min(measure(one.data), PAGE_CHARS) for one in taken[measured:])
            measured = len(taken)
            if size > PAGE_CHARS:
                return taken, True
        taken.append(event)
        most += _at_most(event)
    return taken, False


def _at_most(event: Event) -> int:
    """Return what the measure of an event's data is no more than, told by the length of its line: a number in a
    list may count for three characters more than it and its comma have."""
    line = event.line
    return measure(event.data) if line is None else len(line) + 3 * (line.count(b",") + line.count(b"[") + 1)


def _pairs(events: list[Event]) -> dict[int, int]:
    pairs = documents.Pairs()
    partners: dict[int, int] = {}
    for event in events:
        call = pairs.push(event)
        if call is not None:
            partners |= {call: event.ordinal, event.ordinal: call}
    return partners


def _is_pairable(event: Event) -> bool:
    return event.call_id is not None and not isinstance(event.surface_op, Replace) and not event.synthetic


def _answers(result: Event, call: Event) -> bool:
    return (
        (call.type, result.type) == ("tool/call", "tool/result")
        and call.call_id == result.call_id
        and call.ordinal < result.ordinal
        and not isinstance(result.surface_op, Replace)
    )


def _may_be_long(event: Event) -> bool:
    """Say whether an event may hold a string that is clipped on pages: a line that is shorter holds none."""
    return event.line is None or len(event.line) > STRING_CHARS


def clip_strings(value: Any) -> tuple[Any, bool]:
    """Shorten every long string of an event's data to its beginning and end; say whether there was one."""
    return _clipped(value) if _has_long(value) else (value, False)


def _has_long(value: Any) -> bool:
    """Say whether a string in a value is clipped on pages: hardly ever, so nothing is built to find out."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if len(one) > STRING_CHARS:
                return True
        elif isinstance(one, list):
            waiting += [item for item in one if isinstance(item, (str, list, dict))]
        elif isinstance(one, dict):
            waiting += [item for item in one.values() if isinstance(item, (str, list, dict))]
    return False


def _clipped(value: Any) -> tuple[Any, bool]:
    if isinstance(value, str):
        if len(value) <= STRING_CHARS:
            return value, False
        half = STRING_CHARS // 2
        return f"{value[:half]}\n… {len(value) - STRING_CHARS:,} characters …\n{value[-half:]}", True
    if isinstance(value, list):
        parts = [_clipped(item) for item in value]
        return [part for part, _ in parts], any(clipped for _, clipped in parts)
    if isinstance(value, dict):
        pairs_ = {key: _clipped(item) for key, item in value.items()}
        return {key: part for key, (part, _) in pairs_.items()}, any(clipped for _, clipped in pairs_.values())
    return value, False


def measure(value: Any) -> int:
    """Return about how many characters a value shows on a page; a loop, for streams have thousands of pieces."""
    waiting, size = [value], 0
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            size += min(len(one), STRING_CHARS)
        elif isinstance(one, list):
            size += len(one)
            waiting += one[:PAGE_CHARS]
        elif isinstance(one, dict):
            size += sum(map(len, one))
            waiting += one.values()
        else:
            size += 4
    return size


def _beginning(stretch: Stretch, skip: int = 0) -> Resume:
    """Return where a stretch begins, or so many records behind that in one that is regular."""
    ordinal, seq = stretch.first_ordinal + skip, (stretch.first_seq or 0) + skip
    lines = skip + (stretch.offset == 0) if skip else 0
    return Resume(stretch.offset, ordinal, stretch.line + lines, seq, lines)


def _sources(event: Event) -> list[int]:
    sources = event.source_event_seqs
    return [] if sources is None or isinstance(sources, InvalidSurface) else sources


def carries(event: Event, seq: int) -> bool:
    """Say whether a seq is an event's own, or one of those that a packed row stands for."""
    return event.seq is not None and event.seq <= seq < event.seq + event.count
