"""The operations: the only door to what logs say. Authorize, read, check what was read, answer."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from sessiongraph_web import following, leaving, lists, reads, sharing, tokens
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import (
    EventPage,
    EventTrace,
    IndexNote,
    Lineage,
    Occurrences,
    SearchPage,
    SessionPage,
    SessionSummary,
    TimelinePage,
    TurnList,
    WorkspaceList,
    WrittenEvent,
)
from sessiongraph_web.config import Settings
from sessiongraph_web.corpus import Corpus, View
from sessiongraph_web.errors import SessionGraphError, invalid_parameter, not_found
from sessiongraph_web.export import Download, Pages
from sessiongraph_web.filters import (
    EventRequest,
    ExportRequest,
    SearchRequest,
    SessionRequest,
    SetRequest,
    ShareRequest,
    StatusRequest,
    TimelineRequest,
)
from sessiongraph_web.following import Followed
from sessiongraph_web.grants import Grant, Selection, Shared, ShareOffer
from sessiongraph_web.indexer import Wish
from sessiongraph_web.language import sentence
from sessiongraph_web.refresher import Refresher
from sessiongraph_web.reports import Status
from sessiongraph_web.rows import never
from sessiongraph_web.tokens import Tokens

HEAL_SECONDS: Final = 30
CORRUPT: Final = frozenset({"SESSIONGRAPH_CORRUPT"})
UNUSABLE: Final = CORRUPT | {"SESSION_QUERY_INDEX_FAILED"}

T = TypeVar("T")


class SessionGraph:
    """Everything the product can be asked. Thread-safe; every method takes the caller first."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.corpus = Corpus(settings)
        self.refresher = Refresher(settings)
        self._tokens: Tokens | None = None
        self._passing_key = secrets.token_bytes(tokens.SECRET_BYTES)

    @property
    def tokens(self) -> Tokens:
        """What must survive a rebuild: the signing key, tokens and sign-ins."""
        if self._tokens is None:
            self._tokens = Tokens(self.settings.index / tokens.FILE)
        return self._tokens

    @property
    def _cursor_key(self) -> bytes:
        """The signing key; where none can be kept, one that is good for as long as this process lives."""
        try:
            return self.tokens.signing_key
        except SessionGraphError:
            return self._passing_key

    def close(self) -> None:
        self.refresher.close()
        self.corpus.close()
        if self._tokens:
            self._tokens.close()

    def search(self, caller: Caller, request: SearchRequest, *, stop: Callable[[], bool] = never) -> SearchPage:
        """Find entries; the answer is partial if the deadline comes first, or `stop` says that nobody waits."""
        if not self.settings.search:
            raise SessionGraphError("SESSION_QUERY_SEARCH_DISABLED")
        return self._listed(
            request.cursor,
            lambda view: lists.search(view, caller, request, self._note(view, caller), self._cursor_key, stop),
        )

    def timeline(self, caller: Caller, request: TimelineRequest) -> TimelinePage:
        """List sessions in time order, and count what happened each day."""
        return self._listed(
            request.cursor,
            lambda view: lists.timeline(view, caller, request, self._note(view, caller), self._cursor_key),
        )

    def workspaces(self, caller: Caller) -> WorkspaceList:
        """List the caller's workspaces by last activity."""
        return self._listed(None, lambda view: lists.workspaces(view, caller, self._note(view, caller)))

    def status(self, caller: Caller, request: StatusRequest | None = None) -> Status:
        """Say how the index is; this works without one, and with a damaged one."""
        asked = request or StatusRequest()

        def answer(view: View) -> Status:
            return lists.status(view, caller, asked, self._note(view, caller), self._store_problem())

        return self._twice(answer, UNUSABLE, again=self.corpus.bare_view)

    def session(self, caller: Caller, request: SessionRequest) -> SessionPage:
        """Read one session: its head, its relatives, a page of its events."""
        return self._read(lambda view: reads.session(view, caller, request))

    def turns(self, caller: Caller, request: SessionRequest) -> TurnList:
        """List the turns of a whole session; very many are put together."""
        return self._read(lambda view: reads.turns(view, caller, request))

    def find(self, caller: Caller, request: SessionRequest, text: str, place: int = 0) -> Occurrences:
        """Say where a text occurs in a whole session, as far as the index knows it, seen from a record."""
        return self._listed(None, lambda view: reads.find(view, caller, request, text, place))

    def follow(self, caller: Caller, request: SessionRequest) -> Followed:
        """Say where the log of a session is, and how many records it holds by now."""
        return self._read(lambda view: following.follow(view, caller, request))

    def note(self, caller: Caller) -> IndexNote:
        """Say how fresh the index is, without looking for anything new."""
        with self.corpus.view() as view:
            return self._note(view, caller)

    def event(self, caller: Caller, request: EventRequest) -> EventPage:
        """Read one whole event with its neighbours."""
        for name, count in (("before", request.before), ("after", request.after)):
            if not 0 <= count <= self.settings.read_window_max:
                maximum = self.settings.read_window_max
                detail = sentence(
                    "`%(parameter)s` must be a whole number between 0 and %(maximum)s",
                    parameter=name,
                    maximum=maximum,
                )
                raise SessionGraphError("SESSION_QUERY_INVALID_WINDOW", detail)
        return self._read(lambda view: reads.event(view, caller, request))

    def written(self, caller: Caller, request: EventRequest) -> WrittenEvent:
        """Return one record in the spelling of the generation that wrote it."""
        return self._read(lambda view: reads.written(view, caller, request))

    def event_trace(self, caller: Caller, request: EventRequest) -> EventTrace:
        """Return the relations of one event."""
        return self._read(lambda view: reads.event_trace(view, caller, request))

    def trace(self, caller: Caller, request: SessionRequest) -> Lineage:
        """Return a session's ancestors and descendants, as far as the caller may see them."""
        return self._read(lambda view: reads.trace(view, caller, request))

    def export(self, caller: Caller, request: ExportRequest) -> Download:
        """Prepare the download of a session; nothing is produced before its chunks are taken."""
        return self._read(lambda view: leaving.export(view, caller, request))

    def selection(self, caller: Caller, request: SetRequest) -> Selection:
        """Say what a set of sessions comes to before it is downloaded."""
        found = self._found(caller, request)
        return self._read(lambda view: leaving.selection(leaving.choose(view, caller, *found)))

    def export_set(self, caller: Caller, request: SetRequest, pages: Pages) -> Download:
        """Prepare the download of a set of sessions, with pages to read it by."""
        found = self._found(caller, request)

        def prepared(view: View) -> Download:
            chosen = leaving.choose(view, caller, *found)
            return leaving.export_set(view, caller, chosen, pages, redact=request.redact)

        return self._read(prepared)

    def _found(self, caller: Caller, request: SetRequest) -> tuple[list[SessionSummary], bool]:
        """Return the sessions of a set, or one more than it may have, and whether that is all that match."""
        most = leaving.MOST_SESSIONS + 1
        if request.search is None:
            asked = replace(request.timeline or TimelineRequest(), limit=most, cursor=None)
            return self.timeline(caller, asked).sessions, True
        page = self.search(caller, replace(request.search, limit=most, cursor=None, group="session"))
        if page.partial:
            raise invalid_parameter("q", "`%(parameter)s` took too long to find; narrow it")
        return [hit.session for hit in page.sessions], page.ranked_exactly

    def attachment(self, caller: Caller, request: SessionRequest, sha256: str) -> Download:
        """Return an attachment that this session's log cites; its hash alone opens nothing."""
        return self._read(lambda view: leaving.attachment(view, caller, request, sha256))

    def offer(self, caller: Caller, request: ShareRequest) -> ShareOffer:
        """Say what a request to share would open; giving access is for the owner."""
        _require_owner(caller)
        return self._read(lambda view: sharing.offer(view, caller, request))

    def share(self, caller: Caller, request: ShareRequest) -> Shared:
        """Give others access to one session or one workspace."""
        _require_owner(caller)
        return self._read(lambda view: sharing.share(view, caller, request, self.tokens))

    def grants(self, caller: Caller) -> list[Grant]:
        """List the access that was given."""
        _require_owner(caller)
        return self._read(lambda view: sharing.grants(view, self.tokens))

    def revoke(self, caller: Caller, token_id: str) -> None:
        """Take access back at once."""
        _require_owner(caller)
        sharing.revoke(self.tokens, token_id)

    def databases(self, caller: Caller) -> dict[str, tuple[Path, str | None]]:
        """Return {Datasette name: (file, sealed cwd)} of the databases that a caller may be shown whole."""
        if caller.kind not in ("owner", "workspaces"):
            return {}
        with self.corpus.view() as view:
            return {found.database: (found.file, found.cwd) for found in view.workspaces(caller)}

    def _listed(self, cursor: str | None, answer: Callable[[View], T]) -> T:
        """Answer from an index that was looked at lately; heal a damaged one and answer once more.

        A request with a cursor goes on with the index that the cursor knows.
        """
        if cursor is None:
            self.refresher.look()
        return self._twice(answer, CORRUPT, lambda: self.refresher.heal(HEAL_SECONDS), again=self.corpus.view)

    def _read(self, answer: Callable[[View], T]) -> T:
        """Answer from the store with the index as a map; where that is damaged, from the store alone."""
        self.refresher.look()
        verify = Wish(verify=True)
        return self._twice(answer, UNUSABLE, lambda: self.refresher.request(verify), again=self.corpus.bare_view)

    def _twice(
        self,
        answer: Callable[[View], T],
        codes: frozenset[str],
        mend: Callable[[], object] = lambda: None,
        *,
        again: Callable[[], AbstractContextManager[View]],
    ) -> T:
        """Answer from the index; where that fails with one of `codes`, mend it and answer from the other view."""
        try:
            with self.corpus.view() as view:
                return answer(view)
        except SessionGraphError as error:
            if error.code not in codes:
                raise
        mend()
        with again() as view:
            return answer(view)

    def _note(self, view: View, caller: Caller) -> IndexNote:
        note = lists.note(view, caller)
        building = self.refresher.running and note.refreshed_at is None
        return msgspec.structs.replace(note, indexing=note.indexing or building)

    def _store_problem(self) -> str | None:
        return self.refresher.problem or missing_store(self.settings)


def missing_store(settings: Settings) -> str | None:
    """Say why nothing is read where sessions are looked for, if so."""
    return None if settings.sessions.is_dir() else "there is no such directory"


def _require_owner(caller: Caller) -> None:
    if not caller.is_owner:
        raise not_found()
