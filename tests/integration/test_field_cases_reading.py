"""Field cases of the container, of JSON lines and of meaning: what once went wrong for somebody, read rightly.

The keys of each case's `expect.json` drive generic checks; its sentences have named checks below. Where a number
is written as a sentence, its alternatives are taken ("4 (or 3 …)"); `DESIGN` says where the design answers
otherwise.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from sessiongraph_web import documents, logs, tracing
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.models import Event, FrameEnd, Replace, Resume
from tests.shared import shared_folders
from tests.summaries import Summary, summarise, summarise_store

pytestmark = pytest.mark.shared

AREAS: Final = ("Z", "J", "D")
# Expectations that the design overrides: (case, key) -> (value, reason).
DESIGN: Final[dict[tuple[str, str], tuple[Any, str]]] = {
    ("D07", "boilerplate"): (0, "injected context is shown in the transcript and not indexed"),
    ("D02", "shared"): (2, "hits leave out what a fork inherited"),
    ("D02", "child"): (2, "the child's own two; the grandchild's copies are inherited"),
    ("D01", "events"): (8, "the input has eight events below its header"),
    ("J11", "needle"): (0, "a message whose source is null is not a human's, so it is not indexed"),
    ("D12", "sessions"): (8, "the store is listed whole here; a workspace holds seven of them"),
    ("D16", "sessions"): (3 if os.geteuid() == 0 else 2, "root reads a file without permissions"),
    ("D16", "problems"): (1 if os.geteuid() == 0 else 2, "root reads a file without permissions"),
}


def _cases() -> list[Any]:
    found = [path for path in shared_folders("field-cases", "*/expect.json") if path.parent.name[0] in AREAS]
    return [pytest.param(path.parent, id=path.parent.name) for path in found]


@pytest.mark.parametrize("case", _cases())
def test_expected_numbers(case: Path) -> None:
    """Counts of sessions, events and hits are those of the case."""
    expected = json.loads((case / "expect.json").read_text("utf-8"))
    checked = _check(case.name, case, expected)
    for key, value in expected.items():
        if isinstance(value, dict) and (case / key / "sessions").is_dir():
            checked += _check(case.name, case / key, value)
    if not checked and case.name not in NAMED:
        pytest.skip("this case states nothing that reading alone can check")


def _check(name: str, folder: Path, expected: dict[str, Any]) -> int:
    if not (folder / "sessions").is_dir():
        return 0
    found = summarise_store(folder / "sessions")
    checked = 0
    for key, value in expected.items():
        check = CHECKS.get(key)
        if check is not None:
            wanted, _ = DESIGN.get((name, key), (value, ""))
            checked += check(name, found, wanted)
    return checked


def _check_sessions(_: str, found: list[Summary], wanted: Any) -> int:
    return _in(sum(each.header is not None for each in found), wanted)


def _check_events(_: str, found: list[Summary], wanted: Any) -> int:
    if isinstance(wanted, dict):
        by_folder = {each.path.parent.name: each for each in found}
        return sum(_in(len(by_folder[folder].events), value) for folder, value in wanted.items())
    records = sum(len(each.events) for each in found)
    return _in(records, wanted)


def _check_events_each(_: str, found: list[Summary], wanted: Any) -> int:
    return sum(_in(len(each.events), wanted) for each in found)


def _check_search(name: str, found: list[Summary], wanted: dict[str, Any]) -> int:
    checked = 0
    for needle, value in wanted.items():
        number, _ = DESIGN.get((name, needle), (value, ""))
        checked += _in(sum(each.hits(needle) for each in found), number)
    return checked


def _check_frames(_: str, found: list[Summary], wanted: Any) -> int:
    return _in(sum(len(each.frames) for each in found), wanted)


def _check_problems(_: str, found: list[Summary], wanted: Any) -> int:
    return _in(sum(bool(each.faults) for each in found), wanted)


def _check_first_prompt(_: str, found: list[Summary], wanted: str) -> int:
    prompts = [text.text for each in found for event, text in each.texts if documents.is_human(event)]
    assert prompts[0] == wanted
    return 1


def _check_tokens(_: str, found: list[Summary], wanted: Any) -> int:
    return _in(sum(each.digest.input_tokens for each in found), wanted)


def _check_pairs(_: str, found: list[Summary], wanted: list[list[int]]) -> int:
    assert [[call, result] for result, call in sorted(found[0].pairs.items())] == wanted
    return 1


def _check_unpaired(_: str, found: list[Summary], wanted: list[int]) -> int:
    paired = {*found[0].pairs, *found[0].pairs.values()}
    ours = [event.seq for event in found[0].events if event.type in ("tool/call", "tool/result")]
    assert [seq for seq in ours if seq not in paired] == wanted
    return 1


def _check_order(_: str, found: list[Summary], wanted: list[int]) -> int:
    assert [event.seq for event in found[0].events] == wanted
    return 1


def _in(number: int, wanted: Any) -> int:
    """Assert a number that is stated plainly or as "2", "1 or 2", "4 (or 3 and …)"; say whether one is stated."""
    if isinstance(wanted, str):
        stated = re.match(r"(\d+)\b(?!\+)(?: ?\(?or (\d+))?", wanted)
        if stated is None:
            return 0
        assert number in {int(digits) for digits in stated.groups() if digits}
        return 1
    assert number == wanted
    return 1


CHECKS: Final[dict[str, Callable[[str, list[Summary], Any], int]]] = {
    "sessions": _check_sessions,
    "events": _check_events,
    "events_each": _check_events_each,
    "search": _check_search,
    "frames": _check_frames,
    "problems": _check_problems,
    "first_prompt": _check_first_prompt,
    "input_tokens_total": _check_tokens,
    "pairs": _check_pairs,
    "unpaired": _check_unpaired,
    "order": _check_order,
}


@pytest.mark.parametrize("case", _cases())
def test_index_reads_like_pages(case: Path) -> None:
    """The narrow reading of the index finds the same records, faults and texts as the full one."""
    for store in sorted(case.glob("**/sessions")):
        for log in logs.discover(store).logs:
            full, narrow = summarise(log.path), summarise(log.path, detail="index")
            assert narrow.faults == full.faults
            assert narrow.frames == full.frames
            assert [text for _, text in narrow.texts] == [text for _, text in full.texts]
            assert narrow.to_json() == full.to_json()


def _named(case: str, folder: str, shared: Path, step: str = "") -> Summary:
    found = [
        log
        for log in logs.discover(shared / "field-cases" / case / step / "sessions").logs
        if log.path.parent.name == folder
    ]
    return summarise(found[0].path)


def test_cut_tails_are_reported_where_the_last_whole_frame_ends(shared: Path) -> None:
    """Z02: whether a cut takes only checksum bytes or text, the frame is a torn tail at a stated byte."""
    for folder in ("session-cut1", "session-cut4", "session-cut6", "session-cut20"):
        log = _named("Z02", folder, shared)
        assert log.codes == ["torn_tail"]
        assert log.faults[0].offset == log.frames[-1].end
        assert str(log.faults[0].offset) in log.faults[0].message


def test_half_a_frame_is_read_when_its_other_half_came(shared: Path) -> None:
    """Z03: each step resumes at the end of the last whole frame and finds exactly what is new."""
    resume, seen = Resume(), []
    for step in ("step1", "step2", "step3"):
        path = next((shared / "field-cases/Z03" / step).glob("**/session.v4.jsonl.zstd"))
        for unit in logs.read(path, resume=resume):
            if isinstance(unit, Event):
                seen.append(unit.seq)
            elif isinstance(unit, FrameEnd) and unit.clean:
                resume = Resume(unit.end, unit.ordinal, unit.line, unit.next_seq)
    assert seen == [0, 1, 2, 3]


def test_one_damaged_frame_is_named(shared: Path) -> None:
    """Z05, Z08, Z09: a damaged, a lying and a too wide frame are one fault at their offset."""
    assert [(f.code, f.offset) for f in _named("Z05", "session-1", shared).faults] == [("damaged_frame", 267)]
    assert [(f.code, f.offset) for f in _named("Z08", "session-lie", shared).faults] == [("damaged_frame", 130)]
    wide = _named("Z09", "session-1", shared).faults
    assert [(f.code, f.offset) for f in wide] == [("window_too_large", 130)]
    assert "134217728" in wide[0].message


def test_a_bomb_of_blanks_is_one_bad_line(shared: Path) -> None:
    """Z10: 64 MiB of blanks are one bad line, and the event behind it is read."""
    assert _named("Z10", "session-bomb", shared).codes == ["bad_line"]
    assert _named("Z10", "session-big-but-valid", shared).codes == []


def test_what_is_not_zstd_is_named(shared: Path) -> None:
    """Z13: plain text and gzip under a zstd name are unreadable; of two encodings one counts."""
    assert _named("Z13", "session-plain", shared).codes == ["not_zstd"]
    assert _named("Z13", "session-gz", shared).codes == ["not_zstd"]
    found = logs.discover(shared / "field-cases/Z13/sessions")
    assert [log.relative for log in found.logs if log.path.parent.name == "session-both"] == [
        "--w-demo-app--/session-both/session.v4.jsonl.zstd"
    ]
    assert [(skipped.relative, skipped.state) for skipped in found.skipped] == [
        ("--w-demo-app--/session-both/session.v4.jsonl", "superseded")
    ]
    assert _named("Z13", "session-jsonl", shared).codes == []


def test_empty_files_and_folders(shared: Path) -> None:
    """Z14: an empty file is a warning, a header alone a session, a lock or nothing no log at all."""
    found = {each.path.parent.name: each for each in summarise_store(shared / "field-cases/Z14/sessions")}
    assert set(found) == {"session-good", "session-headeronly", "session-zero"}
    assert found["session-zero"].codes == ["empty_file"]
    assert (found["session-headeronly"].codes, found["session-headeronly"].events) == ([], [])


def test_bad_lines_have_numbers(shared: Path) -> None:
    """J02, J04, J09, J11: every line that is no record is counted with its number, and costs itself alone."""
    assert [(f.code, f.line) for f in _named("J02", "session-1", shared).faults] == [("bad_line", 4)]
    assert [(f.code, f.line) for f in _named("J04", "session-1", shared).faults] == [
        ("bad_line", 3),
        ("bad_line", 4),
    ]
    assert [(f.code, f.line) for f in _named("J09", "session-1", shared).faults] == [("bad_line", 3)]
    odd = _named("J11", "session-1", shared)
    assert [fault.line for fault in odd.faults] == [2, 3, 4, 5, 6, 7, 8, 9]
    assert [event.seq for event in odd.events] == [3, 4, 5, 6, 7, 8]


def test_headers_that_lie_or_lack(shared: Path) -> None:
    """J06: no header is guessed, a second one moves nothing, and an id unlike its folder is reported."""
    assert _named("J06", "session-badhead", shared).codes == ["bad_header"]
    assert _named("J06", "session-nohead", shared).codes == ["bad_header"]
    two = _named("J06", "session-twohead", shared)
    assert two.header is not None
    assert (two.header.cwd, two.codes) == ("/w/demo/app", ["second_header"])
    lie = _named("J06", "session-idlie", shared)
    assert lie.header is not None
    assert (lie.header.id, lie.codes) == ("session-someone-else", ["id_mismatch"])


def test_encodings_of_text(shared: Path) -> None:
    """J07: a byte order mark and CRLF with blank lines are read, UTF-16 is named."""
    for folder in ("session-bom", "session-crlf"):
        log = _named("J07", folder, shared)
        assert (len(log.events), log.codes) == (2, [])
    utf16 = _named("J07", "session-utf16", shared)
    assert (utf16.header, utf16.codes) == (None, ["bad_header"])


def test_numbers_that_repeat_and_jump(shared: Path) -> None:
    """D01: all events stay in file order; the repeats and the gap are named."""
    log = _named("D01", "session-1", shared)
    assert [event.seq for event in log.events] == [0, 1, 2, 3, 1, 2, 3, 9]
    assert log.codes == ["seq_repeated", "seq_repeated", "seq_repeated", "seq_gap"]
    assert "4 to 8" in log.faults[-1].message
    assert log.fold.fault == "session event seq 1 is not contiguous; expected 4"


def test_the_last_inherited_marker_is_the_border(shared: Path) -> None:
    """D02: a parent's own restart is no border, nor is the first of two inherited markers."""
    found = summarise_store(shared / "field-cases/D02/sessions")
    borders = {each.path.parent.name: each.digest.inherited_count for each in found}
    assert borders == {"session-parent": 0, "session-child": 3, "session-grandchild": 6}


def test_formats_from_the_future(shared: Path) -> None:
    """D04: newer and unknown versions are read as well as they can be, and say which version was seen."""
    assert _named("D04", "session-ok", shared).codes == []
    for folder, seen in (("session-v5", "5"), ("session-v5in4", "5"), ("session-vstr", "'4'")):
        log = _named("D04", folder, shared)
        assert log.codes == ["newer_version"]
        assert seen in log.faults[0].message
        assert len(log.events) == 2


def test_packed_rows_count_as_the_events_they_stand_for(shared: Path) -> None:
    """D06: three and two deltas in two rows, no gap reported, no text of theirs indexed."""
    log = _named("D06", "session-1", shared)
    assert [(event.seq, event.count) for event in log.events] == [(0, 1), (1, 3), (4, 2), (6, 1)]
    assert log.codes == []


def test_a_rewritten_result_is_one_result(shared: Path) -> None:
    """D08: the rewrite is no second answer to the call."""
    log = _named("D08", "session-1", shared)
    assert (log.pairs, log.digest.tool_calls) == ({2: 1}, 1)
    assert log.events[3].surface_op == Replace(2, 2)


def test_loops_of_parents_end(shared: Path) -> None:
    """D12: two levels under the top, an orphan that names its parent, loops that are errors and not hangs."""
    records = [
        tracing.Record(log.header.id, log.header.parent_session, log.header.created_at, log.header)
        for log in summarise_store(shared / "field-cases/D12/sessions")
        if log.header is not None and log.header.cwd == "/w/demo/app"
    ]
    tree = tracing.lineage(records, "session-top")
    assert [(b.value.id, [c.value.id for c in b.descendants]) for b in tree.descendants] == [("sub-1", ["sub-2"])]
    assert tracing.lineage(records, "orphan").unresolved_parent is not None
    for looped in ("loop-a", "loop-b", "self"):
        with pytest.raises(SessionGraphError) as raised:
            tracing.lineage(records, looped)
        assert raised.value.code == "SESSION_QUERY_INVALID_LINEAGE"


NAMED: Final = frozenset({"D04", "D12", "D15", "J06", "Z13"})  # their sentences are checked above or elsewhere
