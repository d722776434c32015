"""Exact reads as answers: a session, its events and their relations. The index says where to look."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import msgspec

from sessiongraph_web import inbox, lineage, lines, loose, occurrences, reading, redact, resuming, turnlist
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import (
    Branch,
    EventPage,
    EventTrace,
    EventView,
    Lineage,
    Occurrences,
    Relative,
    SessionPage,
    SessionSummary,
    TurnList,
    WrittenEvent,
)
from sessiongraph_web.corpus import Located, View
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import EventRequest, SessionRequest
from sessiongraph_web.models import Event
from sessiongraph_web.reading import LogReader

MOST_NAMED: Final = 12  # sessions that one page looks up for what they said last
SAID_CHARS: Final = 2000
LEAD_IN: Final = 6  # records before the one asked for, on a page that cannot begin earlier


def session(view: View, caller: Caller, request: SessionRequest) -> SessionPage:
    """Read one session: its head, its relatives, a page of its events."""
    located = _authorized(view, caller, request)
    reader = LogReader(view, located)
    start, turn, events, more = _page(reader, request)
    views, masked = _masked(caller, request.redact, reader.views(turn, events, clip=True))
    children, named = _heard(view, caller, events, lineage.children(view, caller, located))
    summary = view.summary(caller, located)
    return SessionPage(
        session=summary,
        parent=lineage.parent(view, caller, located),
        children=children,
        named=named,
        damage=view.damage(located),
        events=views,
        first_ordinal=start,
        next_ordinal=events[-1].ordinal + 1 if more else None,
        previous_ordinal=max(0, start - request.limit) if start else None,
        last_ordinal=max(0, reader.map.records - 1),
        resume_command=_resume_command(view, caller, summary),
        ran_later=inbox.run_later(reader, events) if more else [],
        masked=masked,
    )


def _resume_command(view: View, caller: Caller, session: SessionSummary) -> str | None:
    """Return the command that goes on with a session, for who has the machine that it ran on."""
    if not caller.is_owner:
        return None
    return resuming.command(view.settings.resume_command, cwd=session.cwd, id=session.id)


def turns(view: View, caller: Caller, request: SessionRequest) -> TurnList:
    """List the turns of a whole session."""
    return turnlist.turns(view, caller, _authorized(view, caller, request), masked=request.redact)


def find(view: View, caller: Caller, request: SessionRequest, text: str, place: int) -> Occurrences:
    """Say where a text occurs in a whole session, seen from a record of it."""
    return occurrences.occurrences(view, _authorized(view, caller, request), text, place)


def event(view: View, caller: Caller, request: EventRequest) -> EventPage:
    """Read one whole event with its neighbours."""
    located = _authorized(view, caller, request)
    reader = LogReader(view, located)
    target = _target(reader, request)
    first = max(0, target.ordinal - request.before)
    turn, found = reader.window(first)
    events = list(islice(found, target.ordinal - first + 1 + request.after))
    views, masked = _masked(caller, request.redact, reader.views(turn, events, clip=False))
    raw, _ = _as_written(caller, request, target)  # its secrets are those of the view
    same = [] if target.seq is None else reader.ordinals_of_seq(target.seq)
    return EventPage(
        session=view.summary(caller, located),
        target=next(shown for shown in views if shown.ordinal == target.ordinal),
        before=[shown for shown in views if shown.ordinal < target.ordinal],
        after=[shown for shown in views if shown.ordinal > target.ordinal],
        repeats=[ordinal for ordinal in same if ordinal != target.ordinal],
        trace=_trace_if_known(reader, target),
        raw=None if target.synthetic else raw,
        masked=masked,
    )


def written(view: View, caller: Caller, request: EventRequest) -> WrittenEvent:
    """Return one record in the spelling of the generation that wrote it; a closer has that of the newest."""
    located = _authorized(view, caller, request)
    event = _target(LogReader(view, located), request)
    record, masked = _as_written(caller, request, event)
    return WrittenEvent(
        session_id=located.id, log_id=located.log_id, ordinal=event.ordinal, record=record, masked=masked
    )


def event_trace(view: View, caller: Caller, request: EventRequest) -> EventTrace:
    """Return the relations of one event."""
    reader = LogReader(view, _authorized(view, caller, request))
    return reader.trace(_target(reader, request))


def trace(view: View, caller: Caller, request: SessionRequest) -> Lineage:
    """Return a session's ancestors and descendants, as far as the caller may see them."""
    located = _authorized(view, caller, request)
    ancestors, complete = lineage.ancestors(view, caller, located)
    branches = lineage.descendants(view, caller, located)
    if not caller.is_owner and lineage.has_hidden(view, located, branches):
        branches.append(Branch(session=None, link=None, descendants=[]))
    return Lineage(
        session=view.summary(caller, located), ancestors=ancestors, complete=complete, descendants=branches
    )


def _authorized(view: View, caller: Caller, request: SessionRequest | EventRequest) -> Located:
    """Find the log that the caller may see under this id, and check that its header still says so."""
    located = view.find(caller, request.id, request.log_id)
    view.check_header(located)
    return located


def _page(reader: LogReader, request: SessionRequest) -> tuple[int, int | None, list[Event], bool]:
    """Return the record a page begins with, the turn open there, its events, and whether there are more."""
    if request.ordinal is not None:
        return request.ordinal, *_taken(reader, request.ordinal, request.limit)
    target = _wanted_record(reader, request)
    start = target - target % request.limit
    if target - start < LEAD_IN:  # what was asked for is shown among its neighbours
        start = max(0, start - LEAD_IN)
    turn, events, more = _taken(reader, start, request.limit)
    if more and events[-1].ordinal < target:  # the page is full before it comes to the record
        start = max(start, target - LEAD_IN)
        turn, events, more = _taken(reader, start, request.limit)
    return start, turn, events, more


def _taken(reader: LogReader, start: int, limit: int) -> tuple[int | None, list[Event], bool]:
    turn, found = reader.window(start)
    return turn, *reading.page(found, limit)


def _wanted_record(reader: LogReader, request: SessionRequest) -> int:
    """Return the record that the page has to hold."""
    if request.at is not None:
        return request.at
    if request.seq is not None:
        return reader.ordinals_of_seq(request.seq)[0]
    if request.time is not None:
        return reader.ordinal_at(request.time)
    return max(0, reader.map.records - 1) if request.last else 0


def _heard(
    view: View, caller: Caller, events: list[Event], children: list[Relative]
) -> tuple[list[Relative], list[Relative]]:
    """Return the children, and the other visible sessions that events name as a child or a sender, as what a fork
    copied may do; those that are named here with what they said last."""
    ids = [event.data.get("childId") or loose.at(event.data, "source.senderSessionId") for event in events]
    wanted = list(dict.fromkeys(name for one in ids if (name := loose.string(one))))[:MOST_NAMED]
    known = {child.id: child for child in children}
    heard: dict[str | None, Relative] = {}
    for name in wanted:
        for found in view.exactly(caller, name)[:1]:
            title = view.title(found)
            relative = known.get(name) or Relative(id=name, log_id=found.log_id, title=title, link="subagent")
            heard[name] = msgspec.structs.replace(relative, said=view.map_of(found).last_answer(SAID_CHARS))
    others = [relative for name, relative in heard.items() if name not in known]
    return [heard.get(child.id, child) for child in children], others


def _target(reader: LogReader, request: EventRequest) -> Event:
    """Return the event that was asked for: by its position, else the first that carries the seq; a seq beside a
    position must be one that the event there carries."""
    if request.ordinal is not None:
        found = reader.at(request.ordinal)
        if request.seq is None or reading.carries(found, request.seq):
            return found
        raise SessionGraphError("SESSION_QUERY_EVENT_NOT_FOUND")
    if request.seq is None:
        raise SessionGraphError("SESSION_QUERY_EVENT_NOT_FOUND")
    return reader.at(reader.ordinals_of_seq(request.seq)[0])


def _as_written(caller: Caller, request: EventRequest, event: Event) -> tuple[dict[str, Any], int]:
    """Return the record of an event as the caller may see it, and how many secrets are masked in it."""
    record = _record(event)
    if caller.is_owner and not request.redact:
        return record, 0
    shown: tuple[dict[str, Any], int] = redact.mask_value(record)
    return shown


def _record(event: Event) -> dict[str, Any]:
    if event.line is not None:
        return lines.decode_record(event.line)
    record: dict[str, Any] = {"type": event.type, "seq": event.seq, "time": event.time, "data": event.data}
    if event.source_event_seqs:
        record["sourceEventSeqs"] = event.source_event_seqs
    return record | ({"surfaceOp": "append"} if event.surface_op == "append" else {})


def _trace_if_known(reader: LogReader, event: Event) -> EventTrace | None:
    try:
        return reader.trace(event)
    except SessionGraphError as error:
        if error.code == "SESSION_QUERY_INVALID_SURFACE":
            return None
        raise


def _masked(caller: Caller, wanted: bool, views: list[EventView]) -> tuple[list[EventView], int]:
    """Mask known secrets in what was read, for everyone but the owner, and for him on request."""
    if caller.is_owner and not wanted:
        return views, 0
    masked = [redact.mask_value(shown.data) for shown in views]
    shown = [msgspec.structs.replace(old, data=data) for old, (data, _) in zip(views, masked, strict=True)]
    return shown, sum(count for _, count in masked)
