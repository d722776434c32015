"""The closers of an open turn: what dsh would append when it resumes the log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessiongraph_web.models import Event
from sessiongraph_web.repair import OpenTurn
from tests.builders import Log
from tests.summaries import summarise


def _closers(log: Log, store: Path) -> list[Event]:
    events = summarise(log.write(store)).events
    return _push(events).closers(ordinal=len(events), seq=log.seq, time=log.time)


def _push(events: list[Event]) -> OpenTurn:
    state = OpenTurn()
    for event in events:
        state.push(event)
    return state


@pytest.mark.parametrize("version", [0, 3, 4])
def test_an_open_turn_is_closed(version: int, store: Path) -> None:
    """Calls without a result get errors in order, then step and turn end, all marked synthetic."""
    log = Log(version=version)
    log.start_turn("go")
    log.assistant("", [("c1", "a", "{}"), ("c2", "b", "{}"), ("c3", "c", "{}")])
    started = log.call("c2", "b")
    log.call("c1", "a")
    log.result("c1", "done")
    made = _closers(log, store)
    assert [event.type for event in made] == ["tool/result", "tool/result", "step/end", "turn/end"]
    assert [event.seq for event in made] == [log.seq + at for at in range(4)]
    assert {(event.time, event.synthetic) for event in made} == {(log.time, True)}
    first, second, step, turn = made
    assert first.data["error"] == {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"}
    assert (first.surface_op, first.source_event_seqs) == ("append", [started])
    assert first.data["message"]["id"] == f"interrupted-tool-result-c2-{first.seq}"
    assert second.data["error"] == {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"}
    assert (second.call_id, second.source_event_seqs) == ("c3", None)
    assert step.data == {"turn": 1, "step": 1}
    assert turn.data == {"turn": 1, "reason": {"kind": "interrupted"}}


def test_a_closed_turn_needs_nothing(store: Path) -> None:
    """A balanced log has no closers, whatever follows its last turn."""
    log = Log().turn("a", "b", [("bash", "{}", "out")])
    log.title("T")
    assert _closers(log, store) == []
    assert _closers(Log(), store) == []


def test_closers_close(store: Path) -> None:
    """Pushing the closers changes nothing, for they are not in the log; written, they would close the turn."""
    log = Log()
    log.start_turn("go")
    log.assistant("", [("c1", "a", "{}")])
    events = summarise(log.write(store)).events
    state = _push(events)
    made = state.closers(ordinal=len(events), seq=log.seq, time=log.time)
    for event in made:
        state.push(event)
    assert state.is_open
    for event in made:
        event.synthetic = False
        state.push(event)
    assert not state.is_open


def test_the_state_can_be_carried(store: Path) -> None:
    """Stored as JSON and restored after any event, the closers stay the same."""
    log = Log()
    log.start_turn("go")
    log.assistant("", [("c1", "a", "{}"), ("c2", "b", "{}")])
    log.call("c2", "b")
    events = summarise(log.write(store)).events
    carried = OpenTurn()
    for event in events:
        carried = OpenTurn.from_carried(json.loads(json.dumps(carried.to_carried())))
        carried.push(event)
    whole = _push(events)
    assert carried.closers(ordinal=9, seq=9, time=1) == whole.closers(ordinal=9, seq=9, time=1)
    assert carried.is_open


def test_odd_shapes_open_and_close_nothing() -> None:
    """Events without the usual parts are no error."""
    state = OpenTurn()
    for kind in ("turn/start", "step/start", "assistant/message", "tool/call", "tool/result", "step/end"):
        for data in ({}, {"message": None}, {"message": {"content": [None, {"type": "tool-call", "id": 3}]}}):
            state.push(Event(0, 0, kind, None, data))
    assert [event.type for event in state.closers(ordinal=0, seq=0, time=None)] == ["turn/end"]
