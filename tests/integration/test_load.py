"""Many readers at once, and clients that are slow, rude or gone: every answer comes, and is whole."""

from __future__ import annotations

import http.client
import io
import json
import socket
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from sessiongraph_web import access
from sessiongraph_web.indexer import Wish
from tests.builders import Log
from tests.servers import Server, serving
from tests.world import HOME, HOME_WORD, World, two_workspaces

READERS = 16
ROUNDS = 6
EXPORTS = 10
RUDE = 20  # connections of each kind
SECONDS = 60  # after which a test gives up; nothing is measured with it


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return two_workspaces(tmp_path_factory.mktemp("load")).build()


@pytest.fixture(scope="module")
def served(world: World) -> Iterator[Server]:
    with serving(world) as server:
        yield server


@pytest.fixture(scope="module")
def token(world: World) -> str:
    return world.token(access.OWNER)


def get(served: Server, token: str, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=SECONDS)
    try:
        connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def pages(world: World) -> list[str]:
    home = world.ids["home"]
    return [
        *("/", "/timeline.json", "/workspaces.json", f"/search.json?q={HOME_WORD}", f"/search?q={HOME_WORD}"),
        *(f"/sessions/{home}", f"/sessions/{home}.json", f"/sessions/{home}/events/3.json", f"/trace/{home}"),
    ]


def test_many_readers_writers_and_downloads_at_once(served: Server, world: World, token: str) -> None:
    """While the store grows and the index is refreshed and built anew, every reader gets whole answers."""
    growing = Log(HOME)
    path = growing.turn("first", "answer").write(world.store)
    archive = f"/export/{world.ids['home']}.zip"
    done = threading.Event()

    def write() -> int:
        turns = 0
        while not done.is_set():
            growing.turn(f"turn {turns}", f"about the {HOME_WORD}").append(path)
            served.product.refresher.request(Wish(force=turns % 5 == 4))
            turns += 1
            done.wait(0.2)
        return turns

    def read(reader: int) -> list[tuple[int, bytes]]:
        return [get(served, token, pages(world)[(reader + n) % len(pages(world))]) for n in range(ROUNDS)]

    with ThreadPoolExecutor(READERS + EXPORTS + 1) as people:
        writing = people.submit(write)
        reading = [people.submit(read, reader) for reader in range(READERS)]
        exporting = [people.submit(get, served, token, archive) for _ in range(EXPORTS)]
        answers = [answer for each in reading for answer in each.result()]
        archives = [each.result() for each in exporting]
        done.set()
        assert writing.result() > 0

    assert {status for status, _ in answers} == {200}
    for _, body in answers:
        assert json.loads(body)["ok"] if body.startswith(b"{") else body.rstrip().endswith(b"</html>")
    assert {status for status, _ in archives} == {200}
    assert [zipfile.ZipFile(io.BytesIO(body)).testzip() for _, body in archives] == [None] * EXPORTS


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"GET /sea",
        b"GET /timeline HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 300_000,
        b"GET /timeline HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST /-/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\ntoken=",
        b"POST /-/login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n"
        + b"a" * 99_999,
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: a\r\n" % number for number in range(20_000)),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n" * 5000,
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=[
        "silent",
        "half",
        "long header",
        "length",
        "body",
        "chunk",
        "many headers",
        "tls",
        "version",
        "empty lines",
        "address",
    ],
)
def test_rude_clients_stop_nobody(served: Server, token: str, world: World, begin: bytes) -> None:
    """Connections that are held, and say nothing, half a request or nonsense, keep nobody from his answer."""
    with ExitStack() as held:
        for _ in range(RUDE):
            one = held.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            one.setblocking(False)
            with suppress(OSError):
                one.send(begin)
        assert [get(served, token, path)[0] for path in pages(world)] == [200] * len(pages(world))
    assert get(served, token, "/status.json")[0] == 200
