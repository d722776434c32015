"""The turns of a session as marks: what each begins with, and that what is remembered of them is never stale."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import indexer, turnspans
from sessiongraph_web.access import OWNER
from sessiongraph_web.answers import TurnMark
from sessiongraph_web.filters import SessionRequest
from sessiongraph_web.indexer import Wish
from sessiongraph_web.operations import SessionGraph
from tests import products
from tests.builders import Log

OPENED = pytest.mark.parametrize(
    "opened", [products.indexed, products.opened], ids=["indexed", "without an index"]
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = tmp_path / "sessions"
    store.mkdir()
    return store


def _marks(product: SessionGraph, log: Log) -> list[TurnMark]:
    return product.turns(OWNER, SessionRequest(id=log.id)).marks


def _openings(product: SessionGraph, log: Log) -> list[tuple[str | None, str]]:
    return [(mark.kind, mark.opening) for mark in _marks(product, log)]


def _unasked(log: Log, *steps: tuple[str, ...]) -> None:
    """Append a turn that nobody asked for: words said, or calls of a tool with their arguments."""
    log.turns += 1
    log.event("turn/start", {"turn": log.turns})
    log.user("go on with the goal", kind="goal")
    for number, step in enumerate(steps):
        if len(step) == 1:
            log.assistant(step[0])
        else:
            log.call(f"call_{log.turns}_{number}", *step)
            log.result(f"call_{log.turns}_{number}", "ok")
    log.end_turn()


@OPENED
def test_a_turn_without_a_prompt_begins_with_what_was_done(store: Path, opened: Any) -> None:
    """A mark tells the prompt; else the first answer or call; else that there is nothing to tell."""
    log = Log("/w/a")
    log.turn("asked\n\nfirst", "answer")
    _unasked(log, ("I go  on.",), ("bash", '{"command":"make"}'))
    _unasked(log, ("bash", '{"command":"make"}'), ("done",))
    _unasked(log)
    log.end_turn(kind="error", error={"message": "no"})
    log.write(store)
    with opened(store) as product:
        assert _openings(product, log) == [
            ("user", "asked first"),
            ("assistant", "I go on."),
            ("tool_call", 'bash {"command":"make"}'),
            (None, ""),
        ]


@OPENED
def test_turns_put_together_begin_with_their_first_prompt(store: Path, opened: Any) -> None:
    """Where a mark stands for several turns, a prompt of any of them comes before what was done unasked."""
    log = Log("/w/a")
    for number in range(300):
        _unasked(log, (f"unasked {number}",))
        log.turn(f"asked {number}", "answer")
    log.write(store)
    with opened(store) as product:
        openings = _openings(product, log)
    assert len(openings) < 300
    assert {kind for kind, _ in openings} == {"user"}


@OPENED
def test_what_a_turn_begins_with_is_masked(store: Path, opened: Any) -> None:
    """A secret in a prompt, an answer or a call is in no mark, for nobody."""
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
    log = Log("/w/a")
    log.turn(f"use {secret}", "answer")
    _unasked(log, (f"using {secret}",))
    _unasked(log, ("bash", f'{{"command":"curl -H {secret}"}}'))
    log.write(store)
    with opened(store) as product:
        said = _openings(product, log)
    assert [kind for kind, _ in said] == ["user", "assistant", "tool_call"]
    assert secret[:8] not in str(said)


class Counted:
    """Notes from which record on the index was asked for turns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[int] = []
        self._of_index = turnspans.of_index
        monkeypatch.setattr(turnspans, "of_index", self._note)

    def _note(self, connection: Any, log_id: int, step: int, most: int, first: int = 0) -> Any:
        self.asked.append(first)
        return self._of_index(connection, log_id, step, most, first)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


def test_turns_are_summed_up_once_for_each_state_of_a_log(store: Path, counted: Counted) -> None:
    """A page more asks the index nothing; one of a log that grew asks for what is new, of one that was written
    or indexed anew for all of it."""
    log = Log("/w/a").turn("one", "answer")
    path = log.write(store)
    records = log.seq
    with products.indexed(store) as product:

        def told() -> list[str]:
            return [opening for _, opening in _openings(product, log)]

        assert [told(), told(), counted.asked] == [["one"], ["one"], [0]]
        log.turn("two", "answer")
        log.append(path)
        products.refresh(product)
        assert [told(), told(), counted.asked] == [["one", "two"], ["one", "two"], [0, records]]
        anew = Log("/w/a", id=log.id).turn("uno", "answer").turn("dos", "answer").turn("tres", "answer")
        anew.write(store)
        products.refresh(product)
        assert [told(), told(), counted.asked] == [["uno", "dos", "tres"]] * 2 + [[0, records, 0]]
        indexer.Run(product.settings).execute(Wish(force=True))
        assert [told(), told(), counted.asked] == [["uno", "dos", "tres"]] * 2 + [[0, records, 0, 0]]


def test_turns_of_a_log_that_grows_are_those_of_a_walk_over_it(store: Path, counted: Counted) -> None:
    """Whatever is appended, inside a turn or behind it, marks are what they would be had the log come whole."""
    log = Log("/w/a")
    log.start_turn("begin")
    path = log.write(store)
    with products.indexed(store) as grown, products.opened(store, store.parent / "none") as bare:
        assert _marks(grown, log) == _marks(bare, log)
        steps: list[Callable[[], object]] = [
            lambda: log.assistant("in the same turn"),
            lambda: (log.call("c1", "bash", "{}"), log.result("c1", "no\n[exit code: 2]")),
            lambda: log.end_turn(kind="error", error={"message": "no"}),
            lambda: _unasked(log, ("bash", "{}")),
            lambda: log.user("asked after all"),
            *(lambda number=number: log.turn(f"turn {number}", "answer") for number in range(3)),  # type: ignore[misc]
        ]
        for step in steps:
            step()
            log.append(path)
            products.refresh(grown)
            assert _marks(grown, log) == _marks(bare, log)
        assert len([first for first in counted.asked if first]) == len(steps)
        for number in range(250):
            log.turn(f"more {number}", "answer")
        log.append(path)
        products.refresh(grown)
        assert _marks(grown, log) == _marks(bare, log)
    assert counted.asked[-1] == 0  # more turns are put together now
