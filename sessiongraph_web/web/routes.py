"""The one registry of routes: what the plugins serve, `/openapi.json` describes and the security tests walk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, get_args

from sessiongraph_web import filters
from sessiongraph_web.models import KINDS, SURFACES, LogState
from sessiongraph_web.web import http, openapi, views
from sessiongraph_web.web.route import Parameter, Plugin, Route

_ID: Final = r"(?P<id>[^/]+?)"
_TWIN: Final = r"(?P<format>\.json)?"

LOG: Final = Parameter("log", "which log, where several carry this id", "integer")
REDACT: Final = Parameter(
    "redact", "mask secrets; callers other than the owner always get them masked", "boolean"
)
LIMIT: Final = Parameter("limit", "rows on a page", "integer", at_least=1, at_most="max_limit")
CURSOR: Final = Parameter("cursor", "`next_cursor` of the page before")
ZONE: Final = Parameter("tz", "IANA name of the reader's time zone, for days")
WORKSPACE: Final = Parameter("workspace", "exact working directory (the owner's)", many=True)
MODEL: Final = Parameter("model", "model that answered", many=True)
ROOTS: Final = Parameter("roots", "leave out forks and subagents", "boolean")

SEARCH: Final = (
    Parameter("q", 'the query: terms are ANDed; "…" is a phrase, -term excludes'),
    Parameter("match", "how to read the query; `text` is a literal substring", choices=get_args(filters.Match)),
    Parameter("sort", "in which order", choices=get_args(filters.Sort)),
    Parameter("group", "hits by session, or each alone", choices=get_args(filters.Group)),
    LIMIT,
    CURSOR,
    ZONE,
    Parameter("kinds", "kinds of entries", many=True, choices=KINDS),
    Parameter("types", "event types", many=True),
    Parameter("surfaces", "what became of the entry on the surface", many=True, choices=SURFACES),
    WORKSPACE,
    Parameter("tool", "tool of a call or result", many=True),
    MODEL,
    Parameter("session", "session ids", many=True),
    Parameter("parent", "ids of parent sessions", many=True),
    ROOTS,
    Parameter("live", "only sessions that a process holds now", "boolean"),
    Parameter("inherited", "also what forks copied from their parents", "boolean"),
    Parameter("after", "entries from this time on: ISO 8601, or a date in `tz`"),
    Parameter("before", "entries up to this time"),
    Parameter("created_after", "sessions begun from this time on"),
    Parameter("created_before", "sessions begun up to this time"),
    Parameter("seq_from", "lowest event number", "integer"),
    Parameter("seq_to", "highest event number", "integer"),
)
SESSION: Final = (
    LOG,
    Parameter("ordinal", "begin at this 0-based position in the log", "integer"),
    Parameter("at", "the page that holds this position", "integer"),
    Parameter("seq", "the page that holds this event", "integer"),
    Parameter("time", "begin at the first event from this time on"),
    Parameter("last", "the final page", "boolean"),
    LIMIT,
    REDACT,
)
EVENT: Final = (
    LOG,
    Parameter("ordinal", "which of several events with this number", "integer"),
    Parameter("before", "neighbours before it", "integer", at_most="read_window_max"),
    Parameter("after", "neighbours after it", "integer", at_most="read_window_max"),
    REDACT,
)
TIMELINE: Final = (
    Parameter("sort", "by creation, or by last activity", choices=("created", "activity")),
    LIMIT,
    CURSOR,
    ZONE,
    WORKSPACE,
    MODEL,
    ROOTS,
    Parameter("after", "from this time on"),
    Parameter("before", "up to this time"),
    Parameter("day", "sessions active on this day (`YYYY-MM-DD` in `tz`)"),
)
SHARE: Final = (
    Parameter("session", "id of the session to share; this or `workspace`"),
    LOG,
    Parameter("descendants", "with the session's forks and subagents in its own workspace", "boolean"),
    Parameter("workspace", "exact working directory to share; an offer may name several, or none"),
    Parameter("days", "how long access lasts", "integer"),
    Parameter("label", "what it is for; shown in lists"),
)
SET: Final = (
    *(parameter for parameter in SEARCH if parameter.name not in ("limit", "cursor", "group")),
    *(parameter for parameter in TIMELINE if parameter.name == "day"),
    REDACT,
)
STATUS: Final = (
    Parameter("ledger", "list the files of the store (the owner's)", "boolean"),
    Parameter("state", "only files in these states", many=True, choices=get_args(LogState)),
    Parameter("offset", "leave out so many", "integer"),
    LIMIT,
)

ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "home",
        "/",
        r"^/(?P<format>\.json)?$",
        "status",
        "What there is: activity, recent sessions, workspaces, state of the index",
        views.HOME,
        parameters=(ZONE,),
    ),
    Route("search", "/search", rf"^/search{_TWIN}$", "search", "Search entries", views.SEARCH, "search", SEARCH),
    Route(
        "session",
        "/sessions/{id}",
        rf"^/sessions/{_ID}{_TWIN}$",
        "session",
        "One session: head, relatives, and a page of its transcript",
        views.SESSION,
        "session",
        SESSION,
    ),
    Route(
        "session_live",
        "/sessions/{id}/live",
        rf"^/sessions/{_ID}/live$",
        "session",
        "Server-sent events that say when a session holds more: `first` and `last` ordinal of what is new",
        views.SESSION_LIVE,
        "session",
        (LOG, Parameter("ordinal", "the first position not seen yet; `Last-Event-ID` goes before it", "integer")),
        twin=False,
    ),
    Route(
        "events",
        "/sessions/{id}/events",
        rf"^/sessions/{_ID}/events{_TWIN}$",
        "session",
        "One session: a page of its raw events",
        views.EVENTS,
        "session",
        SESSION,
    ),
    Route(
        "event",
        "/sessions/{id}/events/{seq}",
        rf"^/sessions/{_ID}/events/(?P<seq>\d{{1,18}}|-){_TWIN}$",
        "session",
        "One whole event with its neighbours and relations; `-` with `ordinal` for one without a number",
        views.EVENT,
        "event",
        EVENT,
    ),
    Route(
        "attachment",
        "/sessions/{id}/attachments/{sha256}",
        rf"^/sessions/{_ID}/attachments/(?P<sha256>[0-9a-f]{{64}})$",
        "session",
        "An attachment that this session's log cites",
        views.ATTACHMENT,
        "attachment",
        (LOG,),
        twin=False,
    ),
    Route(
        "trace",
        "/trace/{id}",
        rf"^/trace/{_ID}{_TWIN}$",
        "trace",
        "A session's ancestors and descendants",
        views.TRACE,
        "trace",
        (LOG,),
    ),
    Route(
        "timeline",
        "/timeline",
        rf"^/timeline{_TWIN}$",
        "timeline",
        "Sessions in time order, and activity by day",
        views.TIMELINE,
        "timeline",
        TIMELINE,
    ),
    Route(
        "workspaces",
        "/workspaces",
        rf"^/workspaces{_TWIN}$",
        "status",
        "The workspaces the caller may see",
        views.WORKSPACES,
        "workspaces",
    ),
    Route(
        "status",
        "/status",
        rf"^/status{_TWIN}$",
        "status",
        "The index: how fresh it is and what it could not read",
        views.STATUS,
        "status",
        STATUS,
    ),
    Route(
        "status_live",
        "/status/live",
        r"^/status/live$",
        "status",
        "Server-sent events that say how an index run goes, and when one has ended",
        views.STATUS_LIVE,
        "status",
        access="owner",
        twin=False,
    ),
    Route(
        "refresh",
        "/status/refresh",
        r"^/status/refresh$",
        "status",
        "Look for new events now",
        views.REFRESH,
        "refresh",
        methods=("POST",),
        access="owner",
        twin=False,
    ),
    Route(
        "rebuild",
        "/status/rebuild",
        r"^/status/rebuild$",
        "status",
        "Build the index anew",
        views.REBUILD,
        "rebuild",
        methods=("POST",),
        access="owner",
        twin=False,
    ),
    Route(
        "share",
        "/share",
        rf"^/share{_TWIN}$",
        "status",
        "What a link to one session or one workspace would open",
        views.SHARE,
        "offer",
        SHARE,
        access="owner",
    ),
    Route(
        "share_create",
        "/share/create",
        rf"^/share/create{_TWIN}$",
        "status",
        "Give others access to one session or one workspace; the secret is in this answer and nowhere else",
        views.SHARE_CREATE,
        "share",
        SHARE,
        methods=("POST",),
        access="owner",
    ),
    Route(
        "revoke",
        "/status/revoke",
        r"^/status/revoke$",
        "status",
        "Take access back",
        views.REVOKE,
        "revoke",
        (Parameter("token", "id of the grant, as Status lists it"),),
        methods=("POST",),
        access="owner",
        twin=False,
    ),
    Route(
        "export",
        "/export/{id}.zip",
        rf"^/export/{_ID}\.zip$",
        "export",
        "Download a session: its log as stored, and what it cites",
        views.EXPORT,
        "export",
        (
            LOG,
            Parameter("descendants", "with all descendants", "boolean"),
            REDACT,
            Parameter("format", "`zip`, or `raw`: the stored files as they are (the owner's)"),
        ),
        twin=False,
    ),
    *(
        Route(
            f"export_{form}",
            f"/export/{{id}}.{form}",
            rf"^/export/{_ID}(?P<format>\.{form})$",
            "export",
            f"Download a session: {meaning}",
            views.EXPORT_TEXT,
            "export",
            (LOG, REDACT),
            twin=False,
        )
        for form, meaning in (
            ("md", "a transcript in Markdown"),
            ("json", "its events, normalised, as one object"),
            ("ndjson", "its events, normalised, one record a line"),
        )
    ),
    Route(
        "export_set",
        "/export.zip",
        r"^/export\.zip$",
        "export",
        "Download all sessions that a search (with `q`) or a timeline finds",
        views.EXPORT_SET,
        "export_set",
        (*SET, Parameter("preview", "say as JSON what the archive would hold", "boolean")),
        twin=False,
    ),
    Route(
        "selection",
        "/export.zip",
        r"^/export\.zip(?P<format>\.json)$",
        "export",
        "What the download of a set of sessions would hold",
        views.SELECTION,
        "selection",
        SET,
    ),
    Route(
        "openapi",
        "/openapi.json",
        r"^/openapi(?P<format>\.json)$",
        "status",
        "This description",
        http.View(lambda asked: openapi.describe(ROUTES, asked.settings)),
        access="public",
    ),
    Route(
        "static",
        "/static/{digest}/{name}",
        r"^/static/(?P<digest>[0-9a-f]{12})/(?P<name>[a-z0-9-]+\.(?:css|js|svg))$",
        "status",
        "Style, scripts and pictures of the pages",
        views.STATIC,
        access="public",
        twin=False,
    ),
)


def for_plugin(plugin: Plugin) -> list[tuple[str, Callable[..., Any]]]:
    """Return what a plugin's `register_routes` hook answers."""
    return [(route.pattern, _endpoint(route)) for route in ROUTES if route.plugin == plugin]


def _endpoint(route: Route) -> Callable[..., Any]:
    names = frozenset(parameter.name for parameter in route.parameters)
    return http.endpoint(route.view, http.Terms(route.methods, route.access, names))
