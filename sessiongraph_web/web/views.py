"""The views: each turns a request into one operation, and its answer into what its page needs."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final, cast
from zoneinfo import ZoneInfo

import msgspec

from sessiongraph_web import days, family, filters, pictures, presentation, relations, wording
from sessiongraph_web.answers import EventPage, Lineage, SearchPage, SessionPage, TimelinePage, WorkspaceList
from sessiongraph_web.corpus import log_limits
from sessiongraph_web.errors import not_found
from sessiongraph_web.grants import Selection, Shared, ShareOffer
from sessiongraph_web.indexer import Wish
from sessiongraph_web.models import Instant
from sessiongraph_web.reports import Home, Status
from sessiongraph_web.web import inside, links, live, offline, render, searching, signin
from sessiongraph_web.web.http import Asked, Asset, File, Parameters, Redirect, View

RECENT: Final = 10  # sessions on the home page
NEIGHBOURS: Final = 3  # shown on each side of an event where none are asked for


def _home(asked: Asked) -> Home:
    recent = {**asked.parameters, "sort": ["activity"], "limit": [str(min(RECENT, asked.settings.max_limit))]}
    return Home(
        timeline=asked.product.timeline(asked.caller, filters.parse_timeline(recent, asked.settings)),
        workspaces=asked.product.workspaces(asked.caller),
        status=asked.product.status(asked.caller, filters.parse_status({}, asked.settings)),
    )


def _home_context(answer: Home, _asked: Asked) -> dict[str, Any]:
    return {"heatmap": _heatmap(answer.timeline, answer.workspaces)}


def _search(asked: Asked) -> SearchPage:
    return asked.product.search(asked.caller, filters.parse_search(asked.parameters, asked.settings))


def _search_context(answer: SearchPage, asked: Asked) -> dict[str, Any]:
    return {"search": searching.describe(answer, asked.parameters, asked.links)}


def _search_blank(asked: Asked) -> str | None:
    """Name the page for a search that asks nothing yet."""
    return None if "".join(asked.parameters.get("q", [])).strip() else "search_blank.html"


def _session(asked: Asked) -> SessionPage:
    request = filters.parse_session(asked.variables["id"], asked.parameters, asked.settings)
    return asked.product.session(asked.caller, request)


def _session_context(answer: SessionPage, asked: Asked) -> dict[str, Any]:
    focused = asked.looks.get("view") == ["focus"]
    turns = presentation.transcript(answer, focused=focused)
    request = filters.parse_session(answer.session.id, asked.parameters, asked.settings)
    listed = asked.product.turns(asked.caller, request)
    kept = inside.kept(asked.looks)
    found = None
    if inside.wanted(asked.looks) and asked.settings.search:
        place = inside.place(answer, request.at)
        occurring = asked.product.find(asked.caller, request, inside.wanted(asked.looks), place)
        found = inside.find(occurring, answer, kept, place, asked.links)
    return {
        "turns": turns,
        "focused": focused,
        "rail": inside.rail(listed, answer, turns, kept, asked.links),
        "kept": kept,
        "hidden": inside.hidden(asked.looks),
        "found": found,
    }


def _first_hit(answer: SessionPage, asked: Asked) -> str | None:
    """Say where a search inside a session that names no place goes: to its first hit."""
    query = inside.wanted(asked.looks)
    if not query or not asked.settings.search or not filters.PLACES.isdisjoint(asked.parameters):
        return None
    request = filters.parse_session(answer.session.id, asked.parameters, asked.settings)
    occurring = asked.product.find(asked.caller, request, query)
    kept = {**links.without(asked.parameters, "log"), **inside.kept(asked.looks)}
    to = inside.jumps(answer, kept, asked.links)
    return next(map(to, occurring.onward), None)


def _session_live(asked: Asked) -> live.Following:
    request = filters.parse_session(asked.variables["id"], asked.parameters, asked.settings)
    return live.session(asked.product, asked.caller, request)


def _events_context(answer: SessionPage, _asked: Asked) -> dict[str, Any]:
    return {"rows": presentation.rows(answer.events)}


def _event(asked: Asked) -> EventPage:
    neighbours = [str(min(NEIGHBOURS, asked.settings.read_window_max))]
    given: Parameters = {"before": neighbours, "after": neighbours, **asked.parameters}
    if asked.variables["seq"] != "-":
        given = {**given, "seq": [asked.variables["seq"]]}
    request = filters.parse_event(asked.variables["id"], given, asked.settings)
    return asked.product.event(asked.caller, request)


def _event_context(answer: EventPage, _asked: Asked) -> dict[str, Any]:
    found = relations.relations(answer.trace)
    drawn = relations.picture(answer.trace.seq, found) if answer.trace and found else None
    return {"shown": presentation.event(answer), "relations": found, "picture": drawn}


def _attachment(asked: Asked) -> File:
    request = filters.parse_session(asked.variables["id"], asked.parameters, asked.settings)
    found = asked.product.attachment(asked.caller, request, asked.variables["sha256"])
    return File(found.filename, found.media_type, found.chunks, inline=found.media_type in presentation.IMAGES)


def _trace(asked: Asked) -> Lineage:
    request = filters.parse_session(asked.variables["id"], asked.parameters, asked.settings)
    return asked.product.trace(asked.caller, request)


def _trace_context(answer: Lineage, _asked: Asked) -> dict[str, Any]:
    return {"family": family.family(answer), "outline": presentation.outline(answer)}


def _timeline(asked: Asked) -> TimelinePage:
    return asked.product.timeline(asked.caller, filters.parse_timeline(asked.parameters, asked.settings))


def _timeline_context(answer: TimelinePage, asked: Asked) -> dict[str, Any]:
    return {
        "heatmap": _heatmap(*_year(answer, asked)),
        "days": days.by_day(answer),
        "day": next(iter(asked.parameters.get("day", [])), None),
    }


def _year(answer: TimelinePage, asked: Asked) -> tuple[TimelinePage, WorkspaceList, date | None]:
    """Return what counts the days of the year asked for, what tells how far back there are any, and its end."""
    workspaces = asked.product.workspaces(asked.caller)
    until = _day("".join(asked.looks.get("until", [])[:1]))
    if until is None:
        return answer, workspaces, None
    kept = {name: values for name, values in asked.parameters.items() if name in ("tz", "workspace", "model")}
    request = filters.parse_timeline({**kept, "before": [until.isoformat()], "limit": ["1"]}, asked.settings)
    return asked.product.timeline(asked.caller, request), workspaces, until


def _heatmap(answer: TimelinePage, workspaces: WorkspaceList, until: date | None = None) -> pictures.Heatmap:
    begun = [workspace.first_at.ms for workspace in workspaces.workspaces if workspace.first_at]
    oldest = _day((wording.day(Instant(min(begun))) or "") if begun else "")
    return pictures.heatmap(answer.days, datetime.now(ZoneInfo(answer.zone)).date(), until, oldest)


def _day(text: str) -> date | None:
    """Read a day with a year of days before it; None for anything else."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.year > 1 else None


def _workspaces(asked: Asked) -> WorkspaceList:
    return asked.product.workspaces(asked.caller)


def _status(asked: Asked) -> Status:
    answer = asked.product.status(asked.caller, filters.parse_status(asked.parameters, asked.settings))
    grants = asked.product.grants(asked.caller) if asked.caller.is_owner else None
    return msgspec.structs.replace(answer, grants=grants)


def _status_context(answer: Status, asked: Asked) -> dict[str, Any]:
    return {"ledger": searching.ledger(answer, asked.parameters, asked.links)}


def _status_live(asked: Asked) -> live.Following:
    return live.index(asked.product, asked.caller)


def _refresh(asked: Asked) -> Redirect:
    asked.product.refresher.request(Wish())
    return Redirect(asked.links.path("/status"), 303)


def _rebuild(asked: Asked) -> Redirect:
    asked.product.refresher.request(Wish(force=True))
    return Redirect(asked.links.path("/status"), 303)


def _share(asked: Asked) -> ShareOffer:
    request = filters.parse_share(asked.parameters, asked.settings, offered=True)
    return asked.product.offer(asked.caller, request)


def _share_create(asked: Asked) -> Shared:
    return asked.product.share(asked.caller, filters.parse_share(asked.parameters, asked.settings))


def _shared_context(answer: Shared, asked: Asked) -> dict[str, Any]:
    """Return the link that signs a visitor in, and what a program asks with the same secret."""
    links = asked.links
    home = links.session_id(answer.session.id) if answer.session else links.path("/")
    data = f"{home}.json" if answer.session else links.path("/timeline.json")
    link = links.path(signin.LOGIN, token=answer.secret, next=home)
    return {"link": asked.origin + link, "data_url": asked.origin + data}


def _revoke(asked: Asked) -> Redirect:
    asked.product.revoke(asked.caller, "".join(asked.parameters.get("token", [])))
    return Redirect(asked.links.path("/status") + "#access", 303)


def _export(asked: Asked) -> File:
    return _exported(asked, ("zip", "raw"))


def _export_text(asked: Asked) -> File:
    return _exported(asked, (cast("filters.ExportFormat", asked.variables["format"].removeprefix(".")),))


def _exported(asked: Asked, formats: Sequence[filters.ExportFormat]) -> File:
    request = filters.parse_export(asked.variables["id"], asked.parameters, asked.settings, formats=formats)
    download = asked.product.export(asked.caller, request)
    return File(download.filename, download.media_type, download.chunks)


def _selection(asked: Asked) -> Selection:
    return asked.product.selection(asked.caller, filters.parse_set(asked.parameters, asked.settings))


def _export_set(asked: Asked) -> File | dict[str, Any]:
    request = filters.parse_set(asked.parameters, asked.settings)
    if request.preview:
        return presentation.envelope(asked.product.selection(asked.caller, request))
    pages = offline.OfflinePages(log_limits(asked.settings))
    download = asked.product.export_set(asked.caller, request, pages)
    return File(download.filename, download.media_type, download.chunks)


def _static(asked: Asked) -> Asset:
    name = asked.variables["name"]
    if name not in render.asset_names():
        raise not_found()
    fresh = render.asset(name) == f"/static/{asked.variables['digest']}/{name}"
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Asset(f"{media_type}; charset=utf-8", (render.STATIC / name).read_bytes(), fresh)


HOME: Final = View(_home, "home.html", _home_context, zoned=True)
SEARCH: Final = View(_search, "search.html", _search_context, zoned=True, blank=_search_blank)
SESSION: Final = View(_session, "session.html", _session_context, onward=_first_hit)
SESSION_LIVE: Final = View(_session_live)
EVENTS: Final = View(_session, "events.html", _events_context)
EVENT: Final = View(_event, "event.html", _event_context)
ATTACHMENT: Final = View(_attachment)
TRACE: Final = View(_trace, "trace.html", _trace_context)
TIMELINE: Final = View(_timeline, "timeline.html", _timeline_context, zoned=True)
WORKSPACES: Final = View(_workspaces, "workspaces.html")
STATUS: Final = View(_status, "status.html", _status_context)
STATUS_LIVE: Final = View(_status_live)
SHARE: Final = View(_share, "share.html")
SHARE_CREATE: Final = View(_share_create, "shared.html", _shared_context)
REVOKE: Final = View(_revoke)
REFRESH: Final = View(_refresh)
REBUILD: Final = View(_rebuild)
EXPORT: Final = View(_export)
SELECTION: Final = View(_selection, zoned=True)
EXPORT_SET: Final = View(_export_set, zoned=True)
EXPORT_TEXT: Final = View(_export_text)
STATIC: Final = View(_static, static=True)
