"""What followers of the index are told, and how a message is spelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from sessiongraph_web import access
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import IndexNote
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.web.live import IndexSource, News
from sessiongraph_web.workers import Progress


@dataclass
class Product:
    """A product whose index is just so: what a follower of it looks at."""

    rounds: int = 0
    running: bool = False
    progress: Progress | None = None

    @property
    def refresher(self) -> Product:
        return self

    def glance(self) -> bool:
        return False

    def note(self, caller: Caller) -> IndexNote:
        assert caller.is_owner
        return IndexNote(epoch=7, refreshed_at=None, indexing=False)


def source(**state: Any) -> IndexSource:
    return IndexSource(cast("SessionGraph", Product(**state)), access.OWNER)


def test_a_run_is_told_by_how_far_it_is() -> None:
    """While a run goes on its progress is told, under the id that the follower has; before it counts, nothing."""
    progress = Progress(logs=3, logs_total=9, bytes=1, bytes_total=2, seconds=1.0)
    running = source(rounds=4, running=True, progress=progress)
    assert running.news(4) == News(4, "indexing", {"done": 3, "total": 9})
    assert source(rounds=4, running=True).news(4) is None


def test_a_run_that_ended_is_told_once() -> None:
    """After a run the epoch is told to whom it is new, and to nobody twice."""
    rested = source(rounds=5)
    assert rested.news(4) == News(5, "indexed", {"epoch": 7})
    assert rested.news(5) is None


def test_progress_wakes_followers() -> None:
    """What a look compares changes with a run's progress, and stays the same while nothing happens."""
    product = Product(rounds=1, running=True)
    follower = IndexSource(cast("SessionGraph", product), access.OWNER)
    before = follower.state()
    assert follower.state() == before
    product.progress = Progress(logs=1, logs_total=2, bytes=0, bytes_total=0, seconds=0.1)
    assert follower.state() != before


def test_a_message_is_one_block() -> None:
    """A message has its id, its kind and its data on one line each, and ends with an empty one."""
    assert News(12, "more", {"first": 3, "last": 11}).encode() == (
        b'id: 12\nevent: more\ndata: {"first":3,"last":11}\n\n'
    )
