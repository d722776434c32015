"""One workspace's database under the hands of one index run: logs recorded, removed, related to each other."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

from sessiongraph_web import redact, schema, tokenizer
from sessiongraph_web.logwriter import Job, LogResult, LogTask, LogWriter, State, can_resume

HEADLESS: Final = frozenset({"bad_header", "not_zstd", "empty_file", "not_readable"})
FTS_HASH_BYTES: Final = 16 * 1024 * 1024  # measured: halves the time of inserts against the default of 1 MiB


class Recorder:
    """A writer on one workspace's database; use it for one `Job` and close it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.connection = (
            schema.create(job.file, schema.WORKSPACE_DDL) if job.fresh else schema.open_writer(job.file)
        )
        if job.fresh:
            self.connection.execute("BEGIN")
            self._seal()
        else:
            schema.check_seal(self.connection, job.cwd)

    def close(self) -> None:
        """Leave the file whole, on disk, and without a `-wal`."""
        if self.job.fresh:
            self.connection.execute("COMMIT")
            schema.settle(self.connection, self.job.file)
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()

    def _step(self) -> AbstractContextManager[None]:
        """One log is all there or not at all. A file that nobody sees yet is committed once, at its end."""
        return schema.savepoint(self.connection) if self.job.fresh else schema.transaction(self.connection)

    def record(self, task: LogTask) -> LogResult:
        """Bring one log up to date."""
        with self._step():
            result = self._record(task)
            self._bump()
        return result

    def remove(self, log_ids: Iterable[int]) -> None:
        """Forget logs that are gone."""
        for log_id in log_ids:
            with self._step():
                self._forget(log_id)
                self._bump()

    def relate(self) -> None:
        """Write which parents are in this workspace, where that changed."""
        rows = self.connection.execute("SELECT log_id, parent_session, parent_elsewhere FROM session").fetchall()
        changed = [
            (*relation, log_id)
            for log_id, parent, elsewhere in rows
            if (relation := self.job.relations.get(log_id, (None, False))) != (parent, bool(elsewhere))
        ]
        if changed:
            with self._step():
                self.connection.executemany(
                    "UPDATE session SET parent_session = ?, parent_elsewhere = ? WHERE log_id = ?", changed
                )
                self._bump()

    def revision(self) -> int:
        row = self.connection.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()
        return int(row[0])

    def sessions(self) -> int:
        """Return how many sessions the workspace holds now."""
        count: int = self.connection.execute("SELECT count(*) FROM session").fetchone()[0]
        return count

    def _record(self, task: LogTask) -> LogResult:
        state = State.load(self.connection, task.log_id)
        if state and can_resume(task, state):
            forget_entries(self.connection, task.log_id, "synthetic")
            return LogWriter(self.connection, self.job, task, state).run("extended")
        if state:
            self._forget(task.log_id)
        result = LogWriter(self.connection, self.job, task, State()).run("indexed")
        if result.row["events"] == 0 and any(fault["code"] in HEADLESS for fault in result.faults):
            self._forget(task.log_id)
            return replace(result, mode="empty")
        return result

    def _forget(self, log_id: int) -> None:
        forget_entries(self.connection, log_id, "1")
        for table in ("activity", "citation", "shadow", "surface_node", "frame", "log", "session"):
            self.connection.execute(f"DELETE FROM {table} WHERE log_id = ?", (log_id,))  # noqa: S608

    def _bump(self) -> None:
        self.connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")

    def _seal(self) -> None:
        self.connection.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [
                ("sealed_cwd", self.job.cwd),
                ("revision", 0),
                ("tokenizer_version", tokenizer.TOKENIZER_VERSION),
                ("redaction_version", redact.REDACTION_VERSION),
            ],
        )
        self.connection.execute(
            "INSERT INTO entry_fts (entry_fts, rank) VALUES ('hashsize', ?)", (FTS_HASH_BYTES,)
        )


def forget_entries(connection: sqlite3.Connection, log_id: int, condition: str) -> None:
    """Delete entries with their FTS rows: the only place that does.

    FTS5's 'delete' takes the old tokens on trust, so they are made here from the stored text of that very row.
    """
    rows = connection.execute(
        f"SELECT id, text FROM entry WHERE log_id = ? AND {condition}",  # noqa: S608 - two literals of ours
        (log_id,),
    ).fetchall()
    connection.executemany(
        "INSERT INTO entry_fts (entry_fts, rowid, tokens) VALUES ('delete', ?, ?)",
        ((row_id, tokenizer.index_text(text)) for row_id, text in rows),
    )
    connection.executemany("DELETE FROM entry WHERE id = ?", ((row_id,) for row_id, _ in rows))
