"""Whether a database is sound: what is looked at before a file that a run did not leave so is trusted again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from sessiongraph_web import schema, trust
from sessiongraph_web.damage import translated
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.language import sentence

Identity = tuple[int, int, int]


def identity(path: Path) -> Identity | None:
    """Return size, mtime (ns) and inode of a database: what a run notes when it leaves the file."""
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def logs_of(path: Path, cwd: str | None, *, probe: bool = True) -> frozenset[int]:
    """Look through a workspace's database, settle its `-wal`, and return the logs it holds.

    Damage of any kind is SESSIONGRAPH_CORRUPT with what was found as its detail. `probe` compares the full-text
    index with the entries, for who does not do so himself.
    """
    with translated(), closing(schema.open_writer(path)) as connection:
        check_tables(connection, schema.WORKSPACE_DDL)
        schema.check_seal(connection, cwd)
        check_pages(connection)
        check_terms(connection)
        if probe:
            trust.check_terms(connection)  # FTS5 itself finds nothing wrong with an emptied index
        found = frozenset(row[0] for row in connection.execute("SELECT log_id FROM log"))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return found


def check_catalog(path: Path) -> None:
    """Raise SESSIONGRAPH_CORRUPT if the catalog is not in order."""
    with translated(), closing(schema.open_writer(path)) as connection:
        check_tables(connection, schema.CATALOG_DDL)
        check_pages(connection)


def check_tables(connection: sqlite3.Connection, ddl: str) -> None:
    """Raise SESSIONGRAPH_CORRUPT unless every table and index is there, made as it is made today."""
    missing = _described(ddl) - _description(connection)
    if missing:
        raise SessionGraphError(
            "SESSIONGRAPH_CORRUPT", sentence("%(name)s is missing or of another make", name=min(missing)[0])
        )


def check_pages(connection: sqlite3.Connection) -> None:
    """Raise SESSIONGRAPH_CORRUPT if SQLite finds fault with the file's pages."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise SessionGraphError(
            "SESSIONGRAPH_CORRUPT",
            sentence("SQLite finds fault with it: %(fault)s", fault=" ".join(str(found).split())),
        )


def check_terms(connection: sqlite3.Connection) -> None:
    """Raise if the full-text index contradicts itself. It needs a writer; `quick_check` sees none of this."""
    connection.execute("INSERT INTO entry_fts (entry_fts) VALUES ('integrity-check')")


@cache
def _described(ddl: str) -> frozenset[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(ddl)
        return _description(connection)


def _description(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return frozenset((name, sql) for name, sql in rows)
