"""Brings one generation of the index up to date: looks at the store and its files, and settles what differs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from sessiongraph_web import generation, logs, planning, schema, soundness
from sessiongraph_web.config import Settings
from sessiongraph_web.damage import is_damage, translated
from sessiongraph_web.discovery import Discovery, LogFile
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.generation import Generation
from sessiongraph_web.jobs import Job, JobResult, LogResult, LogTask, Trouble
from sessiongraph_web.ledger import Ledger, Place, Settled
from sessiongraph_web.models import NEWEST_VERSION, Fault, Header, Instant, LogState
from sessiongraph_web.planning import Findings, Plan, facts
from sessiongraph_web.reports import RunReport
from sessiongraph_web.sight import Sight
from sessiongraph_web.workers import Outcome, Progress, Workers


@dataclass(frozen=True, slots=True)
class Wish:
    """What a run is asked beyond the changes: `force` a new generation, `prune` what cannot be reached any more,
    `verify` every file of the index and rebuild what is damaged."""

    force: bool = False
    prune: bool = False
    verify: bool = False

    def and_also(self, other: Wish) -> Wish:
        return Wish(self.force or other.force, self.prune or other.prune, self.verify or other.verify)


@dataclass(slots=True)
class Tally:
    """The counts of a run as they grow, and what it has to say."""

    started: float = field(default_factory=time.monotonic)
    now: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    notes: list[str] = field(default_factory=list)
    discovered: int = 0
    indexed: int = 0
    extended: int = 0
    skipped: int = 0
    removed: int = 0
    failed: int = 0
    bytes_read: int = 0

    def again(self) -> Tally:
        """Return the tally of the same run, begun anew."""
        return Tally(self.started, self.now, self.notes)

    def report(
        self, epoch: int, outcome: Literal["complete", "interrupted", "failed"], problem: str | None = None
    ) -> RunReport:
        """Return the report as it stands; `problem` is what ended the run."""
        return RunReport(
            started_at=Instant(self.now),
            seconds=round(time.monotonic() - self.started, 3),
            discovered=self.discovered,
            indexed=self.indexed,
            extended=self.extended,
            skipped=self.skipped,
            removed=self.removed,
            failed=self.failed,
            bytes_read=self.bytes_read,
            epoch=epoch,
            outcome=outcome,
            problem="; ".join([*self.notes, *([problem] if problem else [])]) or None,
        )


class Update:
    """Brings one generation up to date; what was done before `stop` was set stays done."""

    def __init__(
        self,
        settings: Settings,
        target: Generation,
        wish: Wish,
        tally: Tally,
        stop: threading.Event,
        on_progress: Callable[[Progress], None],
        *,
        aside: bool,
    ) -> None:
        self.settings, self.target, self.wish, self.tally = settings, target, wish, tally
        self.stop, self.on_progress, self.aside = stop, on_progress, aside
        self.limits = logs.Limits(settings.max_line_bytes, settings.max_window_bytes)
        self.now = tally.now
        self.sight: Sight | None = None  # what was seen of the store by an update that had nothing to do

    def __enter__(self) -> Self:
        if self.wish.verify:
            soundness.check_catalog(self.target.catalog)
        self.ledger = Ledger(self.target.catalog)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if isinstance(error, SessionGraphError) and not is_damage(error):
                with suppress(SessionGraphError), translated():  # a full disk may not even take the note
                    report = self.tally.report(self.ledger.epoch(), "failed", error.detail)
                    self.ledger.finish(report)
        finally:
            self.ledger.close()

    def perform(self) -> RunReport:
        """Do everything that is to be done, and record it."""
        with translated():
            self.known = self.ledger.rows()
            self.places = {place.database: place for place in self.ledger.places()}
            findings = self._inspect()
            discovery = logs.discover(self.settings.sessions)
            self.by_id = {log.log_id: log for log in discovery.logs}
            plan = self._plan(discovery, findings)
            self._note(plan)
            self._perform(plan, findings)
            self.sight = discovery.sight if plan.is_empty else None
            report = self.tally.report(self.ledger.epoch(), "interrupted" if self.stop.is_set() else "complete")
            self.ledger.remember("store_problem", discovery.problem)
            self.ledger.finish(report)
            generation.look(self.target, self.now)
            return report

    def _inspect(self) -> Findings:
        """Look into the workspace files that are not as a run left them (all of them if that is the wish)."""
        findings = Findings()
        for place in self.places.values():
            path = self.target.file(place.file)
            untouched = soundness.identity(path) == place.identity and not schema.has_wal(path)
            if untouched and not self.wish.verify:
                continue
            try:
                held = soundness.logs_of(path, place.cwd)
            except SessionGraphError as error:
                if not is_damage(error):
                    raise
                known = error.detail != error.meaning.sentence
                self._condemn(place, error.detail if known else "it cannot be used", findings)
            else:
                if not untouched:
                    findings.compare(place.cwd, held, self.known)
        if findings.rebuild:
            self.ledger.expect_workspaces(self.places[name].cwd for name in findings.rebuild)
        _discard_orphans(self.target, {place.file for place in self.places.values()})
        return findings

    def _condemn(self, place: Place, reason: str, findings: Findings) -> None:
        self.tally.notes.append(f"the file of {_named(place.cwd)} was damaged ({reason}); it was built anew")
        findings.rebuild.add(place.database)
        findings.opened.add(place.cwd)

    def _plan(self, discovery: Discovery, findings: Findings) -> Plan:
        due = planning.due(discovery, self.known, findings)
        self.ledger.expect((facts(log) for log in due), self.now)
        plan = planning.plan(discovery, due, self.known, findings, header=self._header, prune=self.wish.prune)
        self.tally.discovered, self.tally.skipped = len(discovery.logs), plan.skipped
        return plan

    def _header(self, log: LogFile) -> Header:
        header = logs.peek_header(log.path, self.limits)
        return logs.nameless(log, header) if isinstance(header, Fault) else header

    def _note(self, plan: Plan) -> None:
        """Write what needs no reading: files that are no logs, that failed, are out of reach, or are gone."""
        for file in plan.noted:
            self.ledger.note(facts(file), file.state, file.reason, now=self.now)
        for log, reason in plan.failed:
            self._fail(log, reason)
        self.ledger.reachable(plan.lost, plan.found_again, self.now)
        placed = {log_id for log_ids in plan.removed.values() for log_id in log_ids}
        self.ledger.forget(plan.gone - placed)
        self.gone = plan.gone & placed

    def _fail(self, log: LogFile, reason: str) -> None:
        """Note a log that could not be read; the next run tries again."""
        known = self.known.get(log.log_id)
        seen = known is not None and known.state == "unreadable" and known.size == log.size
        self.tally.failed += not seen
        self.ledger.note(replace(facts(log), inode=0), "unreadable", reason, now=self.now)

    def _perform(self, plan: Plan, findings: Findings) -> None:
        leaving = [self._job(plan, cwd, findings, moved=True) for cwd in plan.moved]
        for jobs in (
            [job for job in leaving if not job.fresh],
            [self._job(plan, cwd, findings) for cwd in plan.workspaces],
        ):
            for job, done in Workers(jobs, self.stop, self.on_progress, aside=self.aside).outcomes():
                self._settle(*self._done(job, done))

    def _job(self, plan: Plan, cwd: str | None, findings: Findings, *, moved: bool = False) -> Job:
        database = schema.database_name(cwd)
        old = self.places.get(database)
        place = None if database in findings.rebuild else old
        changed = () if moved else plan.changed.get(cwd, ())
        removed = plan.moved[cwd] if moved else plan.removed.get(cwd, set())
        before = old.file if old else None
        name = place.file if place else generation.next_file(self.target, database, before=before)
        return Job(
            file=self.target.file(name),
            cwd=cwd,
            fresh=place is None,
            tasks=tuple(
                sorted(map(self._task, changed), key=lambda task: (task.header.created_at or 0, task.log_id))
            ),
            remove=tuple(sorted(removed)),
            parents=self._parents(plan, cwd),
            tool_result_chars=self.settings.tool_result_chars,
            limits=self.limits,
        )

    def _task(self, changed: tuple[LogFile, Header]) -> LogTask:
        log, header = changed
        known = self.known.get(log.log_id)
        is_grown = known is not None and known.has_session and 0 < known.size <= log.size
        work = log.size - known.size if known and is_grown and known.inode == log.inode else log.size
        return LogTask(log.log_id, log.path, header, work, log.mtime_ns)

    def _parents(self, plan: Plan, cwd: str | None) -> dict[int, str | None]:
        known = {
            row.log_id: row.parent_session for row in self.known.values() if row.has_session and row.cwd == cwd
        }
        return known | {log.log_id: header.parent_session for log, header in plan.changed.get(cwd, ())}

    def _done(self, job: Job, outcome: JobResult | Trouble) -> tuple[Job, JobResult]:
        """Return a job that was done. Where its file proved damaged, it is built anew beside it, once."""
        if isinstance(outcome, JobResult):
            return job, outcome
        if not is_damage(outcome.error()) or job.fresh:
            if job.fresh:
                generation.discard(self.target, job.file.name)
            raise outcome.error()
        database = schema.database_name(job.cwd)
        findings = Findings()
        self._condemn(self.places[database], str(outcome.detail), findings)
        self.ledger.expect_workspaces([job.cwd])
        return self._done(*self._again(job, findings))

    def _again(self, job: Job, findings: Findings) -> Outcome:
        ids = set(job.parents) - set(job.remove)
        found = [log for log in self.by_id.values() if log.log_id in ids]
        plan = Plan()
        for log in found:
            planning.place(plan, log, None, self._header)
        jobs = [self._job(plan, job.cwd, findings)]
        return next(Workers(jobs, threading.Event(), self.on_progress, aside=self.aside).outcomes())

    def _settle(self, job: Job, done: JobResult) -> None:
        path = job.file
        place = Place(
            schema.database_name(job.cwd),
            job.cwd,
            path.name,
            done.revision,
            soundness.identity(path) or (0, 0, 0),
        )
        settled = [self._settled(result) for result in done.results]
        self.ledger.settle(place, settled, job.remove, holds_any=bool(done.sessions), now=self.now)
        gone = self.gone.intersection(job.remove)
        self.ledger.forget(gone)
        self.tally.removed += len(job.remove)
        for log_id, reason in done.failures:
            self._fail(self.by_id[log_id], reason)
        self._replace(place)

    def _replace(self, place: Place) -> None:
        """Put the file that this one took the place of where nothing opens it."""
        old = self.places.get(place.database)
        if old and old.file != place.file:
            generation.set_aside(self.target, old.file)
        self.places[place.database] = place

    def _settled(self, result: LogResult) -> Settled:
        state, reason = _state(result)
        is_empty = result.mode == "empty"
        self.tally.failed += is_empty
        self.tally.indexed += result.mode == "indexed"
        self.tally.extended += result.mode == "extended"
        self.tally.bytes_read += result.bytes_read
        return Settled(
            facts(self.by_id[result.log_id]),
            result.header,
            state,
            reason,
            None if is_empty else result.row,
            result.faults,
            result.activity,
        )


def _state(result: LogResult) -> tuple[LogState, str | None]:
    if result.mode == "empty":
        return "unreadable", result.faults[0]["message"] if result.faults else "nothing could be read"
    if result.header.version > NEWEST_VERSION:
        return "newer", f"version {result.header.version} is newer than this product; read as well as it can be"
    if result.faults:
        return "partial", result.faults[0]["message"]
    return "indexed", result.header.cwd_problem


def _named(cwd: str | None) -> str:
    return "the sessions without a workspace" if cwd is None else f"workspace {cwd}"


def _discard_orphans(target: Generation, named: Collection[str]) -> None:
    """Delete workspace files that no catalog row names: a build was killed before they became visible."""
    for path in target.directory.glob("ws_*.db"):
        if path.name not in named:
            generation.discard(target, path.name)
