"""Exact reads: what the index only speeds up is the same without it, event by event."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import filters, logs, presentation, reading
from sessiongraph_web.access import OWNER, workspaces
from sessiongraph_web.answers import EventView, SessionPage
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.operations import SessionGraph
from tests import products
from tests.builders import Log, compress, skippable
from tests.processes import let_everybody, unprivileged
from tests.shared import SHARED, shared_folders

GENUINE = (
    "sessions",
    "sessions-v0",
    "sessions-v0-rc6",
    "sessions-v3",
    "sessions-plaintext",
    "killed-before-resume",
)
LARGE_BYTES = 50_000


@dataclass(frozen=True)
class Pair:
    """One store read twice: with an index, and without one."""

    indexed: SessionGraph
    bare: SessionGraph

    def check(self) -> int:
        """Compare every exact read of every log; return how many events were compared."""
        return sum(
            self._check_log(log.log_id, log.path) for log in logs.discover(self.bare.settings.sessions).logs
        )

    def _check_log(self, log_id: int, path: Path) -> int:
        header = logs.peek_header(path)
        session_id = getattr(header, "id", None)
        if session_id is None:
            return 0
        is_large = (
            sum(map(len, logs.plain_text(path))) > LARGE_BYTES
        )  # without an index each read is a whole walk
        limit, most, sample = (100, 3, 2) if is_large else (7, 1000, 60)
        pages = [
            list(islice(_pages(product, session_id, log_id, limit), most))
            for product in (self.indexed, self.bare)
        ]
        assert list(map(presentation.encode, pages[1])) == list(map(presentation.encode, pages[0]))
        lineages = [
            _asked(lambda p: p.trace(OWNER, _named(session_id, log_id)), p) for p in (self.indexed, self.bare)
        ]
        assert lineages[1] == lineages[0]
        turns = [product.turns(OWNER, _named(session_id, log_id)).marks for product in (self.indexed, self.bare)]
        assert turns[1] == turns[0]
        shown = [shown for page in pages[0] for shown in page.events]
        for event in _sample(shown)[:sample]:
            request = filters.EventRequest(id=session_id, log_id=log_id, ordinal=event.ordinal, before=2, after=2)
            for ask in (SessionGraph.event, SessionGraph.event_trace):
                whole, bare = (
                    _asked(partial(ask, caller=OWNER, request=request), product)
                    for product in (self.indexed, self.bare)
                )
                assert bare == whole
        return len(shown)


def _pages(product: SessionGraph, session_id: str, log_id: int, limit: int = 7) -> Iterator[SessionPage]:
    ordinal: int | None = 0
    while ordinal is not None:
        page = product.session(
            OWNER, filters.SessionRequest(id=session_id, log_id=log_id, ordinal=ordinal, limit=limit)
        )
        yield page
        ordinal = page.next_ordinal


def _named(session_id: str, log_id: int) -> filters.SessionRequest:
    return filters.SessionRequest(id=session_id, log_id=log_id)


def _asked(ask: Callable[[SessionGraph], Any], product: SessionGraph) -> object:
    try:
        return presentation.encode(ask(product))
    except SessionGraphError as error:
        return error.code


def _sample(events: list[EventView]) -> list[EventView]:
    """Return some of the events: all that relate to others, and every tenth."""
    return [e for e in events if e.ordinal % 10 == 0 or e.replaced_by is not None or e.synthetic]


def _pair(store: Path, tmp_path: Path, check: Callable[[Pair], None], **settings: Any) -> None:
    with (
        products.indexed(store, tmp_path / "index", **settings) as indexed,
        products.opened(store, tmp_path / "none", **settings) as bare,
    ):
        check(Pair(indexed, bare))


def _forked(version: int) -> list[Log]:
    parent = Log(version=version).turn("first", "answer", [("bash", '{"command": "ls"}', "files")])
    parent.turn("second", "another")
    fork = Log(version=version, seeded_from=parent).turn("third", "of its own", [("read", "{}", "text")])
    return [parent, fork, Log(version=version, parent=parent.id, origin="subagent").turn("sub", "done")]


def _compacted(version: int) -> list[Log]:
    log = Log(version=version).turn("long ago", "an answer", [("bash", "{}", "output " * 50)])
    result = next(event["seq"] for event in log.events if event["type"] == "tool/result")
    log.result("call_pruned", "pruned", replaces=None)
    cited = [event["seq"] for event in log.events if event["type"] in ("user/message", "assistant/message")]
    log.compact("what happened", cited[0], cited[0], [cited[0], result])
    log.turn("after it", "goes on")
    return [log]


def _interrupted(version: int) -> list[Log]:
    log = Log(version=version).turn("done", "yes")
    log.start_turn("and now?")
    log.assistant("", [("c1", "bash", "{}"), ("c2", "bash", "{}")])
    log.call("c1", "bash")
    return [log]


def _long(version: int) -> list[Log]:
    """Turns longer than a page and longer than a stretch of the frame map, so that partners lie apart."""
    log = Log(version=version)
    log.start_turn("many calls")
    calls = [(f"c{number}", "bash", "{}") for number in range(90)]
    log.assistant("", calls)
    for call_id, name, arguments in calls:
        log.call(call_id, name, arguments)
        log.frame()
    for call_id, _, _ in reversed(calls):
        log.result(call_id, f"output of {call_id}\n[exit code: {call_id.count('3')}]")
        log.frame()
    log.end_turn()
    log.event("note/between-turns", {})
    log.frame()
    return [log.turn("short", "end")]


def _faulty(version: int) -> list[Log]:
    log = Log(version=version).turn("fine", "still fine")
    log.replace("user/message", {"content": [], "source": {"kind": "user"}}, 400, 500)
    log.turn("after the fault", "readable")
    return [log]


def _repeated(version: int) -> list[Log]:
    log = Log(version=version).turn("one", "two")
    log.event("note/repeated", {}, seq=3)
    log.event("note/jumped", {}, seq=90)
    return [log]


def _damaged(version: int) -> list[Log]:
    log = Log(version=version).turn("before", "the damage")
    log.frame()
    log.raw(b'{"type": "cut\n')
    log.seq += 1
    log.frame()
    return [log.turn("behind", "the damage")]


LOGS = (_forked, _compacted, _interrupted, _long, _faulty, _repeated, _damaged)


@pytest.mark.parametrize("version", [0, 3, 4])
@pytest.mark.parametrize("make", LOGS, ids=lambda make: make.__name__.strip("_"))
def test_reads_are_the_same_without_an_index(
    make: Callable[[int], list[Log]], version: int, store: Path, tmp_path: Path
) -> None:
    """Pages, events, relations and lineage of a log do not depend on whether it was indexed."""
    for log in make(version):
        log.write(store)

    def check(pair: Pair) -> None:
        assert pair.check() > 0

    _pair(store, tmp_path, check)


@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_a_header_behind_empty_frames_or_in_several_opens_its_session(
    pieces: int, store: Path, tmp_path: Path
) -> None:
    """However its beginning is cut into frames, a session is its workspace's, with an index and without."""
    log = Log("/w/a").turn("question", "answer")
    header = log.frames[0]
    step = -(-len(header) // pieces)
    cut = [compress(header[at : at + step]) for at in range(0, len(header), step)]
    log.store(store, skippable(b"x") + compress(b"") + b"".join(cut) + log.to_bytes(first=1))

    def check(pair: Pair) -> None:
        assert pair.check() == len(log.events)
        for product in (pair.indexed, pair.bare):
            assert product.session(workspaces("/w/a"), _named(log.id, _only(store))).session.cwd == "/w/a"

    _pair(store, tmp_path, check)


@pytest.mark.parametrize("first", [b"", b"{broken\n", b'{"type":"session","version":4}\n', b"\0" * 64 + b"\n"])
def test_a_log_without_a_header_goes_by_its_folders_name(first: bytes, store: Path, tmp_path: Path) -> None:
    """It is the owner's alone, as a parent too, whether it was indexed or not; a mere ruin is no session."""
    log = Log("/w/a", id="session-headless").turn("question", "answer")
    log.store(store, (compress(first) if first else b"") + log.to_bytes(first=1))
    Log("/w/a", id="session-child", parent=log.id).turn("below", "it").write(store)
    Log("/w/a", id="session-ruin").store(store, compress(b"{broken\n"))

    def check(pair: Pair) -> None:
        asked = filters.SessionRequest(id=log.id)
        encoded = [presentation.encode(p.session(OWNER, asked)) for p in (pair.indexed, pair.bare)]
        assert encoded[0] == encoded[1]
        assert pair.check() > 0
        for product in (pair.indexed, pair.bare):
            assert len(product.session(OWNER, asked).events) == len(log.events)
            for caller, id_ in ((workspaces("/w/a"), log.id), (OWNER, "session-ruin")):
                with pytest.raises(SessionGraphError) as raised:
                    product.session(caller, filters.SessionRequest(id=id_))
                assert raised.value.code == "SESSION_QUERY_SESSION_NOT_FOUND"

    _pair(store, tmp_path, check)


def test_a_file_that_cannot_be_opened_hides_no_other_session(store: Path, tmp_path: Path) -> None:
    """Without an index all headers are read for one answer; a file without rights costs its own session alone."""
    closed = Log("/w/a", id="session-closed").turn("question", "answer").write(store)
    log = Log("/w/a", id="session-open").turn("question", "answer")
    log.write(store)
    let_everybody(store.parent, write=True)
    closed.chmod(0)

    def ask() -> None:
        with products.opened(store, tmp_path / "none") as product:
            assert len(products.read(product, log.id).events) == len(log.events)
            assert product.trace(OWNER, filters.SessionRequest(id=log.id)).complete

    unprivileged(ask)


@pytest.mark.parametrize(
    ("remove", "code"),
    [
        (lambda path: path.unlink(), "SESSION_QUERY_SESSION_NOT_FOUND"),
        (lambda path: shutil.rmtree(path.parent), "SESSION_QUERY_SESSION_NOT_FOUND"),
        (lambda path: path.parents[1].rename(path.parents[3] / "away"), "SESSION_QUERY_PERSISTENCE_FAILED"),
        (lambda path: path.parents[2].rename(path.parents[3] / "away"), "SESSION_QUERY_PERSISTENCE_FAILED"),
    ],
    ids=["file", "folder", "project", "store"],
)
def test_a_deleted_session_is_missing_before_the_index_knows(
    remove: Callable[[Path], object], code: str, store: Path, tmp_path: Path
) -> None:
    """What was deleted is no session any more; what may merely be out of reach says that it cannot be read."""
    Log("/w/a", id="session-kept").turn("question", "answer").write(store)
    log = Log("/w/a").turn("question", "answer")
    path = log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        remove(path)
        with pytest.raises(SessionGraphError) as raised:
            products.read(product, log.id)

    assert raised.value.code == code


@pytest.mark.shared
@pytest.mark.parametrize("name", GENUINE)
def test_genuine_reads_are_the_same_without_an_index(name: str, shared: Path, tmp_path: Path) -> None:
    """What holds of made logs holds of genuine ones of every generation."""
    _pair(shared / "genuine" / name, tmp_path, lambda pair: pair.check())


@pytest.mark.shared
@pytest.mark.parametrize(
    "case", [path for path in shared_folders("field-cases") if (path / "sessions").is_dir()], ids=lambda p: p.name
)
def test_field_reads_are_the_same_without_an_index(case: Path, tmp_path: Path) -> None:
    """What holds of whole logs holds of damaged, foreign and odd ones."""
    _pair(case / "sessions", tmp_path, lambda pair: pair.check())


def test_both_halves_of_a_call_know_each_other_across_pages(store: Path, tmp_path: Path) -> None:
    """A call whose result is on another page names it, and the result names the call."""
    (log,) = _long(4)
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        events = [shown for page in _pages(product, log.id, _only(store)) for shown in page.events]

    partners = {event.ordinal: event.partner for event in events if event.type in ("tool/call", "tool/result")}
    assert all(partner is not None and partners[partner] == ordinal for ordinal, partner in partners.items())
    assert len(partners) == 180


def test_a_page_that_begins_inside_a_turn_knows_the_turn(store: Path, tmp_path: Path) -> None:
    """An event that does not say its turn has the one that was open, wherever the page begins."""
    log = Log().turn("first", "answer")
    log.start_turn("second")
    marks = [log.event("note/inside", {}) for _ in range(3)]
    log.end_turn()
    mark = log.event("note/outside", {})
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        shown = {o: products.read(product, log.id, ordinal=o, limit=1).events[0].turn for o in (*marks, mark)}

    assert shown == {**dict.fromkeys(marks, 2), mark: None}


def test_a_live_session_gets_no_closers(store: Path, tmp_path: Path) -> None:
    """What a process is still writing is not declared interrupted: neither on its page nor by its events."""
    (log,) = _interrupted(4)
    path = log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        cold = products.read(product, log.id).events[-1]
        with (path.parent / "session.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if logs.is_live(path) is None:
                pytest.skip("locks of other processes cannot be seen here")
            page = products.read(product, log.id)
            with pytest.raises(SessionGraphError) as missing:
                products.event(product, log.id, ordinal=cold.ordinal)

    assert (cold.type, cold.synthetic) == ("turn/end", True)
    assert not any(event.synthetic for event in page.events)
    assert missing.value.code == "SESSION_QUERY_EVENT_NOT_FOUND"


def test_a_closer_has_an_address(store: Path, tmp_path: Path) -> None:
    """A hit in a closing event can be opened, by seq and by ordinal."""
    (log,) = _interrupted(4)
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        (hit,) = products.find(product, "interrupted", kinds="turn_end").sessions
        by_ordinal = products.event(product, log.id, ordinal=hit.best.ordinal).target
        by_seq = products.event(product, log.id, seq=hit.best.seq).target

    assert by_seq == by_ordinal
    assert (by_seq.type, by_seq.data["reason"]) == ("turn/end", {"kind": "interrupted"})


def test_only_what_a_fault_reaches_is_unknown(store: Path, tmp_path: Path) -> None:
    """Relations before a surface fault are answered; from the fault on they are INVALID_SURFACE."""
    (log,) = _faulty(4)
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        classes = [event.surface for event in products.read(product, log.id).events]
        fault = classes.index("unknown")
        before = product.event_trace(OWNER, filters.EventRequest(id=log.id, ordinal=fault - 1))
        with pytest.raises(SessionGraphError) as raised:
            product.event_trace(OWNER, filters.EventRequest(id=log.id, ordinal=fault))
        page = products.event(product, log.id, ordinal=fault)

    assert before.surface == "log-only"
    assert set(classes[fault:]) == {"unknown"}
    assert raised.value.code == "SESSION_QUERY_INVALID_SURFACE"
    assert page.trace is None


def test_a_repeated_seq_shows_the_first_and_lists_the_others(store: Path, tmp_path: Path) -> None:
    """Two writers can leave one number twice: each event has its own address, and names the other."""
    (log,) = _repeated(4)
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        first = products.event(product, log.id, seq=3)
        second = products.event(product, log.id, seq=3, ordinal=first.repeats[0])

    assert (first.target.ordinal, first.repeats) == (3, [second.target.ordinal])
    assert (second.target.type, second.repeats) == ("note/repeated", [3])


@pytest.mark.parametrize(
    ("ordinal", "before", "after", "expected"),
    [(0, 3, 2, (0, 2)), (5, 2, 50, (3, 11)), (11, 50, 50, (0, 11)), (4, 0, 0, (4, 4))],
)
def test_neighbours_end_with_the_log(
    ordinal: int, before: int, after: int, expected: tuple[int, int], store: Path, tmp_path: Path
) -> None:
    """A window is clamped to the log on both sides."""
    log = Log()
    for number in range(12):
        log.event("note/plain", {"number": number})
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        page = products.event(product, log.id, ordinal=ordinal, before=before, after=after)

    shown = [event.ordinal for event in (*page.before, page.target, *page.after)]
    assert shown == list(range(expected[0], expected[1] + 1))


@pytest.mark.parametrize("window", [{"before": 51}, {"after": 51}, {"before": -1}])
def test_a_window_out_of_bounds_is_refused(window: dict[str, int], store: Path, tmp_path: Path) -> None:
    """Windows are bounded before anything is read, whoever makes the request."""
    log = Log().turn("a", "b")
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product, pytest.raises(SessionGraphError) as raised:
        product.event(OWNER, filters.EventRequest(id=log.id, seq=0, **window))

    assert raised.value.code == "SESSION_QUERY_INVALID_WINDOW"


def test_a_log_that_grew_since_it_was_indexed_is_read_as_it_is(store: Path, tmp_path: Path) -> None:
    """New events are on the page and can be asked for by seq before any index run saw them."""
    log = Log().turn("first", "answer")
    path = log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        log.turn("later", "appended")
        log.append(path)
        texts = [event.data.get("content") for event in products.read(product, log.id).events]
        found = products.event(product, log.id, seq=log.seq - 1).target

    assert [{"type": "text", "text": "later"}] in texts
    assert (found.type, found.turn) == ("turn/end", 2)


def test_a_log_that_was_replaced_since_it_was_indexed_is_read_as_it_is(store: Path, tmp_path: Path) -> None:
    """The index of other bytes is no map: a rewritten log is read from its beginning."""
    log = Log(id="session-" + "7" * 32).turn("first", "answer " * 400, [("bash", "{}", "x " * 4000)])
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        other = Log(id=log.id)
        for number in range(30):
            other.turn(f"rewritten {number}", "short")
        other.write(store)
        page = products.read(product, log.id, seq=150)

    assert any(event.seq == 150 for event in page.events)
    assert [event.ordinal for event in page.events] == list(
        range(page.first_ordinal, page.first_ordinal + len(page.events))
    )


def test_reads_go_on_over_a_ruined_index(store: Path, tmp_path: Path) -> None:
    """Garbage in place of the catalog costs searches, never a session."""
    log = Log().turn("still here", "yes")
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        expected = [event.data for event in products.read(product, log.id).events]
    for path in (tmp_path / "index").rglob("*.db"):
        path.write_bytes(b"garbage" * 1000)
    with products.opened(store, tmp_path / "index") as product:
        found = [event.data for event in products.read(product, log.id).events]

    assert found == expected


def test_a_session_that_is_not_indexed_yet_is_readable(store: Path, tmp_path: Path) -> None:
    """While a first build goes on, what it has not come to is read from the store."""
    log = Log().turn("waiting", "in line")
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        shutil.rmtree(store / "-w-a", ignore_errors=True)
        later = Log("/w/later").turn("not yet", "indexed")
        later.write(store)
        _expect(product, store)
        page = products.read(product, later.id)

    assert (page.session.title, page.session.turns) == ("not yet", 1)


def _expect(product: SessionGraph, store: Path) -> None:
    """Leave the catalog as a run does that was stopped before it read anything."""
    from sessiongraph_web import generation
    from sessiongraph_web.ledger import FileFacts, Ledger

    live = generation.live(product.settings.index)
    assert live is not None
    ledger = Ledger(live.catalog)
    ledger.expect(
        [
            FileFacts(log.log_id, log.relative, log.size, log.mtime_ns, log.inode)
            for log in logs.discover(store).logs
        ],
        0,
    )
    ledger.close()


def _only(store: Path) -> int:
    (log,) = logs.discover(store).logs
    return log.log_id


def test_a_long_string_is_clipped_on_pages_alone(store: Path, tmp_path: Path) -> None:
    """A page shows both ends of a long text; the event's own page has it whole."""
    text = "a" * reading.STRING_CHARS + "MIDDLE" + "z" * reading.STRING_CHARS
    log = Log()
    seq = log.user(text)
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        (shown,) = products.read(product, log.id).events
        whole = products.event(product, log.id, seq=seq).target

    assert shown.clipped and "MIDDLE" not in str(shown.data)
    assert whole.data["content"] == [{"type": "text", "text": text}]
    assert SHARED is None or not whole.clipped
