"""The ledger in `catalog.db`: every file found under the store, and what became of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import EllipsisType
from typing import Any, Final

import msgspec
import sqlite_utils

from sessiongraph_web import schema
from sessiongraph_web.answers import SESSION_COLUMNS
from sessiongraph_web.models import NEWEST_VERSION, Header, Instant, LogState
from sessiongraph_web.reports import RunReport
from sessiongraph_web.soundness import Identity

RUNS_KEPT: Final = 50
_DUPLICATE: Final = "another log carries the same session id"  # what else a row says follows
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


@dataclass(frozen=True, slots=True)
class Place:
    """Where a workspace's rows are: `identity` is what the file was when a run left it."""

    database: str
    cwd: str | None
    file: str
    revision: int
    identity: Identity


@dataclass(frozen=True, slots=True)
class Settled:
    """One log that was read. `row` is its session, None if none could be read."""

    file: FileFacts
    header: Header
    state: LogState
    reason: str | None
    row: dict[str, Any] | None
    faults: list[dict[str, Any]]
    activity: list[tuple[int, int]]


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

    def places(self) -> list[Place]:
        """Return every workspace and the file that readers open for it."""
        found = self.connection.execute(
            "SELECT database, cwd, file, revision, size, mtime_ns, inode FROM workspace"
        )
        return [Place(row[0], row[1], row[2], row[3], (row[4], row[5], row[6])) for row in found]

    def expect(self, files: Iterable[FileFacts], now: int) -> None:
        """Note what is about to be read: however the run ends, what it does not settle is read by the next."""
        new = [(f.log_id, f.path, "pending", f.size, f.mtime_ns, 0, now, "[]") for f in files]
        if not new:
            return
        with schema.transaction(self.connection):
            self.connection.executemany(
                """
                INSERT INTO log (log_id, path, state, size, mtime_ns, inode, seen_at, faults)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET inode = 0 WHERE inode != 0
                """,
                new,
            )

    def expect_workspaces(self, cwds: Iterable[str | None]) -> None:
        """Have every log of some workspaces read anew, as soon as it can be reached."""
        with schema.transaction(self.connection):
            self.connection.executemany("UPDATE log SET inode = 0 WHERE cwd IS ?", [(cwd,) for cwd in cwds])

    def settle(
        self, place: Place, settled: Iterable[Settled], dropped: Iterable[int], *, holds_any: bool, now: int
    ) -> None:
        """Write what became of one workspace: its file, the logs that were read, those that left it."""
        with schema.transaction(self.connection):
            for log_id in dropped:
                self._drop(log_id, place.cwd)
            for log in settled:
                self._settle(log, now)
            self.connection.execute("DELETE FROM workspace WHERE database = ?", (place.database,))
            if holds_any:
                self.connection.execute(
                    "INSERT INTO workspace VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (place.database, place.cwd, place.file, place.revision, *place.identity),
                )
            self._raise_epoch()

    def note(self, file: FileFacts, state: LogState, reason: str, *, now: int) -> None:
        """Write a file that is not, or not now, read as a log; a session that was read before stays."""
        with schema.transaction(self.connection):
            self.connection.execute(
                """
                INSERT INTO log (log_id, path, state, reason, size, mtime_ns, inode, seen_at, faults)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, '[]') ON CONFLICT DO UPDATE SET state = excluded.state,
                    reason = excluded.reason, size = excluded.size, mtime_ns = excluded.mtime_ns,
                    inode = excluded.inode, seen_at = excluded.seen_at, faults = '[]', unreachable_since = NULL
                """,
                (file.log_id, file.path, state, reason, file.size, file.mtime_ns, file.inode, now),
            )

    def forget(self, log_ids: Collection[int]) -> None:
        if not log_ids:
            return
        with schema.transaction(self.connection):
            for log_id in log_ids:
                for table in ("activity", "session", "log"):
                    self.connection.execute(f"DELETE FROM {table} WHERE log_id = ?", (log_id,))  # noqa: S608
            self._raise_epoch()

    def reachable(self, lost: Iterable[int], found: Iterable[int], now: int) -> None:
        """Mark what could not be looked at since when, and unmark what has come back."""
        lost, found = list(lost), list(found)
        if not lost and not found:
            return
        with schema.transaction(self.connection):
            self.connection.executemany(
                "UPDATE log SET unreachable_since = ifnull(unreachable_since, ?) WHERE log_id = ?",
                [(now, log_id) for log_id in lost],
            )
            self.connection.executemany(
                "UPDATE log SET unreachable_since = NULL WHERE log_id = ?", [(log_id,) for log_id in found]
            )

    def remember(self, key: str, value: str | None) -> None:
        """Keep a fact about the last run, if it is news."""
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        if (row[0] if row else None) != value:
            self.connection.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, value)
            )

    def finish(self, report: RunReport) -> None:
        """Record a run that has something to say; one that found everything as it was writes nothing."""
        changed = report.indexed or report.extended or report.removed or report.failed
        with schema.transaction(self.connection):
            self._mark_duplicates()
            if not changed and report.problem is None and report.outcome == "complete":
                return
            encoded = msgspec.json.encode(report, enc_hook=_encode_instant).decode()
            self.connection.execute("INSERT INTO run (report) VALUES (?)", (encoded,))
            self.connection.execute("DELETE FROM run WHERE id <= (SELECT max(id) FROM run) - ?", (RUNS_KEPT,))

    def epoch(self) -> int:
        row = self.connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
        return int(row[0]) if row else 0

    def _settle(self, log: Settled, now: int) -> None:
        file, header = log.file, log.header if log.row else None
        self._drop(file.log_id)
        self.connection.execute(
            "INSERT OR REPLACE INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            (
                file.log_id,
                file.path,
                header.id if header else None,
                header.cwd if header else None,
                header.version if header else None,
                log.state,
                log.reason,
                file.size,
                file.mtime_ns,
                file.inode,
                now,
                msgspec.json.encode(log.faults).decode(),
            ),
        )
        if log.row is None:
            return
        row = {name: log.row[name] for name in _COLUMNS}
        row |= {"cwd": log.header.cwd, "parent_session": log.header.parent_session}
        self._db.table("session").insert(row)
        self.connection.executemany(
            "INSERT INTO activity VALUES (?, ?, ?)", [(file.log_id, *counted) for counted in log.activity]
        )

    def _drop(self, log_id: int, cwd: str | EllipsisType | None = ...) -> None:
        """Delete a session, if it is still in the given workspace."""
        if cwd is not ...:
            row = self.connection.execute("SELECT cwd FROM session WHERE log_id = ?", (log_id,)).fetchone()
            if row is None or row[0] != cwd:
                return
        for table in ("activity", "session"):
            self.connection.execute(f"DELETE FROM {table} WHERE log_id = ?", (log_id,))  # noqa: S608
        self.connection.execute(
            "UPDATE log SET session_id = NULL, cwd = NULL, version = NULL WHERE log_id = ?", (log_id,)
        )

    def _mark_duplicates(self) -> None:
        """An id that occurs twice is a duplicate in both places; one that no longer does is what it was."""
        twice = "SELECT id FROM session GROUP BY id HAVING count(*) > 1"
        also = f"{_DUPLICATE}; "
        self.connection.execute(
            f"""
            UPDATE log SET state = CASE WHEN version > ? THEN 'newer' WHEN faults != '[]' THEN 'partial'
                                   ELSE 'indexed' END, reason = nullif(substr(reason, ?), '')
            WHERE state = 'duplicate' AND session_id NOT IN ({twice})
            """,  # noqa: S608 - a literal of ours
            (NEWEST_VERSION, len(also) + 1),
        )
        self.connection.execute(
            f"""
            UPDATE log SET state = 'duplicate', reason = ifnull(? || reason, ?)
            WHERE state IN ('indexed', 'partial', 'newer') AND session_id IN ({twice})
            """,  # noqa: S608 - a literal of ours
            (also, _DUPLICATE),
        )

    def _raise_epoch(self) -> None:
        self.connection.execute(
            "INSERT INTO meta VALUES ('epoch', 1) ON CONFLICT DO UPDATE SET value = value + 1"
        )


def _encode_instant(value: object) -> int:
    if isinstance(value, Instant):
        return value.ms
    raise TypeError(type(value))
