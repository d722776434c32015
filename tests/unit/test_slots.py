"""Requests take turns at computing, and a slow one keeps nobody waiting."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sessiongraph_web.web import slots

WAIT_SECONDS = 10  # long enough to be over before, on any machine


class Work:
    """A call that says when it began, and ends when it is told."""

    def __init__(self) -> None:
        self.begun, self.end = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.end.wait(WAIT_SECONDS)
        return "done"


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, WAIT_SECONDS)


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0.001)


@pytest.mark.asyncio
async def test_who_comes_later_waits_for_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many compute as there are slots; the next one begins when one of them ends or fails."""
    monkeypatch.setattr(slots, "SLOW_SECONDS", WAIT_SECONDS)
    works = [Work() for _ in range(slots.SLOTS + 2)]
    tasks = [asyncio.create_task(slots.compute(work)) for work in works]
    for work in works[: slots.SLOTS]:
        await until(work.begun)
    await settle()
    assert [work.begun.is_set() for work in works[slots.SLOTS :]] == [False, False]
    works[0].end.set()
    await until(works[slots.SLOTS].begun)
    tasks[1].cancel()  # a client that went gives its slot back
    await until(works[slots.SLOTS + 1].begun)
    for work in works:
        work.end.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [one for one in ended if one != "done"] == [ended[1]]
    assert isinstance(ended[1], asyncio.CancelledError)


@pytest.mark.asyncio
async def test_a_slow_one_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on beside the slots, and gives back no slot that it has given back before."""
    monkeypatch.setattr(slots, "SLOW_SECONDS", 0.01)
    slow = [Work() for _ in range(slots.SLOTS)]
    tasks = [asyncio.create_task(slots.compute(work)) for work in slow]
    for work in slow:
        await until(work.begun)
    assert await slots.compute(lambda: "quick") == "quick"
    monkeypatch.setattr(slots, "SLOW_SECONDS", WAIT_SECONDS)
    for work in slow:
        work.end.set()
    assert await asyncio.gather(*tasks) == ["done"] * slots.SLOTS
    works = [Work() for _ in range(slots.SLOTS + 1)]
    tasks = [asyncio.create_task(slots.compute(work)) for work in works]
    for work in works[: slots.SLOTS]:
        await until(work.begun)
    await settle()
    assert not works[-1].begun.is_set()
    for work in works:
        work.end.set()
    await asyncio.gather(*tasks)


@pytest.mark.asyncio
async def test_a_failure_gives_its_slot_back() -> None:
    """However many calls fail, the next one is answered."""

    def fail() -> None:
        raise ValueError("no")

    for _ in range(slots.SLOTS + 1):
        with pytest.raises(ValueError, match="no"):
            await slots.compute(fail)
    assert await slots.compute(lambda: 7) == 7
