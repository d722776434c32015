"""Properties of reading: no cut, resume or mutation loses what is whole, and both readings judge alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessiongraph_web import documents, lines, logs, reading
from sessiongraph_web.models import Event, Fault, FrameEnd, Header, Resume, Unit
from tests.builders import Log, compress, line

_SETTINGS = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
DETAILS: tuple[logs.Detail, ...] = ("full", "index")


def _small() -> Log:
    """Return a log with a fault in it, small enough to be cut at every byte."""
    log = Log()
    log.user("请")
    log.frame()
    log.title("T")
    log.event("turn/start", {"turn": 1})
    log.frame()
    log.raw(b"bad line\n")
    log.frame()
    log.user("文字")
    log.frame()
    return log


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("detail", DETAILS)
def test_a_cut_at_any_byte_keeps_what_is_whole(store: Path, detail: logs.Detail, compressed: bool) -> None:
    """Whichever byte a log ends at, its whole frames are read, a tail is reported, and nothing raises."""
    log = _small()
    stored = log.to_bytes(compressed)
    whole = list(logs.read(log.store(store, stored, _name(compressed)), detail=detail))
    ends = [unit.end for unit in whole if isinstance(unit, FrameEnd)]
    borders = set(ends) if compressed else {at + 1 for at, byte in enumerate(stored) if byte == 0x0A}
    for cut in range(1, len(stored)):
        units = list(logs.read(log.store(store, stored[:cut], _name(compressed)), detail=detail))
        faults = [unit for unit in units if isinstance(unit, Fault)]
        events = [unit for unit in units if isinstance(unit, Event)]
        last = max((border for border in borders if border <= cut), default=0)
        if compressed:
            expected = [unit for unit in whole[: _position(whole, last)] if isinstance(unit, Event)]
        else:
            expected = list(_events_of(stored[:last], detail))
        assert events == expected
        assert ([fault.code for fault in faults][-1:] == ["torn_tail"]) == (cut not in borders)
        if cut not in borders:
            assert faults[-1].offset == last


def _name(compressed: bool) -> str:
    return "session.v4.jsonl.zstd" if compressed else "session.v4.jsonl"


def _position(whole: list[Unit], end: int) -> int:
    return next((at for at, unit in enumerate(whole) if isinstance(unit, FrameEnd) and unit.end == end), 0)


def _events_of(text: bytes, detail: logs.Detail) -> Iterator[Event]:
    ordinal = 0
    for row in text.split(b"\n")[1:-1]:
        try:
            yield lines.decode_event(row, ordinal, narrow=detail == "index")
        except lines.BadLine:
            continue
        ordinal += 1


@given(st.lists(st.integers(1, 500), max_size=12), st.booleans(), st.sampled_from(DETAILS))
@_SETTINGS
def test_growth_in_any_steps_reads_like_a_fresh_log(
    store: Path, steps: list[int], compressed: bool, detail: logs.Detail
) -> None:
    """Reading a growing file from each last clean frame end gives, together, what reading it once gives."""
    log = _small()
    stored = log.to_bytes(compressed)
    resume, settled = Resume(), []
    sizes = sorted({min(len(stored), sum(steps[:at])) for at in range(1, len(steps) + 1)} | {len(stored)})
    for size in sizes:
        path = log.store(store, stored[:size], _name(compressed))
        pending: list[Unit] = []
        for unit in logs.read(path, resume=resume, detail=detail):
            pending.append(unit)
            if isinstance(unit, FrameEnd) and unit.clean:
                settled += pending
                pending = []
                resume = Resume(unit.end, unit.ordinal, unit.line, unit.next_seq)
    fresh = list(logs.read(path, detail=detail))
    assert _without_frames([*settled, *pending]) == _without_frames(fresh)


def _without_frames(units: list[Unit]) -> list[Unit]:
    return [unit for unit in units if not isinstance(unit, FrameEnd)]


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_KINDS = st.sampled_from(
    [
        "user/message",
        "assistant/message",
        "tool/result",
        "tool/call",
        "turn/end",
        "session/title",
        "todo/write",
        "request/header",
        "text-chunks",
        "never/heard",
        "session",
        "",
    ]
)
_BLOCKS = st.lists(
    st.fixed_dictionaries({}, optional={"type": st.sampled_from(["text", "tool-call", "tool-result"]) | _JSON,
                                        "text": st.text() | _JSON, "content": _JSON, "id": _JSON}),
    max_size=3,
)  # fmt: skip
_MESSAGE = st.fixed_dictionaries(
    {}, optional={"content": _BLOCKS | _JSON, "source": _JSON, "role": _JSON, "id": _JSON, "isError": _JSON}
)
_DATA = st.fixed_dictionaries(
    {},
    optional={
        "message": _MESSAGE | _JSON,
        "content": _BLOCKS | _JSON,
        "turn": _JSON,
        "usage": _JSON,
        "stream": _JSON,
        "title": _JSON,
        "texts": _JSON,
        "todos": _JSON,
        "reason": _JSON,
        "source": st.sampled_from([{"kind": "user"}]) | _JSON,
    },
)
_LINES = st.fixed_dictionaries(
    {},
    optional={
        "type": _KINDS | _JSON,
        "seq": st.integers(-1, 9) | _JSON,
        "time": st.integers() | _JSON,
        "data": _DATA | _JSON,
        "surfaceOp": st.sampled_from(["append", {"op": "replace", "startSeq": 0, "endSeq": 1}]) | _JSON,
        "sourceEventSeqs": st.lists(st.integers(0, 9), max_size=3) | _JSON,
        "ignorable": _JSON,
    },
)

_SPITE = [b"{", b"]", b'"', b"\\", b"\\u0000", b"\\ud800", b"\xed\xa0\x80", b"1e999", b"9" * 20, b"NaN"]


@given(_LINES)
@_SETTINGS
def test_both_readings_judge_any_record_alike(record: dict[str, Any]) -> None:
    """The index and the pages agree whether a line is an event, and on all that the index takes from it."""
    row = json.dumps(record).encode()  # with NaN, Infinity and lone surrogates as they come
    _judge(row)


@given(_LINES, st.data())
@_SETTINGS
def test_both_readings_judge_any_bytes_alike(record: dict[str, Any], data: st.DataObject) -> None:
    """They agree also on lines with bytes changed, cut or doubled."""
    row = bytearray(line(record).rstrip(b"\n"))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(row)))
        row[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.binary(max_size=2)
            | st.sampled_from([b"{", b"]", b'"', b"\\", b"\\u0000", b"\xed\xa0\x80", b"1e999"])
        )
    _judge(bytes(row).replace(b"\n", b" "))


@given(_LINES)
@_SETTINGS
def test_a_line_tells_how_much_its_event_shows_at_most(record: dict[str, Any]) -> None:
    """What is not measured because its line is short is small, and holds nothing to clip."""
    _bounded(line(record).rstrip(b"\n"))


@pytest.mark.parametrize(
    "value", ["[1,1,1,1]", "[[],[[]],{}]", "[null,true,1e5]", '["","",""]', '{"":0,"a":{"":1}}']
)
def test_data_that_are_all_brackets_and_commas_show_no_more_than_their_line_tells(value: str) -> None:
    """Of a list of numbers more is shown than is written; the bound counts that in."""
    _bounded(f'{{"type":"x","data":{{"v":{value}}}}}'.encode())


def _bounded(row: bytes) -> None:
    try:
        event = lines.decode_event(row, 0, narrow=False)
    except lines.BadLine:
        return
    event.line = row
    assert reading.measure(event.data) <= reading._at_most(event)
    assert reading._may_be_long(event) or not reading.clip_strings(event.data)[1]


def _judge(row: bytes) -> None:
    found = []
    for narrow in (False, True):
        try:
            event = lines.decode_event(row, 0, narrow=narrow)
        except lines.BadLine as bad:
            found.append((bad.code, None))
            continue
        json.dumps(event.data, allow_nan=False).encode()
        envelope = (event.seq, event.type, event.time, event.surface_op, event.source_event_seqs, event.count)
        digest = documents.Digest()
        digest.push(event)
        found.append(
            (envelope, (documents.extract(event, tool_result_chars=9), digest.to_carried(), event.call_id))
        )
    assert found[0] == found[1]


@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=40)), min_size=1, max_size=4))
@_SETTINGS
def test_every_generation_says_the_same(store: Path, turns: list[tuple[str, str]]) -> None:
    """Any conversation has the same texts whichever generation wrote it, plain or compressed."""
    found = []
    for version in (0, 3, 4):
        for compressed in (True, False):
            log = Log(version=version, id="s")
            for prompt, answer in turns:
                log.turn(prompt, answer, [("bash", json.dumps({"c": prompt}), answer)])
            units = list(logs.read(log.write(store, compressed)))
            assert [unit for unit in units if isinstance(unit, Fault)] == []
            events = [unit for unit in units if isinstance(unit, Event)]
            found.append([text for event in events for text in documents.extract(event, tool_result_chars=-1)])
    assert all(texts == found[0] for texts in found)


@given(st.lists(st.binary(max_size=60), max_size=6), st.booleans(), st.sampled_from(DETAILS))
@_SETTINGS
def test_any_bytes_are_a_log(store: Path, pieces: list[bytes], compressed: bool, detail: logs.Detail) -> None:
    """Whatever a file holds, reading ends, raises nothing, and its units are in order."""
    log = Log()
    stored = b"".join(
        [log.to_bytes(compressed), *(compress(p) if len(p) % 2 and compressed else p for p in pieces)]
    )
    units = list(logs.read(log.store(store, stored, _name(compressed)), detail=detail))
    assert [isinstance(unit, Header) for unit in units].index(True) == 0
    ends = [unit for unit in units if isinstance(unit, FrameEnd)]
    assert [end.offset for end in ends] == sorted(end.offset for end in ends)
    assert all(end.offset < end.end <= len(stored) for end in ends)
