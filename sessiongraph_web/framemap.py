"""The frame map: which stretch of stored bytes holds which records, so that a page reads only what it shows."""

from __future__ import annotations

from typing import Final, NamedTuple

from sessiongraph_web.documents import TURN_BORDERS, turn_of
from sessiongraph_web.models import Event, FrameEnd

STRETCH_BYTES: Final = 32 * 1024  # stored bytes after which a stretch ends at the next frame border
STRETCH_EVENTS: Final = 64


class Stretch(NamedTuple):
    """One row of the table `frame`."""

    log_id: int
    offset: int
    end: int
    first_ordinal: int
    last_ordinal: int
    first_seq: int | None
    last_seq: int | None
    first_turn: int | None  # the one that was open before the first event
    last_turn: int | None
    line: int

    def is_regular(self, lines_behind: int) -> bool:
        """Say whether each of its lines holds one record, but for the header; `lines_behind` of an undamaged log
        are those before the next stretch."""
        records = self.last_ordinal - self.first_ordinal + 1
        return lines_behind - self.line == records + (self.offset == 0)


class FrameMap:
    """Gathers frames into stretches while a log is read."""

    def __init__(self, log_id: int, line: int) -> None:
        self.rows: list[Stretch] = []
        self._log_id = log_id
        self.line = line  # lines of the log before the next stretch
        self._first: FrameEnd | None = None
        self._last: FrameEnd | None = None
        self._low: int | None = None  # seqs of the stretch
        self._high: int | None = None
        self._begun = line == 0
        self._turn: int | None = None  # open before the first event of the stretch
        self._open_turn: int | None = None
        self._last_turn: int | None = None

    def see(self, event: Event, turn: int | None) -> None:
        """Note an event of the frame that is being read, with the turn that it belongs to."""
        if not self._begun and event.type != "turn/start":
            self._turn = self._open_turn = turn  # what an earlier run left open
        self._begun = True
        if event.seq is not None:
            self._note_seqs(event.seq, event.seq + event.count - 1)
        if turn is not None:
            self._last_turn = turn
        if event.type in TURN_BORDERS:
            _, self._open_turn = turn_of(event, self._open_turn)

    def _note_seqs(self, first: int, last: int) -> None:
        if self._low is None or first < self._low:
            self._low = first
        if self._high is None or last > self._high:
            self._high = last

    def end(self, frame: FrameEnd) -> None:
        """Note the end of a frame; only at a clean one may a stretch end."""
        first = self._first = self._first or frame
        self._last = frame
        is_long = frame.end - first.offset >= STRETCH_BYTES
        if frame.clean and (is_long or frame.ordinal - first.first_ordinal >= STRETCH_EVENTS):
            self.close()

    def close(self) -> None:
        """End the stretch, if it holds anything."""
        first, last = self._first, self._last
        if first and last and last.ordinal > first.first_ordinal:
            self.rows.append(
                Stretch(
                    self._log_id,
                    first.offset,
                    last.end,
                    first.first_ordinal,
                    last.ordinal - 1,
                    self._low,
                    self._high,
                    self._turn,
                    self._last_turn,
                    self.line,
                )
            )
        if last:
            self.line = last.line
        self._first = self._last = None
        self._low = self._high = None
        self._turn, self._last_turn = self._open_turn, None
