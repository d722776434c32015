"""Whether a database is sound: what is looked at before a file that a run did not leave so is trusted again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sessiongraph_web import schema
from sessiongraph_web.damage import translated
from sessiongraph_web.errors import SessionGraphError

Identity = tuple[int, int, int]


def identity(path: Path) -> Identity | None:
    """Return size, mtime (ns) and inode of a database: what a run notes when it leaves the file."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def logs_of(path: Path, cwd: str | None) -> frozenset[int]:
    """Look through a workspace's database, settle its `-wal`, and return the logs it holds.

    Damage of any kind is SESSIONGRAPH_CORRUPT with what was found as its detail.
    """
    with translated(), closing(schema.open_writer(path)) as connection:
        schema.check_seal(connection, cwd)
        check_pages(connection)
        check_terms(connection)
        found = frozenset(row[0] for row in connection.execute("SELECT log_id FROM log"))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return found


def check_catalog(path: Path) -> None:
    """Raise SESSIONGRAPH_CORRUPT if the catalog's pages are not in order."""
    with translated(), closing(schema.open_writer(path)) as connection:
        check_pages(connection)


def check_pages(connection: sqlite3.Connection) -> None:
    """Raise SESSIONGRAPH_CORRUPT if SQLite finds fault with the file's pages."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise SessionGraphError("SESSIONGRAPH_CORRUPT", " ".join(str(found).split()))


def check_terms(connection: sqlite3.Connection) -> None:
    """Raise if the full-text index contradicts itself. It needs a writer; `quick_check` sees none of this."""
    connection.execute("INSERT INTO entry_fts (entry_fts) VALUES ('integrity-check')")
