"""The tools that a model calls: answers as text, bound to the session that calls, or to one workspace."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final, Generic, TypeVar

from sessiongraph_web import access, language, toolargs, toolgraph, tooltext
from sessiongraph_web.access import Caller
from sessiongraph_web.agents import Agent, prune
from sessiongraph_web.answers import Hit, SearchPage, SessionHit, SessionSummary
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import EventRequest, SearchRequest, SessionRequest
from sessiongraph_web.models import KINDS
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.parameters import is_unicode
from sessiongraph_web.rows import never
from sessiongraph_web.toolargs import Arguments
from sessiongraph_web.toolschemas import TOOLS

SEARCHED: Final = tuple(kind for kind in KINDS if kind != "title")
EVENTS_AT_A_TIME: Final = 100  # read back from the end, to find where the current step began
SAFE: Final[Mapping[str, str]] = {
    "SESSION_QUERY_ABORTED": "session query was cancelled",
    "SESSION_QUERY_CORRUPT_SESSION": "session event history is corrupt",
    "SESSION_QUERY_EVENT_NOT_FOUND": "session event was not found",
    "SESSION_QUERY_INDEX_FAILED": "session search index is unavailable",
    "SESSION_QUERY_INVALID_CURSOR": "session search continuation is invalid",
    "SESSION_QUERY_INVALID_FILTER": "session query filters were rejected",
    "SESSION_QUERY_INVALID_LIMIT": "session query result limit was rejected",
    "SESSION_QUERY_INVALID_QUERY": "session query was rejected",
    "SESSION_QUERY_INVALID_LINEAGE": "session lineage is invalid",
    "SESSION_QUERY_INVALID_SURFACE": "session event history is invalid",
    "SESSION_QUERY_INVALID_WINDOW": "session event window is invalid",
    "SESSION_QUERY_PERSISTENCE_FAILED": "session history storage is unavailable",
    "SESSION_QUERY_SEARCH_DISABLED": "session search is disabled in this deployment",
    "SESSION_QUERY_SESSION_NOT_FOUND": "session was not found",
    "SESSION_QUERY_STALE_CURSOR": "session history changed while paging; retry the complete search call",
    "SESSION_QUERY_TOOL_FAILED": "session query operation failed",
    "SESSION_QUERY_TOOL_UNAUTHORIZED": "session target is outside the caller workspace",
}
"""What a model is told when an operation fails: nothing of the operation's own words."""
_OUR_NAMES: Final = {
    "SESSIONGRAPH_AMBIGUOUS_ID": "SESSION_QUERY_SESSION_NOT_FOUND",
    "SESSIONGRAPH_CORRUPT": "SESSION_QUERY_INDEX_FAILED",
}
_LOG: Final = logging.getLogger("sessiongraph_web")

T = TypeVar("T")
H = TypeVar("H", Hit, SessionHit)
Stop = Callable[[], bool]
Told = tuple[Iterable[str], list[str]]
"""The parts of an answer, and the words of the command that has the rest if they are too many."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered; `code` is that of the error, if it is one."""

    text: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class _Target:
    """The session that a call is about, as which caller it is read, and whether it is the agent's own."""

    session: SessionSummary
    caller: Caller
    is_own: bool

    @property
    def words(self) -> list[str]:
        """Say on a command line which session this is."""
        return [self.session.id, *_in_workspace(self.session.cwd)]


@dataclass(frozen=True, slots=True)
class _Found(Generic[H]):
    """What a search found, whether there was more, and whether the index is not whole yet."""

    hits: list[H]
    capped: bool
    is_building: bool

    @property
    def notes(self) -> list[str]:
        return [tooltext.BUILDING] if self.is_building else []


class Toolbox:
    """The tools in the hands of one agent. Thread-safe; no argument widens what the agent sees."""

    def __init__(self, product: SessionGraph, agent: Agent) -> None:
        self.product, self.agent = product, agent

    def call(self, name: str, arguments: object, *, stop: Stop = never) -> Result:
        """Answer one call; `stop` says that nobody waits for it any more, which wins over any other error."""
        try:
            with language.spoken(language.ENGLISH):  # what models read is one text everywhere
                parts, rest = self._answer(name, arguments, stop)
                return Result(tooltext.fit(parts, shlex.join(["sessiongraph-web", *rest])))
        except SessionGraphError as error:
            failure = _aborted() if stop() else error
        except Exception as error:  # noqa: BLE001 - a model is told nothing of what it was
            failure = _failed(error)
        choices = [f"\n  {name}: {found}" for name, found in failure.fields.items() if isinstance(found, list)]
        return Result(f"Error: {failure.detail}{''.join(choices)}", failure.code)

    def _answer(self, name: str, arguments: object, stop: Stop) -> Told:
        given = toolargs.check(TOOLS[name], arguments)
        if stop():
            raise _aborted()
        if name == "sessiongraph":
            return toolgraph.ask(self.product, self.agent.caller, given, stop)
        if name == "sessiongraph_index":
            return toolgraph.index(self.product, self.agent.caller, given, stop)
        return _OPERATIONS[name](self, given, stop)

    def _session_search(self, given: Arguments, stop: Stop) -> Told:
        own = self._agent().session
        cwd = self.agent.cwd
        if cwd is None:
            raise SessionGraphError(
                "SESSION_QUERY_TOOL_UNAUTHORIZED",
                "cross-session search is unavailable because the caller session has no workspace",
            )
        query = toolargs.query(given)
        filters = toolargs.session_filters(given) | toolargs.event_filters(given, "event_", "event_surfaces")
        asked = toolargs.chosen(given, "parent_session_ids")
        parents = tuple(parent for parent in asked if self._is_visible(parent))
        roots = given.get("include_root_sessions") is True
        if asked and not parents and not roots:
            return tooltext.session_hits([], capped=False), []
        both = bool(parents) and roots  # which no request can ask at once
        filters |= {} if both else {"parents": parents, "roots": roots}
        request = SearchRequest(query=query, match="phrase", kinds=SEARCHED, **filters)

        def accept(page: SearchPage) -> list[SessionHit]:
            others = (hit for hit in page.sessions if own is None or hit.session.id != own.id)
            inside = (hit for hit in others if hit.session.cwd == cwd)
            return [hit for hit in inside if not both or _is_below(hit.session, parents)]

        found = self._drain(self.agent.caller, request, accept, stop)
        rest = ["search", "--match", "phrase", *_in_workspace(cwd), "--", query]
        return chain(tooltext.session_hits(found.hits, capped=found.capped), found.notes), rest

    def _session_event_search(self, given: Arguments, stop: Stop) -> Told:
        target = self._target(given)
        query = toolargs.query(given)
        first, last = toolargs.sequence(given)
        if target.is_own:
            step = self._current_step(target)
            last = step - 1 if last is None else min(last, step - 1)
        if last is not None and (first or 0) > last:
            return tooltext.event_hits(target.session, [], capped=False), []
        filters = toolargs.event_filters(given, "", "surfaces") | {"seq_from": first, "seq_to": last}
        filters |= {"sessions": (target.session.id,), "inherited": True}
        request = SearchRequest(query=query, match="phrase", group="none", kinds=SEARCHED, **filters)
        found = self._drain(
            target.caller,
            request,
            lambda page: [hit for hit in page.entries if hit.log_id == target.session.log_id],
            stop,
        )
        rest = ["search", "--match", "phrase", *_in_workspace(target.session.cwd), "--", query]
        return chain(tooltext.event_hits(target.session, found.hits, capped=found.capped), found.notes), rest

    def _session_trace(self, given: Arguments, _stop: Stop) -> Told:
        target = self._target(given)
        request = SessionRequest(id=target.session.id, log_id=target.session.log_id)
        whole = self._read(lambda: self.product.trace(access.OWNER, request))
        if (whole.session.id, whole.session.cwd) != (target.session.id, target.session.cwd):
            raise _unauthorized()
        return tooltext.lineage(prune(whole, self.agent.cwd)), ["trace", *target.words]

    def _session_event_trace(self, given: Arguments, _stop: Stop) -> Told:
        seq = toolargs.whole(given, "seq")
        target = self._target(given)
        request = EventRequest(id=target.session.id, log_id=target.session.log_id, seq=seq)
        trace = self._read(lambda: self.product.event_trace(target.caller, request))
        return tooltext.relations(target.session, trace), ["event", *target.words, str(seq)]

    def _session_event_read(self, given: Arguments, _stop: Stop) -> Told:
        seq = toolargs.whole(given, "seq") or 0
        before, after = (toolargs.whole(given, name) or 0 for name in ("before", "after"))
        target = self._target(given)
        request = EventRequest(
            id=target.session.id, log_id=target.session.log_id, seq=seq, before=before, after=after, redact=True
        )
        page = self._read(lambda: self.product.event(target.caller, request))
        exactly = replace(request, ordinal=page.target.ordinal)
        record = self._read(lambda: self.product.written(target.caller, exactly)).record
        rest = ["event", *target.words, str(seq), "--json"]
        return tooltext.event(tooltext.heading(target.session), seq, record, page.before, page.after), rest

    def _agent(self) -> Agent:
        if self.agent.caller.is_owner:
            raise SessionGraphError("SESSION_QUERY_TOOL_MISSING_AGENT")
        return self.agent

    def _target(self, given: Arguments) -> _Target:
        """Return the session that is meant: the agent's own, or one in its workspace that alone has this id."""
        agent = self._agent()
        named = given.get("session_id", agent.session.id if agent.session else None)
        if named is None:
            raise SessionGraphError("SESSION_QUERY_TOOL_MISSING_AGENT")
        if agent.session is None or named != agent.session.id:
            return _Target(self._visible(named), agent.caller, is_own=False)
        caller = access.OWNER if agent.cwd is None else agent.caller
        return _Target(self._summary(caller, named, agent.session.log_id), caller, is_own=True)

    def _is_visible(self, session_id: str) -> bool:
        if self.agent.session and session_id == self.agent.session.id:
            return True
        try:
            self._visible(session_id)
        except SessionGraphError as error:
            if error.code == "SESSION_QUERY_TOOL_UNAUTHORIZED":
                return False
            raise
        return True

    def _visible(self, session_id: str) -> SessionSummary:
        if not self.agent.caller.is_known:
            raise _unauthorized()
        return self._summary(self.agent.caller, session_id, None)

    def _summary(self, caller: Caller, session_id: str, log_id: int | None) -> SessionSummary:
        """Return a session by its exact id; one that is missing, foreign or not the only one is unauthorized."""
        if not is_unicode(session_id) or "\0" in session_id:
            raise _unauthorized()
        request = SessionRequest(id=session_id, log_id=log_id, limit=1)
        found = self._read(lambda: self.product.session(caller, request)).session
        if found.id != session_id or found.cwd != self.agent.cwd:
            raise _unauthorized()
        return found

    def _current_step(self, target: _Target) -> int:
        """Return the seq at which the last step of the agent's own session began."""
        request = SessionRequest(id=target.session.id, log_id=target.session.log_id, limit=1, last=True)
        end = (self._read(lambda: self.product.session(target.caller, request)).last_ordinal or 0) + 1
        while end > 0:
            start = max(0, end - EVENTS_AT_A_TIME)
            step = self._last_step(target, request, start, end)
            if step is not None:
                return step
            end = start
        raise SessionGraphError("SESSION_QUERY_TOOL_NO_CURRENT_STEP")

    def _last_step(self, target: _Target, request: SessionRequest, start: int, end: int) -> int | None:
        found: int | None = None
        at: int | None = start
        while at is not None and at < end:
            asked = replace(request, ordinal=at, limit=end - at, last=False)
            page = self._read(partial(self.product.session, target.caller, asked))
            steps = [shown.seq for shown in page.events if shown.type == "step/start" and shown.seq is not None]
            found = steps[-1] if steps else found
            at = page.next_ordinal
        return found

    def _drain(
        self, caller: Caller, request: SearchRequest, accept: Callable[[SearchPage], list[H]], stop: Stop
    ) -> _Found[H]:
        """Return what is accepted of all pages, as many as may be."""
        most = self.product.settings.max_search_results
        request = replace(request, limit=most + 2)  # the agent's own session, and one that tells there is more
        deadline = time.monotonic() + self.product.settings.search_timeout_seconds

        def is_over() -> bool:
            return stop() or time.monotonic() >= deadline

        found: list[H] = []
        cursors: set[str | None] = {None}
        while True:
            page = self._ask(partial(self.product.search, caller, request, stop=is_over))
            if page.partial or stop():
                raise _aborted()
            found += accept(page)
            if len(found) > most or page.next_cursor is None:
                more = len(found) > most or not page.ranked_exactly
                return _Found(found[:most], more, page.index.indexing)
            if page.next_cursor in cursors:
                raise _safe("SESSION_QUERY_INVALID_CURSOR")
            cursors.add(page.next_cursor)
            request = replace(request, cursor=page.next_cursor)

    def _read(self, operation: Callable[[], T]) -> T:
        """Read one session; where it is not to be found, or not alone, the agent may not see it."""
        try:
            return self._ask(operation)
        except SessionGraphError as error:
            if error.code == "SESSION_QUERY_SESSION_NOT_FOUND":
                raise _unauthorized() from error
            raise

    def _ask(self, operation: Callable[[], T]) -> T:
        """Run an operation; what it says when it fails is not for the model."""
        try:
            return operation()
        except SessionGraphError as error:
            raise _safe(error.code) from error
        except Exception as error:
            raise _failed(error) from error


def _is_below(session: SessionSummary, parents: tuple[str, ...]) -> bool:
    """Say whether a session has one of these parents, or none at all."""
    return session.parent_session in parents or (session.parent_session is None and not session.parent_elsewhere)


def _in_workspace(cwd: str | None) -> list[str]:
    return [] if cwd is None else ["--workspace", cwd]


def _safe(code: str) -> SessionGraphError:
    """Return the error of a code as a model may read it."""
    code = _OUR_NAMES.get(code, code)
    known = code if code in SAFE else "SESSION_QUERY_TOOL_FAILED"
    return SessionGraphError(known, SAFE[known])


def _failed(error: Exception) -> SessionGraphError:
    _LOG.error("an operation of a tool failed", exc_info=error)
    return _safe("SESSION_QUERY_TOOL_FAILED")


def _aborted() -> SessionGraphError:
    return _safe("SESSION_QUERY_ABORTED")


def _unauthorized() -> SessionGraphError:
    return _safe("SESSION_QUERY_TOOL_UNAUTHORIZED")


_OPERATIONS: Final[Mapping[str, Callable[[Toolbox, Arguments, Stop], Told]]] = {
    "session_search": Toolbox._session_search,
    "session_event_search": Toolbox._session_event_search,
    "session_trace": Toolbox._session_trace,
    "session_event_trace": Toolbox._session_event_trace,
    "session_event_read": Toolbox._session_event_read,
}
