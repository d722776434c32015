"""The server as the protocol's own client meets it: over pipes, over HTTP, and in one process."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from sessiongraph_web import access, config, indexer, mcp
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.operations import SessionGraph
from tests.builders import Log
from tests.neighbourhood import ASKED, TWIN, Neighbourhood, secret
from tests.neighbourhood import FOREIGN as NEIGHBOURS
from tests.world import FOREIGN, FOREIGN_WORD, HOME, HOME_WORD, World, two_workspaces

pytestmark = pytest.mark.asyncio

MODES: Final = ("legacy", "auto")
OUTSIDE: Final = "Error: session target is outside the caller workspace"
READERS: Final = {
    *("session_search", "session_event_search", "session_trace", "session_event_trace", "session_event_read"),
    "sessiongraph",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two workspaces and a session without one."""
    return two_workspaces(tmp_path_factory.mktemp("mcp")).build()


def started(
    store: Path, index: Path, *words: str, cwd: Path | None = None, **environ: str
) -> StdioServerParameters:
    """Return how a client starts the server."""
    places = ["--sessions", str(store), "--index", str(index)]
    root = str(Path(__file__).parents[2])
    environment = {"PYTHONPATH": root, **environ}
    return StdioServerParameters(
        command=sys.executable, args=["-m", "sessiongraph_web", "mcp", *places, *words], env=environment, cwd=cwd
    )


async def told(client: Client, name: str, **arguments: Any) -> str:
    """Return the text of a tool's answer."""
    (content,) = (await client.call_tool(name, arguments)).content
    assert content.type == "text"
    return content.text


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_finds_reads_and_is_refused(world: World, mode: str) -> None:
    """Over pipes, in the old and the new form of the protocol: what is inside is told, what is outside is not."""
    server = started(world.store, world.index, "--workspace", HOME)
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READERS
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        found = await told(client, "session_search", query=HOME_WORD)
        assert found.startswith("Session search results (3):")
        page = await told(client, "session_event_read", session_id=world.ids["home"], seq=3)
        assert f"where is the {HOME_WORD}?" in page
        for role in ("foreign", "nowhere"):
            assert await told(client, "session_trace", session_id=world.ids[role]) == OUTSIDE
        assert await told(client, "session_trace", session_id="session-none") == OUTSIDE
        assert await told(client, "session_search", query=FOREIGN_WORD) == "No prior session matches found."


async def test_the_instructions_name_every_tool(world: World) -> None:
    """A model is told which tool is for what, and not to grep log files."""
    async with Client(started(world.store, world.index, "--workspace", HOME)) as client:
        instructions = client.instructions or ""
    assert "Do not grep" in instructions
    assert {name for name in READERS if f"- {name} " in instructions} == READERS
    assert len(instructions) < 2000


@pytest.mark.parametrize(
    "arguments",
    [
        {"workspace": FOREIGN},
        {"workspace": HOME},
        {"cwd": FOREIGN},
        {"workspaces": [FOREIGN]},
        {"operation": "workspaces"},
        {"operation": "timeline", "limit": 100},
        {"operation": "timeline", "workspace": FOREIGN},
        {"operation": "status"},
    ],
)
async def test_no_argument_changes_the_workspace(world: World, arguments: dict[str, Any]) -> None:
    """Whatever a client sends, nothing of another workspace is in any text."""
    async with opened(world) as client:
        asked = {"operation": "search", "query": FOREIGN_WORD} | arguments
        text = (await told(client, "sessiongraph", **asked)).replace(FOREIGN, "")
        assert FOREIGN_WORD not in text
        assert world.ids["foreign"] not in text
        assert "hidden" not in text.replace("store:", "").replace("hidden\n", "")


@pytest.mark.parametrize("name", sorted(READERS - {"session_search", "sessiongraph"}))
async def test_every_way_out_of_a_workspace_is_the_same_wall(tmp_path: Path, name: str) -> None:
    """A session of a folder above, below or spelled almost alike answers as one that does not exist."""
    product = Neighbourhood(tmp_path).open()
    given = {"query": ASKED, "seq": 4}
    outside = {f"session-{secret(foreign)}" for foreign in NEIGHBOURS} | {"session-none", "session-twice", ""}
    async with Client(mcp.server(product, "/w/a"), mode="legacy") as client:
        assert {await told(client, name, session_id=session_id, **given) for session_id in outside} == {OUTSIDE}
        for session_id in ("session-own", "session-same", TWIN):
            text = await told(client, name, session_id=session_id, **given)
            assert session_id in text
            assert "secret" not in text
    product.close()


@pytest.mark.parametrize("cwd", ["/w", "/w/a/", "/w/A", "/w/a", "/w/none"])
async def test_a_server_shows_the_sessions_of_its_string_alone(tmp_path: Path, cwd: str) -> None:
    """The workspace is compared byte for byte: near misses are other workspaces, with sessions of their own."""
    product = Neighbourhood(tmp_path).open()
    async with Client(mcp.server(product, cwd), mode="legacy") as client:
        text = await told(client, "session_search", query=ASKED)
        listed = await told(client, "sessiongraph", operation="timeline", limit=100)
    own = {secret(name) for name, other in NEIGHBOURS.items() if other == cwd}
    assert set(re.findall(r"secret[a-z]+", text + listed)) == own
    assert ("session-own" in text) == (cwd == "/w/a")
    product.close()


@asynccontextmanager
async def opened(world: World, mode: str = "legacy") -> AsyncIterator[Client]:
    """Yield a client of a server in this process."""
    product = SessionGraph(config.load(world.options))
    try:
        async with Client(mcp.server(product, HOME), mode=mode) as client:
            yield client
    finally:
        product.close()


@pytest.mark.parametrize("name", ["sessiongraph_index", "session_delete", ""])
async def test_other_tools_do_not_exist(world: World, name: str) -> None:
    """The owner's tool is not offered to a client of one workspace, nor can it be called."""
    async with opened(world) as client:
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool(name, {})


async def test_wrong_arguments_are_an_answer(world: World) -> None:
    """A model reads what is wrong and can mend it."""
    async with opened(world) as client:
        result = await client.call_tool("session_event_read", {"session_id": "x"})
        assert result.is_error
        assert await told(client, "session_event_read", session_id="x") == (
            'Error: invalid arguments: missing required property "seq"'
        )
        assert await told(client, "session_trace") == ("Error: session query tools require an agent-bound caller")


class Watched:
    """A product that counts its searches at work, each of which lasts until it is told to stop or to go on."""

    def __init__(self, product: SessionGraph) -> None:
        self.product, self.settings = product, product.settings
        self.go_on = threading.Event()
        self.most = self.running = self.stopped = 0
        self.lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.product, name)

    def search(self, caller: Any, request: Any, *, stop: Any) -> Any:
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        while not stop() and not self.go_on.wait(0.005):
            pass
        with self.lock:
            self.running -= 1
            self.stopped += stop()
        return self.product.search(caller, request, stop=stop)


@asynccontextmanager
async def watched(world: World) -> AsyncIterator[tuple[Client, Watched]]:
    """Yield a client and the slow product behind it."""
    slow: Any = Watched(SessionGraph(config.load(world.options)))
    try:
        async with Client(mcp.server(slow, HOME), mode="legacy") as client:
            yield client, slow
    finally:
        slow.go_on.set()
        slow.product.close()


async def until(condition: Any) -> None:
    """Wait for something that happens soon."""
    with anyio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - it happens in another thread or process
            await anyio.sleep(0.005)


async def test_a_cancelled_search_stops(world: World) -> None:
    """When the client cancels, the search ends at once, and the next one is answered."""
    async with watched(world) as (client, slow):
        call = asyncio.create_task(client.call_tool("session_search", {"query": HOME_WORD}))
        await until(lambda: slow.running == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: slow.stopped == 1 and slow.running == 0)
        slow.go_on.set()
        assert (await told(client, "session_search", query=HOME_WORD)).startswith("Session search results (3)")


async def test_searches_take_turns_and_reads_do_not_wait(world: World) -> None:
    """One client's searches run one after another; a read in between is answered."""
    async with watched(world) as (client, slow):
        calls = [asyncio.create_task(told(client, "session_search", query=HOME_WORD)) for _ in range(3)]
        await until(lambda: slow.running == 1)
        assert (await told(client, "session_trace", session_id=world.ids["home"])).startswith("Session ")
        slow.go_on.set()
        assert len(set(await asyncio.gather(*calls))) == 1
        assert slow.most == 1


@pytest.mark.shared
async def test_genuine_logs(shared: Path, tmp_path: Path) -> None:
    """Logs that dsh wrote are found, read and traced through the protocol, in their own workspace alone."""
    store = shared / "genuine" / "sessions"
    settings = config.load({"sessions": store, "index": tmp_path / "index", "auto_refresh": False})
    indexer.Run(settings).execute()
    product = SessionGraph(settings)
    known = [found.cwd for found in product.workspaces(access.OWNER).workspaces if found.cwd]
    product.close()
    ids: dict[str, set[str]] = {}
    for cwd in known:
        async with Client(started(store, tmp_path / "index", "--workspace", cwd)) as client:
            text = await told(client, "sessiongraph", operation="timeline", limit=100)
            ids[cwd] = set(re.findall(r"^   ([0-9a-z-]{36,})$", text, re.MULTILINE))
            assert ids[cwd]
            for session_id in ids[cwd]:
                assert (await told(client, "session_trace", session_id=session_id)).startswith(
                    f"Session {session_id} "
                )
                event = await told(client, "session_event_read", session_id=session_id, seq=0, after=5)
                assert event.startswith(f"Session {session_id} ")
            others = {found for other, several in ids.items() if other != cwd for found in several}
            for session_id in others - ids[cwd]:
                assert await told(client, "session_event_read", session_id=session_id, seq=0) == OUTSIDE


def _workspace(folder: Path, environ: dict[str, str]) -> str:
    before = Path.cwd()
    os.chdir(folder)
    try:
        return mcp.workspace(None, environ)
    finally:
        os.chdir(before)


async def test_the_workspace_is_the_directory_as_the_shell_spells_it(tmp_path: Path) -> None:
    """$PWD counts if it is this directory; a stale or invented one does not."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    assert _workspace(real, {"PWD": str(link)}) == str(link)
    assert _workspace(real, {"PWD": str(tmp_path)}) == str(real)
    for stale in (tmp_path / "gone", ".", "", "\0"):
        assert _workspace(real, {"PWD": str(stale)}) == str(real)
    assert _workspace(real, {}) == str(real)
    assert mcp.workspace("/w/a/", {"PWD": str(real)}) == "/w/a/"
    with pytest.raises(SessionGraphError):
        mcp.workspace("/w/\ud800", {})


async def test_a_directory_with_two_names_is_two_workspaces(tmp_path: Path) -> None:
    """Sessions under another spelling of the directory are not shown, and the person is told how to see them."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    Log(str(real)).turn("the heron", "here").write(tmp_path / "sessions")
    errors = tmp_path / "stderr"
    settings = config.load({"sessions": tmp_path / "sessions", "index": tmp_path / "index"})
    indexer.Run(settings).execute()
    server = started(tmp_path / "sessions", tmp_path / "index", cwd=link, PWD=str(link))
    with errors.open("w") as said:
        async with Client(stdio_client(server, errlog=said)) as client:
            assert await told(client, "session_search", query="heron") == "No prior session matches found."
    assert f"{real} may be the same directory under another name" in errors.read_text()


@asynccontextmanager
async def over_http(world: World) -> AsyncIterator[tuple[str, SessionGraph]]:
    """Yield the address of a server on this machine."""
    with socket.socket() as free:
        free.bind((mcp.HOST, 0))
        port = free.getsockname()[1]
    product = SessionGraph(config.load(world.options))
    serving = asyncio.create_task(mcp.serve_http(mcp.server(product, HOME), product, HOME, port))
    address = f"http://{mcp.HOST}:{port}{mcp.PATH}"
    try:
        async with httpx2.AsyncClient() as client:
            await until(lambda: serving.done() or _listens(port))
            assert (await client.get(address)).status_code == 401
        yield address, product
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        product.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((mcp.HOST, port)) == 0


def _token(product: SessionGraph, caller: access.Caller) -> str:
    return product.tokens.create(caller, "test", int((time.time() + 60) * 1000))


@pytest.mark.parametrize("mode", MODES)
async def test_http_needs_a_token_that_opens_the_workspace(world: World, mode: str) -> None:
    """Without a token, or with one for another workspace, every request is the same 401."""
    async with over_http(world) as (address, product):
        refused = set()
        bad = ["x", "sg_nonsense", _token(product, access.workspaces(FOREIGN, f"{HOME}/"))]
        async with httpx2.AsyncClient() as anybody:
            for secret in bad:
                answer = await anybody.post(address, json={}, headers={"authorization": f"Bearer {secret}"})
                refused.add((answer.status_code, answer.text))
            elsewhere = {"authorization": f"Bearer {_token(product, access.OWNER)}", "host": "evil.example"}
            assert (await anybody.post(address, json={}, headers=elsewhere)).status_code in (403, 421)
        assert refused == {(401, "A token for this workspace is needed.\n")}
        headers = {"authorization": f"Bearer {_token(product, access.workspaces(HOME))}"}
        async with (
            httpx2.AsyncClient(headers=headers) as allowed,
            Client(streamable_http_client(address, http_client=allowed), mode=mode) as client,
        ):
            assert (await told(client, "session_search", query=HOME_WORD)).startswith(
                "Session search results (3)"
            )
            assert await told(client, "session_trace", session_id=world.ids["foreign"]) == OUTSIDE
