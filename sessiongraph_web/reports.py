"""What the index says of itself: its files, its runs, its state."""

from __future__ import annotations

from typing import Literal

from sessiongraph_web.answers import Answer, DamageNote, IndexNote, TimelinePage, WorkspaceList
from sessiongraph_web.grants import Grant
from sessiongraph_web.models import Instant, LogState


class LedgerEntry(Answer, frozen=True, kw_only=True):
    """One file found under the store and what became of it (the owner's)."""

    path: str
    session_id: str | None
    cwd: str | None
    version: int | None
    state: LogState
    reason: str | None
    size: int
    faults: list[DamageNote]  # the first of them
    damage: int = 0  # how many there are


class RunReport(Answer, frozen=True, kw_only=True):
    """What one index run did."""

    started_at: Instant
    seconds: float
    discovered: int
    indexed: int
    extended: int
    skipped: int
    removed: int
    failed: int
    bytes_read: int
    epoch: int
    outcome: Literal["complete", "interrupted", "failed"] = "complete"
    problem: str | None = None


class Status(Answer, frozen=True, kw_only=True):
    """The index itself. What belongs to the machine or to others is None for a scoped caller."""

    index: IndexNote
    workspaces: int
    sessions: int
    entries: int
    sessions_path: str | None
    index_path: str | None
    index_bytes: int | None
    schema_version: int
    states: dict[str, int] | None
    problems: list[LedgerEntry] | None
    ledger_total: int | None
    runs: list[RunReport] | None
    search_enabled: bool
    masking: str
    store_problem: str | None
    ledger: list[LedgerEntry] | None = None
    grants: list[Grant] | None = None


class Home(Answer, frozen=True, kw_only=True):
    """What the first page tells: latest activity, the workspaces, the state of the index."""

    timeline: TimelinePage
    workspaces: WorkspaceList
    status: Status
