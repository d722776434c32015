"""Logs that no index holds: the rows that their headers make, and what their beginnings are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from sessiongraph_web import documents, logs
from sessiongraph_web.answers import SESSION_COLUMNS
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.faults import HEADLESS
from sessiongraph_web.models import Event, Fault, FrameEnd, Header

TITLE_BYTES: Final = 256 * 1024  # of the beginning of a log, as it is stored, that are read for its title
TITLE_RECORDS: Final = 2000  # likewise


def rows(store: Path, limits: logs.Limits, wanted: Collection[int] | None) -> list[dict[str, Any]]:
    """Return a row for each log of the store that is a session, or for each of those `wanted` by their ids."""
    found = [log for log in logs.discover(store).logs if wanted is None or log.log_id in wanted]
    made = [_row(log, header) for log in found if (header := _header(log, limits)) is not None]
    carried = Counter(row["id"] for row in made)
    return [row | {"state": "duplicate"} if carried[row["id"]] > 1 else row for row in made]


def title(path: Path, version: int, limits: logs.Limits) -> str | None:
    """Return what a log is called as far as its beginning tells; None if that holds neither title nor prompt.

    A short log is read whole, so that its title is the one that an index would know.
    """
    digest = documents.Digest()
    with closing(logs.read(path, version=version, detail="index", limits=limits)) as units:
        for unit in units:
            if isinstance(unit, Event):
                digest.push(unit)
            is_far = isinstance(unit, FrameEnd) and unit.end > TITLE_BYTES
            if is_far or digest.events > TITLE_RECORDS:
                return None if digest.title == documents.UNTITLED else digest.title
    return digest.title


def _header(log: logs.LogFile, limits: logs.Limits) -> Header | None:
    """Return the header of a log, or what an index would put in its place; None for what is no session, or cannot
    be read."""
    try:
        found = logs.peek_header(log.path, limits)
        if isinstance(found, Header):
            return found
        return logs.nameless(log, found) if _holds_anything(log.path, limits) else None
    except SessionGraphError:
        return None


def _holds_anything(path: Path, limits: logs.Limits) -> bool:
    """Say whether a log without a header is a session all the same."""
    codes = set()
    with closing(logs.read(path, detail="index", limits=limits)) as units:
        for unit in units:
            if isinstance(unit, Event):
                return True
            if isinstance(unit, Fault):
                codes.add(unit.code)
    return not codes & HEADLESS


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
