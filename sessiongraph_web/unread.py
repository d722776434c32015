"""Logs that no index holds: the rows that their headers alone make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from sessiongraph_web import documents, logs
from sessiongraph_web.answers import SESSION_COLUMNS
from sessiongraph_web.models import Header


def rows(store: Path, limits: logs.Limits, wanted: Collection[int] | None) -> list[dict[str, Any]]:
    """Return a row for each log of the store with a header, or for each of those `wanted` by their ids."""
    found = [log for log in logs.discover(store).logs if wanted is None or log.log_id in wanted]
    headers = ((log, logs.peek_header(log.path, limits)) for log in found)
    made = [_row(log, header) for log, header in headers if isinstance(header, Header)]
    carried = Counter(row["id"] for row in made)
    return [row | {"state": "duplicate"} if carried[row["id"]] > 1 else row for row in made]


def _row(log: logs.LogFile, header: Header) -> dict[str, Any]:
    known = {
        "log_id": log.log_id,
        "path": log.relative,
        "size": log.size,
        "mtime_ns": log.mtime_ns,
        "inode": log.inode,
        "state": "pending",
        "is_unread": True,
        "faults": "[]",
        "id": header.id,
        "cwd": header.cwd,
        "title": header.id,
        "created_at": header.created_at,
        "last_at": log.mtime_ns // 1_000_000,
        "parent_session": header.parent_session,
        "origin": header.origin and documents.masked_name(header.origin),
        "agent_preset": header.agent_preset and documents.masked_name(header.agent_preset),
        "delegation_depth": header.delegation_depth,
        "is_seeded": header.is_seeded,
        "version": header.version,
        "models": "[]",
        "surface_fault": None,
    }
    return dict.fromkeys(SESSION_COLUMNS, 0) | known
