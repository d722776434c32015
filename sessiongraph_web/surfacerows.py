"""The surface of one log in its table: only what a run changes is written, only what it needs is read."""

from __future__ import annotations

import sqlite3

from sessiongraph_web.surface import Change, Node


class SurfaceRows:
    """Collects the changes of a fold. A node's place is its ordinal, or the place of what it replaced first."""

    def __init__(self, connection: sqlite3.Connection, log_id: int) -> None:
        self._connection, self._log_id = connection, log_id
        self._added: dict[int, tuple[int, Node]] = {}  # ordinal -> place and node
        self._removed: list[int] = []

    def earlier(self) -> list[Node]:
        """Return the nodes that earlier runs left, in surface order."""
        rows = self._connection.execute(
            "SELECT seq, ordinal, type, digest FROM surface_node WHERE log_id = ? ORDER BY position",
            (self._log_id,),
        )
        return [Node(*row) for row in rows]

    def change(self, change: Change) -> None:
        """Take a change that added a node."""
        node = change.added
        if node is None:
            return
        places = [self._take(shadowed.ordinal) for shadowed in change.shadowed] if change.shadowed else ()
        self._added[node.ordinal] = (places[0] if places else node.ordinal, node)

    def write(self) -> None:
        """Write what changed since this object was made."""
        log_id = self._log_id
        self._connection.executemany(
            "DELETE FROM surface_node WHERE log_id = ? AND ordinal = ?",
            [(log_id, gone) for gone in self._removed],
        )
        self._connection.executemany(
            "INSERT INTO surface_node VALUES (?, ?, ?, ?, ?, ?)",
            [
                (log_id, node.ordinal, place, node.seq, node.type, node.digest)
                for place, node in self._added.values()
            ],
        )

    def _take(self, ordinal: int) -> int:
        """Take a node off the surface and return the place it had."""
        if ordinal in self._added:
            return self._added.pop(ordinal)[0]
        self._removed.append(ordinal)
        row = self._connection.execute(
            "SELECT position FROM surface_node WHERE log_id = ? AND ordinal = ?", (self._log_id, ordinal)
        ).fetchone()
        return int(row[0])
