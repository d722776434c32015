"""The ledger in `catalog.db`: every file found under the store, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import sqlite_utils

from sessiongraph_web import schema
from sessiongraph_web.answers import SESSION_COLUMNS, RunReport
from sessiongraph_web.models import NEWEST_VERSION, Header, Instant, LogState

RUNS_KEPT: Final = 50
_ELSEWHERE: Final = frozenset({"parent_session", "parent_elsewhere"})  # true of one workspace only
_COLUMNS: Final = ("created_at", "last_at", "models", *(c for c in SESSION_COLUMNS if c not in _ELSEWHERE))


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What the last run knew of a file: enough to see whether it changed."""

    log_id: int
    path: str
    cwd: str | None
    state: LogState
    size: int
    mtime_ns: int
    inode: int
    parent_session: str | None
    session_id: str | None
    has_session: bool
    unreachable: bool


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file as the stat walk saw it."""

    log_id: int
    path: str
    size: int
    mtime_ns: int
    inode: int


class Ledger:
    """A writer on the catalog. Every method is one transaction that raises the epoch if answers may change."""

    def __init__(self, path: Path) -> None:
        self.connection = schema.open_writer(path)
        self._db = sqlite_utils.Database(self.connection)

    def close(self) -> None:
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()

    def rows(self) -> dict[int, LedgerRow]:
        found = self.connection.execute(
            """
            SELECT log.log_id, path, log.cwd, state, size, mtime_ns, inode, session.parent_session,
                   log.session_id, session.log_id IS NOT NULL, unreachable_since IS NOT NULL
            FROM log LEFT JOIN session USING (log_id)
            """
        )
        return {row[0]: LedgerRow(*row) for row in found}

    def workspaces(self) -> dict[str, str]:
        """Return {database name: file name}."""
        return dict(self.connection.execute("SELECT database, file FROM workspace").fetchall())

    def expect(self, files: Iterable[FileFacts], now: int) -> None:
        """Note new files as pending, so that the ledger accounts for them before they are read."""
        rows = [(f.log_id, f.path, "pending", f.size, f.mtime_ns, f.inode, now, "[]") for f in files]
        with schema.transaction(self.connection):
            self.connection.executemany(
                """
                INSERT INTO log (log_id, path, state, size, mtime_ns, inode, seen_at, faults)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
                """,
                rows,
            )

    def settle(
        self,
        file: FileFacts,
        header: Header,
        state: LogState,
        reason: str | None,
        *,
        now: int,
        row: dict[str, Any] | None,
        faults: list[dict[str, Any]],
        activity: list[tuple[int, int]],
    ) -> None:
        """Write what became of one log. `row` is its session, None if none could be read."""
        with schema.transaction(self.connection):
            self._write_log(file, state, reason, now, header if row else None, faults)
            self.connection.execute("DELETE FROM session WHERE log_id = ?", (file.log_id,))
            self.connection.execute("DELETE FROM activity WHERE log_id = ?", (file.log_id,))
            if row:
                kept = {name: row[name] for name in _COLUMNS}
                self._db.table("session").insert(
                    kept | {"cwd": header.cwd, "parent_session": header.parent_session}
                )
                self._db.table("activity").insert_all(
                    {"log_id": file.log_id, "quarter": quarter, "entries": entries}
                    for quarter, entries in activity
                )
            self._raise_epoch()

    def note(self, file: FileFacts, state: LogState, reason: str, *, now: int) -> None:
        """Write a file that is no session: superseded, or not readable."""
        with schema.transaction(self.connection):
            self._write_log(file, state, reason, now, None, [])

    def forget(self, log_ids: Iterable[int]) -> None:
        with schema.transaction(self.connection):
            for log_id in log_ids:
                for table in ("activity", "session", "log"):
                    self.connection.execute(f"DELETE FROM {table} WHERE log_id = ?", (log_id,))  # noqa: S608
            self._raise_epoch()

    def reachable(self, lost: Iterable[int], found: Iterable[int], now: int) -> None:
        """Mark what could not be looked at since when, and unmark what has come back."""
        with schema.transaction(self.connection):
            self.connection.executemany(
                "UPDATE log SET unreachable_since = ifnull(unreachable_since, ?) WHERE log_id = ?",
                [(now, log_id) for log_id in lost],
            )
            self.connection.executemany(
                "UPDATE log SET unreachable_since = NULL WHERE log_id = ?", [(log_id,) for log_id in found]
            )

    def place(self, database: str, cwd: str | None, file: str, revision: int) -> None:
        """Make a workspace's file the one that readers open."""
        with schema.transaction(self.connection):
            self._db.table("workspace").upsert(
                {"database": database, "cwd": cwd, "file": file, "revision": revision}, pk="database"
            )
            self._raise_epoch()

    def remove_workspace(self, database: str) -> None:
        with schema.transaction(self.connection):
            self.connection.execute("DELETE FROM workspace WHERE database = ?", (database,))
            self._raise_epoch()

    def finish(self, report: RunReport, *, refreshed_at: int, problem: str | None) -> None:
        """Record a run and when the store was last looked at."""
        with schema.transaction(self.connection):
            self._mark_duplicates()
            self._set("refreshed_at", refreshed_at)
            self._set("store_problem", problem)
            if (
                report.indexed
                or report.extended
                or report.removed
                or report.failed
                or report.outcome != "complete"
            ):
                encoded = msgspec.json.encode(report, enc_hook=_encode_instant).decode()
                self.connection.execute("INSERT INTO run (report) VALUES (?)", (encoded,))
                self.connection.execute("DELETE FROM run WHERE id <= (SELECT max(id) FROM run) - ?", (RUNS_KEPT,))

    def epoch(self) -> int:
        row = self.connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
        return int(row[0]) if row else 0

    def _write_log(
        self,
        file: FileFacts,
        state: LogState,
        reason: str | None,
        now: int,
        header: Header | None,
        faults: list[dict[str, Any]],
    ) -> None:
        self._db.table("log").upsert(
            {
                "log_id": file.log_id,
                "path": file.path,
                "session_id": header.id if header else None,
                "cwd": header.cwd if header else None,
                "version": header.version if header else None,
                "state": state,
                "reason": reason,
                "size": file.size,
                "mtime_ns": file.mtime_ns,
                "inode": file.inode,
                "seen_at": now,
                "faults": msgspec.json.encode(faults).decode(),
                "unreachable_since": None,
            },
            pk="log_id",
        )

    def _mark_duplicates(self) -> None:
        """An id that occurs twice is a duplicate in both places; one that no longer does is what it was."""
        twice = "SELECT id FROM session GROUP BY id HAVING count(*) > 1"
        self.connection.execute(
            f"""
            UPDATE log SET state = CASE WHEN version > ? THEN 'newer' WHEN faults != '[]' THEN 'partial'
                                   ELSE 'indexed' END, reason = NULL
            WHERE state = 'duplicate' AND session_id NOT IN ({twice})
            """,  # noqa: S608 - a literal of ours
            (NEWEST_VERSION,),
        )
        self.connection.execute(
            f"""
            UPDATE log SET state = 'duplicate', reason = 'another log carries the same session id'
            WHERE state IN ('indexed', 'partial', 'newer') AND session_id IN ({twice})
            """  # noqa: S608 - a literal of ours
        )

    def _raise_epoch(self) -> None:
        self.connection.execute(
            "INSERT INTO meta VALUES ('epoch', 1) ON CONFLICT DO UPDATE SET value = value + 1"
        )

    def _set(self, key: str, value: object) -> None:
        self.connection.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, value)
        )


def _encode_instant(value: object) -> int:
    if isinstance(value, Instant):
        return value.ms
    raise TypeError(type(value))
