"""The container of a log: zstd frames end to end, found by their own block structure and decoded one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Final, cast

import msgspec
import zstandard

from sessiongraph_web.models import FaultCode

MAGIC: Final = b"\x28\xb5\x2f\xfd"
_USUAL: Final = MAGIC + b"\x04"  # what dsh writes: a checksum, no content size, no dictionary
_SKIPPABLE: Final = b"\x2a\x4d\x18"  # follows a first byte of 50..5f
_MAX_BLOCK: Final = 128 * 1024  # no block holds or makes more (RFC 8878, 3.1.1.2.3)
_WHOLE_BLOCKS: Final = 8  # frames of at most this many blocks (1 MiB of text) are decoded in one call
_FIRST_BYTES: Final = 64 * 1024  # of a file that are read at once; twice as many each time after, up to the next
_AHEAD_BYTES: Final = 256 * 1024  # more is no faster, and each of many downloads holds as much
_READ_BYTES: Final = 1024 * 1024  # of a file that is searched
_PIECE_BYTES: Final = 32 * 1024  # compressed bytes of a large frame that are decoded at a time
_OUTPUT_BYTES: Final = 1024 * 1024
_BATCH_BYTES: Final = 128 * 1024  # text, or stored bytes at hand, that one batch of frames is made of
_MAX_ATTEMPTS: Final = 64  # frames tried after damage, so that a hostile file cannot buy quadratic work
_HEADER_BYTES: Final = 18
_TORN: Final = "the last write, begun at byte {}, is incomplete"


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """Text of the frame at `offset`. `end` is set on the last chunk of a frame: where its stored bytes end."""

    offset: int
    text: bytes
    end: int | None


@dataclass(frozen=True, slots=True)
class Damage:
    """Stored bytes that gave no text, and why."""

    code: FaultCode
    message: str
    offset: int


class _Broken(Exception):  # noqa: N818 - a finding inside this module, never an error of the program
    """These bytes are no frame that can be decoded."""

    def __init__(self, message: str, code: FaultCode = "damaged_frame") -> None:
        self.code: FaultCode = code
        super().__init__(message)


@dataclass(slots=True)
class _Shape:
    """What the headers of a frame say. `length` counts stored bytes; 0: the file ends before the frame does."""

    length: int
    blocks: int = 0
    window: int = 0
    one_shot: bool = False  # it may be decoded by one call: no content size that could lie
    skippable: bool = False


class File:
    """A file opened once, read in growing blocks up to the size it had then; `bytes_read` counts them."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size
        self.bytes_read = 0
        self._ahead = _FIRST_BYTES
        self._descriptor = descriptor
        self.buffer = b""
        self.start = 0

    def load(self, offset: int, length: int) -> None:
        """Make `buffer` hold the bytes from `offset` on, `length` of them or up to the end of the file."""
        self.start = offset
        wanted = max(0, min(length, self.size - offset))
        self.buffer = os.pread(self._descriptor, wanted, offset)
        self.bytes_read += len(self.buffer)
        if len(self.buffer) < wanted:  # the writer took back an append meanwhile
            self.size = offset + len(self.buffer)

    def at(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`, fewer at the end of the file."""
        begin = offset - self.start
        if begin < 0 or begin + length > len(self.buffer):
            self.load(offset, max(length, self._ahead))
            self._ahead = min(2 * self._ahead, _AHEAD_BYTES)
            begin = 0
        return self.buffer[begin : begin + length]


def batches(file: File, offset: int, *, max_window: int) -> Iterator[list[Chunk] | Chunk | Damage]:
    """Yield what `frames` does, but usual frames many at a time; the first frame of a log comes alone."""
    decoder = zstandard.ZstdDecompressor(max_window_size=max_window)
    widest = max((byte for byte in range(256) if _window(byte) <= max_window), default=-1)
    while True:
        batch = _batch(decoder, file, offset, widest) if offset else []
        if batch:
            yield batch
            offset = batch[-1].end or file.size
            continue
        for chunk in frames(file, offset, max_window=max_window):
            yield chunk
            if isinstance(chunk, Chunk) and chunk.end is not None:
                offset = chunk.end
                break
        else:
            return


def _batch(decoder: zstandard.ZstdDecompressor, file: File, offset: int, widest: int) -> list[Chunk]:
    """Decode usual whole frames from `offset` on; stop before anything that `frames` must judge.

    `widest` is the greatest byte that may describe a window.
    """
    made: list[Chunk] = []
    size = 0
    file.at(offset, min(_BATCH_BYTES, file.size - offset))
    stored, start = file.buffer, file.start
    at = offset - start
    decompress = decoder.decompress
    try:
        while size < _BATCH_BYTES and stored[at : at + 5] == _USUAL and stored[at + 5] <= widest:
            cursor, blocks, last = at + 6, 0, 0
            while not last:
                value = stored[cursor] | stored[cursor + 1] << 8 | stored[cursor + 2] << 16
                if value & 6 == 2 or value >> 3 > _MAX_BLOCK:  # not usual: judged elsewhere
                    return made
                cursor += 3 + (value >> 3)
                blocks += 1
                last = value & 1
            end = cursor + 4
            if blocks > _WHOLE_BLOCKS or end > len(stored):
                break
            text = decompress(stored[at:end], max_output_size=blocks * _MAX_BLOCK)
            made.append(Chunk(start + at, text, start + end))
            size += len(text)
            at = end
    except (IndexError, zstandard.ZstdError):
        pass
    return made


def frames(file: File, offset: int, *, max_window: int) -> Iterator[Chunk | Damage]:
    """Yield the text of every whole frame from `offset` on, and what is damaged in between.

    Frame ends come from the block headers alone: the bytes of the magic also occur inside frames. A frame of
    many blocks is decoded piece by piece, so that neither a giant frame nor a bomb takes much memory; if such a
    frame proves damaged late, the chunks before the damage were yielded already.
    """
    decoder = zstandard.ZstdDecompressor(max_window_size=max_window)
    while offset < file.size:
        shape: _Shape | None = None
        try:
            shape = _shape(file, offset)
            _check(shape, offset, max_window)
            yield from _decode(decoder, file, offset, shape)
            offset += shape.length
            continue
        except _Broken as broken:
            damage = Damage(broken.code, str(broken), offset)
        except zstandard.ZstdError as error:
            if shape is not None and offset + shape.length > file.size:
                shape = _Shape(0)
                damage = Damage("torn_tail", _TORN.format(offset), offset)
            else:
                damage = Damage("damaged_frame", f"the frame at byte {offset} cannot be decoded: {error}", offset)
        following = _after_damage(decoder, file, offset, shape, max_window)
        yield _name_the_rest(file, damage, following)
        if following is None:
            return
        offset = following


def stretches(file: File, offset: int, *, length: int) -> Iterator[Chunk | Damage]:
    """Yield the text of a plain log in stretches of about `length` bytes that end with a newline."""
    while offset < file.size:
        text = file.at(offset, length)
        if not text:  # the file was cut while it was read
            return
        cut = text.rfind(b"\n") + 1
        if cut == 0 and not text.strip(b"\0") and _only_zeros(file, offset):
            yield _padding(file, offset)
            return
        if cut == 0:
            yield Chunk(offset, text, None)
            offset += len(text)
        else:
            yield Chunk(offset, text[:cut], offset + cut)
            offset += cut


def last_newline(file: File) -> int:
    """Return where the last whole line of a plain log ends."""
    end = file.size
    while end > 0:
        begin = max(0, end - _READ_BYTES)
        found = file.at(begin, end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def first_end(file: File) -> int:
    """Return where the first frame ends, or the size of a file that does not begin with a whole frame."""
    try:
        return _shape(file, 0).length or file.size
    except _Broken:
        return file.size


def _shape(file: File, offset: int) -> _Shape:
    """Walk the headers of the frame at `offset`; raise `_Broken` where they cannot be a frame's."""
    head = file.at(offset, _HEADER_BYTES)
    if head[:5] == _USUAL and len(head) > 5:
        start, window, one_shot, checksum = 6, _window(head[5]), True, 4
    elif head[:4] == MAGIC:
        described = _describe(head)
        if described is None:
            return _Shape(0)
        start, window, one_shot, checksum = described
    elif head[1:4] == _SKIPPABLE and 0x50 <= head[0] <= 0x5F:
        length = 8 + int.from_bytes(head[4:8], "little")
        return _Shape(length if len(head) >= 8 and offset + length <= file.size else 0, skippable=True)
    elif len(head) < 4 and MAGIC.startswith(head):
        return _Shape(0)
    else:
        raise _Broken(f"no frame begins at byte {offset}")
    cursor, blocks, last = offset + start, 0, 0
    while not last:
        header = file.at(cursor, 3)
        if len(header) < 3:
            return _Shape(0)
        value = header[0] | header[1] << 8 | header[2] << 16
        kind, size, last = value >> 1 & 3, value >> 3, value & 1
        if kind == 3 or size > _MAX_BLOCK:
            raise _Broken(f"the frame at byte {offset} has a block of no known kind or size")
        cursor += 4 if kind == 1 else 3 + size
        blocks += 1
    end = cursor + checksum
    return _Shape(end - offset if end <= file.size else 0, blocks, window, one_shot)


def _describe(head: bytes) -> tuple[int, int, bool, int] | None:
    """Read a frame header: its length, the window, whether one call may decode it, the checksum's length."""
    if len(head) < 5:
        return None
    descriptor = head[4]
    if descriptor & 0x08:
        raise _Broken("a frame header uses a reserved bit")
    single = bool(descriptor & 0x20)
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    sizes = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    size_at = 5 + (not single) + dictionary
    if len(head) < size_at + sizes:
        return None
    content = int.from_bytes(head[size_at : size_at + sizes], "little") + (256 if sizes == 2 else 0)
    window = content if single else _window(head[5])
    return size_at + sizes, window, not sizes, 4 if descriptor & 4 else 0


def _window(byte: int) -> int:
    base = 1 << (10 + (byte >> 3))
    return base + (base >> 3) * (byte & 7)


def _check(shape: _Shape, offset: int, max_window: int) -> None:
    if not shape.length:
        raise _Broken(_TORN.format(offset), "torn_tail")
    if shape.window > max_window:
        needs = f"the frame at byte {offset} needs a window of {shape.window} bytes; the limit is {max_window}"
        raise _Broken(needs, "window_too_large")


def _decode(decoder: zstandard.ZstdDecompressor, file: File, offset: int, shape: _Shape) -> Iterator[Chunk]:
    end = offset + shape.length
    if shape.skippable:
        yield Chunk(offset, b"", end)
    elif shape.one_shot and shape.blocks <= _WHOLE_BLOCKS:
        stored = file.at(offset, shape.length)
        text = decoder.decompress(stored, max_output_size=shape.blocks * _MAX_BLOCK)
        yield Chunk(offset, text, end)
    else:
        source = cast("IO[bytes]", _Slice(file, offset, end))
        with decoder.stream_reader(source, read_size=_PIECE_BYTES) as reader:
            while text := reader.read(_OUTPUT_BYTES):
                yield Chunk(offset, text, None)
        yield Chunk(offset, b"", end)


class _Slice:
    """The stored bytes of one frame as a file that zstandard can read from."""

    def __init__(self, file: File, offset: int, end: int) -> None:
        self._file, self._at, self._end = file, offset, end

    def read(self, size: int) -> bytes:
        piece = self._file.at(self._at, min(size, self._end - self._at))
        self._at += len(piece)
        return piece


def _after_damage(
    decoder: zstandard.ZstdDecompressor, file: File, offset: int, shape: _Shape | None, max_window: int
) -> int | None:
    """Return where reading goes on after damage at `offset`, or None if nothing whole follows.

    The block headers of the damaged frame are trusted if a frame begins where they end. Otherwise the magic is
    searched for, and taken only where a frame decodes to its end.
    """
    if shape is not None and shape.length and _frame_may_begin(file, offset + shape.length):
        return offset + shape.length
    for _ in range(_MAX_ATTEMPTS):
        found = _find_magic(file, offset + 1)
        if found is None:
            return None
        offset = found
        if _decodes(decoder, file, offset, max_window):
            return offset
    return None


def _frame_may_begin(file: File, offset: int) -> bool:
    if offset == file.size or _only_zeros(file, offset):
        return True
    try:
        _shape(file, offset)
    except _Broken:
        return False
    return True


def _decodes(decoder: zstandard.ZstdDecompressor, file: File, offset: int, max_window: int) -> bool:
    try:
        shape = _shape(file, offset)
        _check(shape, offset, max_window)
        for _ in _decode(decoder, file, offset, shape):
            pass
    except (_Broken, zstandard.ZstdError):
        return False
    return True


def _find_magic(file: File, offset: int) -> int | None:
    while offset < file.size - 3:
        block = file.at(offset, min(_READ_BYTES, file.size - offset))
        found = block.find(MAGIC)
        if found >= 0:
            return offset + found
        if len(block) < 4:
            return None
        offset += len(block) - 3
    return None


def _only_zeros(file: File, offset: int) -> bool:
    while offset < file.size:
        block = file.at(offset, min(_READ_BYTES, file.size - offset))
        if not block or block.strip(b"\0"):
            return False
        offset += len(block)
    return True


def _name_the_rest(file: File, damage: Damage, following: int | None) -> Damage:
    """Give damage its right name, now that it is known what follows."""
    offset = damage.offset
    if not file.at(offset, min(4, file.size - offset)).strip(b"\0"):
        if following is not None:
            return Damage("padding", f"zeros from byte {offset} to byte {following}", offset)
        if _only_zeros(file, offset):
            return _padding(file, offset)
    elif following is None and offset == 0 and not MAGIC.startswith(file.at(0, 4)):
        return Damage("not_zstd", "the file is not zstd, whatever its name says", 0)
    if damage.code == "torn_tail" and following is not None:
        lost = following - offset
        return Damage("damaged_frame", f"{lost} bytes from byte {offset} on hold no whole frame", offset)
    return damage


def _padding(file: File, offset: int) -> Damage:
    return Damage("padding", f"zeros from byte {offset} on (the file has {file.size})", offset)
