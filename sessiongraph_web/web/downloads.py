"""Streams bytes to a client: with back-pressure, until they end or the client goes."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, Protocol
from urllib.parse import quote

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_LOG: Final = logging.getLogger("sessiongraph_web")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._ ()-]")


class Payload(Protocol):
    """What can be streamed."""

    @property
    def filename(self) -> str: ...
    @property
    def media_type(self) -> str: ...
    @property
    def chunks(self) -> Iterator[bytes]: ...
    @property
    def inline(self) -> bool: ...


def disposition(filename: str, *, inline: bool = False) -> str:
    """Return a Content-Disposition with an ASCII name for old clients and the exact one (RFC 5987)."""
    flat = re.sub(r"[\x00-\x1f\x7f/\\]", "_", filename) or "download"
    kind = "inline" if inline else "attachment"
    exact = quote(flat, safe="", errors="replace")
    return f"{kind}; filename=\"{_UNSAFE.sub('_', flat)}\"; filename*=UTF-8''{exact}"


class Streamed:
    """A response that pulls one chunk at a time and sends it before it pulls the next.

    HEAD is answered without pulling. A client that goes stops the source. A source that fails leaves the response
    without an end, so that the server cuts the connection and nobody takes a part for the whole; the log has the
    reason under the number that the response's `x-request-id` told.
    """

    def __init__(self, payload: Payload, receive: Receive, *, head: bool) -> None:
        self._payload = payload
        self._receive = receive
        self._head = head
        self._number = secrets.token_hex(4)

    async def asgi_send(self, send: Send) -> None:
        """Send the response."""
        source = _Source(self._payload.chunks)
        loop = asyncio.get_running_loop()
        gone = asyncio.ensure_future(self._wait_for_disconnect())
        try:
            await send(self._start())
            while not self._head and (chunk := await loop.run_in_executor(None, source.pull)) is not None:
                if gone.done():
                    return
                if chunk:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except Exception:  # noqa: BLE001 - an edge: it is too late for another answer, which Datasette would try
            _LOG.exception("request %s failed while it was sent", self._number)
        finally:
            gone.cancel()
            loop.run_in_executor(None, source.close)

    def _start(self) -> dict[str, Any]:
        name = disposition(self._payload.filename, inline=self._payload.inline)
        headers = {
            "content-type": self._payload.media_type,
            "content-disposition": name,
            "cache-control": "private, no-store",
            "x-content-type-options": "nosniff",
            "x-request-id": self._number,
        }
        raw = [[key.encode("latin-1"), value.encode("latin-1")] for key, value in headers.items()]
        return {"type": "http.response.start", "status": 200, "headers": raw}

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


class _Source:
    """An iterator that one thread uses at a time, and that may be closed while another thread is in it."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._lock = threading.Lock()

    def pull(self) -> bytes | None:
        with self._lock:
            return next(self._chunks, None)

    def close(self) -> None:
        close = getattr(self._chunks, "close", None)
        with self._lock:
            if close is not None:
                close()
