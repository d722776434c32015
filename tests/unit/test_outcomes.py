"""How a tool call ended: one definition for the index, the counts and the cards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import documents, outcomes
from sessiongraph_web.answers import EventView
from sessiongraph_web.bodies import Allowance
from sessiongraph_web.models import Event
from sessiongraph_web.toolcards import tool
from tests.builders import Log
from tests.summaries import summarise


def _result(content: object, **beside: Any) -> dict[str, Any]:
    return {"message": {"role": "tool", "content": content, "isError": False}, **beside}


def _texts(*texts: object) -> list[dict[str, object]]:
    return [{"type": "text", "text": text} for text in texts]


CASES: list[tuple[dict[str, Any], bool]] = [
    (_result(_texts("ok")), False),
    (_result(_texts("x\n[exit code: 3]")), True),
    (_result(_texts("x\n[exit code: -9]\n")), True),
    (_result(_texts("x\n[exit code: 0]")), False),
    (_result(_texts("[exit code: 1]\nis what a failed command ends with")), False),
    (_result(_texts("[exit code: 1]", "more output")), False),
    (_result([*_texts("out", "[exit code: 1]"), {"type": "image"}]), True),
    (_result("[exit code: 2]"), True),
    (_result(_texts("no"), error={"code": "FS_NOT_FOUND"}), True),
    ({"message": {"isError": True}}, True),
    ({"message": {"isError": 1}}, False),
    (_result(_texts(["[exit code: 1]"])), False),
    (_result(None), False),
    ({"message": "[exit code: 1]"}, False),
    ({}, False),
]


@pytest.mark.parametrize(("data", "failed"), CASES)
def test_counts_and_cards_agree_on_what_failed(data: dict[str, Any], failed: bool) -> None:
    """An error, or output that ends with an exit code: in the session's count, in the index and on the card."""
    event = Event(0, 0, "tool/result", 1, data)
    digest = documents.Digest()
    digest.push(event)
    view = EventView(
        ordinal=0,
        seq=0,
        type="tool/result",
        time=None,
        turn=None,
        surface="current",
        inherited=False,
        synthetic=False,
        replaced_by=None,
        partner=None,
        data=data,
    )
    card = tool(None, view, Allowance(1))
    told = (documents.is_failure(event), digest.tool_errors == 1, card.outcome in ("failed", "exit"))
    assert told == (failed, failed, failed)
    assert outcomes.has_failed(data) is failed


def test_only_results_fail() -> None:
    """No other event is a failed call, whatever it holds."""
    assert not documents.is_failure(Event(0, 0, "user/message", 1, {"message": {"isError": True}}))


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_failure_is_one_in_every_generation(version: int, store: Path) -> None:
    """The shapes of results differ; what failed does not."""
    log = Log(version=version)
    log.turn("go", "done", [("bash", "{}", "x\n[exit code: 1]"), ("bash", "{}", "fine")])
    log.start_turn("again")
    log.assistant("", [("c9", "read", "{}")])
    log.call("c9", "read")
    log.result("c9", "no", error=("E", "FS_NOT_FOUND"))
    log.end_turn()
    assert summarise(log.write(store)).digest.tool_errors == 2
