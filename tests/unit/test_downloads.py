"""Bytes on their way to a client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from sessiongraph_web.web.downloads import Streamed, disposition
from sessiongraph_web.web.http import File


class Source:
    """Chunks that know how many were taken, and whether they were closed."""

    def __init__(self, count: int, *, fails_after: int | None = None) -> None:
        self.taken = 0
        self.closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._count = count
        self._fails_after = fails_after

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self.taken == self._fails_after:
            raise OSError("the disk went away")
        if self.taken == self._count:
            raise StopIteration
        self.taken += 1
        return b"x" * self.taken

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self.closed.set)


class Client:
    """The other end: keeps what was sent, and goes away after so many bodies."""

    def __init__(self, *, leaves_after: int | None = None) -> None:
        self.sent: list[dict[str, Any]] = []
        self._leaves_after = leaves_after
        self._gone = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        if self._leaves_after is not None and len(self.sent) > self._leaves_after:
            self._gone.set()
            await asyncio.sleep(0)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


def streamed(source: Source, client: Client, *, head: bool = False) -> Streamed:
    return Streamed(File("a.zip", "application/zip", iter(source)), client.receive, head=head)


@pytest.mark.asyncio
async def test_a_download_is_sent_whole_and_closed() -> None:
    """Every chunk arrives in order, the response ends, and the source is closed."""
    source, client = Source(3), Client()
    await streamed(source, client).asgi_send(client.send)
    await asyncio.wait_for(source.closed.wait(), 5)
    assert client.body == b"xxxxxx"
    assert [message.get("more_body", False) for message in client.sent[1:]] == [True, True, True, False]


@pytest.mark.asyncio
async def test_head_takes_nothing() -> None:
    """HEAD has the headers of GET and produces no byte."""
    source, client = Source(3), Client()
    await streamed(source, client, head=True).asgi_send(client.send)
    await asyncio.wait_for(source.closed.wait(), 5)
    assert (source.taken, client.body) == (0, b"")
    assert dict(client.sent[0]["headers"])[b"content-type"] == b"application/zip"


@pytest.mark.asyncio
async def test_a_client_that_goes_stops_the_source() -> None:
    """After a disconnect nothing more is produced, and the source is closed."""
    source, client = Source(10_000), Client(leaves_after=3)
    await streamed(source, client).asgi_send(client.send)
    await asyncio.wait_for(source.closed.wait(), 5)
    assert source.taken < 10


@pytest.mark.asyncio
async def test_a_source_that_fails_leaves_the_response_without_an_end(caplog: pytest.LogCaptureFixture) -> None:
    """No part passes for the whole; the log has the reason under the number that the client was told."""
    source, client = Source(10, fails_after=2), Client()
    await streamed(source, client).asgi_send(client.send)
    await asyncio.wait_for(source.closed.wait(), 5)
    assert client.sent[-1]["more_body"] is True
    number = dict(client.sent[0]["headers"])[b"x-request-id"].decode()
    (record,) = caplog.records
    assert record.getMessage() == f"request {number} failed while it was sent"
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "the disk went away"


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("a.zip", "attachment; filename=\"a.zip\"; filename*=UTF-8''a.zip"),
        ("报告.zip", "attachment; filename=\"__.zip\"; filename*=UTF-8''%E6%8A%A5%E5%91%8A.zip"),
        ('a"\r\nX: y/..\\b', "attachment; filename=\"a___X_ y_.._b\"; filename*=UTF-8''a%22__X%3A%20y_.._b"),
        ("", "attachment; filename=\"download\"; filename*=UTF-8''download"),
    ],
)
def test_file_names_cannot_leave_their_header(name: str, header: str) -> None:
    """Quotes, line ends and separators do not survive; the exact name is percent-encoded beside."""
    assert disposition(name) == header
