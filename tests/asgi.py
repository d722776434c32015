"""Requests as a client sends them, byte by byte, to a Datasette instance without a network."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlencode

from datasette.app import Datasette

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def header(self, name: str) -> str | None:
        """Return the value of a header that occurs at most once."""
        values = [value for key, value in self.headers if key == name]
        assert len(values) <= 1, f"{name} occurs {len(values)} times"
        return values[0] if values else None


async def ask(
    datasette: Datasette,
    url: str,
    *,
    method: str = "GET",
    headers: Pairs = (),
    body: str = "",
    host: str | None = "localhost",
    client: str = "127.0.0.1",
) -> Answer:
    """Send one request and stay until it is answered.

    `url` is the raw path with its query string; `host` None sends no Host header.
    """
    path, _, query = url.partition("?")
    given = [*([("host", host)] if host is not None else []), *headers]
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given],
        "client": (client, 50_000),
        "server": ("127.0.0.1", 8001),
    }
    incoming = [{"type": "http.request", "body": body.encode(), "more_body": False}]
    sent: list[MutableMapping[str, Any]] = []
    enough = asyncio.Event()

    async def receive() -> MutableMapping[str, Any]:
        if incoming:
            return incoming.pop(0)
        await enough.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)
        if _is_enough(message):
            enough.set()

    await datasette.app()(scope, receive, send)
    start = next(message for message in sent if message["type"] == "http.response.start")
    return Answer(
        start["status"],
        [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start["headers"]],
        b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body"),
    )


def _is_enough(message: MutableMapping[str, Any]) -> bool:
    """Say whether a client would go now: at the end of a response, or at once where it has none."""
    if message["type"] == "http.response.body":
        return not message.get("more_body", False)
    return any(value.startswith(b"text/event-stream") for _, value in message["headers"])


def form(**values: str) -> dict[str, Any]:
    """Return the arguments of `ask` that post a form as a page of ours does."""
    headers = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")]
    return {"method": "POST", "headers": headers, "body": urlencode(values)}


def bearer(secret: str) -> Pairs:
    """Return the header that presents a token."""
    return [("authorization", f"Bearer {secret}")]
