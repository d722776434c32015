"""What is known of a whole log before a part of it is read: from the index, or from one walk over the log."""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from sessiongraph_web import documents, logs, redact, turnspans
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.faults import LOSSES, Faults
from sessiongraph_web.framemap import FrameMap, Stretch
from sessiongraph_web.kept import Kept
from sessiongraph_web.models import Event, Fault, FrameEnd, Header, InvalidSurface
from sessiongraph_web.repair import OpenTurn
from sessiongraph_web.surface import Fold
from sessiongraph_web.turnspans import Summed, TurnSpan, TurnSpans

_STRETCH: Final = ", ".join(Stretch._fields)


class LogMap(Protocol):
    """Where the records of a log are, and how they relate to each other. Ordinals address, seqs name."""

    records: int
    fault_ordinal: int | None  # where the surface fold stopped
    inherited_count: int
    open_turn: OpenTurn

    def stretch_at(self, ordinal: int) -> Stretch | None:
        """Return the last stretch that begins at or before a record."""

    def stretches_with(self, seq: int) -> list[Stretch]:
        """Return the stretches that may hold an event with this seq."""

    def is_regular(self, stretch: Stretch) -> bool:
        """Say whether each line of a stretch is one record, and no number in the log occurs twice."""

    def moment(self, ordinal: int) -> tuple[int, int] | None:
        """Return the ordinal and the time of some record at or shortly after this one, None near the end."""

    def last_answer(self, characters: int) -> str | None:
        """Return how the last answer that holds words begins, masked; none that was inherited."""

    def turns(self, most: int) -> list[TurnSpan]:
        """Return the turns in the order of the log, put together so that they are not many more than `most`."""

    def run_behind(self, ordinal: int, messages: Iterable[int]) -> set[int]:
        """Return which of these messages (by `documents.message_key`) are prompts at or behind a record."""

    def replaced_by(self, first: int, last: int) -> dict[int, int]:
        """Return {ordinal: seq of the event that took its place} of a range of records, both ends included."""

    def replacer(self, ordinal: int) -> tuple[int, int] | None:
        """Return the ordinal and seq of the event that took a record's place."""

    def replaced(self, ordinal: int) -> list[int]:
        """Return the seqs of what a record took the place of, in surface order."""

    def citing(self, seq: int) -> list[tuple[int, int]]:
        """Return the ordinals and seqs of the events that name this seq as a source, in order."""


class IndexMap:
    """The map that the index has of a log."""

    def __init__(
        self, connection: sqlite3.Connection, log_id: int, path: Path, kept: Kept[Summed], *, grown: bool
    ) -> None:
        self._connection, self._log_id, self._grown = connection, log_id, grown
        self._path, self._kept = path, kept
        session = self._row(
            """
            SELECT surface_fault_ordinal, inherited_count, damage, events, entries, last_at
            FROM session WHERE log_id = ?
            """
        )
        log = self._row(
            "SELECT carried, resume_offset, resume_line, fingerprint, exact FROM log WHERE log_id = ?"
        )
        frame = self._row("SELECT ifnull(max(last_ordinal) + 1, 0) FROM frame WHERE log_id = ?")
        self.fault_ordinal: int | None = session[0]
        self.inherited_count: int = session[1]
        self.open_turn = OpenTurn.from_carried(msgspec.json.decode(log[0])["turn"])
        self.records: int = frame[0]
        self._is_whole = not session[2]
        self._end: tuple[int, int] = log[1], log[2]
        self._fingerprint: str = log[3]
        self._state = (*log[1:4], *session[2:]) if log[4] else None  # the same for as long as the entries are

    @classmethod
    def of(
        cls,
        connection: sqlite3.Connection,
        log_id: int,
        path: Path,
        seen: Mapping[str, Any],
        kept: Kept[Summed],
    ) -> IndexMap | None:
        """Return the map of a log that still begins with the bytes that were indexed, else None.

        `seen` holds the size, mtime_ns and inode of the file as it was indexed; `kept` remembers, by log, what
        takes long to sum up.
        """
        row = connection.execute(
            "SELECT resume_offset, fingerprint FROM log JOIN session USING (log_id) WHERE log_id = ?", (log_id,)
        ).fetchone()
        if row is None:
            return None
        facts = _facts(path)
        if (facts.st_size, facts.st_mtime_ns, facts.st_ino) == (seen["size"], seen["mtime_ns"], seen["inode"]):
            return cls(connection, log_id, path, kept, grown=False)
        if facts.st_size < row[0] or logs.fingerprint(path, row[0]) != row[1]:
            return None
        return cls(connection, log_id, path, kept, grown=True)

    def stretch_at(self, ordinal: int) -> Stretch | None:
        return self._stretch("first_ordinal <= ? ORDER BY first_ordinal DESC LIMIT 1", ordinal)

    def stretches_with(self, seq: int) -> list[Stretch]:
        rows = self._rows(
            f"SELECT {_STRETCH} FROM frame WHERE log_id = ? AND first_seq <= ? AND last_seq >= ? ORDER BY offset",  # noqa: S608
            seq,
            seq,
        )
        found = [Stretch(*row) for row in rows]
        tail = self._stretch("1 ORDER BY offset DESC LIMIT 1") if self._grown else None
        if tail is None:
            return found
        return [*(stretch for stretch in found if stretch.offset != tail.offset), tail._replace(end=_NO_END)]

    def is_regular(self, stretch: Stretch) -> bool:
        if not self._is_whole or stretch.end == _NO_END:
            return False
        following = self._stretch("offset >= ? ORDER BY offset LIMIT 1", stretch.end)
        if following is not None:
            return stretch.is_regular(following.line)
        return stretch.end == self._end[0] and stretch.is_regular(self._end[1])

    def moment(self, ordinal: int) -> tuple[int, int] | None:
        rows = self._rows(
            """
            SELECT ordinal, time FROM entry
            WHERE log_id = ? AND ordinal >= ? AND time IS NOT NULL AND NOT synthetic ORDER BY ordinal LIMIT 1
            """,
            ordinal,
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def last_answer(self, characters: int) -> str | None:
        rows = self._rows(
            """
            SELECT substr(text, 1, ?2) FROM entry
            WHERE log_id = ?1 AND kind = 'assistant' AND NOT inherited ORDER BY ordinal DESC LIMIT 1
            """,
            characters,
        )
        return rows[0][0] if rows else None

    def turns(self, most: int) -> list[TurnSpan]:
        step = turnspans.step(self._connection, self._log_id, most)
        if self._state is None:
            return turnspans.of_index(self._connection, self._log_id, step, 2 * most)
        before = self._kept.get(self._log_id)
        if before is not None and (before.state, before.step) == (self._state, step):
            return before.spans
        if before is not None and before.step == step and len(before.spans) < 2 * most and self._goes_on(before):
            more = turnspans.of_index(self._connection, self._log_id, step, 2 * most, before.records)
            spans = turnspans.extended(before.spans, more, step)
        else:
            spans = turnspans.of_index(self._connection, self._log_id, step, 2 * most)
        summed = Summed(self._state, self._end[0], self._fingerprint, self.records, step, spans)
        self._kept.put(self._log_id, summed, len(spans))
        return spans

    def _goes_on(self, before: Summed) -> bool:
        """Say whether the log still begins with what was summed up: what was appended can be added to it."""
        return before.offset <= self._end[0] and logs.fingerprint(self._path, before.offset) == before.fingerprint

    def run_behind(self, ordinal: int, messages: Iterable[int]) -> set[int]:
        rows = self._rows(
            """
            SELECT DISTINCT message FROM json_each(?3) AS wanted
            CROSS JOIN prompt ON log_id = ?1 AND message = wanted.value AND ordinal >= ?2
            """,
            ordinal,
            msgspec.json.encode(list(messages)).decode(),
        )
        return {row[0] for row in rows}

    def replaced_by(self, first: int, last: int) -> dict[int, int]:
        rows = self._rows(
            "SELECT ordinal, by_seq FROM shadow WHERE log_id = ? AND ordinal BETWEEN ? AND ?", first, last
        )
        return {row[0]: row[1] for row in rows}

    def replacer(self, ordinal: int) -> tuple[int, int] | None:
        rows = self._rows("SELECT by_ordinal, by_seq FROM shadow WHERE log_id = ? AND ordinal = ?", ordinal)
        return (rows[0][0], rows[0][1]) if rows else None

    def replaced(self, ordinal: int) -> list[int]:
        rows = self._rows("SELECT seq FROM shadow WHERE log_id = ? AND by_ordinal = ? ORDER BY place", ordinal)
        return [row[0] for row in rows]

    def citing(self, seq: int) -> list[tuple[int, int]]:
        rows = self._rows(
            "SELECT ordinal, seq FROM citation WHERE log_id = ? AND source_seq = ? ORDER BY ordinal", seq
        )
        return [(row[0], row[1]) for row in rows]

    def _stretch(self, condition: str, *values: int) -> Stretch | None:
        rows = self._rows(f"SELECT {_STRETCH} FROM frame WHERE log_id = ? AND {condition}", *values)  # noqa: S608
        return Stretch(*rows[0]) if rows else None

    def _row(self, sql: str) -> sqlite3.Row:
        row: sqlite3.Row = self._connection.execute(sql, (self._log_id,)).fetchone()
        return row

    def _rows(self, sql: str, *values: int | str) -> list[sqlite3.Row]:
        return self._connection.execute(sql, (self._log_id, *values)).fetchall()


_MOMENTS: Final = 64  # records of a walk of which the time of one is kept
_NO_END: Final = 2**62  # of a stretch that goes on to wherever the file ends by now


class Walk:
    """The map that one walk over a log makes, and the facts of its session: what the index would hold."""

    def __init__(self, path: Path, *, version: int, limits: logs.Limits, tool_result_chars: int) -> None:
        self.fold, self.digest, self.open_turn = Fold(), documents.Digest(), OpenTurn()
        self.faults = Faults()
        self.records = self.own = 0
        self._frames = FrameMap(0, 0)
        self._moments: list[tuple[int, int]] = []
        self._turns = TurnSpans(lambda text: redact.mask(text)[0])
        self._answer = ""  # the last one
        self._prompts: dict[int, int] = {}  # where each message ran last
        self._replacers: dict[int, tuple[int, int]] = {}
        self._replaced: dict[int, list[int]] = {}
        self._citing: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._tool_result_chars = tool_result_chars
        damaged = False
        for unit in logs.read(path, version=version, detail="index", limits=limits):
            match unit:
                case Event():
                    self._push(unit, damaged)
                    damaged = False
                case Header():
                    self.digest = documents.Digest(unit)
                case Fault():
                    self.faults.add(unit)
                    damaged = damaged or unit.code in LOSSES
                case FrameEnd():
                    self._frames.end(unit)
        self._frames.close()
        self.fault_ordinal = self.fold.fault_ordinal
        self.inherited_count = self.digest.inherited_count

    def facts(self) -> dict[str, Any]:
        """Return the columns of the session's row that only its events tell."""
        digest = self.digest
        counted = ("last_at", "inherited_count", "events", "turns", "tool_calls", "tool_errors")
        return {name: getattr(digest, name) for name in (*counted, "input_tokens", "output_tokens")} | {
            "title": digest.title,
            "models": msgspec.json.encode(digest.models).decode(),
            "entries": self.own,
            "damage": self.faults.count,
            "surface_fault": self.fold.fault,
            "open_turn": self.open_turn.is_open,
            "faults": msgspec.json.encode(self.faults.kept).decode(),
        }

    def stretch_at(self, ordinal: int) -> Stretch | None:
        return next((s for s in reversed(self._frames.rows) if s.first_ordinal <= ordinal), None)

    def stretches_with(self, seq: int) -> list[Stretch]:
        return [
            stretch
            for stretch in self._frames.rows
            if stretch.first_seq is not None
            and stretch.last_seq is not None
            and stretch.first_seq <= seq <= stretch.last_seq
        ]

    def is_regular(self, stretch: Stretch) -> bool:
        rows = self._frames.rows
        lines = (row.line for row in rows if row.offset >= stretch.end)
        return not self.faults.count and stretch.is_regular(next(lines, self._frames.line))

    def moment(self, ordinal: int) -> tuple[int, int] | None:
        at = bisect_left(self._moments, (ordinal, 0))
        return self._moments[at] if at < len(self._moments) else None

    def last_answer(self, characters: int) -> str | None:
        return redact.mask(self._answer)[0][:characters] if self._answer else None

    def turns(self, most: int) -> list[TurnSpan]:
        return self._turns.together(most)

    def run_behind(self, ordinal: int, messages: Iterable[int]) -> set[int]:
        return {message for message in messages if self._prompts.get(message, -1) >= ordinal}

    def replaced_by(self, first: int, last: int) -> dict[int, int]:
        return {ordinal: by[1] for ordinal, by in self._replacers.items() if first <= ordinal <= last}

    def replacer(self, ordinal: int) -> tuple[int, int] | None:
        return self._replacers.get(ordinal)

    def replaced(self, ordinal: int) -> list[int]:
        return self._replaced.get(ordinal, [])

    def citing(self, seq: int) -> list[tuple[int, int]]:
        return self._citing.get(seq, [])

    def _push(self, event: Event, damaged: bool) -> None:
        change = self.fold.push(event, damaged=damaged)
        border = self.digest.inherited_count
        self.digest.push(event)
        self.open_turn.push(event)
        self._frames.see(event, self.digest.turn)
        self.records = event.ordinal + 1
        if event.time is not None and event.ordinal % _MOMENTS == 0:
            self._moments.append((event.ordinal, event.time))
        if self.digest.inherited_count != border:
            self.own, self._answer = 0, ""
        texts = documents.extract(event, tool_result_chars=self._tool_result_chars)
        self.own += len(texts)
        self._turns.note(self.digest.turn, event, texts)
        for text in texts:
            if text.kind == "assistant":
                self._answer = text.text
        if (message := documents.prompt_key(event)) is not None:
            self._prompts[message] = event.ordinal
        if event.seq is None:
            return
        for node in change.shadowed:
            self._replacers.setdefault(node.ordinal, (event.ordinal, event.seq))
        if change.shadowed:
            self._replaced[event.ordinal] = [node.seq for node in change.shadowed]
        sources = event.source_event_seqs
        if sources and not isinstance(sources, InvalidSurface):
            for source in dict.fromkeys(sources):
                self._citing[source].append((event.ordinal, event.seq))


def _facts(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise SessionGraphError("SESSION_QUERY_PERSISTENCE_FAILED") from error
