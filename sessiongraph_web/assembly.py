"""How the text of a log's frames becomes lines, and lines become units: headers, events, faults, frame ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sessiongraph_web import frames, lines
from sessiongraph_web.discovery import named_version
from sessiongraph_web.models import NEWEST_VERSION, Event, Fault, FaultCode, FrameEnd, Header, Resume, Unit
from sessiongraph_web.naming import folder_name, project_key
from sessiongraph_web.narrow import to_event

_MAX_BLANK_BYTES: Final = 1024  # a longer line of white space is no stray newline but damage


class Assembler:
    """Joins the text of frames to lines, and lines to units; keeps the counters that a resumed read needs."""

    def __init__(
        self,
        path: Path,
        resume: Resume,
        *,
        named_version: int | None,
        narrow: bool,
        max_line_bytes: int,
        compressed: bool,
    ) -> None:
        self._path, self._named_version, self._limit = path, named_version, max_line_bytes
        self._narrow = narrow
        self._plain = not compressed
        self._ordinal, self._line, self._next_seq = resume.ordinal, resume.line, resume.next_seq
        self._before_header = resume.offset == 0 and not resume.skip
        self._frame: tuple[int, int] | None = None  # offset and first ordinal of the frame being read
        self._open: list[bytes] = []  # the beginning of a line that no newline has ended yet
        self._open_bytes = 0  # its length, also where it is too long to be kept
        self._open_offset = 0
        self._too_long = False
        self._damaged = False  # damage was reported and no event came since: it explains a gap
        self.text_bytes = 0

    def take(self, chunk: list[frames.Chunk] | frames.Chunk | frames.Damage) -> list[Unit]:
        """Return the units that a chunk, or a batch of whole frames, completes."""
        if isinstance(chunk, list):
            return self._take_batch(chunk)
        if isinstance(chunk, frames.Damage):
            return self._take_damage(chunk)
        if self._frame is None:
            self._frame = (chunk.offset, self._ordinal)
        units: list[Unit] = []
        if chunk.text:
            self._take_text(chunk.text, chunk.offset, units)
        if chunk.end is not None:
            units.append(self._frame_end(self._frame[0], chunk.end, self._frame[1]))
            self._frame = None
        return units

    def finish(self) -> list[Unit]:
        """Return the fault for a line that the end of the file left open, or for a file without any line."""
        if not self._open_bytes:
            return [self._fault("bad_header", "there is no header", 0, None)] if self._before_header else []
        if self._before_header and not b"".join(self._open).removeprefix(lines.BOM).startswith(b"{"):
            return [self._fault("bad_header", "the first line is not a header", self._open_offset, 1)]
        message = f"the last line, begun at byte {self._open_offset}, is incomplete"
        return [self._fault("torn_tail", message, self._open_offset, self._line + 1)]

    def _take_batch(self, batch: list[frames.Chunk]) -> list[Unit]:
        """Take many whole frames: at once those whose lines are plain records, the others line by line."""
        units: list[Unit] = []
        for chunk in batch:
            text = chunk.text
            usual = not self._open_bytes and len(text) <= self._limit
            records = lines.decode_text(text) if usual else None
            if records is None:
                units += self.take(chunk)
                continue
            first_ordinal = self._ordinal
            for record in records:
                self._line += 1
                self._take_event(to_event(record, self._ordinal), chunk.offset, units)
            self.text_bytes += len(text)
            units.append(self._frame_end(chunk.offset, chunk.end, first_ordinal))
        return units

    def _frame_end(self, offset: int, end: int | None, first_ordinal: int) -> FrameEnd:
        clean = not self._open_bytes and not self._damaged and not self._before_header
        return FrameEnd(offset, end or offset, first_ordinal, self._ordinal, self._line, clean, self._next_seq)

    def _take_damage(self, damage: frames.Damage) -> list[Unit]:
        units: list[Unit] = []
        if self._open_bytes and damage.code not in ("torn_tail", "padding"):
            message = f"the line begun at byte {self._open_offset} is cut by the damage behind it"
            units.append(self._fault("bad_line", message, self._open_offset, self._line + 1))
            self._line += 1
            self._drop_open()
        units.append(self._fault(damage.code, damage.message, damage.offset, None))
        self._before_header = False  # only a log's first line can be its header
        self._damaged = True
        self._frame = None
        return units

    def _take_text(self, text: bytes, offset: int, units: list[Unit]) -> None:
        self.text_bytes += len(text)
        pieces = text.split(b"\n")
        rest = pieces.pop()
        at = offset
        for piece in pieces:
            if self._open_bytes:
                self._close(piece, units)
            else:
                self._take_line(piece, at, units)
            if self._plain:
                at += len(piece) + 1
        if rest:
            self._extend(rest, at, units)

    def _extend(self, piece: bytes, offset: int, units: list[Unit]) -> None:
        """Keep the beginning of a line, unless it is too long: then it is reported once and passed over."""
        if not self._open_bytes:
            self._open_offset, self._too_long = offset, False
        self._open_bytes += len(piece)
        if self._open_bytes > self._limit:
            self._open.clear()
            if not self._too_long:
                self._too_long = True
                self._reject_long(self._open_offset, units)
        elif self._open or not piece.isspace():  # blanks before a record say nothing, and take no memory
            self._open.append(piece)

    def _close(self, piece: bytes, units: list[Unit]) -> None:
        """End the open line with its last piece."""
        if piece:
            self._extend(piece, self._open_offset, units)
        if self._too_long:
            self._line += 1
        else:
            line = b"".join(self._open)
            self._take_line(line, self._open_offset, units, length=self._open_bytes)
        self._drop_open()

    def _drop_open(self) -> None:
        self._open.clear()
        self._open_bytes = 0

    def _reject_long(self, offset: int, units: list[Unit]) -> None:
        message = f"a line longer than {self._limit} bytes"
        units.append(self._fault("line_too_long", message, offset, self._line + 1))
        self._before_header = False
        self._damaged = True

    def _take_line(self, line: bytes, offset: int, units: list[Unit], length: int = 0) -> None:
        """Take a whole line; `length` is its stored length where leading white space was dropped."""
        if len(line) > self._limit:
            self._reject_long(offset, units)
            self._line += 1
            return
        self._line += 1
        if not line or line.isspace():
            if max(len(line), length) > _MAX_BLANK_BYTES:
                units.append(self._fault("bad_line", "nothing but white space", offset, self._line))
            return
        if self._before_header and self._take_header(line, offset, units):
            return
        try:
            event = lines.decode_event(line, self._ordinal, narrow=self._narrow)
        except lines.BadLine as bad:
            units.append(self._fault(bad.code, str(bad), offset, self._line))
            self._damaged = True
            return
        if not self._narrow:
            event.line = line
        self._take_event(event, offset, units)

    def _take_event(self, event: Event, offset: int, units: list[Unit]) -> None:
        if event.seq != self._next_seq:
            self._check_number(event, offset, units)
        if event.seq is not None:
            self._next_seq = max(self._next_seq, event.seq + event.count)
        units.append(event)
        self._ordinal += 1
        self._damaged = False

    def _take_header(self, line: bytes, offset: int, units: list[Unit]) -> bool:
        """Take the first line of the log; say whether it was meant to be a header."""
        self._before_header = False
        try:
            header = lines.decode_header(line, self._named_version)
        except lines.BadLine as bad:
            units.append(self._fault("bad_header", str(bad), offset, self._line))
            return not lines.is_event(line)
        units.append(header)
        units += self._header_faults(header, line)
        return True

    def _header_faults(self, header: Header, line: bytes) -> Iterator[Fault]:
        stated = lines.stated_version(line)
        if stated != header.version:
            yield self._fault("newer_version", f"unknown format: the version is {stated!r:.40}", 0, self._line)
        elif header.version > NEWEST_VERSION:
            message = f"version {header.version} is newer than {NEWEST_VERSION}; read as well as it can be"
            yield self._fault("newer_version", message, 0, self._line)
        elif (named := named_version(self._path.name)) not in (None, header.version):
            message = f"the header says version {header.version}, the file's name {named}"
            yield self._fault("version_mismatch", message, 0, self._line)
        folder = self._path.parent
        if folder_name(header.id) != folder.name:
            yield self._fault("id_mismatch", "the folder has not the name of the header's id", 0, self._line)
        if header.cwd is not None and project_key(header.cwd) != folder.parent.name:
            message = "the project folder has not the name of the header's cwd"
            yield self._fault("folder_mismatch", message, 0, self._line)

    def _check_number(self, event: Event, offset: int, units: list[Unit]) -> None:
        seq, expected = event.seq, self._next_seq
        if seq is None:
            return
        if seq < expected:
            message = f"event number {seq} was used before (expected {expected})"
            units.append(self._fault("seq_repeated", message, offset, self._line))
        elif not self._damaged:
            missing = (
                f"event number {expected} is"
                if seq == expected + 1
                else (f"event numbers {expected} to {seq - 1} are")
            )
            units.append(self._fault("seq_gap", f"{missing} missing", offset, self._line))

    def _fault(self, code: FaultCode, message: str, offset: int, line: int | None) -> Fault:
        return Fault(code, message, offset, line, self._ordinal)
