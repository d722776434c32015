"""The surface: what the model sees, folded from the log, and how damage and faults bound what is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import logs
from sessiongraph_web.models import SURFACE_TYPES, Event, InvalidSurface, Replace
from sessiongraph_web.surface import Change, Fold, Node, classify
from tests.builders import Log, compress, line
from tests.summaries import Summary, summarise


def _event(seq: int, kind: str = "user/message", **fields: Any) -> Event:
    operation = "append" if kind in SURFACE_TYPES else None
    return Event(seq, seq, kind, 1, fields.pop("data", {}), **({"surface_op": operation} | fields))


def _seqs(fold: Fold) -> list[int]:
    return [node.seq for node in fold.nodes]


@pytest.mark.parametrize("kind", sorted(SURFACE_TYPES))
def test_five_types_are_on_the_surface(kind: str) -> None:
    """Messages of all five roles join the end of the surface."""
    fold = Fold()
    change = fold.push(_event(0, kind))
    assert change.shadowed == ()
    assert change.added is not None
    assert (change.added.type, _seqs(fold), fold.fault) == (kind, [0], None)


def test_a_replacement_keeps_the_place_of_its_range() -> None:
    """Order on the surface is position, not number."""
    fold = Fold()
    for seq in range(4):
        fold.push(_event(seq))
    change = fold.push(_event(4, surface_op=Replace(1, 2), source_event_seqs=[1, 2]))
    assert [node.seq for node in change.shadowed] == [1, 2]
    assert _seqs(fold) == [0, 4, 3]
    fold.push(_event(5, surface_op=Replace(4, 3), source_event_seqs=[3, 4]))
    assert (_seqs(fold), fold.fault) == ([0, 5], None)


def test_the_fold_stops_at_its_first_fault_and_keeps_what_was() -> None:
    """After a fault nothing changes any more, and events from there on are of unknown class."""
    fold = Fold()
    fold.push(_event(0))
    assert fold.push(_event(1, surface_op=Replace(9, 9))) == Change()
    fold.push(_event(2))
    assert (_seqs(fold), fold.fault_ordinal) == ([0], 1)
    assert fold.fault == "surface replace: start seq 9 not found in surface"
    assert classify("user/message", 0, shadowed=(), fault_ordinal=1) == "current"
    assert classify("user/message", 1, shadowed=(), fault_ordinal=1) == "unknown"


def test_a_fold_continues_from_its_nodes() -> None:
    """A fold made of stored nodes goes on as the one that made them."""
    whole, first = Fold(), Fold()
    events = [
        _event(0),
        _event(1, "turn/start"),
        _event(2),
        _event(3, surface_op=Replace(0, 2), source_event_seqs=[0, 2]),
    ]
    for event in events[:3]:
        whole.push(event)
        first.push(event)
    later = Fold(first.nodes, first.next_seq, first.fault, first.fault_ordinal)
    assert later.push(events[3]) == whole.push(events[3])
    assert later.nodes == whole.nodes == [Node(3, 3, "user/message", None)]


def test_packed_rows_take_their_numbers() -> None:
    """A packed row of generation 0 counts as all the events it stands for."""
    fold = Fold()
    fold.push(_event(0, "text-chunks", count=5))
    fold.push(_event(5))
    assert (_seqs(fold), fold.fault) == ([5], None)


def test_an_event_without_a_number_is_a_fault() -> None:
    """What carries no usable number cannot be placed."""
    fold = Fold()
    event = _event(0)
    event.seq = None
    fold.push(event)
    assert fold.fault == "session event seq None is not contiguous; expected 0"


@pytest.mark.parametrize(
    ("field", "value"),
    [("surface_op", InvalidSurface("bad op")), ("source_event_seqs", InvalidSurface("bad sources"))],
)
@pytest.mark.parametrize("kind", ["user/message", "turn/start"])
def test_what_was_malformed_is_the_fault(field: str, value: InvalidSurface, kind: str) -> None:
    """The sentence that reading found is the fold's."""
    fold = Fold()
    fold.push(_event(0, kind, **{field: value}))
    assert fold.fault == value.message


def test_damage_explains_a_gap() -> None:
    """A gap right behind reported damage is no fault; one without is, and so is one later."""
    fold = Fold()
    fold.push(_event(0))
    fold.push(_event(5), damaged=True)
    assert (_seqs(fold), fold.fault) == ([0, 5], None)
    fold.push(_event(9))
    assert fold.fault == "session event seq 9 is not contiguous; expected 6"


def test_damage_does_not_explain_a_repeat() -> None:
    """Numbers that go back are a fault, damage or not."""
    fold = Fold()
    fold.push(_event(0))
    fold.push(_event(0), damaged=True)
    assert fold.fault == "session event seq 0 is not contiguous; expected 1"


def test_after_damage_a_replacement_takes_what_is_left() -> None:
    """Nodes that damage took cannot be replaced; those present are."""
    fold = Fold()
    for seq in (0, 1):
        fold.push(_event(seq))
    fold.push(_event(3), damaged=True)
    change = fold.push(_event(4, surface_op=Replace(1, 2), source_event_seqs=[1, 2]))
    assert ([node.seq for node in change.shadowed], _seqs(fold)) == ([1], [0, 4, 3])
    change = fold.push(_event(5, surface_op=Replace(2, 2), source_event_seqs=[2]))
    assert (change.shadowed, _seqs(fold), fold.fault) == ((), [0, 4, 3, 5], None)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_rewrite_of_a_result_may_be_a_mere_string(store: Path, version: int) -> None:
    """Content is content, whether it is blocks or a string."""
    log = Log(version=version)
    log.call("c", "bash")
    first = log.result("c", "long output", message_id="m")
    log.result("c", "[removed]", replaces=first, message_id="m")
    rewritten = log.events[-1]["data"]["message"]
    (rewritten if version == 4 else rewritten["content"][0])["content"] = "[removed]"
    summary = summarise(log.store(store, compress(line(log.header) + b"".join(map(line, log.events)))))
    assert summary.fold.fault is None
    assert [text.text for event, text in summary.texts if event.type == "tool/result"] == [
        "long output",
        "[removed]",
    ]


def test_a_rewrite_of_a_result_may_change_its_content_only(store: Path) -> None:
    """The digest of a result covers its identity, its error and its meta, and not what it says."""
    for version in (0, 3, 4):
        log = Log(version=version)
        log.call("c", "bash")
        first = log.result("c", "long output", message_id="m")
        log.result("c", "[removed]", replaces=first, message_id="m")
        log.result("c", "[removed]", replaces=first + 1, message_id="other")
        summary = summarise(log.write(store))
        assert summary.fold.fault == "tool/result surface replacement may change only content"
        assert summary.fold.fault_ordinal == 3
        assert [summary.surfaces[ordinal] for ordinal in range(4)] == [
            "log-only",
            "shadowed",
            "current",
            "unknown",
        ]


def test_classes_of_a_compacted_log(store: Path) -> None:
    """Replaced messages are shadowed, the checkpoint and what follows current, the rest log-only."""
    for version in (0, 3, 4):
        summary = _compacted(version, store)
        by_type: dict[str, list[str]] = {}
        for event in summary.events:
            by_type.setdefault(event.type, []).append(summary.surfaces[event.ordinal])
        assert summary.fold.fault is None
        assert by_type["user/message"] == ["shadowed", "current", "current"]
        assert by_type["assistant/message"] == ["shadowed", "current"]
        assert set(by_type["turn/start"]) == {"log-only"}


def _compacted(version: int, store: Path) -> Summary:
    log = Log(version=version).turn("first question", "first answer")
    nodes = [event["seq"] for event in log.events if "surfaceOp" in event]
    log.compact("summary", nodes[0], nodes[-1], nodes)
    log.turn("second question", "second answer")
    return summarise(log.write(store))


def test_reading_for_the_index_folds_the_same(store: Path) -> None:
    """The narrow reading leaves the surface as it is, rewritten results included."""
    log = Log().turn("q", "a", [("bash", "{}", "out")])
    seq = next(event["seq"] for event in log.events if event["type"] == "tool/result")
    call = next(event["data"]["callId"] for event in log.events if event["type"] == "tool/call")
    identity = next(e["data"]["message"]["id"] for e in log.events if e["type"] == "tool/result")
    log.result(call, "[gone]", replaces=seq, message_id=identity)
    path = log.write(store)
    folds = []
    for detail in ("full", "index"):
        fold = Fold()
        for unit in logs.read(path, detail=detail):
            if isinstance(unit, Event):
                fold.push(unit)
        folds.append((fold.nodes, fold.fault))
    assert folds[0] == folds[1]
    assert folds[0][1] is None
