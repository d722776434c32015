"""The corpus as a caller sees it: which logs an id has, where they are, and their relatives."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sessiongraph_web import access, generation, logs, schema, unread
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import (
    DamageNote,
    IndexNote,
    SessionSummary,
    damage_notes,
    instant,
    session_summary,
)
from sessiongraph_web.config import MEBI, Settings
from sessiongraph_web.errors import SessionGraphError, not_found
from sessiongraph_web.generation import Generation
from sessiongraph_web.headers import ID_PREFIX, Headers, listed
from sessiongraph_web.locks import Locks
from sessiongraph_web.logmap import IndexMap, LogMap, Walk
from sessiongraph_web.models import Fault, Header
from sessiongraph_web.pool import Pool, Workspace, one_state

PREFIX_LENGTH: Final = 6
MOST_CANDIDATES: Final = 20
MOST_TITLES: Final = 32  # of relatives that no index holds, whose logs one view begins to read
WALK_BYTES: Final = 64 * MEBI  # stored bytes of the relatives that one view walks over where no index holds them


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

    @property
    def is_indexed(self) -> bool:
        """Whether the row is the index's; else it was made from a header in the store."""
        return "is_unread" not in self.row


class View:
    """The index as it stands for the length of one operation."""

    def __init__(
        self,
        settings: Settings,
        pool: Pool,
        live: Generation | None,
        catalog: sqlite3.Connection | None,
        stack: ExitStack,
    ) -> None:
        self.settings, self.pool, self.generation, self.catalog = settings, pool, live, catalog
        self.headers = Headers(settings.sessions, log_limits(settings), catalog)
        self._stack = stack
        self._lent: dict[str, sqlite3.Connection] = {}
        self.locks = Locks()
        self._walks: dict[int, Walk] = {}
        self._walk_bytes = WALK_BYTES
        self._titles: dict[int, str | None] = {}
        self._families: dict[Caller, frozenset[int]] = {}
        self._read: dict[int, Located] = {}

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
            """
            SELECT ifnull(sum(state = 'pending'), 0), count(*) FROM log
            WHERE state NOT IN ('superseded', 'ignored')
            """
        ).fetchone()
        return IndexNote(
            epoch=int(meta.get("epoch") or 0),
            refreshed_at=instant(generation.looked_at(self.generation)) if self.generation else None,
            indexing=bool(pending),
            done=total - pending,
            total=total,
        )

    def workspaces(self, caller: Caller) -> list[Workspace]:
        """Return the workspaces whose databases the caller's answers may come from."""
        if self.catalog is None or self.generation is None:
            return []
        within = "1" if caller.is_owner else "cwd IN (SELECT value FROM json_each(?))"
        rows = self.catalog.execute(
            f"SELECT * FROM workspace WHERE {within} ORDER BY cwd",  # noqa: S608 - words of ours
            [] if caller.is_owner else [listed(sorted(caller.cwds))],
        )
        found = [self._workspace(row, self.generation) for row in rows]
        return [one for one in found if caller.kind == "session" or access.sees_workspace(caller, one.cwd)]

    @contextmanager
    def open(self, workspace: Workspace) -> Iterator[sqlite3.Connection]:
        """Lend a reader on a workspace's database: its seal is checked, and its terms if it was touched."""
        with self.pool.lease(workspace.file) as connection, one_state(connection):
            schema.check_seal(connection, workspace.cwd)
            self.pool.check_terms(connection, workspace)
            yield connection

    def _workspace(self, row: sqlite3.Row, live: Generation) -> Workspace:
        identity = (row["size"], row["mtime_ns"], row["inode"])
        return Workspace(row["cwd"], row["database"], live.file(row["file"]), identity)

    def find(self, caller: Caller, session_id: str, log_id: int | None) -> Located:
        """Return the one log that an id (or an unambiguous part of it) means to this caller.

        Missing, foreign and forbidden are the same error. Several sessions that begin like the text, or several
        logs with one id, are SESSIONGRAPH_AMBIGUOUS_ID with the caller's own `candidates` or `logs`.
        """
        found = self._visible(caller, self.headers.named([session_id], caller))
        bare = session_id.removeprefix(ID_PREFIX)
        if not found and len(bare) >= PREFIX_LENGTH and not ID_PREFIX.startswith(bare):
            found = self._visible(caller, self.headers.beginning(session_id, caller))
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
        self.locks.read_ahead()
        return found[0]

    def located(self, row: Mapping[str, Any]) -> Located:
        """Return the log of a row with where it is."""
        return Located(row["log_id"], self.path(row["log_id"], row["path"]), row)

    def path(self, log_id: int, relative: str) -> Path:
        """Return where a log is that the ledger shows so."""
        return logs.locate(self.settings.sessions, relative, log_id)

    def children(self, caller: Caller, session_ids: Collection[str]) -> list[Located]:
        """Return the visible logs whose parent is one of these sessions, oldest first."""
        return sorted(self._visible(caller, self.headers.children_of(session_ids, caller)), key=by_age)

    def exactly(self, caller: Caller, session_id: str) -> list[Located]:
        """Return the visible logs that carry exactly this id."""
        return self._visible(caller, self.headers.named([session_id], caller))

    def summary(self, caller: Caller, located: Located) -> SessionSummary:
        """Return a session's summary with what this caller may know of its parent and twins."""
        return self.summaries(caller, [located])[0]

    def summaries(self, caller: Caller, found: Sequence[Located]) -> list[SessionSummary]:
        """Return the summaries of many sessions, their parents and twins looked up together."""
        parents = {located.row["parent_session"] for located in found} - {None}
        carried = self.carried(caller, parents | {located.id for located in found})
        return [self._summary(located, carried) for located in found]

    def carried(self, caller: Caller, session_ids: Collection[str]) -> Counter[str]:
        """Count the visible logs that carry each of these ids."""
        return Counter([row["id"] for row in self._seen(caller, self.headers.named(session_ids, caller))])

    def _summary(self, located: Located, carried: Counter[str]) -> SessionSummary:
        row = self._told(located)
        parent = row["parent_session"]
        seen = parent in carried
        return session_summary(
            row,
            cwd=located.cwd,
            parent_session=parent if seen else None,
            parent_elsewhere=parent is not None and not seen,
            live=self.locks.is_held(located.path),
            duplicate=carried[located.id] > 1,
        )

    def damage(self, located: Located) -> list[DamageNote]:
        """Return what is wrong with a log."""
        return damage_notes(self._told(located)["faults"])

    def _told(self, located: Located) -> Mapping[str, Any]:
        """Return the row of a session with what its events tell: of one that no index holds, by a walk over its
        log, as long as the walks of this view stay affordable."""
        if located.is_indexed:
            return located.row
        if located.log_id not in self._walks:
            self._walk_bytes -= located.row["size"]
            if self._walk_bytes < 0:
                return located.row
        return {**located.row, **self.walk(located).facts()}

    def title(self, located: Located) -> str | None:
        """Return what a relative is called: if no index holds it, as far as the beginning of its log tells."""
        if located.is_indexed:
            return str(located.row["title"])
        if located.log_id not in self._titles and len(self._titles) < MOST_TITLES:
            self.will_read(located)
            limits = log_limits(self.settings)
            self._titles[located.log_id] = unread.title(located.path, located.row["version"], limits)
        return self._titles.get(located.log_id)

    def check_header(self, located: Located) -> Header | None:
        """Read the header of the log again and refuse it if it is no longer the session that was authorized.

        A log that is gone from a project folder that is there is a session that was deleted; without the folder,
        the store may merely be out of reach.
        """
        try:
            header = logs.peek_header(located.path, log_limits(self.settings))
        except SessionGraphError as error:
            is_gone = isinstance(error.__cause__, FileNotFoundError | NotADirectoryError)
            if is_gone and located.path.parents[1].is_dir():
                raise not_found() from error
            raise
        if isinstance(header, Fault):
            if located.cwd is not None:
                raise not_found()
            return None
        if (header.id, header.cwd) != (located.id, located.cwd):
            raise not_found()
        return header

    def will_read(self, located: Located) -> None:
        """Note that events of a log go into the answer: `confirm` looks whose they are once they were read."""
        self._read[located.log_id] = located

    def confirm(self) -> None:
        """Refuse an answer made of a log that became another session's between its check and its reading."""
        for located in self._read.values():
            self.check_header(located)

    def map_of(self, located: Located) -> LogMap:
        """Return where the records of a log are: as the index knows, else by walking over the log once."""
        self.will_read(located)
        connection = self.database_of(located)
        if connection is not None:
            found = IndexMap.of(connection, located.log_id, located.path, located.row, self.pool.spans)
            if found is not None:
                return found
        return self.walk(located)

    def walk(self, located: Located) -> Walk:
        """Read a whole log, once, and return what the index would know of it."""
        if located.log_id not in self._walks:
            self._walks[located.log_id] = Walk(
                located.path,
                version=located.row["version"],
                limits=log_limits(self.settings),
                tool_result_chars=self.settings.tool_result_chars,
            )
        return self._walks[located.log_id]

    def database_of(self, located: Located) -> sqlite3.Connection | None:
        """Return a reader on the database that holds a log, lent until the view ends; None without an index."""
        if self.catalog is None or self.generation is None or not located.is_indexed:
            return None
        database = schema.database_name(located.cwd)
        if database not in self._lent:
            row = self.catalog.execute("SELECT * FROM workspace WHERE database = ?", (database,)).fetchone()
            if row is None:
                return None
            workspace = self._workspace(row, self.generation)
            self._lent[database] = self._stack.enter_context(self.open(workspace))
        return self._lent[database]

    def family(self, caller: Caller) -> frozenset[int]:
        """Return the logs of a one-session caller: the session, and its descendants in its own workspace if they
        were given too."""
        if caller not in self._families:
            self._families[caller] = frozenset(self._descend(caller))
        return self._families[caller]

    def _descend(self, caller: Caller) -> Iterator[int]:
        seen: set[int] = set()
        rows = [row for row in self.headers.with_log_id(caller.log_id) if row["cwd"] in caller.cwds]
        while rows:
            new = [row for row in rows if row["log_id"] not in seen]
            seen |= {row["log_id"] for row in new}
            below = (
                self.headers.children_of({row["id"] for row in new}, caller) if caller.with_descendants else []
            )
            rows = [row for row in below if row["cwd"] in caller.cwds]
        yield from seen

    def _visible(self, caller: Caller, rows: list[Mapping[str, Any]]) -> list[Located]:
        return [self.located(row) for row in self._seen(caller, rows)]

    def _seen(self, caller: Caller, rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        family = self.family(caller) if caller.kind == "session" else frozenset()
        return [row for row in rows if row["log_id"] in family or access.sees_workspace(caller, row["cwd"])]


class Corpus:
    """The door to views of the index."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.pool = Pool()

    @contextmanager
    def view(self) -> Iterator[View]:
        """Open the live generation for one operation; without an index the view still reads the store."""
        live = generation.live(self.settings.index)
        with ExitStack() as stack:
            catalog = None
            if live is not None:
                stack.enter_context(generation.using(live))
                self.pool.settle(live.directory)
                catalog = stack.enter_context(self.pool.lease(live.catalog))
                stack.enter_context(one_state(catalog))
            view = View(self.settings, self.pool, live, catalog, stack)
            yield view
            view.confirm()

    @contextmanager
    def bare_view(self) -> Iterator[View]:
        """Open a view without the index, for reading the store where the index cannot be used."""
        with ExitStack() as stack:
            view = View(self.settings, self.pool, None, None, stack)
            yield view
            view.confirm()

    def close(self) -> None:
        self.pool.close()


def by_age(located: Located) -> tuple[bool, int, str, int]:
    """Order sessions by creation, then id; one without a time comes last."""
    created_at = located.row["created_at"]
    return created_at is None, created_at or 0, located.id, located.log_id


def log_limits(settings: Settings) -> logs.Limits:
    return logs.Limits(settings.max_line_bytes, settings.max_window_bytes)
