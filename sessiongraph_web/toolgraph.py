"""The two tools of sessiongraph: asking the history in five ways, and bringing its index up to date."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

import msgspec

from sessiongraph_web import access, console, filters, indexer, tooltext
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import Hit, SearchPage
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.indexer import Wish
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.reports import RunReport
from sessiongraph_web.screen import Screen
from sessiongraph_web.toolargs import Arguments

WIDTH: Final = 400  # columns; a model has no window to fit
POLL_SECONDS: Final = 0.05
TIMED_OUT: Final = "session query was cancelled"
_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "search": ("kinds", "workspace", "after", "before", "limit", "cursor"),
    "session": ("log", "ordinal", "limit"),
    "timeline": ("workspace", "after", "before", "limit", "cursor"),
    "workspaces": (),
    "status": (),
}
"""The arguments that an operation of `sessiongraph` hands on under the same name."""

_FLAGS: Final[dict[str, tuple[str, ...]]] = _TEXTS | {"search": ("kinds", "workspace", "limit", "cursor")}
_WORDS: Final = {"search": ("query",), "session": ("session_id",), "timeline": (), "workspaces": (), "status": ()}

Told = tuple[Iterable[str], list[str]]


def ask(product: SessionGraph, caller: Caller, given: Arguments, stop: Callable[[], bool]) -> Told:
    """Answer one of the five operations."""
    operation = given["operation"]
    parameters = {name: [_text(given[name])] for name in _TEXTS[operation] if name in given}
    lines = _OPERATIONS[operation](product, caller, given, parameters, stop)
    return _items(line.replace("More: add --", "More: add ") for line in lines), _command(
        caller, given, parameters
    )


def _command(caller: Caller, given: Arguments, parameters: Mapping[str, list[str]]) -> list[str]:
    """Return the words of the command that asks the same."""
    operation = given["operation"]
    flags = [
        word for name in _FLAGS[operation] if name in parameters for word in (f"--{name}", *parameters[name])
    ]
    flags += [word for cwd in sorted(caller.cwds) for word in ("--workspace", cwd)]
    words = [given[name] for name in ("query", "session_id") if name in given and name in _WORDS[operation]]
    return [operation, *flags, "--json", *(["--", *words] if words else [])]


def _search(
    product: SessionGraph, caller: Caller, given: Arguments, parameters: Any, stop: Callable[[], bool]
) -> Iterator[str]:
    request = filters.parse_search(parameters | {"q": [given.get("query", "")]}, product.settings)
    page = product.search(caller, request, stop=stop)
    if page.partial:
        raise SessionGraphError("SESSION_QUERY_ABORTED", TIMED_OUT)
    return console.search(_with_excerpts(page), Screen(WIDTH))


def _session(
    product: SessionGraph, caller: Caller, given: Arguments, parameters: Any, _stop: Callable[[], bool]
) -> Iterator[str]:
    request = filters.parse_session(given.get("session_id", ""), parameters, product.settings)
    return console.session(product.session(caller, request), Screen(WIDTH))


def _timeline(
    product: SessionGraph, caller: Caller, _given: Arguments, parameters: Any, _stop: Callable[[], bool]
) -> Iterator[str]:
    request = filters.parse_timeline(parameters, product.settings)
    return console.timeline(product.timeline(caller, request), Screen(WIDTH))


def _workspaces(product: SessionGraph, caller: Caller, *_: object) -> Iterator[str]:
    return console.workspaces(product.workspaces(caller), Screen(WIDTH))


def _status(product: SessionGraph, caller: Caller, *_: object) -> Iterator[str]:
    return console.status(product.status(caller), Screen(WIDTH))


_OPERATIONS: Final[dict[str, Callable[..., Iterator[str]]]] = {
    "search": _search,
    "session": _session,
    "timeline": _timeline,
    "workspaces": _workspaces,
    "status": _status,
}


def index(product: SessionGraph, caller: Caller, given: Arguments, stop: Callable[[], bool]) -> Told:
    """Bring the index up to date; a large one goes on in the background, and its run is named at once."""
    if not caller.is_owner:
        raise SessionGraphError("SESSION_QUERY_TOOL_UNAUTHORIZED", "only the owner may index")
    settings = product.settings
    run = _Run(indexer.Run(settings), Wish(force=given.get("force") is True))
    run.start()
    if product.status(access.OWNER).sessions >= settings.background_index_sessions:
        return [
            f"Index run {run.id} goes on in the background; the operation `status` tells when it is done."
        ], []
    deadline = time.monotonic() + settings.index_timeout_seconds
    while run.is_alive() and time.monotonic() < deadline and not stop():
        run.join(POLL_SECONDS)
    if run.is_alive():
        run.run_.stop.set()
        raise SessionGraphError("SESSION_QUERY_ABORTED", TIMED_OUT)
    return [console.run_report(run.report())], []


class _Run(threading.Thread):
    """An index run in a thread of its own, which a process that ends waits for."""

    def __init__(self, run: indexer.Run, wish: Wish) -> None:
        super().__init__(name="sessiongraph-index")
        self.run_, self.wish = run, wish
        self.id = secrets.token_hex(4)
        self._report: RunReport | None = None
        self._problem: Exception | None = None

    def run(self) -> None:
        try:
            self._report = self.run_.execute(self.wish)
        except Exception as error:  # noqa: BLE001 - raised again where the run is waited for
            self._problem = error

    def report(self) -> RunReport:
        if self._report is None:
            raise self._problem or SessionGraphError("SESSION_QUERY_TOOL_FAILED")
        return self._report


def _text(value: object) -> str:
    if isinstance(value, float):  # whole, by the schema
        value = int(value)
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _with_excerpts(page: SearchPage) -> SearchPage:
    """Return the page with what surrounds the longest match of each hit in place of its snippet."""

    def shown(hit: Hit) -> Hit:
        short = msgspec.structs.replace(hit.snippet, text=tooltext.excerpt(hit.snippet), matches=[])
        return msgspec.structs.replace(hit, snippet=short)

    sessions = [
        msgspec.structs.replace(found, best=shown(found.best), more=[shown(hit) for hit in found.more])
        for found in page.sessions
    ]
    return msgspec.structs.replace(page, sessions=sessions, entries=[shown(hit) for hit in page.entries])


def _items(lines: Iterable[str]) -> Iterator[str]:
    """Join lines to what stands between blank ones, so that an answer is cut only there."""
    for is_blank, block in groupby(lines, key=lambda line: not line):
        if is_blank:
            continue
        yield "\n".join(block) + "\n"
