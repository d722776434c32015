"""What an index run has to do: the store as it was found, compared with what the ledger knows of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sessiongraph_web import schema
from sessiongraph_web.discovery import Discovery, LogFile, SkippedFile
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.ledger import FileFacts, LedgerRow
from sessiongraph_web.models import Header

UNREAD: Final = frozenset({"pending", "superseded", "ignored"})  # a log in this state was not read as one


@dataclass(slots=True)
class Findings:
    """What a look at the workspace files found beyond what the ledger says.

    `rebuild` names databases to build anew; `missing` are logs that a file should hold and does not; `strays` are
    those it holds and should not; `opened` are workspaces whose file must be settled in any case.
    """

    rebuild: set[str] = field(default_factory=set)
    missing: set[int] = field(default_factory=set)
    strays: dict[str | None, set[int]] = field(default_factory=dict)
    opened: set[str | None] = field(default_factory=set)

    def compare(self, cwd: str | None, held: Iterable[int], known: Mapping[int, LedgerRow]) -> None:
        """Note how the logs that a sound file holds differ from those that the ledger places in it."""
        placed = {row.log_id for row in known.values() if row.has_session and row.cwd == cwd}
        self.missing |= placed.difference(held)
        self.strays[cwd] = set(held) - placed
        self.opened.add(cwd)


@dataclass(slots=True)
class Plan:
    """The work of a run. Logs are keyed by the exact cwd of their header.

    `removed` leave a workspace because their file is gone, or no log any more; `moved` because their header names
    another workspace now, where they must not come before they have left this one.
    """

    changed: dict[str | None, list[tuple[LogFile, Header]]] = field(default_factory=lambda: defaultdict(list))
    removed: dict[str | None, set[int]] = field(default_factory=lambda: defaultdict(set))
    moved: dict[str | None, set[int]] = field(default_factory=lambda: defaultdict(set))
    failed: list[tuple[LogFile, str]] = field(default_factory=list)
    noted: list[SkippedFile] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    found_again: set[int] = field(default_factory=set)
    opened: set[str | None] = field(default_factory=set)
    skipped: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the store was found as the ledger knows it, and all of it could be looked at."""
        work = (
            self.changed,
            self.removed,
            self.moved,
            self.failed,
            self.noted,
            self.gone,
            self.lost,
            self.opened,
        )
        return not any(work) and not self.found_again

    @property
    def workspaces(self) -> set[str | None]:
        return {*self.changed, *self.removed, *self.opened}


def due(discovery: Discovery, known: Mapping[int, LedgerRow], findings: Findings) -> list[LogFile]:
    """Return the logs that must be read: new ones, changed ones, and those of workspaces to be built anew."""
    return [log for log in discovery.logs if _is_due(log, known.get(log.log_id), findings)]


def plan(
    discovery: Discovery,
    logs: Collection[LogFile],
    known: Mapping[int, LedgerRow],
    findings: Findings,
    *,
    header: Callable[[LogFile], Header],
    prune: bool,
) -> Plan:
    """Decide what to do; the headers of the `logs` that are due are read for it."""
    made = Plan(opened=set(findings.opened))
    made.skipped = len(discovery.logs) - len(logs)
    for log in logs:
        place(made, log, known.get(log.log_id), header)
    for file in (*discovery.skipped, *discovery.ignored):
        row = known.get(file.log_id)
        if row is None or row.state != file.state or has_changed(file, row):
            made.noted.append(file)
        if row and row.has_session:
            made.removed[row.cwd].add(file.log_id)
    for cwd, strays in findings.strays.items():
        if strays:
            made.removed[cwd] |= strays
    _miss(made, discovery, known, prune=prune)
    return made


def has_changed(file: LogFile | SkippedFile, known: LedgerRow) -> bool:
    """Say whether a file is not what the ledger knows."""
    return (file.size, file.mtime_ns, file.inode) != (known.size, known.mtime_ns, known.inode)


def facts(file: LogFile | SkippedFile) -> FileFacts:
    return FileFacts(file.log_id, file.relative, file.size, file.mtime_ns, file.inode)


def _is_due(log: LogFile, known: LedgerRow | None, findings: Findings) -> bool:
    if known is None or known.state in UNREAD or has_changed(log, known) or log.log_id in findings.missing:
        return True
    if not findings.rebuild:
        return False
    return known.has_session and schema.database_name(known.cwd) in findings.rebuild


def place(made: Plan, log: LogFile, known: LedgerRow | None, header: Callable[[LogFile], Header]) -> None:
    """Assign a log to the workspace that its header names now."""
    try:
        found = header(log)
    except SessionGraphError as error:
        made.failed.append((log, error.detail))
        return
    made.changed[found.cwd].append((log, found))
    if known and known.has_session and known.cwd != found.cwd:
        made.moved[known.cwd].add(log.log_id)


def _miss(made: Plan, discovery: Discovery, known: Mapping[int, LedgerRow], *, prune: bool) -> None:
    """Forget what a successful listing no longer shows; keep what could not be looked at."""
    present = {log.log_id for log in discovery.logs}
    present |= {file.log_id for file in (*discovery.skipped, *discovery.ignored)}
    missing = [row for row in known.values() if row.log_id not in present]
    if not prune:
        made.lost = {row.log_id for row in missing if _is_out_of_reach(row, discovery)}
    made.found_again = {row.log_id for row in known.values() if row.unreachable and row.log_id in present}
    for row in missing:
        if row.log_id in made.lost:
            continue
        made.gone.add(row.log_id)
        if row.has_session:
            made.removed[row.cwd].add(row.log_id)


def _is_out_of_reach(row: LedgerRow, discovery: Discovery) -> bool:
    below = (row.path.startswith(folder + "/") for folder in discovery.unreachable)
    return discovery.problem is not None or any(below)
