"""A page of a long session costs what it shows, wherever it is, and says the same as a read of the whole log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest

from sessiongraph_web import documents, logs, presentation
from sessiongraph_web.access import OWNER
from sessiongraph_web.answers import SessionPage
from sessiongraph_web.cards import Queued
from sessiongraph_web.models import Event
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.reading import LogReader
from tests import products
from tests.builders import Log

LIMIT: Final = 50
STORED_BYTES: Final = 300_000  # that a page may read of a log of many frames, whatever its size
TEXT_BYTES: Final = 700_000  # that it may decode: what it shows, and some records before


class Written:
    """A stored session, and all its events as one read from the start gives them."""

    def __init__(self, product: SessionGraph, log: Log, path: Path) -> None:
        self.product, self.id, self.path = product, log.id, path
        self.events = [unit for unit in logs.read(path) if isinstance(unit, Event)]
        self.size = path.stat().st_size
        self.text = sum(len(piece) for piece in logs.plain_text(path))

    @contextmanager
    def reader(self) -> Iterator[LogReader]:
        with self.product.corpus.view() as view:
            yield LogReader(view, view.find(OWNER, self.id, None))

    def page(self, **given: Any) -> SessionPage:
        return products.read(self.product, self.id, limit=LIMIT, **given)

    def turns(self) -> list[int | None]:
        """Return the turn of each event, told from the first one on."""
        turn: int | None = None
        found = []
        for event in self.events:
            own, turn = documents.turn_of(event, turn)
            found.append(own)
        return found


def _talk(turns: int) -> Log:
    log = Log("/w/a")
    for number in range(turns):
        output = f"line {number} of output\n" * 300
        log.turn(f"prompt {number}", f"answer {number} " * 100, [("bash", '{"command":"ls"}', output)])
    return log


@pytest.fixture(scope="module", params=["indexed", "without an index"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Written]]:
    """A long session of many frames, and a fork that holds the same in one."""
    store = tmp_path_factory.mktemp("long") / "sessions"
    store.mkdir()
    opened = products.indexed if request.param == "indexed" else products.opened
    parent = _talk(400)
    fork = Log("/w/a", id="session-fork", seeded_from=parent)
    fork.turn("and now?", "the end")
    paths = {"parent": parent.write(store), "fork": fork.write(store)}
    with opened(store) as product:
        yield {"parent": Written(product, parent, paths["parent"]), "fork": Written(product, fork, paths["fork"])}


@pytest.fixture(params=["parent", "fork"])
def long(request: pytest.FixtureRequest, both: dict[str, Written]) -> Written:
    found: Written = both[request.param]
    return found


PLACES: Final = (0, 1, 255, 256, 257, 1000, 2571, -300, -2, -1)


@pytest.mark.parametrize("place", PLACES)
def test_a_window_anywhere_is_what_reading_from_the_start_gives(long: Written, place: int) -> None:
    """Events and the open turn at a record are the same whether what lies before was read or passed over."""
    ordinal = place % len(long.events)
    with long.reader() as reader:
        turn, found = reader.window(ordinal)
        events = list(islice(found, LIMIT))
        views = reader.views(turn, events, clip=True)
    stored = [event for event in events if not event.synthetic]
    assert stored == long.events[ordinal : ordinal + len(stored)]
    assert len(stored) == min(LIMIT, len(long.events) - ordinal)
    assert [view.turn for view in views][: len(stored)] == long.turns()[ordinal : ordinal + len(stored)]


@pytest.mark.parametrize("place", PLACES)
def test_a_window_costs_what_it_shows(long: Written, place: int) -> None:
    """Few records before it are decoded; of a log of many frames only those near it are read."""
    ordinal = place % len(long.events)
    with long.reader() as reader:
        reader.map  # noqa: B018 - without an index this walks over the log, once
        list(islice(reader.window(ordinal)[1], LIMIT))
        cost = reader.meter
    assert long.text > 3 * TEXT_BYTES
    assert cost.text_bytes < TEXT_BYTES + 2**20  # a giant frame comes in pieces of 1 MiB
    if long.path.stat().st_size > 2 * STORED_BYTES:
        assert cost.bytes_read < STORED_BYTES


@pytest.mark.parametrize("place", PLACES)
def test_every_jump_comes_to_its_record(long: Written, place: int) -> None:
    """By position, number or moment, the page holds the record that was meant."""
    ordinal = place % len(long.events)
    event = long.events[ordinal]
    first_at_that_time = next(found for found in long.events if (found.time or 0) >= (event.time or 0))
    jumps = [long.page(at=ordinal), long.page(seq=event.seq)]
    moment = long.page(time=next(v.time.iso for v in jumps[0].events if v.ordinal == ordinal and v.time))
    assert all(ordinal in [view.ordinal for view in page.events] for page in jumps)
    assert first_at_that_time.ordinal in [view.ordinal for view in moment.events]


def test_a_moment_costs_a_few_looks(long: Written) -> None:
    """Which record a moment means is asked of the map, not of the log."""
    wanted = long.events[len(long.events) // 2]
    with long.reader() as reader:
        reader.map  # noqa: B018
        assert reader.ordinal_at(wanted.time or 0) == wanted.ordinal
        assert reader.meter.text_bytes < TEXT_BYTES + 2**20


def test_moments_before_and_behind_a_log_mean_its_ends(long: Written) -> None:
    """Before everything is the first record, after everything the last."""
    with long.reader() as reader:
        assert (reader.ordinal_at(0), reader.ordinal_at(2**53)) == (0, len(long.events) - 1)


def test_numbers_that_repeat_are_all_found(tmp_path: Path) -> None:
    """In a log whose numbers are at fault nothing is passed over on trust."""
    store = tmp_path / "sessions"
    store.mkdir()
    log = _talk(60)
    log.event("note/odd", {"text": "again"}, seq=7)
    for number in range(300):
        log.event("note/odd", {"text": str(number)})
    path = log.write(store)
    repeated = [unit.ordinal for unit in logs.read(path) if isinstance(unit, Event) and unit.seq == 7]
    with products.indexed(store) as product:
        written = Written(product, log, path)
        with written.reader() as reader:
            assert reader.ordinals_of_seq(7) == repeated
            assert len(repeated) == 2


def test_blank_lines_are_no_records(tmp_path: Path) -> None:
    """Lines that say nothing do not shift what a jump comes to."""
    store = tmp_path / "sessions"
    store.mkdir()
    log = Log("/w/a")
    for number in range(600):
        log.event("note/odd", {"text": str(number)})
        log.raw(b"\n")
    path = log.write(store)
    with products.indexed(store) as product:
        written = Written(product, log, path)
        for ordinal in (1, 299, 599):
            with written.reader() as reader:
                assert next(reader.window(ordinal)[1]) == written.events[ordinal]
                assert reader.ordinals_of_seq(ordinal) == [ordinal]


@pytest.mark.parametrize("opened", [products.indexed, products.opened], ids=["indexed", "without an index"])
def test_a_prompt_that_never_ran_is_shown_on_whatever_page(tmp_path: Path, opened: Any) -> None:
    """Of prompts queued on the first page, with words or an image alone, those that ran later are not shown: not
    one that ran far behind, nor one that ran after the log was indexed. One that never ran is, though it says
    what another one said."""
    store = tmp_path / "sessions"
    store.mkdir()
    log = Log("/w/a")
    log.turn("at once", "answer")
    image = {"type": "image", "attachment": {"attachmentId": "sha256:" + "0" * 64, "mediaType": "image/png"}}
    said = {name: {"type": "text", "text": "the same words"} for name in ("far", "never", "new")} | {
        "drawn": image
    }
    for name, block in said.items():
        message = {"content": [block], "source": {"kind": "user"}, "role": "user", "id": name}
        log.event("agent/inbox/spliced", {"target": "next-turn", "start": 0, "inserted": [message]})
    for number in range(100):
        log.turn(f"prompt {number}", "answer")

    def run(name: str) -> None:
        data = {"content": [said[name]], "source": {"kind": "user"}, "role": "user", "id": name}
        log.event("user/message", data, surfaceOp="append")
        log.turn(f"after {name}", "answer")

    run("far")
    run("drawn")
    path = log.write(store)
    with opened(store) as product:
        run("new")
        log.append(path)
        page = Written(product, log, path).page(ordinal=0)
    cards = [card for turn in presentation.transcript(page) for card in turn.cards if isinstance(card, Queued)]
    assert page.next_ordinal is not None
    assert [(card.label, str(card.body.html)) for card in cards] == [("Queued, never ran", "the same words")]
