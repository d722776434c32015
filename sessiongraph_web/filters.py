"""Requests: what an operation may be asked, parsed and checked once from text parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

from sessiongraph_web.config import Settings
from sessiongraph_web.errors import invalid_parameter, not_found
from sessiongraph_web.models import KINDS, SURFACES, Kind, LogState, Surface
from sessiongraph_web.parameters import Parameters, in_order, is_unicode

Match = Literal["terms", "phrase", "text"]
Sort = Literal["relevance", "newest", "oldest"]
Group = Literal["session", "none"]
ExportFormat = Literal["zip", "raw", "md", "json", "ndjson"]

EVENTS_ON_A_PAGE: Final = 100
FILES_ON_A_PAGE: Final = 100

SEARCH_PARAMETERS: Final = (
    *("q", "match", "sort", "group", "limit", "cursor", "tz", "kinds", "types", "surfaces", "workspace", "tool"),
    *("model", "session", "parent", "roots", "live", "inherited", "after", "before", "created_after"),
    *("created_before", "seq_from", "seq_to"),
)
SESSION_PARAMETERS: Final = ("log", "ordinal", "at", "seq", "time", "last", "limit", "redact")
PLACES: Final = frozenset({"ordinal", "at", "seq", "time", "last"})  # of a page in a session
EVENT_PARAMETERS: Final = ("log", "seq", "ordinal", "before", "after", "redact")
TIMELINE_PARAMETERS: Final = (
    *("sort", "limit", "cursor", "tz", "workspace", "model", "roots", "after", "before", "day"),
)
STATUS_PARAMETERS: Final = ("state", "ledger", "offset", "limit")
EXPORT_PARAMETERS: Final = ("log", "descendants", "redact", "format")
SHARE_PARAMETERS: Final = ("session", "log", "descendants", "workspace", "days", "label")
SET_PARAMETERS: Final = ("redact", "preview")
SHARE_DAYS: Final = 7
MOST_SHARE_DAYS: Final = 3650


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
    """One session by full id or unique prefix, and which page of its events: the one that begins at the record
    `ordinal`, or holds the record `at`, the event `seq`, or the first event from `time` on, or the `last` one."""

    id: str
    log_id: int | None = None
    ordinal: int | None = None
    at: int | None = None
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
    format: ExportFormat = "zip"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRequest:
    """All sessions that a search finds, or that a timeline lists."""

    search: SearchRequest | None = None
    timeline: TimelineRequest | None = None
    redact: bool = False
    preview: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRequest:
    """Access for others: to one session, or to one exact workspace, for so many days."""

    session: str | None = None
    log_id: int | None = None
    descendants: bool = False
    workspace: str | None = None
    among: tuple[str, ...] = ()  # without either, an offer lets one choose: of these workspaces, or of all
    days: int = SHARE_DAYS
    label: str = ""


Given = Mapping[str, Sequence[str]]


def parse_search(given: Given, settings: Settings) -> SearchRequest:
    """Read a search; a blank `q` is left for the search itself to refuse."""
    parameters = Parameters(given)
    parameters.only(SEARCH_PARAMETERS)
    zone = parameters.zone()
    request = SearchRequest(
        query=parameters.text("q") or "",
        match=parameters.choice("match", get_args(Match)),
        sort=parameters.choice("sort", get_args(Sort)),
        group=parameters.choice("group", get_args(Group)),
        limit=parameters.limit(settings.default_limit, settings.max_limit),
        cursor=parameters.text("cursor"),
        zone=zone,
        kinds=cast("tuple[Kind, ...]", parameters.words("kinds", KINDS)) or None,
        types=parameters.words("types"),
        surfaces=cast("tuple[Surface, ...]", parameters.words("surfaces", SURFACES)),
        workspaces=parameters.texts("workspace"),
        tools=parameters.texts("tool"),
        models=parameters.texts("model"),
        sessions=parameters.texts("session"),
        parents=parameters.texts("parent"),
        roots=parameters.flag("roots") or False,
        live=parameters.flag("live"),
        inherited=parameters.flag("inherited") or False,
        after=parameters.moment("after", zone),
        before=parameters.moment("before", zone, is_end=True),
        created_after=parameters.moment("created_after", zone),
        created_before=parameters.moment("created_before", zone, is_end=True),
        seq_from=parameters.whole("seq_from"),
        seq_to=parameters.whole("seq_to"),
    )
    in_order("after", request.after, "before", request.before)
    in_order("created_after", request.created_after, "created_before", request.created_before)
    in_order("seq_from", request.seq_from, "seq_to", request.seq_to)
    return request


def parse_session(id: str, given: Given, settings: Settings) -> SessionRequest:  # noqa: A002 - the word everywhere
    """Read which session, and which page of it."""
    parameters = Parameters(given)
    parameters.only(SESSION_PARAMETERS)
    return SessionRequest(
        id=_known_id(id),
        log_id=parameters.whole("log"),
        ordinal=parameters.whole("ordinal"),
        at=parameters.whole("at"),
        seq=parameters.whole("seq"),
        time=parameters.moment("time", "UTC"),
        last=parameters.flag("last") or False,
        limit=parameters.limit(min(EVENTS_ON_A_PAGE, settings.max_limit), settings.max_limit),
        redact=parameters.flag("redact") or False,
    )


def parse_event(id: str, given: Given, settings: Settings) -> EventRequest:  # noqa: A002 - the word everywhere
    """Read which event, and how many neighbours."""
    parameters = Parameters(given)
    parameters.only(EVENT_PARAMETERS)
    return EventRequest(
        id=_known_id(id),
        log_id=parameters.whole("log"),
        seq=parameters.whole("seq"),
        ordinal=parameters.whole("ordinal"),
        before=parameters.window("before", settings.read_window_max),
        after=parameters.window("after", settings.read_window_max),
        redact=parameters.flag("redact") or False,
    )


def parse_timeline(given: Given, settings: Settings) -> TimelineRequest:
    """Read which sessions, and in which order."""
    parameters = Parameters(given)
    parameters.only(TIMELINE_PARAMETERS)
    zone = parameters.zone()
    request = TimelineRequest(
        sort=parameters.choice("sort", ("created", "activity")),
        limit=parameters.limit(settings.default_limit, settings.max_limit),
        cursor=parameters.text("cursor"),
        zone=zone,
        workspaces=parameters.texts("workspace"),
        models=parameters.texts("model"),
        roots=parameters.flag("roots") or False,
        after=parameters.moment("after", zone),
        before=parameters.moment("before", zone, is_end=True),
        day=parameters.day("day"),
    )
    in_order("after", request.after, "before", request.before)
    return request


def parse_status(given: Given, settings: Settings) -> StatusRequest:
    """Read which part of the ledger."""
    parameters = Parameters(given)
    parameters.only(STATUS_PARAMETERS)
    return StatusRequest(
        states=parameters.words("state", get_args(LogState)),
        ledger=parameters.flag("ledger") or False,
        offset=parameters.whole("offset") or 0,
        limit=parameters.limit(min(FILES_ON_A_PAGE, settings.max_limit), settings.max_limit),
    )


def parse_export(
    id: str,  # noqa: A002 - the word everywhere
    given: Given,
    _settings: Settings,
    *,
    formats: Sequence[ExportFormat] = ("zip", "raw"),
) -> ExportRequest:
    """Read which download; of `formats`, the first is meant where none is given."""
    parameters = Parameters(given)
    parameters.only(EXPORT_PARAMETERS)
    return ExportRequest(
        id=_known_id(id),
        log_id=parameters.whole("log"),
        descendants=parameters.flag("descendants") or False,
        redact=parameters.flag("redact") or False,
        format=parameters.choice("format", formats),
    )


def parse_set(given: Given, settings: Settings) -> SetRequest:
    """Read a set of sessions: with `q` the filters are those of a search, else those of the timeline."""
    own = Parameters({name: values for name, values in given.items() if name in SET_PARAMETERS})
    rest = {name: values for name, values in given.items() if name not in SET_PARAMETERS}
    by_search = Parameters(rest).text("q") is not None
    return SetRequest(
        search=parse_search(rest, settings) if by_search else None,
        timeline=None if by_search else parse_timeline(rest, settings),
        redact=own.flag("redact") or False,
        preview=own.flag("preview") or False,
    )


def parse_share(given: Given, _settings: Settings, *, offered: bool = False) -> ShareRequest:
    """Read what is to be shared: exactly one of a session and a workspace; what is only `offered` may be open."""
    parameters = Parameters(given)
    parameters.only(SHARE_PARAMETERS)
    among = parameters.texts("workspace") if offered else ()
    session, workspace = parameters.text("session"), None if len(among) > 1 else parameters.text("workspace")
    if (session is None) == (workspace is None) and not (offered and session is None):
        raise invalid_parameter("session", "`%(parameter)s` or `workspace` must be given, and not both")
    days = parameters.whole("days")
    if days is not None and not 1 <= days <= MOST_SHARE_DAYS:
        raise invalid_parameter(
            "days", "`%(parameter)s` must be a whole number from 1 to %(maximum)s", maximum=MOST_SHARE_DAYS
        )
    return ShareRequest(
        session=session and _known_id(session),
        log_id=parameters.whole("log"),
        descendants=parameters.flag("descendants") or False,
        workspace=workspace,
        among=among if workspace is None else (),
        days=SHARE_DAYS if days is None else days,
        label=parameters.text("label") or "",
    )


def _known_id(id: str) -> str:  # noqa: A002 - the word everywhere
    """Return the id; one that no header can hold is that of no session."""
    if not is_unicode(id) or "\0" in id:
        raise not_found()
    return id
