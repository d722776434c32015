"""Does the jobs of a run: here if they are small, else in worker processes, and says how far it is."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection as pipes
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from types import ModuleType
from typing import Final

from sessiongraph_web import generation
from sessiongraph_web.damage import failure
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.jobs import Job, JobResult, LogResult, Trouble
from sessiongraph_web.recorder import Recorder

INLINE_BYTES: Final = 4_000_000  # stored bytes that are not worth starting processes for
ASIDE_BYTES: Final = 500_000  # the same where the work would keep this process from answering: a second of it
POLL_SECONDS: Final = 0.2
GC_ALLOCATIONS: Final = 50_000  # between collections: events hold no cycles (measured: 8 % less CPU than at 700)
Outcome = tuple[Job, JobResult | Trouble]


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
        return self.seconds * max(0, self.bytes_total - self.bytes) / self.bytes


class Workers:
    """Does jobs, and asks for an end after the logs being read once `stop` is set.

    `aside`: this process has others to answer, so that one large job is not done in it either.
    """

    def __init__(
        self,
        jobs: list[Job],
        stop: threading.Event,
        on_progress: Callable[[Progress], None],
        *,
        aside: bool = False,
    ) -> None:
        self.jobs, self.stop, self.on_progress, self.aside = jobs, stop, on_progress, aside
        self.logs_total = sum(len(job.tasks) for job in jobs)
        self.bytes_total = sum(job.work for job in jobs)
        self.started = time.monotonic()

    def outcomes(self) -> Iterator[Outcome]:
        """Yield every job with what came of it as it is done; those that `stop` came before are left out."""
        if self.aside:
            is_inline = self.bytes_total < ASIDE_BYTES
        else:
            is_inline = len(self.jobs) < 2 or self.bytes_total < INLINE_BYTES or (os.cpu_count() or 1) < 2
        if is_inline:
            yield from self._inline()
        else:
            yield from self._in_processes()

    def _inline(self) -> Iterator[Outcome]:
        seen = _Counters()
        for job in sorted(self.jobs, key=lambda job: job.changed_at, reverse=True):
            if self.stop.is_set():
                return
            yield job, attempt(job, _Watch(seen, self.stop.is_set, lambda: self._tell(seen)))

    def _in_processes(self) -> Iterator[Outcome]:
        context = multiprocessing.get_context("spawn")
        shared = _SharedCounters(context.Value("Q"), context.Value("Q"), context.Value("b"))
        count = min(len(self.jobs), os.cpu_count() or 1)
        directory = self.jobs[0].file.parent
        with ProcessPoolExecutor(count, context, initializer=_start, initargs=(shared, directory)) as pool:
            try:
                yield from self._spread(pool, shared, count)
            except BrokenProcessPool as error:
                raise SessionGraphError(
                    "SESSION_QUERY_INDEX_FAILED", "A process of the index run was killed; run it again to go on."
                ) from error
            finally:
                shared.stopped.value = True

    def _spread(self, pool: ProcessPoolExecutor, shared: _SharedCounters, count: int) -> Iterator[Outcome]:
        waiting, running = list(self.jobs), dict[Future[JobResult | Trouble], Job]()
        newest: Job | None = None  # the running job that was chosen for being recent
        while running or (waiting and not self.stop.is_set()):
            while waiting and len(running) < count and not self.stop.is_set():
                wants_newest = newest not in running.values()
                job = take(waiting, newest=wants_newest)
                newest = job if wants_newest else newest
                with _interrupts_blocked(), _without_main():
                    running[pool.submit(_attempt_here, job)] = job
            done, _ = wait(running, POLL_SECONDS, FIRST_COMPLETED)
            shared.stopped.value = self.stop.is_set()
            self._tell(shared)
            for future in done:
                yield running.pop(future), future.result()

    def _tell(self, seen: _Counters | _SharedCounters) -> None:
        seconds = time.monotonic() - self.started
        read = min(seen.bytes_done, self.bytes_total)
        self.on_progress(Progress(seen.logs_done, self.logs_total, read, self.bytes_total, seconds))


def take(waiting: list[Job], *, newest: bool) -> Job:
    """Take the next job off the list: the most recent, so that it can be searched soon, or the largest, so that
    no processor is idle at the end while another has it all to do."""
    job = max(waiting, key=lambda job: job.changed_at if newest else job.work)
    waiting.remove(job)
    return job


def attempt(job: Job, watch: _Watch) -> JobResult | Trouble:
    """Do a job; what went wrong with the workspace's database comes back as a value."""
    try:
        return _do(job, watch)
    except SessionGraphError as error:
        return Trouble(error.code, error.sentence)
    except (sqlite3.Error, OSError) as error:
        meant = failure(error)
        return Trouble(meant.code, meant.sentence)


def _do(job: Job, watch: _Watch) -> JobResult:
    results: list[LogResult] = []
    failures: list[tuple[int, str]] = []
    with Recorder(job) as recorder:
        recorder.remove(() if job.fresh else job.remove)
        for task in job.tasks:
            if watch.stopped():
                break
            try:
                results.append(recorder.record(task, watch.read))
            except SessionGraphError as error:
                if error.code != "SESSION_QUERY_PERSISTENCE_FAILED":
                    raise
                failures.append((task.log_id, error.detail))
            watch.end_log()
        recorder.relate()
        revision, sessions = recorder.revision(), recorder.sessions()
    return JobResult(tuple(results), tuple(failures), revision, sessions)


@dataclass(slots=True)
class _Counters:
    """Progress inside this process."""

    logs_done: int = 0
    bytes_done: int = 0

    def add(self, *, logs: int = 0, bytes: int = 0) -> None:  # noqa: A002
        self.logs_done += logs
        self.bytes_done += bytes


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

    def add(self, *, logs: int = 0, bytes: int = 0) -> None:  # noqa: A002
        for counter, more in ((self.logs, logs), (self.bytes, bytes)):
            if more:
                with counter.get_lock():
                    counter.value += more


@dataclass(frozen=True, slots=True)
class _Watch:
    """What a job in progress is asked and tells."""

    counters: _Counters | _SharedCounters
    stopped: Callable[[], bool]
    tell: Callable[[], None]

    def read(self, count: int) -> None:
        self.counters.add(bytes=count)
        self.tell()

    def end_log(self) -> None:
        self.counters.add(logs=1)
        self.tell()


_shared: _SharedCounters | None = None


def _start(shared: _SharedCounters, directory: Path) -> None:
    """Make this process a worker: interrupts are the coordinator's, and without it this one must end."""
    global _shared
    _shared = shared
    gc.freeze()
    gc.set_threshold(GC_ALLOCATIONS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    generation.hold_for_writing(directory)
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """End at once when the coordinator is gone: the next run must not find anybody writing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        pipes.wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Let processes start without SIGINT, which would end them before they can refuse it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Let processes start without the program that this one runs: to import it takes longer than this module."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _attempt_here(job: Job) -> JobResult | Trouble:
    shared = _shared
    assert shared is not None  # noqa: S101 - `_start` ran first
    return attempt(job, _Watch(shared, lambda: bool(shared.stopped.value), lambda: None))
