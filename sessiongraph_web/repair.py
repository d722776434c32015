"""The closing events of a turn that the stored log leaves open: a pure function of what was stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Self

from sessiongraph_web.models import Event

_UNKNOWN_OUTCOME: Final = (
    "The tool call was interrupted after it was recorded, but no result was durably recorded. Its outcome is "
    "unknown. Decide whether to retry from the tool semantics: retry only if the operation is read-only or "
    "idempotent; if it may have side effects, first verify external state or ask the user. Do not retry blindly."
)
_NOT_STARTED: Final = (
    "The tool call was interrupted before the Harness recorded it as started. Retry it if it is still needed."
)


class OpenTurn:
    """The turn that is open after the events so far, its open step, and the calls that have no result yet."""

    def __init__(self) -> None:
        self._turn: Any = None
        self._is_open = False
        self._step: Any = None
        self._in_step = False
        self._calls: dict[str, tuple[Any, int | None]] = {}  # call id -> step, seq of its tool/call

    @property
    def is_open(self) -> bool:
        return self._is_open

    def push(self, event: Event) -> None:
        """Take the next stored event."""
        if event.synthetic:
            return
        step = _STEPS.get(event.type)
        if step is not None:
            step(self, event)

    def closers(self, *, ordinal: int, seq: int, time: int | None) -> list[Event]:
        """Return the events that would close the turn, numbered from `ordinal` and `seq` on."""
        if not self._is_open:
            return []
        made: list[Event] = []

        def add(kind: str, data: dict[str, Any], **surface: Any) -> None:
            at = len(made)
            made.append(Event(ordinal + at, seq + at, kind, time, data, synthetic=True, **surface))

        for identity, (step, started) in self._calls.items():
            data = _result(identity, seq + len(made), started is not None)
            data |= {"turn": self._turn, "step": step}
            add(
                "tool/result", data, surface_op="append", source_event_seqs=None if started is None else [started]
            )
        if self._in_step:
            add("step/end", {"turn": self._turn, "step": self._step})
        add("turn/end", {"turn": self._turn, "reason": {"kind": "interrupted"}})
        return made

    def to_carried(self) -> dict[str, Any]:
        """Return the state as JSON values, to go on later."""
        calls = [[identity, step, started] for identity, (step, started) in self._calls.items()]
        turn = {"turn": self._turn, "open": self._is_open}
        return turn | {"step": self._step, "in_step": self._in_step, "calls": calls}

    @classmethod
    def from_carried(cls, carried: dict[str, Any]) -> Self:
        """Return the state that `to_carried` described."""
        state = cls()
        state._turn, state._is_open = carried["turn"], carried["open"]
        state._step, state._in_step = carried["step"], carried["in_step"]
        state._calls = {identity: (step, started) for identity, step, started in carried["calls"]}
        return state

    def _start_turn(self, event: Event) -> None:
        self._reset(event.data.get("turn"), is_open=True)

    def _end_turn(self, _: Event) -> None:
        self._reset(None, is_open=False)

    def _start_step(self, event: Event) -> None:
        self._step, self._in_step = event.data.get("step"), True

    def _end_step(self, _: Event) -> None:
        self._step, self._in_step = None, False
        self._calls.clear()

    def _start_call(self, event: Event) -> None:
        identity = event.call_id
        if identity is not None and identity in self._calls:
            self._calls[identity] = (self._calls[identity][0], event.seq)

    def _end_call(self, event: Event) -> None:
        if event.call_id is not None:
            self._calls.pop(event.call_id, None)

    def _reset(self, turn: Any, *, is_open: bool) -> None:
        self._turn, self._is_open = turn, is_open
        self._step, self._in_step = None, False
        self._calls.clear()

    def _register(self, event: Event) -> None:
        """Note the calls that an answer asks for; a repeated id keeps its place but counts as not started."""
        message = event.data.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool-call" and isinstance(block.get("id"), str):
                self._calls[block["id"]] = (event.data.get("step"), None)


_STEPS: Final[dict[str, Callable[[OpenTurn, Event], None]]] = {
    "turn/start": OpenTurn._start_turn,
    "turn/end": OpenTurn._end_turn,
    "step/start": OpenTurn._start_step,
    "step/end": OpenTurn._end_step,
    "assistant/message": OpenTurn._register,
    "tool/call": OpenTurn._start_call,
    "tool/result": OpenTurn._end_call,
}


def _result(identity: str, seq: int, started: bool) -> dict[str, Any]:
    name, code, text = (
        ("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN", _UNKNOWN_OUTCOME)
        if started
        else ("ToolNotStartedError", "TOOL_NOT_STARTED", _NOT_STARTED)
    )
    message = {
        "id": f"interrupted-tool-result-{identity}-{seq}",
        "role": "tool",
        "toolCallId": identity,
        "isError": True,
        "source": {"kind": "tool", "callId": identity},
        "content": [{"type": "text", "text": text}],
    }
    return {"message": message, "error": {"name": name, "code": code}}
