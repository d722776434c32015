"""One workspace's database under the hands of one index run: logs recorded, removed, related to each other."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final, Self

from sessiongraph_web import schema, tokenizer
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.faults import HEADLESS
from sessiongraph_web.jobs import Job, LogResult, LogTask
from sessiongraph_web.language import sentence
from sessiongraph_web.logwriter import LogWriter, State, can_resume

FTS_HASH_BYTES: Final = 16 * 1024 * 1024  # measured: halves the time of inserts against the default of 1 MiB


class Recorder:
    """A writer on one workspace's database, for one `Job`; leaving it leaves the file whole, or as it was."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __enter__(self) -> Self:
        job = self.job
        self.connection = (
            schema.create(job.file, schema.WORKSPACE_DDL) if job.fresh else schema.open_writer(job.file)
        )
        if job.fresh:
            self.connection.execute("BEGIN")
            self._seal()
        else:
            schema.check_seal(self.connection, job.cwd)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._settle()
        finally:
            self.connection.close()

    def _settle(self) -> None:
        """Leave the file on disk and without a `-wal`."""
        if self.job.fresh:
            self.connection.execute("COMMIT")
            schema.settle(self.connection, self.job.file)
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _step(self) -> AbstractContextManager[None]:
        """One log is all there or not at all. A file that nobody sees yet is committed once, at its end: a
        savepoint for each log would have FTS5 write out its tokens each time (measured: a tenth of a build)."""
        return nullcontext() if self.job.fresh else schema.transaction(self.connection)

    def record(self, task: LogTask, tell: Callable[[int], None]) -> LogResult:
        """Bring one log up to date; `tell` is given the stored bytes as they are read."""
        try:
            with self._step():
                result = self._record(task, tell)
                self._bump()
        except (OSError, SessionGraphError) as error:
            if self.job.fresh:
                self._forget(task.log_id)
            if isinstance(error, SessionGraphError):
                raise
            reason = error.strerror or type(error).__name__
            detail = sentence("This log cannot be read: %(reason)s.", reason=reason)
            raise SessionGraphError("SESSION_QUERY_PERSISTENCE_FAILED", detail) from error
        return result

    def remove(self, log_ids: Iterable[int]) -> None:
        """Forget logs that are gone."""
        for log_id in log_ids:
            with self._step():
                self._forget(log_id)
                self._bump()

    def relate(self) -> None:
        """Write which parents are in this workspace, where that changed."""
        rows = self.connection.execute(
            "SELECT log_id, id, parent_session, parent_elsewhere FROM session"
        ).fetchall()
        here = {identity for _, identity, _, _ in rows}
        changed = []
        for log_id, _, parent, elsewhere in rows:
            named = self.job.parents.get(log_id)
            relation = (named, False) if named in here else (None, named is not None)
            if relation != (parent, bool(elsewhere)):
                changed.append((*relation, log_id))
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

    def _record(self, task: LogTask, tell: Callable[[int], None]) -> LogResult:
        state = State.load(self.connection, task.log_id)
        if state and can_resume(task, state):
            forget_entries(self.connection, task.log_id, "synthetic")
            return LogWriter(self.connection, self.job, task, state, tell).run("extended")
        if state:
            self._forget(task.log_id)
        result = LogWriter(self.connection, self.job, task, State(), tell).run("indexed")
        if result.row["events"] == 0 and any(fault["code"] in HEADLESS for fault in result.faults):
            self._forget(task.log_id)
            return replace(result, mode="empty")
        return result

    def _forget(self, log_id: int) -> None:
        forget_entries(self.connection, log_id, "1")
        for table in ("activity", "prompt", "citation", "shadow", "surface_node", "frame", "log", "session"):
            self.connection.execute(f"DELETE FROM {table} WHERE log_id = ?", (log_id,))  # noqa: S608

    def _bump(self) -> None:
        self.connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")

    def _seal(self) -> None:
        self.connection.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [("sealed_cwd", self.job.cwd), ("revision", 0)],
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
