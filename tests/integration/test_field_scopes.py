"""Field cases of paths and scope: every session is its header's, under its exact directory, by its exact id."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import zipfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
import pytest_asyncio
import zstandard
from click.testing import CliRunner
from datasette.app import Datasette
from datasette.utils import tilde_encode

from sessiongraph_web import access, cli, config, indexer, spellings
from sessiongraph_web.naming import project_key
from sessiongraph_web.web import app
from tests.asgi import Answer, ask, bearer
from tests.shared import shared_folders
from tests.world import World

pytestmark = pytest.mark.shared

# The stores of every case about paths, however deep they lie in it.
STORES: Final = [
    store
    for case in shared_folders("field-cases", "P*")
    for store in sorted(case.rglob("sessions"))
    if store.is_dir()
]
HERE: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line of a log says of its session; `cwd` is None unless it names a workspace."""

    path: Path
    id: str
    cwd: str | None


def headers(store: Path) -> list[Header]:
    """Read the headers of a store without any code of ours."""
    return [_header(path) for path in sorted(store.rglob("session*.jsonl.zstd"))]


def _header(path: Path) -> Header:
    found = json.loads(_text(path).split(b"\n", 1)[0])
    cwd = found.get("cwd")
    return Header(path, found["id"], cwd if isinstance(cwd, str) and cwd else None)


def _text(path: Path) -> bytes:
    with (
        path.open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as text,
    ):
        return bytes(text.read())


@pytest.fixture(params=STORES, ids=lambda store: "/".join(store.parts[-3:-1]))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """One store of one case, indexed."""
    return World(request.param, tmp_path / "index").build()


@pytest_asyncio.fixture
async def served(world: World) -> AsyncIterator[Datasette]:
    datasette = world.serve()
    await datasette.invoke_startup()
    application = datasette.app()
    datasette.app = lambda: application  # type: ignore[method-assign]
    yield datasette
    await datasette.invoke_shutdown()


async def read(datasette: Datasette, world: World, url: str, who: access.Caller = access.OWNER) -> Answer:
    """Ask as somebody who is signed in."""
    return await ask(datasette, url, headers=bearer(world.token(who)))


async def data(datasette: Datasette, world: World, url: str, who: access.Caller = access.OWNER) -> dict[str, Any]:
    """Ask for JSON."""
    found: dict[str, Any] = json.loads((await read(datasette, world, url, who)).body)
    return found


@pytest.mark.asyncio
async def test_every_session_is_listed_once_under_its_exact_directory(served: Datasette, world: World) -> None:
    """Timeline, workspaces and search agree with the headers, to the owner and to who has one directory alone."""
    expected = Counter((header.id, header.cwd) for header in headers(world.store))
    assert await _listed(served, world, access.OWNER) == expected
    told = (await data(served, world, "/workspaces.json"))["workspaces"]
    assert {found["cwd"]: found["sessions"] for found in told} == Counter(cwd for _, cwd in expected.elements())
    for cwd in {cwd for _, cwd in expected if cwd is not None}:
        own = Counter({key: count for key, count in expected.items() if key[1] == cwd})
        assert await _listed(served, world, access.workspaces(cwd)) == own
        filtered = await data(served, world, f"/timeline.json?limit=100&workspace={quote(cwd, safe='')}")
        assert Counter((found["id"], found["cwd"]) for found in filtered["sessions"]) == own
        facet = (await data(served, world, "/search.json?q=question&limit=100"))["facets"]["workspace"]
        assert {value["value"]: value["count"] for value in facet}[cwd] == own.total()


async def _listed(datasette: Datasette, world: World, who: access.Caller) -> Counter[tuple[str, str | None]]:
    """Return the sessions that a caller finds; the timeline and a search must name the same."""
    timeline = await data(datasette, world, "/timeline.json?limit=100", who)
    hits = await data(datasette, world, "/search.json?q=question&limit=100", who)
    found = Counter((session["id"], session["cwd"]) for session in timeline["sessions"])
    assert Counter((hit["session"]["id"], hit["session"]["cwd"]) for hit in hits["sessions"]) == found
    return found


@pytest.mark.asyncio
async def test_every_session_opens_by_its_id_and_leaves_whole(served: Datasette, world: World) -> None:
    """Page, JSON, event, trace and archive, found by the id in the address, whatever characters it holds."""
    for header in headers(world.store):
        who = access.OWNER if header.cwd is None else access.workspaces(header.cwd)
        spelled = tilde_encode(header.id)
        session = (await data(served, world, f"/sessions/{spelled}.json", who))["session"]
        assert (session["id"], session["cwd"]) == (header.id, header.cwd)
        for address in (f"/sessions/{spelled}", f"/sessions/{spelled}/events", f"/trace/{spelled}"):
            page = await read(served, world, address, who)
            assert (page.status, page.header("content-type")) == (200, "text/html; charset=utf-8"), address
        assert (await data(served, world, f"/sessions/{spelled}/events/0.json", who))["target"]["seq"] == 0
        archive = await read(served, world, f"/export/{spelled}.zip")
        with zipfile.ZipFile(io.BytesIO(archive.body)) as packed:
            assert packed.read("session.v4.jsonl") == _text(header.path)
            assert all(".." not in name and not name.startswith("/") for name in packed.namelist())


@pytest.mark.asyncio
async def test_every_link_of_a_list_leads_to_its_session(served: Datasette, world: World) -> None:
    """P08: the addresses in pages are the ones that open."""
    page = await read(served, world, "/timeline?limit=100")
    for header in headers(world.store):
        address = f"/sessions/{tilde_encode(header.id)}"
        assert f'href="{address}' in page.text
        assert (await read(served, world, address)).status == 200


@pytest.mark.asyncio
async def test_a_session_without_a_directory_is_the_owners_alone(served: Datasette, world: World) -> None:
    """P05: neither the server's own directory, nor the root, nor the word for none shows it."""
    homeless = [header.id for header in headers(world.store) if header.cwd is None]
    for cwd in ("/", str(Path.cwd()), "None", "null", "0"):
        who = access.workspaces(cwd)
        assert not {session for session, _ in await _listed(served, world, who)} & set(homeless)
        assert {
            (await read(served, world, f"/sessions/{tilde_encode(id_)}", who)).status for id_ in homeless
        } <= {404}
    page = await read(served, world, "/workspaces")
    assert ("no working directory" in page.text.lower()) == bool(homeless)


@pytest.mark.asyncio
async def test_a_log_in_a_folder_of_another_name_says_so(served: Datasette, world: World) -> None:
    """P07: the header decides where a session belongs, and where the folder says otherwise it is noted."""
    ledger = (await data(served, world, "/status.json?ledger=1&limit=100"))["ledger"]
    noted = {entry["path"] for entry in ledger if "project folder" in (entry["reason"] or "")}
    moved = {
        header.path.relative_to(world.store).as_posix()
        for header in headers(world.store)
        if header.cwd is not None and header.path.parents[1].name != project_key(header.cwd)
    }
    assert noted == moved


class _Opened:
    """Remembers what is opened in this process while it is asked to."""

    def __init__(self) -> None:
        self.paths: set[str] | None = None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.paths is not None and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            self.paths.add(os.path.realpath(os.fsdecode(arguments[0])))


@pytest.fixture(scope="module")
def opened() -> Iterator[_Opened]:
    hook = _Opened()
    yield hook
    hook.paths = None


@pytest.mark.asyncio
async def test_no_id_opens_a_file_outside_the_store(served: Datasette, world: World, opened: _Opened) -> None:
    """P08: an id is looked up, never joined to a path: what is opened is the store, the index or the program."""
    addresses = [f"/sessions/{tilde_encode(header.id)}" for header in headers(world.store)]
    addresses += [f"/export/{tilde_encode(header.id)}.zip?descendants=1" for header in headers(world.store)]
    addresses += [f"/sessions/{quote(header.id, safe='')}.json" for header in headers(world.store)]
    await read(served, world, "/timeline")
    opened.paths = set()
    for address in addresses:
        await read(served, world, address)
    paths, opened.paths = opened.paths, None
    allowed = [world.store, world.index, HERE, Path(sys.prefix), Path(sys.base_prefix), Path("/proc")]
    assert {
        path for path in paths if not any(Path(path).is_relative_to(top.resolve()) for top in allowed)
    } == set()
    assert {str(header.path.resolve()) for header in headers(world.store)} <= paths


def test_an_empty_answer_offers_the_other_spellings(shared: Path, tmp_path: Path) -> None:
    """P03: a directory that has no session of this name is found under the ones it was recorded with."""
    store = shared / "field-cases" / "P03" / "sessions"
    command = ["timeline", "--sessions", str(store), "--index", str(tmp_path / "index"), "--workspace"]
    silent = CliRunner().invoke(cli.main, [*command, "/w/real/app"])
    offered = CliRunner().invoke(cli.main, [*command, "/w/real//app"])
    assert "another name" not in silent.stderr
    assert [line.partition(" ")[0] for line in offered.stderr.splitlines()] == [
        "/w/real/./app",
        "/w/real/app",
        "/w/real/app/",
        "/w/real/x/../app",
    ]


def test_a_linked_directory_is_offered_by_its_other_name(shared: Path, tmp_path: Path) -> None:
    """P03, with the real link of its setup."""
    (tmp_path / "real" / "app").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    known = [str(tmp_path / "real" / "app"), str(tmp_path / "real" / "App"), str(tmp_path / "real"), None]
    assert spellings.others(str(tmp_path / "link" / "app"), known) == known[:2]


@pytest.mark.asyncio
async def test_the_store_of_dsh_home_is_used_and_named(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10: with `$DSH_HOME` set and no `~/.dsh`, lists answer, and the owner sees which store it is."""
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    for home in shared_folders("field-cases/P10", "home*"):
        copied = tmp_path / home.name
        shutil.copytree(home, copied)
        monkeypatch.setenv("DSH_HOME", str(copied))
        settings = config.load({})
        indexer.Run(settings).execute()
        assert (settings.sessions, settings.index) == (copied / "sessions", copied / "sessiongraph")
        printed = CliRunner().invoke(cli.main, ["timeline", "--json"])
        listed = {found["id"] for found in json.loads(printed.stdout)["sessions"]}
        assert listed == {header.id for header in headers(copied / "sessions")}
        datasette = app.make({})
        await datasette.invoke_startup()
        world = World(settings.sessions, settings.index)
        assert str(copied / "sessions") in (await read(datasette, world, "/status")).text
        scoped = await read(datasette, world, "/status", access.workspaces("/w/demo/app"))
        assert str(copied) not in scoped.text
        await datasette.invoke_shutdown()
