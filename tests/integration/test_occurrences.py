"""Where a text occurs in one session: every record that holds it, in order, and none of another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sessiongraph_web import occurrences
from sessiongraph_web.access import OWNER
from sessiongraph_web.answers import Occurrences
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import SessionRequest
from sessiongraph_web.operations import SessionGraph
from tests import products
from tests.builders import Log

WORD = "amberfish"
ALL_KINDS = "user,assistant,tool_call,tool_result,title,todo,turn_end"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = tmp_path / "sessions"
    store.mkdir()
    return store


@pytest.fixture
def log() -> Log:
    log = Log("/w/a")
    log.title(f"the {WORD}")
    for number in range(40):
        word = WORD if number % 3 == 0 else "plain"
        log.turn(f"prompt {word}", f"answer {number}", [("bash", f'{{"command":"ls {word}"}}', f"an {word}")])
    log.todo((f"feed the {WORD}", "pending"))
    return log


@pytest.fixture
def product(store: Path, log: Log) -> Iterator[SessionGraph]:
    parent = log.write(store)
    assert parent.exists()
    Log("/w/a", seeded_from=log).turn(f"{WORD} again", "and again").write(store)
    with products.indexed(store) as product:
        yield product


def _found(product: SessionGraph, log: Log, text: str, place: int = 0) -> Occurrences:
    return product.find(OWNER, SessionRequest(id=log.id), text, place)


def _all(product: SessionGraph, log: Log, text: str) -> list[int]:
    """Return every record that is found, as a reader goes on from each to the next."""
    found: list[int] = []
    while onward := _found(product, log, text, found[-1] + 1 if found else 0).onward:
        found += onward
    return found


@pytest.mark.parametrize("text", [WORD, f'"the {WORD}"', f"answer -{WORD}", "prompt answer", "greyheron", "-"])
def test_it_finds_what_a_search_of_every_kind_finds(product: SessionGraph, log: Log, text: str) -> None:
    """The records are those of a search inside the session, in the order of the log, however many there are."""
    hits = []
    if text.strip("-"):
        searched = products.find(
            product,
            text,
            session=log.id,
            kinds=ALL_KINDS,
            group="none",
            sort="oldest",
            inherited="1",
            limit="100",
        )
        assert searched.next_cursor is None
        hits = [] if searched.loose else [hit.ordinal for hit in searched.entries]
    assert _all(product, log, text) == sorted(hits)
    for place in (0, 1, 17, 200, 10_000, *hits[:3], *hits[-2:]):
        before = [ordinal for ordinal in hits if ordinal < place]
        assert _found(product, log, text, place) == Occurrences(
            total=len(hits),
            before=len(before),
            previous=max(before, default=None),
            onward=sorted(set(hits) - set(before))[: occurrences.MOST_ONWARD],
        )


def test_where_nothing_holds_all_of_it_its_parts_are_found(store: Path) -> None:
    """Chinese words that stand apart are found loosely, which is said."""
    log = Log("/w/a").turn("身份登记；股份证明", "好").turn("登记", "好")
    log.write(store)
    with products.indexed(store) as product:
        found = _found(product, log, "身份证")
    assert found.loose
    assert (found.total, len(found.onward)) == (1, 1)


def test_what_was_appended_is_found_once_it_is_indexed(store: Path, log: Log) -> None:
    """Logs grow between two looks, and others' entries come between theirs."""
    path = log.write(store)
    other = Log("/w/a").turn(WORD, WORD)
    with products.indexed(store) as product:
        before = _all(product, log, WORD)
        other.write(store)
        products.refresh(product)
        log.turn(f"one more {WORD}", "answer")
        log.append(path)
        products.refresh(product)
        after = _all(product, log, WORD)
        assert len(_all(product, other, WORD)) == 2
    assert after[: len(before)] == before
    assert len(after) == len(before) + 1


def test_without_an_index_or_with_searching_off_it_says_so(store: Path, log: Log) -> None:
    """No answer looks like one that found nothing."""
    log.write(store)
    for opened, settings, code in (
        (products.opened, {}, "SESSION_QUERY_INDEX_FAILED"),
        (products.indexed, {"search": False}, "SESSION_QUERY_SEARCH_DISABLED"),
    ):
        with opened(store, **settings) as product, pytest.raises(SessionGraphError) as raised:  # type: ignore[operator]
            _found(product, log, WORD)
        assert raised.value.code == code
