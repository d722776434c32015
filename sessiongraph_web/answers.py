"""What an operation answers: the shapes that pages, JSON twins, command line and tools all render."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from sessiongraph_web.models import Instant, Kind, Surface


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all answers: encoded field by field by `presentation.encode`."""


class Relative(Answer, frozen=True, kw_only=True):
    """A session named by another one. An id is given only where the caller may see it."""

    id: str | None
    log_id: int | None = None
    title: str | None = None
    created_at: Instant | None = None
    link: Literal["parent", "fork", "subagent"] = "parent"
    said: str | None = None  # how its last answer begins, masked; given where a page shows what named it


class SessionSummary(Answer, frozen=True, kw_only=True):
    """One session as lists show it. Counts leave out what was inherited from a parent."""

    log_id: int
    id: str
    title: str
    cwd: str | None
    created_at: Instant | None
    last_at: Instant | None
    version: int
    parent_session: str | None = None  # only if that parent is visible to the caller
    parent_elsewhere: bool = False  # a parent exists outside the view, or was never found
    origin: str | None = None
    agent_preset: str | None = None
    delegation_depth: int = 0
    is_seeded: bool = False
    inherited_count: int = 0
    events: int = 0
    turns: int = 0
    entries: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    models: list[str] = msgspec.field(default_factory=list)
    live: bool | None = None
    damage: int = 0
    surface_fault: str | None = None
    open_turn: bool = False
    duplicate: bool = False  # several logs that the caller may see carry the id


def session_summary(row: Mapping[str, Any], *, cwd: str | None, **beside: Any) -> SessionSummary:
    """Build a summary from a `session` row of a workspace or the catalog; `beside` overrides and adds fields."""
    taken = {name: row[name] for name in SESSION_COLUMNS if name not in beside}
    for name in ("created_at", "last_at"):
        taken[name] = instant(row[name])
    for name in ("is_seeded", "parent_elsewhere", "open_turn"):
        if name in taken:
            taken[name] = bool(taken[name])
    return SessionSummary(cwd=cwd, models=msgspec.json.decode(row["models"]), **taken, **beside)


def instant(millis: int | None) -> Instant | None:
    """Return the moment, or None for none."""
    return None if millis is None else Instant(millis)


SESSION_COLUMNS: Final = (
    "log_id",
    "id",
    "title",
    "version",
    "parent_session",
    "parent_elsewhere",
    "origin",
    "agent_preset",
    "delegation_depth",
    "is_seeded",
    "inherited_count",
    "events",
    "turns",
    "entries",
    "tool_calls",
    "tool_errors",
    "input_tokens",
    "output_tokens",
    "damage",
    "surface_fault",
    "open_turn",
)


class DamageNote(Answer, frozen=True, kw_only=True):
    """A `Fault` as callers see it."""

    code: str
    message: str
    offset: int
    line: int | None
    ordinal: int | None


def damage_notes(faults: str) -> list[DamageNote]:
    """Read the faults of a ledger row."""
    return msgspec.json.decode(faults, type=list[DamageNote])


class EventView(Answer, frozen=True, kw_only=True):
    """One event of a session page: normalised, classed, with its call's or result's partner."""

    ordinal: int
    seq: int | None
    type: str
    time: Instant | None
    turn: int | None
    surface: Surface
    inherited: bool
    synthetic: bool
    replaced_by: int | None  # seq of the event that took its place on the surface
    partner: int | None  # ordinal of the result of this call, or of the call of this result
    data: dict[str, Any]
    clipped: bool = False  # data was too large for a page; the event's own page has it whole


class SessionPage(Answer, frozen=True, kw_only=True):
    """One session: its head, its relatives, and one bounded page of its events."""

    session: SessionSummary
    parent: Relative | None
    children: list[Relative]
    named: list[Relative] = msgspec.field(default_factory=list)  # visible ones that events here name beside these
    damage: list[DamageNote]
    events: list[EventView]
    first_ordinal: int
    next_ordinal: int | None
    previous_ordinal: int | None
    last_ordinal: int | None
    resume_command: str | None = None  # what goes on with it in dsh, for the owner
    ran_later: list[str] = msgspec.field(default_factory=list)  # ids of messages queued here that ran behind
    masked: int = 0


class TurnMark(Answer, frozen=True, kw_only=True):
    """One turn of a session, or several in a row where there are very many: from `first` to `last`."""

    first: int
    last: int
    ordinal: int  # the record that it begins at, or the first one of it that says something
    started: Instant | None
    ended: Instant | None
    kind: Kind | None  # of the opening: `user`, or where nobody asked, `assistant` or `tool_call`
    opening: str  # how the first prompt begins, else the first answer or call
    bad_ends: int  # turns that failed or were stopped
    failures: int  # tool calls that failed


class TurnList(Answer, frozen=True, kw_only=True):
    """The turns of a whole session."""

    marks: list[TurnMark]
    longest_ms: int  # of what one mark stands for


class Occurrences(Answer, frozen=True, kw_only=True):
    """Where a text occurs in a session, in entries of any kind, seen from one of its records."""

    total: int = 0
    before: int = 0
    previous: int | None = None  # the record of the last one before
    onward: list[int] = []  # the records of the next ones, from that record on
    loose: bool = False  # none holds all of the text; these hold its parts
    exact: bool = True  # the time was enough to count them


class EventPage(Answer, frozen=True, kw_only=True):
    """One whole event with its neighbours, as written."""

    session: SessionSummary
    target: EventView
    before: list[EventView]
    after: list[EventView]
    repeats: list[int]  # ordinals of other events with the same seq
    trace: EventTrace | None
    raw: dict[str, Any] | None = None  # the record in the spelling of the generation that wrote it
    masked: int = 0


class WrittenEvent(Answer, frozen=True, kw_only=True):
    """One record in the spelling of the generation that wrote it."""

    session_id: str
    log_id: int
    ordinal: int
    record: dict[str, Any]
    masked: int = 0


class EventTrace(Answer, frozen=True, kw_only=True):
    """The relations of one event, as seqs."""

    session_id: str
    log_id: int
    seq: int
    type: str
    time: Instant | None
    surface: Surface
    replaced_by: int | None
    replacement_chain: list[int]
    replaced_event_seqs: list[int]
    source_event_seqs: list[int]
    derived_event_seqs: list[int]


class Branch(Answer, frozen=True, kw_only=True):
    """A descendant in a lineage tree. `session` is None for the marker of what lies outside the view."""

    session: SessionSummary | None
    link: Literal["fork", "subagent"] | None
    descendants: list[Branch]


class Lineage(Answer, frozen=True, kw_only=True):
    """A session's ancestors (nearest first) and descendants."""

    session: SessionSummary
    ancestors: list[SessionSummary]
    complete: bool  # False: an ancestor lies outside the view or was never found
    descendants: list[Branch]


class Snippet(Answer, frozen=True, kw_only=True):
    """An excerpt as plain text with match offsets in code points: `matches` = [[start, end], …]."""

    text: str
    matches: list[tuple[int, int]]


class Hit(Answer, frozen=True, kw_only=True):
    """One matching entry."""

    log_id: int
    session_id: str
    ordinal: int
    seq: int | None
    time: Instant | None
    turn: int | None
    kind: Kind
    type: str
    surface: Surface
    tool: str | None
    inherited: bool
    clipped: bool
    spans: int
    snippet: Snippet


class SessionHit(Answer, frozen=True, kw_only=True):
    """One matching session: its best match, how many there are, and up to three more."""

    session: SessionSummary
    matches: int
    best: Hit
    more: list[Hit]


class Facet(Answer, frozen=True, kw_only=True):
    """One value of a facet and the number of sessions (or entries) that have it."""

    value: str | None
    count: int


class SearchPage(Answer, frozen=True, kw_only=True):
    """The answer to a search. `sessions` holds hits grouped by session, `entries` flat ones."""

    query: str
    match: Literal["terms", "phrase", "text"]
    sort: Literal["relevance", "newest", "oldest"]
    group: Literal["session", "none"]
    kinds: list[Kind]  # the kinds that were searched in the end
    widened: bool  # the default kinds held nothing, so every kind was searched
    loose: bool  # no exact hit: these contain all the parts, not the whole
    sessions: list[SessionHit]
    entries: list[Hit]
    hits: int  # exact hits (entries)
    hits_exact: bool  # False: `hits` is a lower bound
    session_count: int
    ranked_exactly: bool  # False: only the newest candidates were ranked
    kind_counts: dict[str, int]
    facets: dict[str, list[Facet]]
    counts_exact: bool  # False: `session_count`, `kind_counts` and `facets` are lower bounds
    partial: bool  # the deadline came first
    took_ms: float
    next_cursor: str | None
    index: IndexNote


class IndexNote(Answer, frozen=True, kw_only=True):
    """How fresh the answer is."""

    epoch: int
    refreshed_at: Instant | None
    indexing: bool
    done: int = 0
    total: int = 0


class DayCount(Answer, frozen=True, kw_only=True):
    """Sessions and entries active on one calendar day of the caller's zone (`YYYY-MM-DD`)."""

    day: str
    sessions: int
    entries: int


class TimelinePage(Answer, frozen=True, kw_only=True):
    """Sessions in time order, and the days of the range."""

    sessions: list[SessionSummary]
    total: int
    days: list[DayCount]
    zone: str
    sort: Literal["created", "activity"]
    next_cursor: str | None
    index: IndexNote


class WorkspaceSummary(Answer, frozen=True, kw_only=True):
    """One workspace. `database` is its Datasette name."""

    cwd: str | None
    database: str
    sessions: int
    entries: int
    first_at: Instant | None
    last_at: Instant | None


class WorkspaceList(Answer, frozen=True, kw_only=True):
    """Every workspace the caller may see, by last activity."""

    workspaces: list[WorkspaceSummary]
    index: IndexNote
