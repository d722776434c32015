"""The corpus as a caller sees it: which logs an id has, where they are, and their relatives."""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sessiongraph_web import access, generation, logs, schema
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import SESSION_COLUMNS, IndexNote, SessionSummary, instant, session_summary
from sessiongraph_web.config import Settings
from sessiongraph_web.damage import failure
from sessiongraph_web.errors import SessionGraphError, not_found
from sessiongraph_web.generation import Generation
from sessiongraph_web.models import Fault, Header, Resume

IDLE_CONNECTIONS: Final = 64
PREFIX_LENGTH: Final = 6
ID_PREFIX: Final = "session-"
MOST_CANDIDATES: Final = 20


@dataclass(frozen=True, slots=True)
class Workspace:
    """One workspace's database as the catalog names it."""

    cwd: str | None
    database: str
    file: Path


@dataclass(frozen=True, slots=True)
class Located:
    """One log that a caller may see: its facts from the catalog (or from its header, without an index)."""

    log_id: int
    path: Path
    row: Mapping[str, Any]

    @property
    def cwd(self) -> str | None:
        cwd: str | None = self.row["cwd"]
        return cwd

    @property
    def id(self) -> str:
        return str(self.row["id"])


class Pool:
    """Read connections that are kept open between requests, each used by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[Path, list[schema.Reader]] = defaultdict(list)

    @contextmanager
    def lease(self, path: Path) -> Iterator[sqlite3.Connection]:
        """Lend a reader on a database; one that met a damaged page is closed, not kept."""
        with self._lock:
            idle = self._idle.get(path)
            connection = idle.pop() if idle else None
        connection = connection or schema.open_reader(path)
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
                self._keep(path, connection)

    def close(self) -> None:
        with self._lock:
            for idle in self._idle.values():
                for connection in idle:
                    connection.close()
            self._idle.clear()

    def _keep(self, path: Path, connection: schema.Reader) -> None:
        with self._lock:
            if sum(len(idle) for idle in self._idle.values()) >= IDLE_CONNECTIONS:
                oldest = next(iter(self._idle))
                for old in self._idle.pop(oldest):
                    old.close()
            self._idle[path].append(connection)


class View:
    """The index as it stands for the length of one operation."""

    def __init__(
        self, settings: Settings, pool: Pool, live: Generation | None, catalog: sqlite3.Connection | None
    ) -> None:
        self.settings, self.pool, self.generation, self.catalog = settings, pool, live, catalog

    def require_catalog(self) -> sqlite3.Connection:
        if self.catalog is None:
            raise SessionGraphError("SESSION_QUERY_INDEX_FAILED")
        return self.catalog

    def note(self) -> IndexNote:
        """Say how fresh the index is and whether a build is going on."""
        if self.catalog is None:
            return IndexNote(epoch=0, refreshed_at=None, indexing=False)
        meta = dict(self.catalog.execute("SELECT key, value FROM meta").fetchall())
        pending, total = self.catalog.execute(
            "SELECT ifnull(sum(state = 'pending'), 0), count(*) FROM log WHERE state NOT IN ('superseded', 'ignored')"
        ).fetchone()
        return IndexNote(
            epoch=int(meta.get("epoch") or 0),
            refreshed_at=instant(meta.get("refreshed_at")),
            indexing=bool(pending),
            done=total - pending,
            total=total,
        )

    def workspaces(self, caller: Caller) -> list[Workspace]:
        """Return the workspaces whose databases the caller's answers may come from."""
        if self.catalog is None or self.generation is None:
            return []
        rows = self.catalog.execute("SELECT cwd, database, file FROM workspace ORDER BY cwd").fetchall()
        found = [Workspace(row["cwd"], row["database"], self.generation.file(row["file"])) for row in rows]
        if caller.kind == "session":
            return [workspace for workspace in found if workspace.cwd in caller.cwds]
        return [workspace for workspace in found if access.sees_workspace(caller, workspace.cwd)]

    @contextmanager
    def open(self, workspace: Workspace) -> Iterator[sqlite3.Connection]:
        """Lend a reader on a workspace's database, its seal checked."""
        with self.pool.lease(workspace.file) as connection:
            schema.check_seal(connection, workspace.cwd)
            yield connection

    def find(self, caller: Caller, session_id: str, log_id: int | None) -> Located:
        """Return the one log that an id (or an unambiguous part of it) means to this caller.

        Missing, foreign and forbidden are the same error. Several sessions that begin like the text, or several
        logs with one id, are SESSIONGRAPH_AMBIGUOUS_ID with the caller's own `candidates` or `logs`.
        """
        found = self._visible(caller, self._named(session_id))
        if not found and len(session_id.removeprefix(ID_PREFIX)) >= PREFIX_LENGTH:
            found = self._visible(caller, self._beginning(session_id))
        if log_id is not None:
            found = [located for located in found if located.log_id == log_id]
        if not found:
            raise not_found()
        ids = sorted({located.id for located in found})
        if len(ids) > 1:
            raise SessionGraphError("SESSIONGRAPH_AMBIGUOUS_ID", candidates=ids[:MOST_CANDIDATES])
        if len(found) > 1:
            raise SessionGraphError(
                "SESSIONGRAPH_AMBIGUOUS_ID",
                "Several logs carry this id; choose one of them.",
                id=ids[0],
                logs=sorted(located.log_id for located in found),
            )
        return found[0]

    def relatives(self, caller: Caller, session_id: str) -> list[Located]:
        """Return the visible logs whose parent is this session, oldest first."""
        if self.catalog is None:
            rows = [row for row in self._store_rows() if row["parent_session"] == session_id]
        else:
            rows = self._select("session.parent_session = ?", session_id)
        found = self._visible(caller, rows)
        return sorted(found, key=lambda located: (located.row["created_at"] or 0, located.id))

    def exactly(self, caller: Caller, session_id: str) -> list[Located]:
        """Return the visible logs that carry exactly this id."""
        return self._visible(caller, self._named(session_id))

    def summary(self, caller: Caller, located: Located) -> SessionSummary:
        """Return a session's summary with what this caller may know of its parent and twins."""
        row = located.row
        parent = row["parent_session"]
        seen = parent is not None and bool(self.exactly(caller, parent))
        return session_summary(
            row,
            cwd=located.cwd,
            parent_session=parent if seen else None,
            parent_elsewhere=parent is not None and not seen,
            live=logs.is_live(located.path),
            duplicate=caller.is_owner and row["state"] == "duplicate",
        )

    def check_header(self, located: Located) -> Header | None:
        """Read the header of the log again and refuse it if it is no longer the session that was authorized."""
        header = logs.peek_header(located.path, log_limits(self.settings))
        if isinstance(header, Fault):
            if located.cwd is not None:
                raise not_found()
            return None
        if (header.id, header.cwd) != (located.id, located.cwd):
            raise not_found()
        return header

    def resume_point(self, located: Located, *, ordinal: int) -> Resume:
        """Return the nearest place at or before a record where reading can begin."""
        with ExitStack() as stack:
            connection = self._database_of(located, stack)
            if connection is None:
                return Resume()
            row = connection.execute(
                """
                SELECT offset, first_ordinal, line, first_seq FROM frame
                WHERE log_id = ? AND first_ordinal <= ? ORDER BY first_ordinal DESC LIMIT 1
                """,
                (located.log_id, ordinal),
            ).fetchone()
        return Resume(row[0], row[1], row[2], row[3] or 0) if row else Resume()

    @contextmanager
    def database_of(self, located: Located) -> Iterator[sqlite3.Connection | None]:
        """Lend a reader on the database that holds a log, or None without an index."""
        with ExitStack() as stack:
            yield self._database_of(located, stack)

    def _database_of(self, located: Located, stack: ExitStack) -> sqlite3.Connection | None:
        if self.catalog is None or self.generation is None:
            return None
        database = schema.database_name(located.cwd)
        row = self.catalog.execute("SELECT file FROM workspace WHERE database = ?", (database,)).fetchone()
        if row is None:
            return None
        workspace = Workspace(located.cwd, database, self.generation.file(row["file"]))
        return stack.enter_context(self.open(workspace))

    def _visible(self, caller: Caller, rows: list[Mapping[str, Any]]) -> list[Located]:
        return [
            Located(row["log_id"], self.settings.sessions / row["path"], row)
            for row in rows
            if access.sees_session(caller, row["cwd"], row["log_id"], self._lineage(caller, row))
        ]

    def _lineage(self, caller: Caller, row: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the ancestors of a log in its own workspace, for callers to whom they matter."""
        if not caller.with_descendants or caller.kind != "session":
            return ()
        seen: dict[int, None] = {}
        parent = row["parent_session"]
        while parent is not None:
            found = [r for r in self._named(parent) if r["cwd"] == row["cwd"] and r["log_id"] not in seen]
            if not found:
                break
            seen |= dict.fromkeys(r["log_id"] for r in found)
            parent = found[0]["parent_session"]
        return tuple(seen)

    def _named(self, session_id: str) -> list[Mapping[str, Any]]:
        if self.catalog is None:
            return [row for row in self._store_rows() if row["id"] == session_id]
        return self._select("session.id = ?", session_id)

    def _beginning(self, text: str) -> list[Mapping[str, Any]]:
        bare = text.removeprefix(ID_PREFIX)
        if self.catalog is None:
            return [row for row in self._store_rows() if row["id"].removeprefix(ID_PREFIX).startswith(bare)]
        end = bare[:-1] + chr(min(ord(bare[-1]) + 1, 0x10FFFF))
        return self._select(
            "(session.id >= ? AND session.id < ?) OR (session.id >= ? AND session.id < ?)",
            bare,
            end,
            ID_PREFIX + bare,
            ID_PREFIX + end,
        )

    def _select(self, condition: str, *values: object) -> list[Mapping[str, Any]]:
        rows = self.require_catalog().execute(
            f"""
            SELECT session.*, log.path, log.state, log.faults FROM session JOIN log USING (log_id)
            WHERE {condition}
            """,  # noqa: S608 - conditions of ours, values bound
            values,
        )
        return [dict(row) for row in rows]

    def _store_rows(self) -> list[Mapping[str, Any]]:
        """Make rows from the headers in the store: what is known of sessions without an index."""
        limits = log_limits(self.settings)
        found = ((log, logs.peek_header(log.path, limits)) for log in logs.discover(self.settings.sessions).logs)
        return [_row_from_header(log, header) for log, header in found if isinstance(header, Header)]


class Corpus:
    """The door to views of the index."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.pool = Pool()

    @contextmanager
    def view(self) -> Iterator[View]:
        """Open the live generation for one operation; without an index the view still reads the store."""
        live = generation.live(self.settings.index)
        if live is None:
            yield View(self.settings, self.pool, None, None)
            return
        with generation.using(live), self.pool.lease(live.catalog) as catalog:
            yield View(self.settings, self.pool, live, catalog)

    def close(self) -> None:
        self.pool.close()


def log_limits(settings: Settings) -> logs.Limits:
    return logs.Limits(settings.max_line_bytes, settings.max_window_bytes)


def _row_from_header(log: logs.LogFile, header: Header) -> dict[str, Any]:
    known = {
        "log_id": log.log_id,
        "path": log.relative,
        "state": "pending",
        "faults": "[]",
        "id": header.id,
        "cwd": header.cwd,
        "title": header.id,
        "created_at": header.created_at,
        "last_at": log.mtime_ns // 1_000_000,
        "parent_session": header.parent_session,
        "origin": header.origin,
        "agent_preset": header.agent_preset,
        "delegation_depth": header.delegation_depth,
        "is_seeded": header.is_seeded,
        "version": header.version,
        "models": "[]",
        "surface_fault": None,
    }
    return dict.fromkeys(SESSION_COLUMNS, 0) | known
