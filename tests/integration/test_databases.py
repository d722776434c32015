"""Workspace databases in Datasette: attached on demand, sealed, and never closed under a request."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from datasette.app import Datasette

from sessiongraph_web import generation, schema
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.generation import Generation
from sessiongraph_web.web import databases
from sessiongraph_web.web.databases import Databases, Files

pytestmark = pytest.mark.asyncio


def workspace(directory: Path, cwd: str | None, text: str = "words", *, file: str | None = None) -> Path:
    """Make a workspace database that holds one entry."""
    path = directory / (file or f"{schema.database_name(cwd)}.db")
    connection = schema.create(path, schema.WORKSPACE_DDL)
    connection.execute("INSERT INTO meta VALUES ('sealed_cwd', ?), ('revision', 1)", (cwd,))
    connection.execute(
        """
        INSERT INTO entry (
            log_id, ordinal, kind, type, surface, failed, inherited, synthetic, clipped, length, text
        )
        VALUES (1, 0, 'user', 'user/message', 'current', 0, 0, 0, 0, ?, ?)
        """,
        (len(text), text),
    )
    connection.close()
    return path


def files(*paths_and_cwds: tuple[Path, str | None]) -> Files:
    """Return what the product says of these workspaces."""
    return {schema.database_name(cwd): (path, cwd) for path, cwd in paths_and_cwds}


def attached(datasette: Datasette) -> list[str]:
    """Return the workspace databases that Datasette knows."""
    return [name for name in datasette.databases if name.startswith("ws_")]


@pytest_asyncio.fixture
async def datasette() -> AsyncIterator[Datasette]:
    instance = Datasette()
    await instance.invoke_startup()
    yield instance
    instance.close()


async def test_a_database_is_attached_when_it_is_wanted(datasette: Datasette, tmp_path: Path) -> None:
    """Its route is its name, its tables are in Datasette's catalog, and nothing was attached before."""
    name = schema.database_name("/w/a")
    known = files((workspace(tmp_path, "/w/a"), "/w/a"), (workspace(tmp_path, "/w/b"), "/w/b"))
    before = attached(datasette)

    async with Databases(datasette).lease(known, name):
        rows = await datasette.get_database(route=name).execute("SELECT text FROM entry")
        tables = await datasette.get_internal_database().execute(
            "SELECT count(*) FROM catalog_tables WHERE database_name = ? AND table_name = 'entry'", [name]
        )

    assert before == []
    assert attached(datasette) == [name]
    assert [tuple(row) for row in rows] == [("words",)]
    assert tables.single_value() == 1


@pytest.mark.parametrize("sealed", ["/w/b", "/w/a/", "/W/A", "", None])
async def test_a_database_sealed_for_another_cwd_never_opens(
    datasette: Datasette, tmp_path: Path, sealed: str | None
) -> None:
    """Whatever the catalog says, the file itself decides, byte for byte; and nothing stays attached."""
    path = workspace(tmp_path, sealed, file=f"{schema.database_name('/w/a')}.db")

    with pytest.raises(SessionGraphError) as raised:
        async with Databases(datasette).lease(files((path, "/w/a")), schema.database_name("/w/a")):
            pass

    assert raised.value.code == "SESSIONGRAPH_CORRUPT"
    assert attached(datasette) == []


async def test_the_seal_is_checked_at_every_connection(datasette: Datasette, tmp_path: Path) -> None:
    """A seal that is broken after the first connection keeps the next one from opening."""
    name, path = schema.database_name("/w/a"), workspace(tmp_path, "/w/a")
    async with Databases(datasette).lease(files((path, "/w/a")), name):
        database = datasette.get_database(name)
        while database._spare:
            database.connect()
        with sqlite3.connect(path) as writer:
            writer.execute("UPDATE meta SET value = '/w/b' WHERE key = 'sealed_cwd'")

        with pytest.raises(SessionGraphError):
            database.connect()


@pytest.mark.parametrize("present", [b"", b"not a database" * 1000, None], ids=["empty", "damaged", "missing"])
async def test_a_file_that_is_no_workspace_never_opens(
    datasette: Datasette, tmp_path: Path, present: bytes | None
) -> None:
    """Damage and absence fail closed as well."""
    path = tmp_path / "ws_x.db"
    if present is not None:
        path.write_bytes(present)

    with pytest.raises(SessionGraphError):
        async with Databases(datasette).lease({"ws_x": (path, "/w/a")}, "ws_x"):
            pass

    assert attached(datasette) == []


async def test_no_connection_can_write(datasette: Datasette, tmp_path: Path) -> None:
    """Datasette's own write door meets a reader."""
    name, path = schema.database_name("/w/a"), workspace(tmp_path, "/w/a")
    async with Databases(datasette).lease(files((path, "/w/a")), name):
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            await datasette.get_database(name).execute_write("DELETE FROM entry")


@pytest.mark.parametrize(
    ("sql", "refusal"),
    [
        ("ATTACH ':memory:' AS other", "too many attached databases"),
        ("SELECT load_extension('x')", "not authorized"),
        ("SELECT length(zeroblob(70000000))", "too big"),
        ("SELECT sql FROM sqlite_stmt", "prohibited"),
        ("SELECT count(*) FROM SQLITE_STMT", "not authorized"),
        ("CREATE TABLE t (x)", "readonly"),
        ("CREATE TEMP TABLE t (x)", "readonly"),
    ],
)
async def test_sql_stays_inside_one_file_and_in_bounded_values(
    datasette: Datasette, tmp_path: Path, sql: str, refusal: str
) -> None:
    """What is asked for by SQL alone can neither leave the file nor fill the memory."""
    name, path = schema.database_name("/w/a"), workspace(tmp_path, "/w/a")
    async with Databases(datasette).lease(files((path, "/w/a")), name):
        with pytest.raises(sqlite3.DatabaseError, match=refusal):
            await datasette.get_database(name).execute(sql)


@pytest.mark.parametrize("sql", ["SELECT * FROM pragma_database_list", "PRAGMA database_list"])
async def test_sql_cannot_ask_where_the_index_lies(datasette: Datasette, tmp_path: Path, sql: str) -> None:
    """The list of attached files, which Datasette allows anybody to query, is empty."""
    name, path = schema.database_name("/w/a"), workspace(tmp_path, "/w/a")
    async with Databases(datasette).lease(files((path, "/w/a")), name):
        rows = await datasette.get_database(name).execute(sql)

    assert list(rows) == []


async def test_at_most_sixteen_stay_attached(datasette: Datasette, tmp_path: Path) -> None:
    """The one used longest ago goes first; using one again keeps it."""
    cwds = [f"/w/{number}" for number in range(databases.CAPACITY + 2)]
    names = [schema.database_name(cwd) for cwd in cwds]
    known = files(*((workspace(tmp_path, cwd), cwd) for cwd in cwds))
    held = Databases(datasette)
    for name in [*names[:-1], names[1], names[-1]]:
        async with held.lease(known, name):
            pass

    assert sorted(attached(datasette)) == sorted([names[1], *names[3:]])


async def test_eviction_never_closes_a_database_in_use(datasette: Datasette, tmp_path: Path) -> None:
    """Four hundred requests over twice as many workspaces as fit, and a slow one that they all overtake."""
    cwds = [f"/w/{number}" for number in range(databases.CAPACITY * 2)]
    known = files(*((workspace(tmp_path, cwd, text=f"words of {cwd}"), cwd) for cwd in cwds))
    held = Databases(datasette)
    gate = asyncio.Semaphore(40)
    sql = "SELECT text FROM entry"

    async def request(cwd: str) -> str:
        name = schema.database_name(cwd)
        async with gate, held.lease(known, name):
            await datasette.refresh_schemas(force=True)
            return str((await datasette.get_database(name).execute(sql)).single_value())

    asked = [cwds[1 + number * 7 % (len(cwds) - 1)] for number in range(400)]
    slow = schema.database_name(cwds[0])
    async with held.lease(known, slow):
        database = datasette.get_database(slow)
        answers = await asyncio.gather(*(request(cwd) for cwd in asked))
        assert slow not in attached(datasette)
        assert (await database.execute(sql)).single_value() == f"words of {cwds[0]}"
    await asyncio.gather(*held._closing)

    assert answers == [f"words of {cwd}" for cwd in asked]
    assert len(attached(datasette)) == databases.CAPACITY
    assert database._closed


async def test_a_replaced_file_serves_the_requests_under_way_to_the_end(
    datasette: Datasette, tmp_path: Path
) -> None:
    """A request that began on the old file finishes there, though it was deleted; the next one reads the new."""
    name = schema.database_name("/w/a")
    old = workspace(tmp_path, "/w/a", text="old")
    new = workspace(tmp_path, "/w/a", text="new", file=f"{name}.2.db")
    held = Databases(datasette)
    sql = "SELECT text FROM entry"

    async with held.lease(files((old, "/w/a")), name):
        first = datasette.get_database(name)
        async with held.lease(files((new, "/w/a")), name):
            generation.discard(Generation(tmp_path), old.name)
            assert (await datasette.get_database(name).execute(sql)).single_value() == "new"
        under_way = await asyncio.gather(*(first.execute(sql) for _ in range(20)))
        assert {rows.single_value() for rows in under_way} == {"old"}
    await asyncio.gather(*held._closing)

    assert first._closed
    assert not datasette.get_database(name)._closed


async def test_a_workspace_that_left_the_index_is_let_go(datasette: Datasette, tmp_path: Path) -> None:
    """Any request notices that the catalog names a file no more, so that its absence disturbs nobody."""
    kept, gone = workspace(tmp_path, "/w/a"), workspace(tmp_path, "/w/b")
    held = Databases(datasette)
    async with held.lease(files((kept, "/w/a"), (gone, "/w/b")), schema.database_name("/w/b")):
        pass

    async with held.lease(files((kept, "/w/a")), schema.database_name("/w/a")):
        await datasette.refresh_schemas(force=True)

    assert attached(datasette) == [schema.database_name("/w/a")]


async def test_a_generation_in_use_is_held_against_the_sweeper(datasette: Datasette, tmp_path: Path) -> None:
    """While a database of it is attached, a generation directory cannot be locked for deletion."""
    index = tmp_path / "index"
    old, new = generation.start(index), generation.start(index)
    path = workspace(old.directory, "/w/a")
    name = schema.database_name("/w/a")
    held = Databases(datasette)
    async with held.lease(files((path, "/w/a")), name):
        generation.sweep(index, keep=new)
        assert path.exists()
    async with held.lease({}):
        pass
    await asyncio.gather(*held._closing)

    generation.sweep(index, keep=new)

    assert not path.exists()
