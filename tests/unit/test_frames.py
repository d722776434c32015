"""The container of a log: frames found by their own structure, whatever their bytes look like."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from sessiongraph_web import logs
from sessiongraph_web.models import Event, Fault, FrameEnd
from tests.builders import Log, blocks, compress, line, skippable, with_dictionary


def _log(*texts: str) -> tuple[Log, list[bytes]]:
    """Return a log with one human message a frame, and its stored frames."""
    log = Log()
    for text in texts:
        log.user(text)
        log.frame()
    return log, [compress(text) for text in log.frames]


def _read(
    path: Path, detail: logs.Detail = "full", limits: logs.Limits | None = None
) -> tuple[list[str], list[Fault]]:
    """Return the texts of the messages that were read, and the faults."""
    units = list(logs.read(path, detail=detail, limits=limits or logs.Limits()))
    texts = [unit.data["content"][0]["text"] for unit in units if isinstance(unit, Event)]
    return texts, [unit for unit in units if isinstance(unit, Fault)]


BOTH = pytest.mark.parametrize("detail", ["full", "index"])


@BOTH
def test_every_frame_is_read(store: Path, detail: logs.Detail) -> None:
    """All frames of a file count, not the first one alone."""
    log, _ = _log("a", "b", "c")
    assert _read(log.write(store), detail) == (["a", "b", "c"], [])


@BOTH
@pytest.mark.parametrize(
    "options",
    [
        {"content_size": True},
        {"checksum": False},
        {"content_size": True, "checksum": False},
        {"window_log": 27},
        {"window_log": 10},
    ],
)
def test_any_frame_header_is_understood(store: Path, detail: logs.Detail, options: dict[str, int]) -> None:
    """Content sizes, missing checksums, single segments and other windows are read like dsh's own frames."""
    log, _ = _log("a", "b", "c")
    stored = b"".join(compress(text, **options) for text in log.frames)
    assert _read(log.store(store, stored), detail) == (["a", "b", "c"], [])


@BOTH
def test_skippable_frames_hide_nothing_and_show_nothing(store: Path, detail: logs.Detail) -> None:
    """A skippable frame is passed over, even one that carries a whole frame with an event in it."""
    log, frames = _log("a", "b")
    fake, _ = _log("fake")
    stored = frames[0] + skippable(compress(fake.frames[1])) + frames[1] + skippable(b"") + frames[2]
    assert _read(log.store(store, stored), detail) == (["a", "b"], [])


@BOTH
def test_empty_frames_are_nothing(store: Path, detail: logs.Detail) -> None:
    """A frame without text is passed over, with and without a checksum."""
    log, frames = _log("a", "b")
    empty = compress(b"") + compress(b"", checksum=False) + compress(b"", content_size=True) + blocks(b"")
    stored = frames[0] + empty + frames[1] + empty + frames[2]
    assert _read(log.store(store, stored), detail) == (["a", "b"], [])


@BOTH
@pytest.mark.parametrize("garbage", [b"\x28\xb5", b"{}\n", b"\x27\xb5\x2f\xfd" * 9, b"\xff" * 300, b"\x00\x01"])
def test_bytes_behind_the_last_frame_cost_nothing(store: Path, detail: logs.Detail, garbage: bytes) -> None:
    """What follows the last frame and is none is reported at its byte; everything before it is read."""
    log, frames = _log("a", "b")
    stored = b"".join(frames)
    texts, faults = _read(log.store(store, stored + garbage), detail)
    assert texts == ["a", "b"]
    assert [fault.offset for fault in faults] == [len(stored)]
    assert faults[0].code in ("torn_tail", "damaged_frame")


@BOTH
def test_a_frame_that_needs_a_dictionary(store: Path, detail: logs.Detail) -> None:
    """A frame that only an unknown dictionary decodes is damaged."""
    log, frames = _log("a", "b", "c")
    texts, faults = _read(
        log.store(store, frames[0] + frames[1] + with_dictionary(log.frames[2]) + frames[3]), detail
    )
    assert texts == ["a", "c"]
    assert [fault.code for fault in faults] == ["damaged_frame"]


@BOTH
def test_the_magic_inside_a_frame_begins_nothing(store: Path, detail: logs.Detail) -> None:
    """A whole frame stored inside a block is text of that block: one bad line, no event."""
    log, frames = _log("a", "b")
    fake = compress(_log("fake")[0].frames[1])
    stored = frames[0] + frames[1] + blocks(fake + b"\n") + frames[2]
    texts, faults = _read(log.store(store, stored), detail)
    assert texts == ["a", "b"]
    assert {fault.code for fault in faults} == {"bad_line"}


@BOTH
def test_runs_of_one_byte(store: Path, detail: logs.Detail) -> None:
    """A block may be a run of one byte; it takes one stored byte."""
    log, frames = _log("a", "b")
    record = log.frames[1].rstrip(b"\n")
    stored = frames[0] + blocks(record, (0x20, 1000), b"\n") + frames[2]
    assert _read(log.store(store, stored), detail) == (["a", "b"], [])


@BOTH
@pytest.mark.parametrize("claimed", [0, 4, 2**32 - 1])
def test_a_false_content_size_is_one_damaged_frame(store: Path, detail: logs.Detail, claimed: int) -> None:
    """A size in a header is never believed: the frame is damaged, its neighbours are read."""
    log, frames = _log("a", "b", "c")
    stored = frames[0] + frames[1] + blocks(log.frames[2], content_size=claimed) + frames[3]
    texts, faults = _read(log.store(store, stored), detail, logs.Limits(max_window_bytes=1 << 27))
    assert texts == ["a", "c"]
    assert [(fault.code, fault.offset) for fault in faults] == [("damaged_frame", len(frames[0] + frames[1]))]


@BOTH
def test_a_window_above_the_limit_costs_its_frame(store: Path, detail: logs.Detail) -> None:
    """A frame that needs more memory than allowed is named with its need and the limit."""
    log, frames = _log("a", "b", "c")
    wide = blocks(log.frames[2], window=0xA8)
    texts, faults = _read(log.store(store, frames[0] + frames[1] + wide + frames[3]), detail)
    assert texts == ["a", "c"]
    assert [fault.code for fault in faults] == ["window_too_large"]
    assert str(1 << 31) in faults[0].message
    assert str(128 << 20) in faults[0].message


@BOTH
def test_lines_and_characters_may_cross_frames(store: Path, detail: logs.Detail) -> None:
    """Bytes are joined before lines are cut and characters decoded, over any number of frames."""
    log, frames = _log("早安文字", "b")
    record = log.frames[1]
    cut = record.index("文".encode()) + 1
    pieces = [record[:20], record[20:cut], record[cut : cut + 1], record[cut + 1 :]]
    stored = frames[0] + b"".join(compress(piece) for piece in pieces) + frames[2]
    path = log.store(store, stored)
    assert _read(path, detail) == (["早安文字", "b"], [])
    ends = [unit for unit in logs.read(path, detail=detail) if isinstance(unit, FrameEnd)]
    assert [end.clean for end in ends] == [True, False, False, False, True, True]


@BOTH
def test_thousands_of_tiny_frames(store: Path, detail: logs.Detail) -> None:
    """One frame an event is the usual case."""
    log, _ = _log(*(str(number) for number in range(5000)))
    texts, faults = _read(log.write(store), detail)
    assert (texts, faults) == ([str(number) for number in range(5000)], [])


@BOTH
def test_frames_larger_than_any_buffer(store: Path, detail: logs.Detail) -> None:
    """One frame of many blocks, as a migrated log has it, is read piece by piece to the last line."""
    log = Log()
    for number in range(300):
        log.user(f"{number} " + "".join(chr(0x4E00 + (number * 7919 + at * 31) % 20000) for at in range(6000)))
    log.frame()
    texts, faults = _read(log.write(store), detail)
    assert ([text.split()[0] for text in texts], faults) == ([str(number) for number in range(300)], [])


@BOTH
@pytest.mark.parametrize("kind", ["header", "block"])
def test_any_flipped_byte_costs_its_frame_alone(store: Path, detail: logs.Detail, kind: str) -> None:
    """Whichever byte of a middle frame is damaged is reported, and every event around it is read."""
    log, frames = _log("before", "lost " * 9, "after", "last")
    reach = range(10) if kind == "header" else range(10, len(frames[2]))
    for at in reach:
        damaged = bytearray(frames[2])
        damaged[at] ^= 0xFF
        path = log.store(store, b"".join([*frames[:2], bytes(damaged), *frames[3:]]))
        texts, faults = _read(path, detail)
        assert texts in (["before", "after", "last"], ["before", "lost " * 9, "after", "last"])
        assert faults or len(texts) == 4
        assert all(fault.offset == len(frames[0] + frames[1]) for fault in faults if fault.code != "seq_gap")


@BOTH
def test_a_torn_frame_that_was_written_over(store: Path, detail: logs.Detail) -> None:
    """A writer that appended behind a torn frame lost that frame and nothing else."""
    log, frames = _log("a", "torn", "b", "c")
    stored = b"".join([frames[0], frames[1], frames[2][:-20], frames[3], frames[4]])
    texts, faults = _read(log.store(store, stored), detail)
    assert texts == ["a", "b", "c"]
    assert [(fault.code, fault.offset) for fault in faults] == [("damaged_frame", len(frames[0] + frames[1]))]


@BOTH
def test_damage_in_the_first_frame_leaves_the_rest(store: Path, detail: logs.Detail) -> None:
    """A log whose header frame is damaged has no header; its events are read all the same."""
    log, frames = _log("a", "b")
    damaged = frames[0][:-1] + bytes([frames[0][-1] ^ 1])
    units = list(logs.read(log.store(store, damaged + frames[1] + frames[2]), detail=detail))
    assert isinstance(units[0], Fault)
    assert units[0].code == "damaged_frame"
    assert sum(isinstance(unit, Event) for unit in units) == 2


@BOTH
@pytest.mark.parametrize("zeros", [1, 3, 64, 5000])
def test_zeros_behind_the_last_frame_are_padding(store: Path, detail: logs.Detail, zeros: int) -> None:
    """A file that was enlarged but never written holds zeros: reported, and nothing is lost before them."""
    log, frames = _log("a", "b")
    stored = b"".join(frames)
    texts, faults = _read(log.store(store, stored + bytes(zeros)), detail)
    assert texts == ["a", "b"]
    assert [(fault.code, fault.offset) for fault in faults] == [("padding", len(stored))]


@BOTH
def test_zeros_between_frames_are_padding(store: Path, detail: logs.Detail) -> None:
    """Frames behind a run of zeros are read."""
    log, frames = _log("a", "b")
    stored, begin = frames[0] + frames[1] + bytes(600) + frames[2], len(frames[0] + frames[1])
    texts, faults = _read(log.store(store, stored), detail)
    assert texts == ["a", "b"]
    assert [(fault.code, fault.offset) for fault in faults] == [("padding", begin)]
    assert faults[0].message == f"zeros from byte {begin} to byte {begin + 600}"  # whatever is appended


@BOTH
@pytest.mark.parametrize("stored", [b"plain text\n", b"\x1f\x8b\x08\x00 gzip", b"x"])
def test_what_is_not_zstd_says_so(store: Path, detail: logs.Detail, stored: bytes) -> None:
    """A foreign file under a log's name is one fault, not an empty session."""
    units = list(logs.read(Log().store(store, stored), detail=detail))
    assert [unit.code for unit in units if isinstance(unit, Fault)] == ["not_zstd"]
    assert len(units) == 1


@BOTH
@pytest.mark.parametrize("compressed", [True, False])
def test_a_bomb_takes_little_memory(store: Path, detail: logs.Detail, compressed: bool) -> None:
    """A line of 256 MiB from a few stored bytes is one fault, in flat memory, and the next event is read."""
    log, frames = _log("a", "b")
    size = 256 << 20 if compressed else 32 << 20
    bomb = blocks(b'{"a":"', *([(0x61, 128 << 10)] * (size >> 17)), b'"}\n')
    if compressed:
        path = log.store(store, frames[0] + frames[1] + bomb + frames[2])
    else:
        plain = log.frames[0] + log.frames[1] + b'{"a":"' + b"a" * size + b'"}\n' + log.frames[2]
        path = log.store(store, plain, "session.v4.jsonl")
        del plain
    limits = logs.Limits(max_line_bytes=4 << 20)
    tracemalloc.start()
    texts, faults = _read(path, detail, limits)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert texts == ["a", "b"]
    assert [(fault.code, fault.line) for fault in faults] == [("line_too_long", 3)]
    assert peak < 24 << 20


@BOTH
def test_blanks_count_as_length(store: Path, detail: logs.Detail) -> None:
    """Blanks before a record are harmless up to the limit; beyond it the line is too long and reported."""
    log, frames = _log("a", "b", "c")
    limits = logs.Limits(max_line_bytes=1 << 20)
    for blanks, texts, codes in ((1 << 19, ["a", "b", "c"], []), (1 << 21, ["a", "c"], ["line_too_long"])):
        runs = [(0x20, 1 << 17)] * (blanks >> 17)
        stored = frames[0] + frames[1] + blocks(*runs, log.frames[2]) + frames[3]
        found, faults = _read(log.store(store, stored), detail, limits)
        assert (found, [fault.code for fault in faults]) == (texts, codes)
    only = frames[0] + frames[1] + blocks(*runs, b"\n") + frames[2] + frames[3]
    found, faults = _read(log.store(store, only), detail, limits)
    assert (found, [fault.code for fault in faults]) == (["a", "b", "c"], ["line_too_long"])


@BOTH
def test_what_lies_beside_a_line_of_the_greatest_length(store: Path, detail: logs.Detail) -> None:
    """A line of exactly the limit is read, one byte more is too long."""
    log = Log()
    log.user("x" * 1000)
    limit = len(log.events and line(log.events[0])) - 1
    log.user("y")
    path = log.write(store)
    assert _read(path, detail, logs.Limits(max_line_bytes=limit))[1] == []
    assert [f.code for f in _read(path, detail, logs.Limits(max_line_bytes=limit - 1))[1]] == ["line_too_long"]
