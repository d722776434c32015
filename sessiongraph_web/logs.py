"""What a log holds, read once, in order, in bounded memory; with `discovery`, the one door to the store."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from sessiongraph_web import frames
from sessiongraph_web.assembly import Assembler
from sessiongraph_web.config import MEBI
from sessiongraph_web.discovery import Discovery as Discovery
from sessiongraph_web.discovery import LogFile as LogFile
from sessiongraph_web.discovery import SkippedFile as SkippedFile
from sessiongraph_web.discovery import discover as discover
from sessiongraph_web.discovery import locate as locate
from sessiongraph_web.discovery import named_version
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.language import sentence
from sessiongraph_web.locks import is_live as is_live
from sessiongraph_web.models import Fault, FrameEnd, Header, Resume, Unit
from sessiongraph_web.naming import folder_name as folder_name
from sessiongraph_web.naming import project_key as project_key

Detail = Literal["full", "index"]
_STRETCH_BYTES: Final = 64 * 1024
_FINGERPRINT_BYTES: Final = 64 * 1024
_PIECE_BYTES: Final = MEBI
_FROM_START: Final = Resume()


@dataclass(frozen=True, slots=True)
class Limits:
    """What a single unit of a log may need before it counts as damaged."""

    max_line_bytes: int = 64 * MEBI
    max_window_bytes: int = 128 * MEBI


@dataclass(slots=True)
class Meter:
    """What reading cost: stored bytes read and bytes of text they decoded to."""

    bytes_read: int = 0
    text_bytes: int = 0


def read(
    path: Path,
    *,
    resume: Resume = _FROM_START,
    version: int | None = None,
    detail: Detail = "full",
    limits: Limits = Limits(),
    meter: Meter | None = None,
    until: int | None = None,
) -> Generator[Unit, None, None]:
    """Yield what a log holds, in file order: header, events, faults, and the end of every whole frame.

    From the start the first unit is the header, or the fault that says why there is none. `until` ends reading
    after the frame that ends at or behind this stored offset. Content never raises; a file that cannot be read is
    SESSION_QUERY_PERSISTENCE_FAILED. Resume only from the `end` of a clean `FrameEnd`: faults at or behind it are
    reported again. What `Resume.skip` passes over is decoded neither; it must be whole lines of records.
    """
    compressed = path.suffix == ".zstd"
    with _opened(path) as file:
        assembler = Assembler(
            path,
            resume,
            named_version=named_version(path.name) if version is None else version,
            narrow=detail == "index",
            max_line_bytes=limits.max_line_bytes,
            compressed=compressed,
        )
        if file.size == 0 and resume.offset == 0:
            yield Fault("empty_file", "the file is empty", 0, ordinal=0)
            return
        try:
            batched = detail == "index" and not resume.skip
            chunks = _chunks(file, resume.offset, limits, compressed=compressed, batched=batched)
            for chunk in _behind(chunks, resume.skip) if resume.skip else chunks:
                units = assembler.take(chunk)
                if until is None:
                    yield from units
                    continue
                for unit in units:
                    yield unit
                    if isinstance(unit, FrameEnd) and unit.end >= until:
                        return
            yield from assembler.finish()
        finally:
            if meter is not None:
                meter.bytes_read += file.bytes_read
                meter.text_bytes += assembler.text_bytes


def _chunks(
    file: frames.File, offset: int, limits: Limits, *, compressed: bool, batched: bool
) -> Iterator[list[frames.Chunk] | frames.Chunk | frames.Damage]:
    if not compressed:
        return frames.stretches(file, offset, length=_STRETCH_BYTES)
    if batched:
        return frames.batches(file, offset, max_window=limits.max_window_bytes)
    return frames.frames(file, offset, max_window=limits.max_window_bytes)


def _behind(
    chunks: Iterator[list[frames.Chunk] | frames.Chunk | frames.Damage], lines: int
) -> Iterator[list[frames.Chunk] | frames.Chunk | frames.Damage]:
    """Drop so many lines from the beginning of a text that comes in chunks."""
    for chunk in chunks:
        if lines and isinstance(chunk, frames.Chunk):
            held = chunk.text.count(b"\n")
            rest = chunk.text.split(b"\n", lines)[-1] if held >= lines else b""
            lines -= min(held, lines)
            yield frames.Chunk(chunk.offset, rest, chunk.end)
        else:
            yield chunk


def peek_header(path: Path, limits: Limits = Limits()) -> Header | Fault:
    """Return the header, or the fault that says why there is none, reading no frame behind the one it ends in."""
    with closing(read(path, limits=limits)) as units:
        return next(unit for unit in units if isinstance(unit, Header | Fault))


def nameless(log: LogFile, fault: Fault) -> Header:
    """Return what stands for the header of a log that has none: its folder's name, and nobody's workspace."""
    return Header(log.folder, log.version, None, None, cwd_problem=fault.message)


def fingerprint(path: Path, offset: int) -> str:
    """Return the sha256 of the first frame and of the last 64 KiB before `offset`."""
    digest = hashlib.sha256()
    with _opened(path) as file:
        first = frames.first_end(file) if path.suffix == ".zstd" else min(_STRETCH_BYTES, offset)
        digest.update(file.at(0, min(first, offset)))
        begin = max(0, offset - _FINGERPRINT_BYTES)
        digest.update(file.at(begin, offset - begin))
    return digest.hexdigest()


def plain_text(path: Path, *, limits: Limits = Limits()) -> Iterator[bytes]:
    """Yield the decompressed text as stored, in pieces of at most 1 MiB: whole frames only, damage left out.

    A plain log is given up to its last newline.
    """
    with _opened(path) as file:
        if path.suffix != ".zstd":
            file.size = frames.last_newline(file)
        for chunk in _chunks(file, 0, limits, compressed=path.suffix == ".zstd", batched=False):
            if isinstance(chunk, frames.Chunk):
                for at in range(0, len(chunk.text), _PIECE_BYTES):
                    yield chunk.text[at : at + _PIECE_BYTES]


@contextmanager
def _opened(path: Path) -> Iterator[frames.File]:
    """Open a log for reading: once, never waiting for a pipe, never anything but a regular file of the store."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        raise _unreadable(error) from error
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise SessionGraphError("SESSION_QUERY_PERSISTENCE_FAILED", "This log is not a regular file.")
        yield frames.File(descriptor, facts.st_size)
    except OSError as error:
        raise _unreadable(error) from error
    finally:
        os.close(descriptor)


def _unreadable(error: OSError) -> SessionGraphError:
    reason = error.strerror or type(error).__name__
    detail = sentence("This log cannot be read: %(reason)s.", reason=reason)
    return SessionGraphError("SESSION_QUERY_PERSISTENCE_FAILED", detail)
