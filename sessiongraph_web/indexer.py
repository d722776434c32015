"""Index runs: compare the store with the ledger, and bring each workspace up to date, in parallel."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized
from typing import Any, Final

import filelock

from sessiongraph_web import generation, logs, schema
from sessiongraph_web.answers import RunReport
from sessiongraph_web.config import Settings
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.generation import Generation
from sessiongraph_web.ledger import FileFacts, Ledger, LedgerRow
from sessiongraph_web.logs import Discovery, LogFile
from sessiongraph_web.logwriter import Job, LogResult, LogTask
from sessiongraph_web.models import NEWEST_VERSION, Fault, Header, Instant, LogState
from sessiongraph_web.recorder import Recorder

LOCK: Final = "index.lock"
INLINE_BYTES: Final = 4_000_000  # stored bytes that are not worth starting processes for
POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come; bytes are of the stored files."""

    logs: int
    logs_total: int
    bytes: int
    bytes_total: int
    seconds: float

    @property
    def seconds_left(self) -> float | None:
        """An estimate by bytes, once there is something to judge by."""
        if not self.bytes or self.seconds < 1:
            return None
        return self.seconds * (self.bytes_total - self.bytes) / self.bytes


@dataclass(frozen=True, slots=True)
class Wish:
    """What a run is asked beyond the changes: `force` a new generation, `prune` what cannot be reached any more,
    `rebuild` the named databases from the store."""

    force: bool = False
    prune: bool = False
    rebuild: frozenset[str] = frozenset()

    def and_also(self, other: Wish) -> Wish:
        return Wish(self.force or other.force, self.prune or other.prune, self.rebuild | other.rebuild)


@dataclass(slots=True)
class _Plan:
    """What a run has to do. Logs are keyed by the exact cwd of their header."""

    changed: dict[str | None, list[tuple[LogFile, Header]]] = field(default_factory=lambda: defaultdict(list))
    removed: dict[str | None, list[int]] = field(default_factory=lambda: defaultdict(list))
    skipped: int = 0

    @property
    def workspaces(self) -> set[str | None]:
        return set(self.changed) | set(self.removed)


@dataclass(slots=True)
class _Tally:
    """The counts of a run as they grow."""

    indexed: int = 0
    extended: int = 0
    removed: int = 0
    failed: int = 0
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class _JobResult:
    results: tuple[LogResult, ...]
    failures: tuple[tuple[int, str], ...]
    revision: int
    sessions: int


class Run:
    """One index run. `stop` asks it to end after the logs it is reading; what is done stays done."""

    def __init__(
        self,
        settings: Settings,
        *,
        stop: threading.Event | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.settings = settings
        self.stop = stop or threading.Event()
        self.on_progress = on_progress or (lambda _: None)
        self.limits = logs.Limits(settings.max_line_bytes, settings.max_window_bytes)
        self.tally = _Tally()
        self.wish = Wish()
        self.started = time.monotonic()
        self.now = time.time_ns() // 1_000_000

    def execute(self, wish: Wish | None = None) -> RunReport:
        """Index what changed, and what the wish asks for beyond that."""
        self.wish = wish or self.wish
        generation.make_private(self.settings.index)
        with self._locked():
            live = None if self.wish.force else _usable(self.settings)
            target = live or generation.start(self.settings.index)
            if not self.wish.force:
                generation.publish(self.settings.index, target)
            with generation.using(target):
                report = self._update(target)
            if self.wish.force and report.outcome == "complete":
                generation.publish(self.settings.index, target)
            generation.sweep(self.settings.index, keep=generation.live(self.settings.index) or target)
        return report

    def _locked(self) -> filelock.BaseFileLock:
        lock = filelock.FileLock(self.settings.index / LOCK, mode=0o600)
        try:
            lock.acquire(timeout=self.settings.lock_wait_seconds)
        except filelock.Timeout as error:
            raise SessionGraphError(
                "SESSION_QUERY_INDEX_FAILED", "Another index run is going on; wait for it to end, or stop it."
            ) from error
        except OSError as error:
            raise SessionGraphError(
                "SESSION_QUERY_INDEX_FAILED",
                "The index directory cannot be written; choose another with --index.",
            ) from error
        return lock

    def _update(self, target: Generation) -> RunReport:
        ledger = Ledger(target.catalog)
        try:
            discovery = logs.discover(self.settings.sessions)
            known = ledger.rows()
            plan = self._plan(ledger, discovery, known)
            self._perform(target, ledger, discovery, plan)
            self.tally.removed = sum(len(ids) for ids in plan.removed.values())
            report = self._report(len(discovery.logs), plan.skipped, ledger.epoch())
            ledger.finish(report, refreshed_at=self.now, problem=discovery.problem)
            return report
        finally:
            ledger.close()

    def _plan(self, ledger: Ledger, discovery: Discovery, known: dict[int, LedgerRow]) -> _Plan:
        plan = _Plan()
        changed = [log for log in discovery.logs if self._is_due(log, known.get(log.log_id))]
        plan.skipped = len(discovery.logs) - len(changed)
        ledger.expect([_facts(log) for log in changed], self.now)
        for log in changed:
            header = self._header(log)
            plan.changed[header.cwd].append((log, header))
            old = known.get(log.log_id)
            if old and old.has_session and old.cwd != header.cwd:
                plan.removed[old.cwd].append(log.log_id)
        for file in discovery.skipped:
            if _changed(file, known.get(file.log_id)):
                ledger.note(_facts(file), file.state, file.reason, now=self.now)
        self._remove_missing(ledger, discovery, known, plan)
        return plan

    def _is_due(self, log: LogFile, known: LedgerRow | None) -> bool:
        return _changed(log, known) or (
            known is not None and schema.database_name(known.cwd) in self.wish.rebuild
        )

    def _remove_missing(
        self, ledger: Ledger, discovery: Discovery, known: dict[int, LedgerRow], plan: _Plan
    ) -> None:
        """Forget what a successful listing no longer shows; keep what could not be looked at."""
        present = {log.log_id for log in discovery.logs} | {file.log_id for file in discovery.skipped}
        missing = [row for row in known.values() if row.log_id not in present]
        lost = [row for row in missing if discovery.problem or _is_below(row.path, discovery.unreachable)]
        lost_ids = {row.log_id for row in lost} if not self.wish.prune else set()
        ledger.reachable(
            lost_ids,
            (row.log_id for row in known.values() if row.unreachable and row.log_id in present),
            self.now,
        )
        gone = [row for row in missing if row.log_id not in lost_ids]
        for row in gone:
            if row.has_session:
                plan.removed[row.cwd].append(row.log_id)
        if gone:
            ledger.forget(row.log_id for row in gone)

    def _header(self, log: LogFile) -> Header:
        header = logs.peek_header(log.path, self.limits)
        if isinstance(header, Fault):
            return Header(log.folder, log.version, None, None, cwd_problem=header.message)
        return header

    def _perform(self, target: Generation, ledger: Ledger, discovery: Discovery, plan: _Plan) -> None:
        files = ledger.workspaces()
        _discard_orphans(target, set(files.values()))
        jobs = [self._job(target, ledger, plan, cwd, files) for cwd in plan.workspaces]
        jobs.sort(key=_stored_bytes, reverse=True)
        by_id = {log.log_id: log for log in discovery.logs}
        for job, done in self._run_jobs(jobs):
            if isinstance(done, Exception):
                job, done = self._rebuild(target, ledger, discovery, job, done)
            self._settle(ledger, job, done, by_id)

    def _job(
        self, target: Generation, ledger: Ledger, plan: _Plan, cwd: str | None, files: dict[str, str]
    ) -> Job:
        database = schema.database_name(cwd)
        name = files.get(database)
        fresh = name is None or database in self.wish.rebuild or not target.file(name).exists()
        tasks = [LogTask(log.log_id, log.path, header) for log, header in plan.changed.get(cwd, ())]
        tasks.sort(key=lambda task: (task.header.created_at or 0, task.log_id))
        return Job(
            file=target.file(generation.next_file(target, database) if fresh or name is None else name),
            cwd=cwd,
            fresh=fresh,
            tasks=tuple(tasks),
            remove=() if fresh else tuple(plan.removed.get(cwd, ())),
            relations=_relations(ledger, plan, cwd),
            tool_result_chars=self.settings.tool_result_chars,
            limits=self.limits,
        )

    def _run_jobs(self, jobs: list[Job]) -> Iterator[tuple[Job, _JobResult | Exception]]:
        total = sum(_stored_bytes(job) for job in jobs)
        if len(jobs) < 2 or total < INLINE_BYTES:
            yield from self._run_inline(jobs, total)
        else:
            yield from self._run_in_processes(jobs, total)

    def _run_inline(self, jobs: list[Job], total: int) -> Iterator[tuple[Job, _JobResult | Exception]]:
        seen = _Counters()
        for job in jobs:
            yield job, _attempt(job, seen, self.stop.is_set, lambda: self._tell(seen, jobs, total))

    def _run_in_processes(self, jobs: list[Job], total: int) -> Iterator[tuple[Job, _JobResult | Exception]]:
        context = multiprocessing.get_context("spawn")
        shared = _SharedCounters(context.Value("Q"), context.Value("Q"), context.Value("b"))
        workers = min(len(jobs), os.cpu_count() or 1)
        with ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(shared,)) as pool:
            waiting: dict[Future[_JobResult | Exception], Job] = {
                pool.submit(_attempt_in_worker, job): job for job in jobs
            }
            try:
                while waiting:
                    done, _ = wait(waiting, POLL_SECONDS, FIRST_COMPLETED)
                    self._tell(shared, jobs, total)
                    shared.stopped.value = self.stop.is_set()
                    for future in done:
                        yield waiting.pop(future), future.result()
            except BrokenProcessPool as error:
                raise SessionGraphError(
                    "SESSION_QUERY_INDEX_FAILED", "A process of the index run was killed; run it again to go on."
                ) from error
            finally:
                shared.stopped.value = True

    def _tell(self, seen: _Counters | _SharedCounters, jobs: list[Job], total: int) -> None:
        seconds = time.monotonic() - self.started
        logs_total = sum(len(job.tasks) for job in jobs)
        self.on_progress(Progress(seen.logs_done, logs_total, seen.bytes_done, total, seconds))

    def _rebuild(
        self, target: Generation, ledger: Ledger, discovery: Discovery, job: Job, problem: Exception
    ) -> tuple[Job, _JobResult]:
        """Build a workspace anew beside its damaged file; a second failure is the run's."""
        if not isinstance(problem, sqlite3.DatabaseError | SessionGraphError) or job.fresh:
            raise problem
        plan = _Plan()
        for log in discovery.logs:
            header = self._header(log)
            if header.cwd == job.cwd:
                plan.changed[job.cwd].append((log, header))
        again = self._job(target, ledger, plan, job.cwd, {})
        done = _attempt(again, _Counters(), self.stop.is_set, lambda: None)
        if isinstance(done, Exception):
            raise done
        return again, done

    def _settle(self, ledger: Ledger, job: Job, done: _JobResult, by_id: dict[int, LogFile]) -> None:
        database = schema.database_name(job.cwd)
        if done.sessions:
            ledger.place(database, job.cwd, job.file.name, done.revision)
        else:  # its file, which a reader may still hold, is an orphan for the next run to delete
            ledger.remove_workspace(database)
        for result in done.results:
            self._settle_log(ledger, result, _facts(by_id[result.log_id]))
        for log_id, reason in done.failures:
            self.tally.failed += 1
            ledger.note(_facts(by_id[log_id]), "unreadable", reason, now=self.now)

    def _settle_log(self, ledger: Ledger, result: LogResult, facts: FileFacts) -> None:
        state, reason = _state(result)
        empty = result.mode == "empty"
        self.tally.failed += empty
        self.tally.indexed += result.mode == "indexed"
        self.tally.extended += result.mode == "extended"
        self.tally.bytes_read += result.bytes_read
        ledger.settle(
            facts,
            result.header,
            state,
            reason,
            now=self.now,
            row=None if empty else result.row,
            faults=result.faults,
            activity=result.activity,
        )

    def _report(self, discovered: int, skipped: int, epoch: int) -> RunReport:
        return RunReport(
            started_at=Instant(self.now),
            seconds=round(time.monotonic() - self.started, 3),
            discovered=discovered,
            indexed=self.tally.indexed,
            extended=self.tally.extended,
            skipped=skipped,
            removed=self.tally.removed,
            failed=self.tally.failed,
            bytes_read=self.tally.bytes_read,
            epoch=epoch,
            outcome="interrupted" if self.stop.is_set() else "complete",
        )


@dataclass(slots=True)
class _Counters:
    """Progress inside this process."""

    logs_done: int = 0
    bytes_done: int = 0

    def add(self, size: int) -> None:
        self.logs_done += 1
        self.bytes_done += size


@dataclass(frozen=True, slots=True)
class _SharedCounters:
    """Progress over all worker processes, and the wish to stop."""

    logs: Synchronized[int]
    bytes: Synchronized[int]
    stopped: Synchronized[int]

    @property
    def logs_done(self) -> int:
        return self.logs.value

    @property
    def bytes_done(self) -> int:
        return self.bytes.value

    def add(self, size: int) -> None:
        with self.logs.get_lock():
            self.logs.value += 1
        with self.bytes.get_lock():
            self.bytes.value += size


_worker: _SharedCounters | None = None


def _start_worker(shared: _SharedCounters) -> None:
    """Interrupts go to the coordinator, which asks the workers to stop at a good place."""
    global _worker
    _worker = shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _attempt_in_worker(job: Job) -> _JobResult | Exception:
    shared = _worker
    assert shared is not None  # noqa: S101 - the pool's initializer ran
    return _attempt(job, shared, lambda: bool(shared.stopped.value), lambda: None)


def _attempt(
    job: Job, seen: _Counters | _SharedCounters, stopped: Callable[[], bool], tell: Callable[[], None]
) -> _JobResult | Exception:
    """Do a job; what is wrong with the workspace's database comes back as a value."""
    try:
        return _do(job, seen, stopped, tell)
    except (sqlite3.DatabaseError, SessionGraphError) as error:
        return error


def _do(
    job: Job, seen: _Counters | _SharedCounters, stopped: Callable[[], bool], tell: Callable[[], None]
) -> _JobResult:
    results: list[LogResult] = []
    failures: list[tuple[int, str]] = []
    writer = Recorder(job)
    try:
        writer.remove(job.remove)
        for task in job.tasks:
            if stopped():
                break
            try:
                results.append(writer.record(task))
            except (SessionGraphError, OSError) as error:
                failures.append((task.log_id, str(error)))
            seen.add(_size(task))
            tell()
        writer.relate()
        return _JobResult(tuple(results), tuple(failures), writer.revision(), writer.sessions())
    finally:
        writer.close()


def _usable(settings: Settings) -> Generation | None:
    """Return the live generation unless its catalog is damaged or of another schema."""
    live = generation.live(settings.index)
    if live is None:
        return None
    try:
        schema.open_writer(live.catalog).close()
    except (SessionGraphError, sqlite3.DatabaseError):
        return None
    return live


def _relations(ledger: Ledger, plan: _Plan, cwd: str | None) -> dict[int, tuple[str | None, bool]]:
    """Say for every log of a workspace which parent is in the same workspace, and whether one is elsewhere."""
    gone = set(plan.removed.get(cwd, ()))
    members = {
        row.log_id: (row.session_id, row.parent_session)
        for row in ledger.rows().values()
        if row.has_session and row.cwd == cwd and row.log_id not in gone
    }
    members |= {log.log_id: (header.id, header.parent_session) for log, header in plan.changed.get(cwd, ())}
    ids = {session_id for session_id, _ in members.values()}
    return {
        log_id: (parent, False) if parent in ids else (None, parent is not None)
        for log_id, (_, parent) in members.items()
    }


def _state(result: LogResult) -> tuple[LogState, str | None]:
    if result.mode == "empty":
        return "unreadable", result.faults[0]["message"] if result.faults else "nothing could be read"
    if result.header.version > NEWEST_VERSION:
        return "newer", f"version {result.header.version} is newer than this product; read as well as it can be"
    if result.faults:
        return "partial", result.faults[0]["message"]
    return "indexed", result.header.cwd_problem


def _changed(file: Any, known: LedgerRow | None) -> bool:
    if known is None or known.state == "pending":
        return True
    return (file.size, file.mtime_ns, file.inode) != (known.size, known.mtime_ns, known.inode)


def _facts(file: Any) -> FileFacts:
    return FileFacts(file.log_id, file.relative, file.size, file.mtime_ns, file.inode)


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def _discard_orphans(target: Generation, named: set[str]) -> None:
    """Delete workspace files that no catalog row names: a build was killed before they became visible."""
    for path in target.directory.glob("ws_*.db"):
        if path.name not in named:
            generation.discard(target, path.name)


def _size(task: LogTask) -> int:
    try:
        return task.path.stat().st_size
    except OSError:
        return 0


def _stored_bytes(job: Job) -> int:
    return sum(_size(task) for task in job.tasks)
