"""Tells followers of a session, or of the index, that there is more to fetch: by server-sent events."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakKeyDictionary

import msgspec

from sessiongraph_web.access import Caller
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import SessionRequest
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.web import app

if TYPE_CHECKING:
    from datasette import Request
    from datasette.app import Datasette

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

MAX_STREAMS: Final = 32
LOOK_SECONDS: Final = 0.5  # between two looks at what is followed
HEARTBEAT_SECONDS: Final = 15  # of silence, after which a comment shows that the stream is alive
LIFETIME_SECONDS: Final = 300  # then the client comes again
RETRY_MILLIS: Final = 1000
BUSY_SECONDS: Final = 30
HEARTBEAT: Final = b": \n\n"
ID_DIGITS: Final = 18  # at most, of an id that a client hands back

_HEADERS: Final = ((b"cache-control", b"private, no-store"), (b"x-accel-buffering", b"no"))
_START: Final = [(b"content-type", b"text/event-stream; charset=utf-8"), *_HEADERS]
_BUSY: Final = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"retry-after", str(BUSY_SECONDS).encode()),
    *_HEADERS,
]


@dataclass(frozen=True, slots=True)
class News:
    """One message: its kind, its data, and the id by which a client says how far it has come."""

    id: int
    event: str
    data: dict[str, Any]

    def encode(self) -> bytes:
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (
            self.id,
            self.event.encode(),
            msgspec.json.encode(self.data),
        )


class Source(Protocol):
    """What can be followed."""

    @property
    def key(self) -> Hashable:
        """Followers with equal keys share one look."""

    def state(self) -> object:
        """Return what changes when there may be news; it costs next to nothing."""

    def news(self, since: int) -> News | None:
        """Return what a follower who knows everything up to an id has to be told. It may read, and wait."""


@dataclass(frozen=True, slots=True)
class Following:
    """A view's answer: follow this from here on."""

    source: Source
    since: int


@dataclass(frozen=True, slots=True)
class SessionSource:
    """The log of one session. An id is the ordinal of the first record that a follower has not seen."""

    product: SessionGraph
    caller: Caller
    request: SessionRequest
    path: Path

    @property
    def key(self) -> Hashable:
        return self.path

    def state(self) -> object:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns, found.st_ino

    def news(self, since: int) -> News | None:
        """Tell the range of new records; a log with fewer than the follower knows was written anew."""
        records = self.product.follow(self.caller, self.request).records
        if records == since:
            return None
        if records < since:
            return News(records, "rewritten", {"records": records})
        return News(records, "more", {"first": since, "last": records - 1})


@dataclass(frozen=True, slots=True)
class IndexSource:
    """The index, for its owner. An id is the number of runs that have ended since the server started."""

    product: SessionGraph
    caller: Caller

    @property
    def key(self) -> Hashable:
        return "index"

    def state(self) -> object:
        """Return how runs go, and have new events looked for: what is followed is not left to who asks."""
        refresher = self.product.refresher
        refresher.glance()
        return refresher.rounds, refresher.running, refresher.progress

    def news(self, since: int) -> News | None:
        """Tell how far a run has come, or the state of the index after one."""
        refresher = self.product.refresher
        rounds, progress = refresher.rounds, refresher.progress
        if refresher.running:
            if progress is None:
                return None
            return News(since, "indexing", {"done": progress.logs, "total": progress.logs_total})
        if rounds == since:
            return None
        return News(rounds, "indexed", {"epoch": self.product.note(self.caller).epoch})


def session(product: SessionGraph, caller: Caller, request: SessionRequest) -> Following:
    """Follow a session from the record `ordinal` on, or from its end."""
    found = product.follow(caller, request)
    since = found.records if request.ordinal is None else request.ordinal
    return Following(SessionSource(product, caller, request, found.path), since)


def index(product: SessionGraph, caller: Caller) -> Following:
    """Follow the index: what is told first is how it is now."""
    return Following(IndexSource(product, caller), -1)


@dataclass(slots=True)
class _Watch:
    """One thing that is followed, by however many."""

    source: Source
    seen: object
    followers: set[asyncio.Event] = field(default_factory=set)

    def look(self) -> bool:
        before, self.seen = self.seen, self.source.state()
        return before != self.seen


def _changed(watches: list[_Watch]) -> list[_Watch]:
    return [watch for watch in watches if watch.look()]


class Lookout:
    """Looks at what is followed, once for all who follow it, and only while somebody does.

    All but the look itself happens on the event loop.
    """

    def __init__(self) -> None:
        self._watches: dict[Hashable, _Watch] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def streams(self) -> int:
        return sum(len(watch.followers) for watch in self._watches.values())

    @property
    def is_full(self) -> bool:
        return self.streams >= MAX_STREAMS

    @property
    def is_ending(self) -> bool:
        return self._closed or _server_is_stopping()

    @contextmanager
    def follow(self, source: Source) -> Iterator[asyncio.Event]:
        """Lend an event that is set when there may be news, or when the server stops."""
        watch = self._watches.get(source.key)
        if watch is None:
            watch = self._watches[source.key] = _Watch(source, source.state())
        wake = asyncio.Event()
        watch.followers.add(wake)
        if self._task is None:
            self._task = asyncio.create_task(self._look())
        try:
            yield wake
        finally:
            watch.followers.discard(wake)
            if not watch.followers:
                del self._watches[source.key]
            if not self._watches:
                self._task.cancel()
                self._task = None

    def close(self) -> None:
        """End every stream."""
        self._closed = True
        self._wake(list(self._watches.values()))

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            watches = list(self._watches.values())
            changed = await asyncio.to_thread(_changed, watches)
            self._wake(watches if self.is_ending else changed)

    def _wake(self, watches: list[_Watch]) -> None:
        for watch in watches:
            for wake in watch.followers:
                wake.set()


class Stream:
    """A response that stays open and tells a follower what there is to fetch."""

    def __init__(self, datasette: Datasette, request: Request, following: Following) -> None:
        self._lookout = lookout(datasette)
        self._receive: Receive = request.receive
        self._source = following.source
        self._since = _last_event_id(request, following.since)
        self._head = request.method == "HEAD"
        self._admission = app.admission(request)

    async def asgi_send(self, send: Send) -> None:
        """Send messages until the client goes or is no longer let in, the server stops, or it was long enough."""
        if self._lookout.is_full:
            await send({"type": "http.response.start", "status": 503, "headers": _BUSY})
            await send({"type": "http.response.body", "body": b"Too many pages follow already.\n"})
            return
        with self._lookout.follow(self._source) as wake:
            await send({"type": "http.response.start", "status": 200, "headers": _START})
            if not self._head:
                await self._tell(send, wake)
        await send({"type": "http.response.body", "body": b""})

    async def _tell(self, send: Send, wake: asyncio.Event) -> None:
        gone = asyncio.ensure_future(self._wait_for_disconnect())
        gone.add_done_callback(lambda _: wake.set())
        clock = asyncio.get_running_loop().time
        spoke_at = clock()
        ends_at = spoke_at + LIFETIME_SECONDS
        wake.set()  # what was written since the page was made
        said = b"retry: %d\n\n" % RETRY_MILLIS
        try:
            while not gone.done() and not self._is_over() and clock() < ends_at:
                if said:
                    await send({"type": "http.response.body", "body": said, "more_body": True})
                    spoke_at = clock()
                has_news = await _is_set(wake, min(app.ADMISSION_SECONDS, HEARTBEAT_SECONDS))
                wake.clear()
                said = HEARTBEAT if clock() - spoke_at >= HEARTBEAT_SECONDS else b""
                if has_news and not gone.done():
                    said = await self._news()
        except SessionGraphError:
            return  # it is not there any more, or no longer the caller's: coming again, he is told so
        finally:
            gone.cancel()

    def _is_over(self) -> bool:
        return self._lookout.is_ending or self._admission.has_ended()

    async def _news(self) -> bytes:
        news = await asyncio.to_thread(self._source.news, self._since)
        if news is None:
            return b""
        self._since = news.id
        return news.encode()

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


_lookouts: WeakKeyDictionary[Datasette, Lookout] = WeakKeyDictionary()


def lookout(datasette: Datasette) -> Lookout:
    """Return the instance's lookout."""
    if datasette not in _lookouts:
        _lookouts[datasette] = Lookout()
    return _lookouts[datasette]


def close(datasette: Datasette) -> None:
    """End the instance's streams."""
    found = _lookouts.pop(datasette, None)
    if found:
        found.close()


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, but no longer than so; say whether it came."""
    try:
        return await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False


def _last_event_id(request: Request, otherwise: int) -> int:
    given = request.headers.get("last-event-id", "")
    return int(given) if given.isdecimal() and given.isascii() and len(given) <= ID_DIGITS else otherwise


def _server_is_stopping() -> bool:
    """Say whether uvicorn stops: it tells an application only after its streams have ended, its handler knows."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return bool(getattr(server, "should_exit", False))
