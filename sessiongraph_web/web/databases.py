"""Workspace databases inside Datasette: attached on demand, checked at every connection, let go when unused."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from datasette.database import Database
from datasette.utils.internal_db import populate_schema_tables

from sessiongraph_web import generation, schema
from sessiongraph_web.generation import Generation

if TYPE_CHECKING:
    from datasette.app import Datasette

Files = Mapping[str, tuple[Path, str | None]]  # {Datasette name: (file, sealed cwd)}

CAPACITY: Final = 16
LENGTH_LIMIT_BYTES: Final = 64 * 1024 * 1024  # measured: randomblob(9e8) took 5 s and 909 MB without


class WorkspaceDatabase(Database):
    """One workspace's file as Datasette serves it: read only, and closed unless it is sealed for its cwd.

    The connections of all of Datasette's threads are opened when it is made, so that a file which the index
    replaces goes on answering the requests that are under way.
    """

    cwd: str | None
    _spare: list[sqlite3.Connection]
    _held: ExitStack

    @classmethod
    def make(cls, datasette: Datasette, name: str, path: Path, cwd: str | None) -> WorkspaceDatabase:
        """Open a file; one that is missing, foreign, or sealed for another cwd is a SessionGraphError."""
        database = cls(datasette, path=str(path), is_mutable=True, mode="ro")
        database.name = database.route = name
        database.cwd = cwd
        database._held = ExitStack()
        database._held.enter_context(generation.using(Generation(path.parent)))
        database._spare = []
        try:
            for _ in range(max(1, datasette.setting("num_sql_threads"))):
                database._spare.append(database._open())
        except BaseException:
            database.close()
            raise
        return database

    def connect(self, write: bool = False) -> sqlite3.Connection:  # noqa: ARG002 - a writer gets a reader too
        try:
            connection = self._spare.pop()
        except IndexError:
            connection = self._open()
        return connection

    def close(self) -> None:
        Database.close(self)
        self._held.close()

    def _open(self) -> sqlite3.Connection:
        connection = schema.open_reader(Path(self.path))
        self._all_connections.append(connection)
        limit(connection)
        schema.check_seal(connection, self.cwd)
        return connection


class Databases:
    """The workspace databases that one Datasette has attached: at most `CAPACITY` between requests."""

    def __init__(self, datasette: Datasette) -> None:
        self._datasette = datasette
        self._attached: OrderedDict[str, WorkspaceDatabase] = OrderedDict()
        self._changing = asyncio.Lock()
        self._leases: set[int] = set()
        self._last_lease = 0
        self._retired: list[tuple[int, WorkspaceDatabase]] = []
        self._closing: set[asyncio.Future[None]] = set()

    @asynccontextmanager
    async def lease(self, files: Files, wanted: str | None = None) -> AsyncIterator[None]:
        """Serve one request of Datasette's own pages: `wanted` is attached, and nothing closes under it.

        `files` holds every workspace of the index. Whoever asks may see `wanted`; that was decided before.
        """
        self._last_lease += 1
        lease = self._last_lease
        self._leases.add(lease)
        try:
            async with self._changing:
                self._retire_replaced(files)
                if wanted is not None:
                    await self._attach(wanted, *files[wanted])
            yield
        finally:
            self._leases.discard(lease)
            self._close_retired()

    def close(self) -> None:
        """Close what Datasette no longer knows; what is attached it closes itself."""
        for _, database in self._retired:
            database.close()
        self._retired.clear()

    async def _attach(self, name: str, path: Path, cwd: str | None) -> None:
        if name not in self._attached:
            database = await asyncio.to_thread(WorkspaceDatabase.make, self._datasette, name, path, cwd)
            self._attached[name] = database
            self._publish()
            await self._describe(database)
        self._attached.move_to_end(name)
        while len(self._attached) > CAPACITY:
            self._retire(next(iter(self._attached)))

    async def _describe(self, database: Database) -> None:
        """Tell Datasette's catalog what tables there are; its own refresh may skip a database just attached."""
        async with self._datasette._refresh_schemas_lock:
            version = (await database.execute("PRAGMA schema_version")).first()[0]
            await populate_schema_tables(self._datasette.get_internal_database(), database, version)

    def _retire_replaced(self, files: Files) -> None:
        for name, database in list(self._attached.items()):
            if files.get(name) != (Path(database.path), database.cwd):
                self._retire(name)

    def _retire(self, name: str) -> None:
        """Hide a database from new requests; those under way may still use it."""
        self._retired.append((self._last_lease, self._attached.pop(name)))
        self._publish()

    def _publish(self) -> None:
        """Show what is attached: a new dict each time, since Datasette iterates over it across awaits."""
        others = {
            name: database
            for name, database in self._datasette.databases.items()
            if not isinstance(database, WorkspaceDatabase)
        }
        self._datasette.databases = OrderedDict[str, Any]({**others, **self._attached})

    def _close_retired(self) -> None:
        """Close what was retired before the oldest request still under way began."""
        oldest = min(self._leases, default=self._last_lease + 1)
        for number, database in [pair for pair in self._retired if pair[0] < oldest]:
            self._retired.remove((number, database))
            closing = asyncio.get_running_loop().run_in_executor(None, database.close)
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


def limit(connection: sqlite3.Connection) -> None:
    """Make a connection safe for anybody's SQL: it reads one file, in bounded values, and names no path."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LENGTH_LIMIT_BYTES)
    connection.execute("PRAGMA trusted_schema=0")
    connection.execute("PRAGMA query_only=1")
    connection.set_authorizer(_authorize)


def _authorize(action: int, name: str | None, *_: str | None) -> int:
    """Keep two things from SQL: where the index lies, and what others asked on the same connection."""
    asked = (name or "").lower()
    if action == sqlite3.SQLITE_PRAGMA and asked == "database_list":
        return sqlite3.SQLITE_IGNORE  # an empty list: Datasette's own pages ask for it, too
    if action == sqlite3.SQLITE_READ and asked == "sqlite_stmt":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK
