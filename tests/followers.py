"""Followers: clients that keep a stream of server-sent events open, without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from datasette.app import Datasette

from tests.asgi import Pairs

PATIENCE_SECONDS = 10.0


@dataclass
class Follower:
    """One open stream: what was answered, and a way to go."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    ended: bool = False
    _gone: asyncio.Event = field(default_factory=asyncio.Event)
    _arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def messages(self) -> list[tuple[int, str, Any]]:
        """What was said so far: id, event and data."""
        blocks = [block for block in self.body.decode().split("\n\n") if block.startswith("id:")]
        lines = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
        return [(int(said["id"]), said["event"], json.loads(said["data"])) for said in lines]

    def go(self) -> None:
        """Disconnect."""
        self._gone.set()

    async def hears(self, count: int) -> list[tuple[int, str, Any]]:
        """Wait for so many messages."""
        await self._until(lambda: len(self.messages) >= count)
        return self.messages

    async def ends(self) -> None:
        """Wait for the end of the response."""
        await self._until(lambda: self.ended)

    async def _until(self, is_so: Any) -> None:
        async with self._arrived:
            await asyncio.wait_for(self._arrived.wait_for(is_so), PATIENCE_SECONDS)

    async def receive(self) -> MutableMapping[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        async with self._arrived:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                self.body += message.get("body", b"")
                self.ended = not message.get("more_body", False)
            self._arrived.notify_all()


@asynccontextmanager
async def follow(datasette: Datasette, url: str, headers: Pairs = ()) -> AsyncIterator[Follower]:
    """Open a stream and wait for the first bytes of its answer; leaving, disconnect and wait for its end."""
    path, _, query = url.partition("?")
    given = [("host", "localhost"), *headers]
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8001),
    }
    follower = Follower()
    serving = asyncio.ensure_future(datasette.app()(scope, follower.receive, follower.send))
    try:
        await follower._until(lambda: follower.body or follower.ended)
        yield follower
    finally:
        follower.go()
        await asyncio.wait_for(serving, PATIENCE_SECONDS)
