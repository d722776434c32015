"""The operations: the only door to what logs say. Authorize, read, check what was read, answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from sessiongraph_web import (
    access,
    attachments,
    catalog,
    corpus,
    lineage,
    lines,
    logs,
    reading,
    redact,
    schema,
    search,
    tokens,
)
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import (
    Branch,
    EventPage,
    EventTrace,
    EventView,
    IndexNote,
    Lineage,
    SearchPage,
    SessionPage,
    Status,
    TimelinePage,
    WorkspaceList,
    WrittenEvent,
)
from sessiongraph_web.config import Settings
from sessiongraph_web.corpus import Corpus, Located, View
from sessiongraph_web.errors import SessionGraphError, invalid_parameter, not_found
from sessiongraph_web.export import Download, zip_download
from sessiongraph_web.export import Source as ExportSource
from sessiongraph_web.filters import (
    EventRequest,
    ExportRequest,
    SearchRequest,
    SessionRequest,
    StatusRequest,
    TimelineRequest,
)
from sessiongraph_web.models import Event
from sessiongraph_web.paging import Paging
from sessiongraph_web.reading import LogReader
from sessiongraph_web.refresher import Refresher
from sessiongraph_web.rows import Source, never
from sessiongraph_web.tokens import Tokens

HEAL_SECONDS: Final = 30
LEAD_IN: Final = 6  # records before the one asked for, on a page that cannot begin earlier
MASKING: Final = "The index holds masked text. What is read from logs is masked for everyone but the owner."

T = TypeVar("T")


class SessionGraph:
    """Everything the product can be asked. Thread-safe; every method takes the caller first."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.corpus = Corpus(settings)
        self.refresher = Refresher(settings)
        self._tokens: Tokens | None = None

    @property
    def tokens(self) -> Tokens:
        """What must survive a rebuild: the signing key, tokens and sign-ins."""
        if self._tokens is None:
            self._tokens = Tokens(self.settings.index / tokens.FILE)
        return self._tokens

    def close(self) -> None:
        self.refresher.close()
        self.corpus.close()
        if self._tokens:
            self._tokens.close()

    def search(self, caller: Caller, request: SearchRequest, *, stop: Callable[[], bool] = never) -> SearchPage:
        """Find entries; the answer is partial if the deadline comes first, or `stop` says that nobody waits."""
        if not self.settings.search:
            raise SessionGraphError("SESSION_QUERY_SEARCH_DISABLED")
        if request.workspaces and not caller.is_owner:
            raise invalid_parameter("workspace", "is for the owner; you see your own workspaces only")
        return self._fresh(request.cursor, lambda view: self._search(view, caller, request, stop))

    def session(self, caller: Caller, request: SessionRequest) -> SessionPage:
        """Read one session: its head, its relatives, a page of its events."""
        return self._fresh(None, lambda view: self._session(view, caller, request))

    def event(self, caller: Caller, request: EventRequest) -> EventPage:
        """Read one whole event with its neighbours."""
        for name, count in (("before", request.before), ("after", request.after)):
            if not 0 <= count <= self.settings.read_window_max:
                raise SessionGraphError(
                    "SESSION_QUERY_INVALID_WINDOW",
                    f"`{name}` must be a whole number between 0 and {self.settings.read_window_max}",
                )
        return self._fresh(None, lambda view: self._event(view, caller, request))

    def written(self, caller: Caller, request: EventRequest) -> WrittenEvent:
        """Return one record in the spelling of the generation that wrote it."""
        return self._fresh(None, lambda view: self._written(view, caller, request))

    def event_trace(self, caller: Caller, request: EventRequest) -> EventTrace:
        """Return the relations of one event."""
        return self._fresh(None, lambda view: self._event_trace(view, caller, request))

    def trace(self, caller: Caller, request: SessionRequest) -> Lineage:
        """Return a session's ancestors and descendants, as far as the caller may see them."""
        return self._fresh(None, lambda view: self._trace(view, caller, request))

    def timeline(self, caller: Caller, request: TimelineRequest) -> TimelinePage:
        """List sessions in time order, and count what happened each day."""
        return self._fresh(request.cursor, lambda view: self._timeline(view, caller, request))

    def workspaces(self, caller: Caller) -> WorkspaceList:
        """List the caller's workspaces by last activity."""
        return self._fresh(None, lambda view: self._workspaces(view, caller))

    def status(self, caller: Caller, request: StatusRequest | None = None) -> Status:
        """Say how the index is; this works without one."""
        with self.corpus.view() as view:
            return self._status(view, caller, request or StatusRequest())

    def export(self, caller: Caller, request: ExportRequest) -> Download:
        """Prepare the download of a session; nothing is produced before its chunks are taken."""
        return self._fresh(None, lambda view: self._export(view, caller, request))

    def attachment(self, caller: Caller, request: SessionRequest, sha256: str) -> attachments.Attachment:
        """Return an attachment that this session's log cites; its hash alone opens nothing."""
        return self._fresh(None, lambda view: self._attachment(view, caller, request, sha256))

    def databases(self, caller: Caller) -> dict[str, tuple[Path, str | None]]:
        """Return {Datasette name: (file, sealed cwd)} of the databases that a caller may be shown whole."""
        if caller.kind not in ("owner", "workspaces"):
            return {}
        with self.corpus.view() as view:
            return {found.database: (found.file, found.cwd) for found in view.workspaces(caller)}

    def _fresh(self, cursor: str | None, answer: Callable[[View], T]) -> T:
        """Answer from an index that was looked at lately; heal a damaged one and answer once more.

        A request with a cursor goes on with the index that the cursor knows.
        """
        if cursor is None:
            self.refresher.look()
        try:
            with self.corpus.view() as view:
                return answer(view)
        except SessionGraphError as error:
            if error.code != "SESSIONGRAPH_CORRUPT":
                raise
        self.refresher.heal(HEAL_SECONDS)
        with self.corpus.view() as view:
            return answer(view)

    def _search(self, view: View, caller: Caller, request: SearchRequest, stop: Callable[[], bool]) -> SearchPage:
        deadline = time.monotonic() + self.settings.search_timeout_seconds
        with self._sources(view, caller, request) as sources:
            revisions = [[schema.database_name(source.cwd), source.revision] for source in sources]
            paging = self._paging("search", caller, request, revisions)
            found, next_offset = search.search(
                sources,
                request,
                settings=self.settings,
                offset=paging.offset,
                deadline=deadline,
                index=self._note(view),
                visible=_Visibility(view, caller),
                live=_Liveness(view),
                stop=stop,
            )
        return msgspec.structs.replace(found, next_cursor=paging.cursor(next_offset))

    @contextmanager
    def _sources(self, view: View, caller: Caller, request: SearchRequest) -> Iterator[list[Source]]:
        view.require_catalog()
        with ExitStack() as stack:
            sources = []
            for workspace in view.workspaces(caller):
                if request.workspaces and workspace.cwd not in request.workspaces:
                    continue
                connection = stack.enter_context(view.open(workspace))
                row = connection.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()
                sources.append(Source(workspace.cwd, connection, int(row[0])))
            yield sources

    def _session(self, view: View, caller: Caller, request: SessionRequest) -> SessionPage:
        located = view.find(caller, request.id, request.log_id)
        view.check_header(located)
        reader = LogReader(view, located)
        start, events, more = _page(reader, request)
        summary = view.summary(caller, located)
        if not more and summary.open_turn and summary.live is not True:
            events += reader.closers()
        views, masked = self._masked(caller, request.redact, _views(reader, events, clip=True))
        return SessionPage(
            session=summary,
            parent=lineage.parent(view, caller, located),
            children=lineage.children(view, caller, located),
            damage=catalog.damage_notes(located.row["faults"]),
            events=views,
            first_ordinal=start,
            next_ordinal=events[-1].ordinal + 1 if more else None,
            previous_ordinal=max(0, start - request.limit) if start else None,
            last_ordinal=max(0, reader.record_count() - 1),
            masked=masked,
        )

    def _event(self, view: View, caller: Caller, request: EventRequest) -> EventPage:
        located = view.find(caller, request.id, request.log_id)
        view.check_header(located)
        reader = LogReader(view, located)
        ordinals = [request.ordinal] if request.ordinal is not None else _ordinals(reader, request.seq)
        target = ordinals[0]
        first = max(0, target - request.before)
        events = list(islice(reader.from_ordinal(first), target - first + 1 + request.after))
        if not any(event.ordinal == target for event in events):
            raise SessionGraphError("SESSION_QUERY_EVENT_NOT_FOUND")
        views, masked = self._masked(caller, request.redact, _views(reader, events, clip=False))
        return EventPage(
            session=view.summary(caller, located),
            target=next(shown for shown in views if shown.ordinal == target),
            before=[shown for shown in views if shown.ordinal < target],
            after=[shown for shown in views if shown.ordinal > target],
            repeats=ordinals[1:],
            trace=_trace_if_known(reader, next(event for event in events if event.ordinal == target)),
            masked=masked,
        )

    def _written(self, view: View, caller: Caller, request: EventRequest) -> WrittenEvent:
        located = view.find(caller, request.id, request.log_id)
        view.check_header(located)
        event = _one(LogReader(view, located), request)
        record = lines.decode_record(event.line or b"{}")
        masked = 0
        if request.redact or not caller.is_owner:
            record, masked = redact.mask_value(record)
        return WrittenEvent(
            session_id=located.id, log_id=located.log_id, ordinal=event.ordinal, record=record, masked=masked
        )

    def _event_trace(self, view: View, caller: Caller, request: EventRequest) -> EventTrace:
        located = view.find(caller, request.id, request.log_id)
        view.check_header(located)
        reader = LogReader(view, located)
        return reader.trace(_one(reader, request))

    def _trace(self, view: View, caller: Caller, request: SessionRequest) -> Lineage:
        located = view.find(caller, request.id, request.log_id)
        ancestors, complete = lineage.ancestors(view, caller, located)
        branches = lineage.descendants(view, caller, located)
        if not caller.is_owner and lineage.has_hidden(view, located, branches):
            branches.append(Branch(session=None, link=None, descendants=[]))
        return Lineage(
            session=view.summary(caller, located), ancestors=ancestors, complete=complete, descendants=branches
        )

    def _timeline(self, view: View, caller: Caller, request: TimelineRequest) -> TimelinePage:
        if request.workspaces and not caller.is_owner:
            raise invalid_parameter("workspace", "is for the owner; you see your own workspaces only")
        scope = _scope(view, caller)
        connection = view.require_catalog()
        paging = self._paging("timeline", caller, request, view.note().epoch)
        rows, total = catalog.timeline(connection, scope, request, paging.offset)
        after = paging.offset + len(rows)
        return TimelinePage(
            sessions=[
                view.summary(caller, Located(row["log_id"], self.settings.sessions / row["path"], row))
                for row in rows
            ],
            total=total,
            days=catalog.days(connection, scope, request),
            zone=request.zone,
            sort=request.sort,
            next_cursor=paging.cursor(after if after < total else None),
            index=self._note(view),
        )

    def _workspaces(self, view: View, caller: Caller) -> WorkspaceList:
        found = catalog.workspaces(view.require_catalog(), _scope(view, caller))
        return WorkspaceList(workspaces=found, index=self._note(view))

    def _status(self, view: View, caller: Caller, request: StatusRequest) -> Status:
        counts = catalog.totals(view.catalog, _scope(view, caller)) if view.catalog else (0, 0, 0)
        mine = caller.is_owner
        entries, total = (
            catalog.ledger(view.catalog, request) if mine and view.catalog and request.ledger else (None, None)
        )
        return Status(
            index=self._note(view),
            workspaces=counts[0],
            sessions=counts[1],
            entries=counts[2],
            sessions_path=str(self.settings.sessions) if mine else None,
            index_path=str(self.settings.index) if mine else None,
            index_bytes=_size(view) if mine else None,
            schema_version=schema.SCHEMA_VERSION,
            states=catalog.states(view.catalog) if mine and view.catalog else None,
            problems=catalog.problems(view.catalog) if mine and view.catalog else None,
            ledger=entries,
            ledger_total=total,
            runs=catalog.runs(view.catalog) if mine and view.catalog else None,
            search_enabled=self.settings.search,
            masking=MASKING,
            store_problem=self._store_problem() if mine else None,
        )

    def _export(self, view: View, caller: Caller, request: ExportRequest) -> Download:
        root = view.find(caller, request.id, request.log_id)
        view.check_header(root)
        descendants = lineage.preorder(view, caller, root) if request.descendants else []
        for located in descendants:
            view.check_header(located)
        return zip_download(
            _export_source(root),
            [_export_source(located) for located in descendants],
            attachments=self.settings.attachments,
            redact=request.redact or not caller.is_owner,
            raw=request.format == "raw",
            limits=corpus.log_limits(self.settings),
        )

    def _attachment(
        self, view: View, caller: Caller, request: SessionRequest, sha256: str
    ) -> attachments.Attachment:
        located = view.find(caller, request.id, request.log_id)
        view.check_header(located)
        for event in LogReader(view, located).events():
            if any(reference.sha256 == sha256 for reference in attachments.cited(event)):
                found = attachments.find(self.settings.attachments, sha256)
                if found:
                    return found
                break
        raise not_found()

    def _masked(self, caller: Caller, wanted: bool, views: list[EventView]) -> tuple[list[EventView], int]:
        """Mask known secrets in what was read, for everyone but the owner, and for him on request."""
        if caller.is_owner and not wanted:
            return views, 0
        masked = [redact.mask_value(shown.data) for shown in views]
        shown = [msgspec.structs.replace(old, data=data) for old, (data, _) in zip(views, masked, strict=True)]
        return shown, sum(count for _, count in masked)

    def _note(self, view: View) -> IndexNote:
        note = view.note()
        return msgspec.structs.replace(note, indexing=note.indexing or self._is_building(note))

    def _is_building(self, note: IndexNote) -> bool:
        return self.refresher.running and note.epoch == 0

    def _store_problem(self) -> str | None:
        if self.refresher.problem:
            return self.refresher.problem
        return None if self.settings.sessions.is_dir() else "there is no such directory"

    def _paging(self, operation: str, caller: Caller, request: Any, epoch: Any) -> Paging:
        return Paging(operation, caller, request, epoch, key=self.tokens.signing_key)


class _Visibility:
    """Says whether a caller may see a log of a workspace, remembering the answer."""

    def __init__(self, view: View, caller: Caller) -> None:
        self.caller = caller
        self.seen = set(lineage.visible_ids(view, caller)) if caller.kind == "session" else None

    def __call__(self, cwd: str | None, log_id: int) -> bool:
        if self.seen is not None:
            return log_id in self.seen
        return access.sees_workspace(self.caller, cwd)


class _Liveness:
    """Says whether a log is being written now, looking at each lock once."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.known: dict[int, bool | None] = {}

    def __call__(self, _cwd: str | None, log_id: int) -> bool | None:
        if log_id not in self.known:
            row = (
                self.view.require_catalog().execute("SELECT path FROM log WHERE log_id = ?", (log_id,)).fetchone()
            )
            self.known[log_id] = logs.is_live(self.view.settings.sessions / row["path"]) if row else None
        return self.known[log_id]


def _scope(view: View, caller: Caller) -> catalog.Scope:
    return catalog.scope_of(caller, lineage.visible_ids(view, caller) if caller.kind == "session" else ())


def _views(reader: LogReader, events: list[Event], *, clip: bool) -> list[EventView]:
    return reading.views(events, reader.classes(events), turn=None, clip=clip)


def _page(reader: LogReader, request: SessionRequest) -> tuple[int, list[Event], bool]:
    """Return the record that the page begins with, its events, and whether there are more."""
    if request.ordinal is not None:
        return request.ordinal, *reading.page(reader.from_ordinal(request.ordinal), request.limit)
    target = _target(reader, request)
    start = target - target % request.limit
    events, more = reading.page(reader.from_ordinal(start), request.limit)
    if more and events[-1].ordinal < target:  # the page is full before it comes to the record
        start = max(start, target - LEAD_IN)
        events, more = reading.page(reader.from_ordinal(start), request.limit)
    return start, events, more


def _target(reader: LogReader, request: SessionRequest) -> int:
    """Return the record that the page has to hold."""
    if request.at is not None:
        return request.at
    if request.seq is not None:
        return _ordinals(reader, request.seq)[0]
    if request.time is not None:
        return reader.ordinal_at(request.time)
    return max(0, reader.record_count() - 1) if request.last else 0


def _one(reader: LogReader, request: EventRequest) -> Event:
    """Return the event that is asked for; EVENT_NOT_FOUND if the log has none there."""
    ordinal = request.ordinal if request.ordinal is not None else _ordinals(reader, request.seq)[0]
    found = next(reader.from_ordinal(ordinal), None)
    if found is None or found.ordinal != ordinal:
        raise SessionGraphError("SESSION_QUERY_EVENT_NOT_FOUND")
    return found


def _ordinals(reader: LogReader, seq: int | None) -> list[int]:
    """Return where a seq stands in the log; nowhere is EVENT_NOT_FOUND."""
    found = reader.ordinals_of_seq(seq) if seq is not None else []
    if not found:
        raise SessionGraphError("SESSION_QUERY_EVENT_NOT_FOUND")
    return found


def _trace_if_known(reader: LogReader, event: Event) -> EventTrace | None:
    try:
        return reader.trace(event)
    except SessionGraphError as error:
        if error.code == "SESSION_QUERY_INVALID_SURFACE":
            return None
        raise


def _export_source(located: Located) -> ExportSource:
    row = located.row
    return ExportSource(
        log_id=located.log_id, path=located.path, session_id=located.id, cwd=located.cwd, version=row["version"]
    )


def _size(view: View) -> int | None:
    if view.generation is None:
        return None
    return sum(path.stat().st_size for path in view.generation.directory.iterdir() if path.is_file())
