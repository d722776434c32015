"""Readers on the databases of an index, lent for the length of an answer and kept open between requests."""

from __future__ import annotations

import os
import resource
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sessiongraph_web import schema, soundness, trust
from sessiongraph_web.damage import failure
from sessiongraph_web.kept import Kept
from sessiongraph_web.soundness import Identity
from sessiongraph_web.turnspans import Summed

MOST_IDLE: Final = 512  # the owner's search reads every workspace
FILES_OF_READER: Final = 3  # the database, its -wal and its -shm
FILES_WANTED: Final = 8192
FILES_OF_OTHERS: Final = 128  # logs, sockets, Datasette's own connections
MOST_SPANS: Final = 4000  # of turns that are remembered, some 300 bytes each


@dataclass(frozen=True, slots=True)
class Workspace:
    """One workspace's database as the catalog names it."""

    cwd: str | None
    database: str
    file: Path
    identity: Identity  # what the file was when a run left it


class Pool:
    """Read connections, each used by one thread at a time. Those that rested longest are closed first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: OrderedDict[str, list[schema.Reader]] = OrderedDict()  # by path: as text, which compares fast
        self._count = 0
        self._trusted: dict[str, Identity] = {}
        self._directory: str | None = None
        self.spans: Kept[Summed] = Kept(MOST_SPANS)  # by log, as this directory's databases hold it
        files = _allow_files(FILES_WANTED)
        self._most = max(1, min(MOST_IDLE, (files // 2 - FILES_OF_OTHERS) // FILES_OF_READER))

    def settle(self, directory: Path) -> None:
        """Keep connections to files in this directory alone: others hold memory, and disk of deleted files."""
        with self._lock:
            if str(directory) != self._directory:
                self._directory = str(directory)
                for path in [path for path in self._idle if path.rpartition(os.sep)[0] != self._directory]:
                    self._drop(path)
                self._trusted.clear()
                self.spans.clear()

    @contextmanager
    def lease(self, path: Path) -> Iterator[sqlite3.Connection]:
        """Lend a reader on a database; one that met a damaged page is closed, not kept."""
        connection = self._take(str(path)) or schema.open_reader(path)
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            connection.close()
            raise failure(error) from error
        except BaseException:
            connection.close()
            raise
        else:
            if connection.immutable:
                connection.close()
            else:
                self._keep(str(path), connection)

    def check_terms(self, connection: sqlite3.Connection, workspace: Workspace) -> None:
        """Look into the full-text index of a file that no run left so, once for each state of the file."""
        found = soundness.identity(workspace.file)
        if found is None or found in (workspace.identity, self._trusted.get(str(workspace.file))):
            return
        trust.check_terms(connection)
        self._trusted[str(workspace.file)] = found

    def close(self) -> None:
        with self._lock:
            for path in list(self._idle):
                self._drop(path)

    def _take(self, path: str) -> schema.Reader | None:
        with self._lock:
            idle = self._idle.get(path)
            if not idle:
                return None
            connection = idle.pop()
            self._count -= 1
            if not idle:
                del self._idle[path]
            return connection

    def _keep(self, path: str, connection: schema.Reader) -> None:
        with self._lock:
            if self._directory not in (None, path.rpartition(os.sep)[0]):  # the generation was replaced meanwhile
                connection.close()
                return
            self._idle.setdefault(path, []).append(connection)
            self._idle.move_to_end(path)
            self._count += 1
            while self._count > self._most:
                self._drop(next(iter(self._idle)))

    def _drop(self, path: str) -> None:
        resting = self._idle.pop(path)
        self._count -= len(resting)
        for connection in resting:
            connection.close()


@contextmanager
def one_state(connection: sqlite3.Connection) -> Iterator[None]:
    """Read everything in one transaction: an answer and its epoch are about the same state."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        with suppress(sqlite3.DatabaseError):  # a damaged database cannot even end it; the lease closes it
            connection.execute("ROLLBACK")


def _allow_files(wanted: int) -> int:
    """Let this process open so many files, as far as it may; return how many it can."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # a system may have a limit of its own below the hard one
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            return most
    return wanted if soft == resource.RLIM_INFINITY else soft
