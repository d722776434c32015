"""Requests: what an operation may be asked, parsed and checked once from text parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sessiongraph_web.models import Kind, Surface

Match = Literal["terms", "phrase", "text"]
Sort = Literal["relevance", "newest", "oldest"]
Group = Literal["session", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search. Empty tuples and None mean no filter; times are inclusive Unix milliseconds."""

    query: str
    match: Match = "terms"
    sort: Sort = "relevance"
    group: Group = "session"
    limit: int = 20
    cursor: str | None = None
    zone: str = "UTC"
    kinds: tuple[Kind, ...] | None = None  # None: the default kinds, widened to all if they hold nothing
    types: tuple[str, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    workspaces: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    roots: bool = False
    live: bool | None = None
    inherited: bool = False
    after: int | None = None
    before: int | None = None
    created_after: int | None = None
    created_before: int | None = None
    seq_from: int | None = None
    seq_to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """One session by full id or unique prefix, and which page of its events: the one that begins at `ordinal`
    (or holds `seq`, or the first event at or after `time`); `last` asks for the final page."""

    id: str
    log_id: int | None = None
    ordinal: int | None = None
    seq: int | None = None
    time: int | None = None
    last: bool = False
    limit: int = 100
    redact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRequest:
    """One event by seq (the first that carries it) or by ordinal, with neighbours."""

    id: str
    log_id: int | None = None
    seq: int | None = None
    ordinal: int | None = None
    before: int = 0
    after: int = 0
    redact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRequest:
    """Sessions in time order; times are inclusive Unix milliseconds."""

    sort: Literal["created", "activity"] = "created"
    limit: int = 20
    cursor: str | None = None
    zone: str = "UTC"
    workspaces: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    roots: bool = False
    after: int | None = None
    before: int | None = None
    day: str | None = None  # YYYY-MM-DD in `zone`: sessions active on that day


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRequest:
    """The state of the index; `states` and a page of the ledger are for the owner."""

    states: tuple[str, ...] = ()
    ledger: bool = False
    offset: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """The download of one session."""

    id: str
    log_id: int | None = None
    descendants: bool = False
    redact: bool = False
    format: Literal["zip", "raw"] = "zip"
