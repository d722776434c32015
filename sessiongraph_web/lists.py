"""What the index alone answers: searches, the timeline, the workspaces, and how the index itself is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import msgspec

from sessiongraph_web import access, catalog, schema, tokenizer
from sessiongraph_web import search as searching
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import IndexNote, SearchPage, SessionHit, TimelinePage, WorkspaceList
from sessiongraph_web.corpus import View
from sessiongraph_web.errors import SessionGraphError, invalid_parameter
from sessiongraph_web.filters import SearchRequest, StatusRequest, TimelineRequest
from sessiongraph_web.language import N_
from sessiongraph_web.paging import Paging
from sessiongraph_web.reports import Status
from sessiongraph_web.rows import Reader, Source

MASKING: Final = N_("The index holds masked text. What is read from logs is masked for everyone but the owner.")


def search(
    view: View, caller: Caller, request: SearchRequest, note: IndexNote, key: bytes, stop: Callable[[], bool]
) -> SearchPage:
    """Find entries; the answer is partial if the deadline comes first, or if it is told to stop."""
    _check_workspaces(caller, request.workspaces)
    reader = Reader(time.monotonic() + view.settings.search_timeout_seconds, stop)
    visible = _Visibility(view, caller)
    with _sources(view, caller, request, reader) as (sources, revisions):
        is_narrow = bool(request.sessions) or caller.kind == "session"
        state = _logs(sources, request, visible) if is_narrow else revisions
        paging = Paging("search", caller, request, state, key=key)
        found, next_offset = searching.search(
            sources,
            request,
            settings=view.settings,
            offset=paging.offset,
            deadline=reader.deadline,
            index=note,
            visible=visible,
            live=_Liveness(view),
            stop=stop,
        )
    hits = _marked(found.sessions, view.carried(caller, {hit.session.id for hit in found.sessions}))
    return msgspec.structs.replace(found, sessions=hits, next_cursor=paging.cursor(next_offset))


def _marked(hits: list[SessionHit], carried: Mapping[str, int]) -> list[SessionHit]:
    """Mark the sessions whose id several logs carry, so that their addresses say which is meant."""
    replace = msgspec.structs.replace
    return [
        replace(hit, session=replace(hit.session, duplicate=True)) if carried[hit.session.id] > 1 else hit
        for hit in hits
    ]


def timeline(view: View, caller: Caller, request: TimelineRequest, note: IndexNote, key: bytes) -> TimelinePage:
    """List sessions in time order, and count what happened each day."""
    view.locks.read_ahead()
    _check_workspaces(caller, request.workspaces)
    scope = _scope(view, caller)
    connection = view.require_catalog()
    paging = Paging("timeline", caller, request, note.epoch, key=key)
    rows, total = catalog.timeline(connection, scope, request, paging.offset)
    after = paging.offset + len(rows)
    found = [view.located(row) for row in rows]
    return TimelinePage(
        sessions=view.summaries(caller, found),
        total=total,
        days=catalog.days(connection, scope, request),
        zone=request.zone,
        sort=request.sort,
        next_cursor=paging.cursor(after if after < total else None),
        index=note,
    )


def workspaces(view: View, caller: Caller, note: IndexNote) -> WorkspaceList:
    """List the caller's workspaces by last activity."""
    return WorkspaceList(workspaces=catalog.workspaces(view.require_catalog(), _scope(view, caller)), index=note)


def status(
    view: View, caller: Caller, request: StatusRequest, note: IndexNote, store_problem: str | None
) -> Status:
    """Say how the index is; this works without one. What belongs to the machine is the owner's."""
    counts = catalog.totals(view.catalog, _scope(view, caller)) if view.catalog else (0, 0, 0)
    answer = Status(
        index=note,
        workspaces=counts[0],
        sessions=counts[1],
        entries=counts[2],
        sessions_path=None,
        index_path=None,
        index_bytes=None,
        schema_version=schema.SCHEMA_VERSION,
        states=None,
        problems=None,
        ledger_total=None,
        runs=None,
        search_enabled=view.settings.search,
        masking=MASKING,
        store_problem=None,
    )
    if not caller.is_owner:
        return answer
    return msgspec.structs.replace(answer, store_problem=store_problem, **_machine(view, request))


def note(view: View, caller: Caller) -> IndexNote:
    """Say how fresh the index is and whether a build is going on.

    A scoped caller is told of its own sessions: not how often others change, nor how many they are.
    """
    told = view.note()
    if caller.is_owner or view.catalog is None:
        return told
    scope = _scope(view, caller)
    epoch, sessions = catalog.counter(view.catalog, scope, caller)
    return msgspec.structs.replace(
        told,
        epoch=epoch,
        indexing=told.indexing and told.refreshed_at is None,  # a first build; later looks are about others too
        done=sessions,
        total=sessions,
    )


def _machine(view: View, request: StatusRequest) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "sessions_path": str(view.settings.sessions),
        "index_path": str(view.settings.index),
        "index_bytes": _size(view),
    }
    if view.catalog is None:
        return facts
    if request.ledger:
        facts["ledger"], facts["ledger_total"] = catalog.ledger(view.catalog, request)
    return facts | {
        "states": catalog.states(view.catalog),
        "problems": catalog.problems(view.catalog),
        "runs": catalog.runs(view.catalog),
    }


def _check_workspaces(caller: Caller, asked: tuple[str, ...]) -> None:
    if asked and not caller.is_owner:
        raise invalid_parameter("workspace", "`%(parameter)s` is for the owner; you see your own workspaces only")


@contextmanager
def _sources(
    view: View, caller: Caller, request: SearchRequest, reader: Reader
) -> Iterator[tuple[list[Source], list[Any]]]:
    """Open the workspaces that may hold a hit; tell the revision of each that was looked at."""
    view.require_catalog()
    condition, values = _necessary(caller, request)
    sources, revisions = [], []
    with ExitStack() as stack:
        for workspace in view.workspaces(caller):
            if request.workspaces and workspace.cwd not in request.workspaces:
                continue
            with view.pool.lease(workspace.file) as connection:
                view.pool.check_terms(connection, workspace)
                revision, may_hold = _glance(reader, Source(workspace.cwd, connection, 0), condition, values)
            if may_hold:
                connection = stack.enter_context(view.open(workspace))
                revision = connection.execute(_REVISION).fetchone()[0]
                sources.append(Source(workspace.cwd, connection, int(revision)))
            revisions.append([workspace.database, int(revision)])
        yield sources, revisions


_REVISION: Final = "SELECT value FROM meta WHERE key = 'revision'"


def _necessary(caller: Caller, request: SearchRequest) -> tuple[str, list[str]]:
    """Return what a workspace must fulfil to hold a hit, as SQL that is answered at once.

    A search inside given sessions, or of a caller who has only one, asks for these alone: its cursors go by them.
    """
    if request.sessions:
        condition = "EXISTS (SELECT 1 FROM session WHERE id IN (SELECT value FROM json_each(?)))"
        return condition, [json.dumps(request.sessions)]
    expression = tokenizer.necessary_expression(tokenizer.parse(request.query, request.match))
    if expression is None or caller.kind == "session":
        return "1", []
    return "EXISTS (SELECT 1 FROM entry_fts WHERE entry_fts MATCH ?)", [expression]


def _glance(reader: Reader, source: Source, condition: str, values: list[str]) -> tuple[int, bool]:
    """Return the revision of a workspace and whether it may hold a hit, its seal checked: one statement says all.

    Where time is up it holds none: the answer is partial then.
    """
    sql = f"SELECT (SELECT value FROM meta WHERE key = 'sealed_cwd'), ({_REVISION}), {condition}"  # noqa: S608
    for sealed_cwd, revision, may_hold in reader.rows(source, sql, values):
        if sealed_cwd != source.cwd or revision is None:
            raise SessionGraphError("SESSIONGRAPH_CORRUPT")
        return int(revision), bool(may_hold)
    return 0, False


def _logs(sources: list[Source], request: SearchRequest, visible: _Visibility) -> list[Any]:
    """Return the state of the logs that a narrow search reads, so that others' growth never ends its cursors."""
    ids = json.dumps(request.sessions) if request.sessions else None
    rows = [
        list(row)
        for source in sources
        for row in source.connection.execute(
            """
            SELECT log_id, fingerprint, resume_offset, events, entries, last_at, title, damage
            FROM session JOIN log USING (log_id) WHERE ?1 IS NULL OR id IN (SELECT value FROM json_each(?1))
            """,
            (ids,),
        )
        if visible(source.cwd, row[0])
    ]
    return sorted(rows)


class _Visibility:
    """Says whether a caller may see a log of a workspace, remembering the answer."""

    def __init__(self, view: View, caller: Caller) -> None:
        self.caller = caller
        self.seen = view.family(caller) if caller.kind == "session" else None

    def __call__(self, cwd: str | None, log_id: int) -> bool:
        if self.seen is not None:
            return log_id in self.seen
        return access.sees_workspace(self.caller, cwd)


class _Liveness:
    """Says whether a log is being written now, looking at each lock once."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.known: dict[int, bool | None] = {}
        view.locks.read_ahead()

    def __call__(self, _cwd: str | None, log_id: int) -> bool | None:
        if log_id not in self.known:
            row = (
                self.view.require_catalog().execute("SELECT path FROM log WHERE log_id = ?", (log_id,)).fetchone()
            )
            self.known[log_id] = self.view.locks.is_held(self.view.path(log_id, row["path"])) if row else None
        return self.known[log_id]


def _scope(view: View, caller: Caller) -> catalog.Scope:
    return catalog.scope_of(caller, list(view.family(caller)) if caller.kind == "session" else ())


def _size(view: View) -> int | None:
    if view.generation is None:
        return None
    return sum(path.stat().st_size for path in view.generation.directory.iterdir() if path.is_file())
