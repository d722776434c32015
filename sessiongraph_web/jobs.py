"""What one index run asks of one workspace, and what came of it: plain values that go between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.language import Sentence
from sessiongraph_web.logs import Limits
from sessiongraph_web.models import Header

Mode = Literal["indexed", "extended", "empty"]


@dataclass(frozen=True, slots=True)
class LogTask:
    """One log to bring up to date. `header` is what its first line says now; `work` estimates the stored bytes to
    read; `changed_at` (ns) says how recent it is."""

    log_id: int
    path: Path
    header: Header
    work: int
    changed_at: int


@dataclass(frozen=True, slots=True)
class Job:
    """Everything to be done in one workspace.

    `remove` holds logs that left it; `parents` the parent that each log's header names, for every log that the
    workspace will hold. `fresh`: `file` does not exist yet, and nobody sees it before the job is done.
    """

    file: Path
    cwd: str | None
    fresh: bool
    tasks: tuple[LogTask, ...]
    remove: tuple[int, ...]
    parents: Mapping[int, str | None]
    tool_result_chars: int
    limits: Limits

    @property
    def work(self) -> int:
        """The stored bytes that it will read, about."""
        return sum(task.work for task in self.tasks)

    @property
    def changed_at(self) -> int:
        return max((task.changed_at for task in self.tasks), default=0)


@dataclass(frozen=True, slots=True)
class LogResult:
    """What became of one log: its session row, faults and activity as they now stand."""

    log_id: int
    mode: Mode
    header: Header
    row: dict[str, Any]
    faults: list[dict[str, Any]]
    activity: list[tuple[int, int]]
    bytes_read: int


@dataclass(frozen=True, slots=True)
class JobResult:
    """What became of a job. `failures` names logs that could not be read, with the reason."""

    results: tuple[LogResult, ...]
    failures: tuple[tuple[int, str], ...]
    revision: int
    sessions: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a job could not be done, as far as it may be told."""

    code: str
    detail: Sentence

    def error(self) -> SessionGraphError:
        return SessionGraphError(self.code, self.detail)
