"""Reads one log from where the last run ended, and writes what it says into its workspace's database."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from sessiongraph_web import documents, logs, redact, tokenizer
from sessiongraph_web.faults import LOSSES, Faults
from sessiongraph_web.framemap import FrameMap
from sessiongraph_web.jobs import Job, LogResult, LogTask, Mode
from sessiongraph_web.models import Event, Fault, FrameEnd, InvalidSurface, Resume, Surface, Text
from sessiongraph_web.repair import OpenTurn
from sessiongraph_web.surface import Change, Fold
from sessiongraph_web.surfacerows import SurfaceRows

BATCH_CHARACTERS: Final = 4_000_000  # of text that wait to be written; most logs are written at once
QUARTER_MS: Final = 900_000
TELL_BYTES: Final = 256 * 1024  # stored bytes between two reports of progress
RELATED: Final = frozenset({"log_id", "parent_session", "parent_elsewhere"})  # not for a log to overwrite


@dataclass(slots=True)
class State:
    """What reading a log carries from one run to the next."""

    resume: Resume = field(default_factory=Resume)
    fingerprint: str = ""
    exact: bool = True
    digest: dict[str, Any] | None = None
    turn: dict[str, Any] | None = None
    faults: list[dict[str, Any]] = field(default_factory=list)
    fault_count: int = 0
    own: int = 0
    fold_next_seq: int = 0
    fold_fault: str | None = None
    fold_fault_ordinal: int | None = None
    fold_damaged: bool = False

    @classmethod
    def load(cls, connection: sqlite3.Connection, log_id: int) -> State | None:
        row = connection.execute(
            """
            SELECT resume_offset, resume_ordinal, resume_line, next_seq, fingerprint, exact, carried
            FROM log WHERE log_id = ?
            """,
            (log_id,),
        ).fetchone()
        if row is None:
            return None
        return cls(Resume(*row[:4]), row[4], bool(row[5]), **msgspec.json.decode(row[6]))


def can_resume(task: LogTask, state: State) -> bool:
    """Say whether the log still begins with the bytes that were read, so that its tail alone is new."""
    if not state.exact or state.resume.offset == 0 or task.path.stat().st_size < state.resume.offset:
        return False
    return logs.fingerprint(task.path, state.resume.offset) == state.fingerprint


class LogWriter:
    """Reads one log from its resume point and writes what it says; use it once, inside a transaction."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        job: Job,
        task: LogTask,
        state: State,
        tell: Callable[[int], None],
    ) -> None:
        self.connection, self.job, self.task, self.state, self.tell = connection, job, task, state, tell
        self.nodes = SurfaceRows(connection, task.log_id)
        self.fold = Fold(
            self.nodes.earlier,
            next_seq=state.fold_next_seq,
            fault=state.fold_fault,
            fault_ordinal=state.fold_fault_ordinal,
            damaged=state.fold_damaged,
        )
        self.digest = (
            documents.Digest.from_carried(state.digest) if state.digest else documents.Digest(task.header)
        )
        self.turn = OpenTurn.from_carried(state.turn) if state.turn else OpenTurn()
        self.frames = FrameMap(task.log_id, state.resume.line)
        self.rows = _Rows(connection, task.log_id)
        self.meter = logs.Meter()
        self.faults = Faults(list(state.faults), state.fault_count)
        self.settled = self.faults.count
        self.damaged = False  # damage was reported and no event came since
        self.own = state.own
        self.border = self.state_border = self.digest.inherited_count
        self.clean_end: FrameEnd | None = None  # the last one
        self.ordinal = state.resume.ordinal
        self.told = state.resume.offset

    def run(self, mode: Mode) -> LogResult:
        """Read to the end of the log, and return how it stands."""
        before = self.task.path.stat()
        for unit in logs.read(
            self.task.path,
            resume=self.state.resume,
            version=self.task.header.version,
            detail="index",
            limits=self.job.limits,
            meter=self.meter,
        ):
            match unit:
                case Event():
                    self._event(unit)
                case FrameEnd():
                    self._frame(unit)
                case Fault():
                    self._fault(unit)
        carried = self._carried()
        session = self._session_row()
        self._closers()
        self.frames.close()
        self._write_session(session)
        self.rows.write(self.frames, self.border if self.border != self.state_border else 0)
        self.nodes.write()
        self._write_log(carried, before)
        return LogResult(
            self.task.log_id,
            mode,
            self.task.header,
            session,
            self.faults.kept,
            self.rows.all_activity(),
            self.meter.bytes_read,
        )

    def _event(self, event: Event) -> None:
        change = self.fold.push(event, damaged=self.damaged)
        self.digest.push(event)
        self.turn.push(event)
        if self.digest.inherited_count != self.border:
            self._inherit()
        self.frames.see(event, self.digest.turn)
        if change.added is not None or event.source_event_seqs is not None:
            self._relations(event, change)
        if event.type == "user/message" and (message := documents.prompt_key(event)) is not None:
            self.rows.prompts.append((self.task.log_id, message, event.ordinal))
        texts = documents.extract(event, tool_result_chars=self.job.tool_result_chars, mask=_mask)
        if texts:
            self._texts(event, change, texts)
        self.ordinal = event.ordinal + 1
        self.damaged = False

    def _inherit(self) -> None:
        """Everything up to the border was the parent's: none of it counts as this session's own."""
        self.border = self.digest.inherited_count
        self.own = 0
        self.rows.forget_activity()

    def _relations(self, event: Event, change: Change) -> None:
        if event.seq is None:
            return
        log_id = self.task.log_id
        self.nodes.change(change)
        for place, node in enumerate(change.shadowed):
            self.rows.shadow((log_id, node.ordinal, node.seq, event.ordinal, event.seq, place))
        sources = event.source_event_seqs
        if sources and not isinstance(sources, InvalidSurface):
            self.rows.citations += [(log_id, source, event.ordinal, event.seq) for source in sources]

    def _texts(self, event: Event, change: Change, texts: list[Text]) -> None:
        inherited = event.ordinal < self.digest.inherited_count
        for text in texts:
            tool = text.tool or (self.digest.tool(event) if text.kind == "tool_result" else None)
            self.rows.add(event, text, self.digest, self._class(change), tool, inherited=inherited)
            if not event.synthetic and not inherited:
                self.own += 1
                self.rows.note_activity(event.time)

    def _class(self, change: Change) -> Surface:
        if self.fold.fault is not None:
            return "unknown"
        return "log-only" if change.added is None else "current"

    def _frame(self, frame: FrameEnd) -> None:
        self.frames.end(frame)
        if frame.end - self.told >= TELL_BYTES:
            self._tell(frame.end)
        if frame.clean:
            self.clean_end = frame
            self.settled = self.faults.count

    def _tell(self, offset: int) -> None:
        self.tell(offset - self.told)
        self.told = offset

    def _fault(self, fault: Fault) -> None:
        self.faults.add(fault)
        self.damaged = self.damaged or fault.code in LOSSES

    def _carried(self) -> dict[str, Any]:
        """Return what the next run needs: faults of the tail are left out, since it reads the tail again."""
        return {
            "digest": self.digest.to_carried(),
            "turn": self.turn.to_carried(),
            "faults": self.faults.first(self.settled),
            "fault_count": self.settled,
            "own": self.own,
            "fold_next_seq": self.fold.next_seq,
            "fold_fault": self.fold.fault,
            "fold_fault_ordinal": self.fold.fault_ordinal,
            "fold_damaged": self.fold.damaged,
        }

    def _closers(self) -> None:
        """Index the closing events that an open turn would get; they are counted nowhere."""
        if self.turn.is_open:
            for event in self.turn.closers(
                ordinal=self.ordinal, seq=self.fold.next_seq, time=self.digest.last_at
            ):
                self.digest.push(event)  # it knows the turn, and does not count what is synthetic
                texts = documents.extract(event, tool_result_chars=self.job.tool_result_chars, mask=_mask)
                self._texts(event, self.fold.push(event), texts)

    def _write_log(self, carried: dict[str, Any], before: os.stat_result) -> None:
        """Write where the next run goes on. A file that another one replaced while it was read is read anew."""
        end = self.clean_end
        resume = Resume(end.end, end.ordinal, end.line, end.next_seq) if end else self.state.resume
        fingerprint = logs.fingerprint(self.task.path, resume.offset)
        after = self.task.path.stat()
        same = (before.st_dev, before.st_ino) == (after.st_dev, after.st_ino) and after.st_size >= before.st_size
        self._tell(max(self.told, after.st_size))
        self.connection.execute(
            "INSERT OR REPLACE INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.task.log_id,
                resume.offset,
                resume.ordinal,
                resume.line,
                resume.next_seq,
                same and resume.ordinal == self.ordinal,
                fingerprint,
                msgspec.json.encode(carried).decode(),
            ),
        )

    def _write_session(self, row: dict[str, Any]) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        changes = ", ".join(f"{name} = excluded.{name}" for name in row if name not in RELATED)
        self.connection.execute(
            f"INSERT INTO session ({names}) VALUES ({marks}) ON CONFLICT DO UPDATE SET {changes}",  # noqa: S608
            list(row.values()),
        )

    def _session_row(self) -> dict[str, Any]:
        header, digest = self.task.header, self.digest
        return {
            "log_id": self.task.log_id,
            "id": header.id,
            "title": digest.title,
            "created_at": header.created_at,
            "last_at": digest.last_at,
            "parent_session": None,  # this and the next are related once all logs of the workspace are there
            "parent_elsewhere": header.parent_session is not None,
            "origin": header.origin and documents.masked_name(header.origin),
            "agent_preset": header.agent_preset and documents.masked_name(header.agent_preset),
            "delegation_depth": header.delegation_depth,
            "is_seeded": header.is_seeded,
            "inherited_count": digest.inherited_count,
            "version": header.version,
            "models": msgspec.json.encode(digest.models).decode(),
            "events": digest.events,
            "turns": digest.turns,
            "entries": self.own,
            "tool_calls": digest.tool_calls,
            "tool_errors": digest.tool_errors,
            "input_tokens": digest.input_tokens,
            "output_tokens": digest.output_tokens,
            "damage": self.faults.count,
            "surface_fault": self.fold.fault,
            "surface_fault_ordinal": self.fold.fault_ordinal,
            "open_turn": self.turn.is_open,
        }


# The columns of `entry`, up to `surface` and behind it.
_Before = tuple[int, int, int, int | None, int | None, int | None, str, str]
_Behind = tuple[str | None, bool, bool, bool, int, bool, str]


class _Rows:
    """The rows of one log on their way into the tables, in batches."""

    def __init__(self, connection: sqlite3.Connection, log_id: int) -> None:
        self.connection, self.log_id = connection, log_id
        self.citations: list[tuple[int, int, int, int]] = []
        self.prompts: list[tuple[int, int, int]] = []
        self._shadows: list[tuple[int, int, int, int, int, int]] = []
        self._shadowed: set[int] = set()
        self._late: list[tuple[int, int]] = []  # shadowed after they were written
        self._entries: list[tuple[_Before, Surface, _Behind]] = []
        self._characters = 0
        self._activity: Counter[int] = Counter()
        self._next_id: int = connection.execute("SELECT ifnull(max(id), 0) + 1 FROM entry").fetchone()[0]

    def add(
        self,
        event: Event,
        text: Text,
        digest: documents.Digest,
        surface: Surface,
        tool: str | None,
        *,
        inherited: bool,
    ) -> None:
        """Take an entry of the event that the digest took last, and mask it."""
        masked, _ = redact.mask(text.text)
        length, turn = len(masked), digest.turn
        self._entries.append(
            (
                (self._next_id, self.log_id, event.ordinal, event.seq, event.time, turn, text.kind, event.type),
                surface,
                (tool, digest.failed, inherited, event.synthetic, length, text.clipped, masked),
            )
        )
        self._next_id += 1
        self._characters += length
        if self._characters >= BATCH_CHARACTERS:
            self._flush()

    def shadow(self, row: tuple[int, int, int, int, int, int]) -> None:
        """Take the row of an event that was replaced; its entries are changed here or, if written, there."""
        ordinal = row[1]
        self._shadows.append(row)
        self._shadowed.add(ordinal)
        if not self._entries or ordinal < self._entries[0][0][2]:
            self._late.append((self.log_id, ordinal))

    def note_activity(self, time: int | None) -> None:
        if time is not None:
            self._activity[time // QUARTER_MS] += 1

    def forget_activity(self) -> None:
        self._activity.clear()
        self.connection.execute("DELETE FROM activity WHERE log_id = ?", (self.log_id,))

    def all_activity(self) -> list[tuple[int, int]]:
        """Return (quarter hour, own entries) of the whole log."""
        rows = self.connection.execute("SELECT quarter, entries FROM activity WHERE log_id = ?", (self.log_id,))
        return rows.fetchall()

    def write(self, frames: FrameMap, border: int) -> None:
        """Write what is left, and what the events of this run changed in earlier rows; `border` is 0 where it
        stayed where it was."""
        self._flush()
        log_id, many = self.log_id, self.connection.executemany
        many("INSERT INTO frame VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", frames.rows)
        many("INSERT OR IGNORE INTO shadow VALUES (?, ?, ?, ?, ?, ?)", self._shadows)
        many("INSERT OR IGNORE INTO citation VALUES (?, ?, ?, ?)", self.citations)
        many("INSERT OR IGNORE INTO prompt VALUES (?, ?, ?)", self.prompts)
        many("UPDATE entry SET surface = 'shadowed' WHERE log_id = ? AND ordinal = ?", self._late)
        if border:
            self.connection.execute(
                "UPDATE entry SET inherited = 1 WHERE log_id = ? AND ordinal < ? AND inherited = 0",
                (log_id, border),
            )
        many(
            """
            INSERT INTO activity VALUES (?, ?, ?)
            ON CONFLICT DO UPDATE SET entries = entries + excluded.entries
            """,
            [(log_id, quarter, count) for quarter, count in self._activity.items()],
        )

    def _flush(self) -> None:
        shadowed = self._shadowed
        self.connection.executemany(
            "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (*before, "shadowed" if before[2] in shadowed else surface, *behind)
                for before, surface, behind in self._entries
            ],
        )
        self.connection.executemany(
            "INSERT INTO entry_fts (rowid, tokens) VALUES (?, ?)",
            ((before[0], tokenizer.index_text(behind[-1])) for before, _, behind in self._entries),
        )
        self._entries.clear()
        self._characters = 0


def _mask(text: str) -> str:
    return redact.mask(text)[0]
