"""Downloads over real connections: many at once, slow clients, clients that go, and failures on the way."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import re
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sessiongraph_web import access
from sessiongraph_web.export import Download
from sessiongraph_web.web.links import canonical
from tests.builders import Log
from tests.servers import Server, serving
from tests.world import HOME, World, two_workspaces

CHUNK = b"x" * 65_536
SECONDS = 30  # after which a test gives up; nothing is measured with it
ODD = 'weird id/../"日本"\r\nX: y'


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = two_workspaces(tmp_path_factory.mktemp("downloads"))
    large = Log(HOME)
    for number in range(40):
        text = "".join(hashlib.sha256(f"{number} {part}".encode()).hexdigest() for part in range(1000))
        large.turn(f"part {number}", text)
    world.write("large", large)
    world.write("odd", Log(HOME, id=ODD).turn("a", "b"))
    return world.build()


@pytest.fixture(scope="module")
def served(world: World) -> Iterator[Server]:
    with serving(world) as server:
        yield server


@pytest.fixture(scope="module")
def token(world: World) -> str:
    return world.token(access.OWNER)


class Endless:
    """Chunks without end, or until they fail; knows how many were taken and when it was closed."""

    def __init__(self, fails_after: int | None = None) -> None:
        self.taken = 0
        self.closed = threading.Event()
        self._fails_after = fails_after

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self.taken == self._fails_after:
            raise OSError("the disk went away")
        self.taken += 1
        return CHUNK

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def endless(served: Server, monkeypatch: pytest.MonkeyPatch) -> Endless:
    """What every export is made of in this test."""
    source = Endless()
    monkeypatch.setattr(served.product, "export", lambda *_: Download("a.zip", "application/zip", iter(source)))
    return source


def begin(
    served: Server, token: str | None, path: str, method: str = "GET"
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=SECONDS)
    connection.request(method, path, headers={"authorization": f"Bearer {token}"} if token else {})
    return connection, connection.getresponse()


def get(served: Server, token: str | None, path: str) -> tuple[int, bytes]:
    connection, response = begin(served, token, path)
    try:
        return response.status, response.read()
    finally:
        connection.close()


def export(world: World, role: str) -> str:
    return f"/export/{world.ids[role]}.zip"


def test_ten_at_once_are_each_whole(served: Server, world: World, token: str) -> None:
    """Every client gets the same sound archive, and pages answer meanwhile."""
    with ThreadPoolExecutor(11) as clients:
        downloads = [clients.submit(get, served, token, export(world, "large")) for _ in range(10)]
        pages = [clients.submit(get, served, token, "/timeline.json").result()[0] for _ in range(5)]
        found = [download.result() for download in downloads]

    assert pages == [200] * 5
    assert {status for status, _ in found} == {200}
    assert len({body for _, body in found}) == 1
    assert zipfile.ZipFile(io.BytesIO(found[0][1])).testzip() is None


def test_ten_slow_clients_hold_nothing_up(served: Server, world: World, token: str, endless: Endless) -> None:
    """Nothing is produced for a client that does not read, and others are answered."""
    held = [begin(served, token, export(world, "home"))[0] for _ in range(10)]
    try:
        assert get(served, token, "/status.json")[0] == 200
        taken = -1
        while taken != endless.taken:
            taken = endless.taken
            assert get(served, token, f"/sessions/{world.ids['home']}.json")[0] == 200
            threading.Event().wait(0.2)
        assert taken * len(CHUNK) < 10 * 16 * 2**20
    finally:
        for connection in held:
            connection.close()


@pytest.mark.parametrize("reads", [False, True], ids=["stalled", "reading"])
def test_a_client_that_goes_ends_the_work(
    served: Server, world: World, token: str, endless: Endless, reads: bool
) -> None:
    """Within a second of the disconnect the source is closed, and nothing more is taken from it."""
    connection, response = begin(served, token, export(world, "home"))
    response.read(len(CHUNK) * (200 if reads else 1))

    response.close()
    connection.close()

    assert endless.closed.wait(1)
    taken = endless.taken
    threading.Event().wait(0.1)
    assert endless.taken == taken


def test_a_failure_cuts_the_connection(
    served: Server,
    world: World,
    token: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client sees that it has not got everything; the log says why, under the number it was told."""
    source = Endless(fails_after=3)
    monkeypatch.setattr(served.product, "export", lambda *_: Download("a.zip", "application/zip", iter(source)))
    connection, response = begin(served, token, export(world, "home"))

    with pytest.raises(http.client.IncompleteRead):
        response.read()

    connection.close()
    number = response.headers["x-request-id"]
    assert source.closed.wait(SECONDS)
    assert f"request {number} failed while it was sent" in [record.getMessage() for record in caplog.records]
    assert get(served, token, "/status.json")[0] == 200


def test_a_download_is_cut_off_when_access_is_taken_back(served: Server, world: World, endless: Endless) -> None:
    """Whoever is no longer let in gets no more of what had begun, and sees that it is not everything."""
    connection, response = begin(served, world.token(access.OWNER, label="short"), export(world, "home"))
    response.read(len(CHUNK))
    world.revoke("short")

    with pytest.raises(http.client.IncompleteRead):
        response.read()

    connection.close()
    assert endless.closed.wait(SECONDS)


@pytest.mark.parametrize("form", ["zip", "md", "json", "ndjson"])
@pytest.mark.parametrize(
    ("who", "role", "query", "status", "code"),
    [
        ("owner", "home", "?colour=red", 400, "SESSION_QUERY_INVALID_FILTER"),
        ("owner", "home", "?redact=perhaps", 400, "SESSION_QUERY_INVALID_FILTER"),
        ("owner", None, "", 404, "SESSION_QUERY_SESSION_NOT_FOUND"),
        ("scoped", "foreign", "", 404, "SESSION_QUERY_SESSION_NOT_FOUND"),
        (None, "home", "", 401, "SESSIONGRAPH_UNAUTHENTICATED"),
    ],
)
def test_what_is_refused_is_refused_before_the_first_byte(
    served: Server, world: World, form: str, who: str | None, role: str | None, query: str, status: int, code: str
) -> None:
    """The status tells, and the body says what is wrong: to programs as JSON, to people as a page."""
    callers = {"owner": access.OWNER, "scoped": access.workspaces(HOME)}
    asks = world.token(callers[who]) if who else None
    session = world.ids[role] if role else "session-" + "f" * 32

    found, body = get(served, asks, f"/export/{session}.{form}{query}")

    assert found == status
    if form in ("json", "ndjson"):
        told = json.loads(body)
        assert (told["ok"], told["status"], told["code"]) == (False, status, code)
    else:
        assert body.startswith(b"<!doctype html>")


@pytest.mark.parametrize("form", ["zip", "md", "json", "ndjson"])
def test_head_has_the_headers_of_get_for_any_id(served: Server, world: World, token: str, form: str) -> None:
    """An id with quotes, line ends and other scripts stays inside its header; HEAD sends no body."""
    heads = []
    for method in ("HEAD", "GET"):
        connection, response = begin(served, token, f"/export/{canonical(ODD)}.{form}", method)
        body = response.read()
        connection.close()
        assert (response.status, bool(body)) == (200, method == "GET")
        heads.append(
            {name: value for name, value in response.headers.items() if name not in ("date", "x-request-id")}
        )
    name = f"dsh-session-{re.sub('[^A-Za-z0-9_-]', '_', ODD)}.{form}"
    assert heads[0]["content-disposition"] == f"attachment; filename=\"{name}\"; filename*=UTF-8''{name}"
    heads[1].pop("transfer-encoding", None)
    heads[0].pop("transfer-encoding", None)
    assert heads[0] == heads[1]


def test_post_is_refused(served: Server, world: World, token: str) -> None:
    """An export changes nothing and is asked for by GET."""
    connection, response = begin(served, token, export(world, "home"), "POST")
    assert (response.status, response.headers["allow"]) == (405, "GET, HEAD")
    connection.close()


def test_what_the_store_has_lost_does_not_stop_a_download(tmp_path: Path) -> None:
    """The archive is whole, and its manifest lists what is missing."""
    world = two_workspaces(tmp_path)
    log = Log(HOME)
    block = {"type": "image", "attachment": {"attachmentId": f"sha256:{'a' * 64}", "mediaType": "image/png"}}
    log.event("user/message", {"content": [block], "source": {"kind": "user"}}, surfaceOp="append")
    world.write("lost", log)
    world.build()
    with serving(world) as server:
        status, body = get(server, world.token(access.OWNER), export(world, "lost"))
    missing = json.loads(zipfile.ZipFile(io.BytesIO(body)).read("manifest.json"))["missing"]
    assert (status, [lost["reason"] for lost in missing]) == (200, ["not in the attachment store"])
