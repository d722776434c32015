"""The content of an index in one canonical form, so that two indexes can be compared."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sessiongraph_web import generation

_ENTRY = (
    "log_id, ordinal, seq, time, turn, kind, type, surface, tool, failed, inherited, synthetic, length, clipped,"
    " text"
)
_TABLES = {
    "session": "*",
    "entry": _ENTRY,
    "activity": "*",
    "surface_node": "log_id, seq, ordinal, type, digest",
    "shadow": "*",
    "citation": "*",
    "prompt": "*",
    "log": "log_id, resume_offset, resume_ordinal, resume_line, next_seq, exact, fingerprint, carried",
}
_CATALOG = {
    "log": "log_id, path, session_id, cwd, version, state, reason, size, mtime_ns, faults",
    "session": "*",
    "activity": "*",
    "workspace": "database, cwd",
}


def dump(index: Path) -> dict[str, Any]:
    """Return every row that answers may come from, in an order of its own, without row ids."""
    live = generation.live(index)
    assert live is not None
    with sqlite3.connect(live.catalog) as catalog:
        found = {f"catalog.{table}": _rows(catalog, table, columns) for table, columns in _CATALOG.items()}
        files = catalog.execute("SELECT database, file FROM workspace").fetchall()
    catalog.close()
    for database, file in files:
        found |= {f"{database}.{name}": rows for name, rows in _workspace(live.file(file)).items()}
    return {name: rows for name, rows in sorted(found.items()) if rows}


def _workspace(path: Path) -> dict[str, Any]:
    connection = sqlite3.connect(path)
    found = {table: _rows(connection, table, columns) for table, columns in _TABLES.items()}
    connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, entry_fts, instance)")
    names = dict(connection.execute("SELECT id, log_id || ':' || ordinal || ':' || kind FROM entry"))
    terms = connection.execute("SELECT doc, term, offset FROM temp.terms")
    found["terms"] = sorted((names.get(doc, f"ghost {doc}"), term, offset) for doc, term, offset in terms)
    connection.close()
    return found


def _rows(connection: sqlite3.Connection, table: str, columns: str) -> list[Any]:
    return sorted(connection.execute(f"SELECT {columns} FROM {table}"), key=repr)  # noqa: S608
