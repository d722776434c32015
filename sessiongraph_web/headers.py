"""The headers of sessions, found by id, by how an id begins, or by parent: those in the catalog, and those of
logs that no index holds yet."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from sessiongraph_web import access, logs, unread
from sessiongraph_web.access import Caller

ID_PREFIX: Final = "session-"


class Headers:
    """The headers of one moment. Which of them a caller may see is for others to say."""

    def __init__(self, store: Path, limits: logs.Limits, catalog: sqlite3.Connection | None) -> None:
        self.store, self.limits, self.catalog = store, limits, catalog

    def with_log_id(self, log_id: int | None) -> list[Mapping[str, Any]]:
        rows = self._select(access.OWNER, "session.log_id = ?", log_id)
        return rows + [row for row in self._unread if row["log_id"] == log_id]

    def children_of(self, session_ids: Collection[str], caller: Caller) -> list[Mapping[str, Any]]:
        return self._whose("parent_session", session_ids, caller)

    def named(self, session_ids: Collection[str], caller: Caller) -> list[Mapping[str, Any]]:
        return self._whose("id", session_ids, caller)

    def beginning(self, text: str, caller: Caller) -> list[Mapping[str, Any]]:
        bare = text.removeprefix(ID_PREFIX)
        waiting = [row for row in self._unread if row["id"].removeprefix(ID_PREFIX).startswith(bare)]
        stem = bare.rstrip("\U0010ffff") or bare  # after the last character of all comes nothing
        end = stem[:-1] + _next(stem[-1])
        # The plus keeps SQLite from walking over others' ids: how many begin so must not be told by the time.
        id_ = "session.id" if caller.is_owner else "+session.id"
        read = self._select(
            caller,
            f"(({id_} >= ? AND {id_} < ?) OR ({id_} >= ? AND {id_} < ?))",
            *(bare, end, ID_PREFIX + bare, ID_PREFIX + end),
        )
        return read + waiting

    def _whose(self, column: str, values: Collection[str], caller: Caller) -> list[Mapping[str, Any]]:
        if not values:
            return []
        condition = f"session.{column} IN (SELECT value FROM json_each(?))"  # noqa: S608 - a column of ours
        rows = self._select(caller, condition, listed(values))
        return rows + [row for row in self._unread if row[column] in values]

    def _select(self, caller: Caller, condition: str, *values: object) -> list[Mapping[str, Any]]:
        """Return rows of the workspaces that a caller has to do with; without a catalog there are none."""
        if self.catalog is None:
            return []
        within = "1" if caller.is_owner else "session.cwd IN (SELECT value FROM json_each(?))"
        rows = self.catalog.execute(
            f"""
            SELECT session.*, log.path, log.state, log.faults, log.size, log.mtime_ns, log.inode
            FROM session JOIN log USING (log_id) WHERE {condition} AND {within}
            """,  # noqa: S608 - conditions of ours, values bound
            (*values, *([] if caller.is_owner else [listed(sorted(caller.cwds))])),
        )
        return [dict(row) for row in rows]

    @cached_property
    def _unread(self) -> list[Mapping[str, Any]]:
        """Rows made from the headers of the logs that no index holds yet: without one, of all of them."""
        wanted = None
        if self.catalog is not None:
            pending = self.catalog.execute(
                "SELECT log_id FROM log WHERE state = 'pending' AND log_id NOT IN (SELECT log_id FROM session)"
            )
            wanted = {row[0] for row in pending}
            if not wanted:
                return []
        return list(unread.rows(self.store, self.limits, wanted))


def listed(values: Collection[str]) -> str:
    """Write values as SQLite's `json_each` reads them."""
    return msgspec.json.encode(list(values)).decode()


def _next(character: str) -> str:
    """Return the character after one, the last one's itself; what is half of a pair cannot be bound."""
    code = ord(character) + 1
    return chr(0xE000 if code == 0xD800 else min(code, 0x10FFFF))
