"""The text of a log on its way out: in blocks, in whole lines, decoded for what it says."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import msgspec

from sessiongraph_web import lines
from sessiongraph_web.config import KIBI
from sessiongraph_web.errors import SessionGraphError

BLOCK_BYTES: Final = 64 * KIBI  # text is compressed in blocks of about this size
# Not a thread for every log: what a thread has freed, the allocator keeps for that thread, megabytes of it.
_MAKERS: Final = ThreadPoolExecutor(2, "ahead")


@dataclass(slots=True)
class Lines:
    """Cuts blocks of text after their last newline; a line longer than the limit is dropped and counted."""

    limit: int
    too_long: int = 0
    _open: list[bytes] = field(default_factory=list)
    _length: int = 0

    def feed(self, block: bytes) -> bytes:
        """Return the whole lines that end in this block."""
        cut = block.rfind(b"\n") + 1
        if not cut:
            self._keep(block)
            return b""
        begin = block.find(b"\n") + 1 if self._length > self.limit else 0
        whole = b"".join([*self._open, block[begin:cut]])
        self._open.clear()
        self._length = 0
        self._keep(block[cut:])
        return whole

    def rest(self) -> bytes:
        """Return the last line, if no newline ended it."""
        return b"".join(self._open)

    def _keep(self, piece: bytes) -> None:
        fitted = self._length <= self.limit
        self._length += len(piece)
        if self._length <= self.limit:
            self._open.append(piece)
        elif fitted:
            self._open.clear()
            self.too_long += 1


def ahead(pieces: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
    """Yield the pieces, each made while the one before it is compressed; closing closes them too."""
    following = _MAKERS.submit(next, pieces, None)
    try:
        while (piece := following.result()) is not None:
            following = _MAKERS.submit(next, pieces, None)
            yield piece
    finally:
        if not following.cancel():
            wait([following])
        pieces.close()


def blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join small pieces: a log has a frame for every append."""
    waiting, size = [], 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= BLOCK_BYTES:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)


def of_session(pieces: Iterable[bytes], session_id: str, cwd: str | None) -> Iterator[bytes]:
    """Yield the text of a log once its header says that it is this session's still; another's raises."""
    begun = b""
    unread = iter(pieces)
    for piece in unread:
        begun += piece
        if b"\n" in begun.lstrip():
            break
    _require_session(begun, session_id, cwd)
    yield begun
    yield from unread


def _require_session(text: bytes, session_id: str, cwd: str | None) -> None:
    try:
        header = lines.decode_header(text.lstrip().split(b"\n", 1)[0])
    except lines.BadLine:
        if cwd is None:  # a log without a header has no workspace
            return
    else:
        if (header.id, header.cwd) == (session_id, cwd):
            return
    raise SessionGraphError("SESSION_QUERY_SOURCE_CONFLICT")


def stored(path: Path) -> Generator[bytes, None, None]:
    """Yield a file as it is."""
    with _readable(path) as file:
        while block := file.read(BLOCK_BYTES):
            yield block


def require(path: Path) -> None:
    """Raise now what would otherwise cut a download that has begun."""
    with _readable(path):
        pass


@contextmanager
def _readable(path: Path) -> Iterator[BinaryIO]:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise OSError("not a regular file")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise SessionGraphError("SESSION_QUERY_PERSISTENCE_FAILED") from error


def modified(path: Path) -> float:
    """Return when a file was last written."""
    with _readable(path) as file:
        return os.fstat(file.fileno()).st_mtime


def decoded(line: bytes) -> Any:
    """Decode a line for what it says, or return None; `logs` alone judges what is an event."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(line.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(token: str) -> NoReturn:
    raise ValueError(token)


def encoded(value: dict[str, Any]) -> bytes:
    """Encode a decoded line again."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):  # half a character, or a number beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode()
