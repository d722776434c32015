"""Bad days of a running product: what its readers see meanwhile, and how the index is afterwards."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sessiongraph_web import access, tokens
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import SearchRequest, SessionRequest
from sessiongraph_web.indexer import Run, Wish
from sessiongraph_web.tokens import Tokens
from tests.builders import Log
from tests.indexes import content, fresh, run
from tests.products import find, opened, refresh

KILLS = int(os.environ.get("SESSIONGRAPH_KILLS", "2"))
WORD = "amberfish"
YEARS = 10 * 365 * 86_400


def fill(store: Path, count: int, *, turns: int = 1) -> list[tuple[Log, Path]]:
    """Write sessions into two workspaces."""
    made = []
    for number in range(count):
        log = Log(f"/w/{number % 2}", id=f"session-{number:04}")
        for turn in range(turns):
            log.turn(f"where is the {WORD}? {number} {turn}", "here")
        made.append((log, log.write(store)))
    return made


@dataclass
class Readers:
    """People who ask one thing again and again while something happens; what they were told."""

    ask: Callable[[], object]
    seen: set[object] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    faults: list[BaseException] = field(default_factory=list)

    @contextmanager
    def reading(self, count: int = 3) -> Iterator[None]:
        stop = threading.Event()
        people = [threading.Thread(target=self._read, args=(stop,)) for _ in range(count)]
        for one in people:
            one.start()
        try:
            yield
        finally:
            stop.set()
            for one in people:
                one.join()

    def _read(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self.seen.add(self.ask())
            except SessionGraphError as error:
                self.told.add(error.code)
            except BaseException as error:  # noqa: BLE001 - the test says which
                self.faults.append(error)


def deleted_files(index: Path) -> list[str]:
    """Return the files of an index that are deleted, and that this process holds open."""
    links = [_link(descriptor) for descriptor in Path("/proc/self/fd").iterdir()]
    return [link for link in links if link.startswith(str(index)) and link.endswith("(deleted)")]


def _link(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_nothing_of_a_generation_that_was_replaced_is_held(store: Path, tmp_path: Path) -> None:
    """What was kept open from before a rebuild is closed by the next question: its disk and memory come back."""
    fill(store, 2)
    run(store)
    with opened(store) as product:
        for _ in range(3):
            assert find(product, WORD).hits == 2
            run(store, Wish(force=True))
        assert find(product, WORD).hits == 2
        assert deleted_files(tmp_path / "index") == []


@pytest.mark.parametrize("what", ["generations", "everything"])
def test_an_index_that_is_deleted_under_a_product_is_built_again(store: Path, what: str) -> None:
    """Readers find all, or are told that there is no index, or not all of it; then it is as a fresh one."""
    fill(store, 40)
    run(store)
    index = store.parent / "index"
    with opened(store, freshness_seconds=0, auto_build=True, auto_refresh=True) as product:

        def ask() -> object:
            page = product.search(access.OWNER, SearchRequest(query=WORD))
            return page.hits == 40 or page.index.indexing

        readers = Readers(ask)
        with readers.reading():
            for _ in range(3):
                for found in index.iterdir() if what == "generations" else (index,):
                    if found.name == "current" or found.is_dir():
                        _delete(found)
                assert _eventually(lambda: find(product, WORD).hits == 40)
    assert readers.faults == []
    assert readers.seen <= {True}
    assert readers.told <= {"SESSION_QUERY_INDEX_FAILED", "SESSIONGRAPH_CORRUPT"}
    run(store)
    assert content(store) == fresh(store)


def _delete(found: Path) -> None:
    if found.is_dir():
        shutil.rmtree(found, ignore_errors=True)
    else:
        found.unlink(missing_ok=True)


def _eventually(is_so: Callable[[], bool], seconds: float = 15) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if is_so():
                return True
        except SessionGraphError:
            pass
        time.sleep(0.05)
    return False


def test_a_thousand_sessions_deleted_at_once_are_gone(store: Path) -> None:
    """Readers find fewer and fewer of them, and never less than is left; the index is as a fresh one of that."""
    made = fill(store, 1_010)
    run(store)
    with opened(store) as product:
        readers = Readers(lambda: find(product, WORD, workspace="/w/0", limit=1).hits)
        with readers.reading(1):
            for _, path in made[10:]:
                shutil.rmtree(path.parent)
            refresh(product)
        assert find(product, WORD).hits == 10
    assert readers.faults == []
    assert readers.told == set()
    assert readers.seen <= set(range(5, 506))
    assert content(store) == fresh(store)


def test_a_log_that_is_rewritten_while_it_is_read_is_the_old_or_the_new(store: Path) -> None:
    """No page mixes two versions of a log: it is one of them, or a sentence that says the log changed."""
    versions = [_version(word) for word in ("oldfinch", "newfinch")]
    path = versions[0].write(store)
    stored = [log.to_bytes() for log in versions]
    run(store)
    with opened(store) as product:

        def ask() -> object:
            page = product.session(access.OWNER, SessionRequest(id=versions[0].id, limit=100))
            return frozenset(re.findall(r"oldfinch|newfinch", repr(page.events)))

        readers = Readers(ask)
        with readers.reading():
            for number in range(60):
                aside = path.with_name("aside")
                aside.write_bytes(stored[number % 2])
                aside.replace(path)
                if number % 5 == 0:
                    refresh(product)
    assert readers.faults == []
    assert readers.seen == {frozenset({"oldfinch"}), frozenset({"newfinch"})}
    assert readers.told <= {"SESSION_QUERY_STALE_CURSOR", "SESSION_QUERY_SOURCE_CONFLICT"}
    run(store)
    assert content(store) == fresh(store)


def _version(word: str) -> Log:
    log = Log("/w/a", id="session-rewritten")
    for _ in range(20 if word == "oldfinch" else 30):
        log.turn(word, word)
    return log


def test_a_store_that_goes_and_comes_back_loses_nothing(store: Path) -> None:
    """Searches find meanwhile what was known, and reads say that it cannot be read; then all is as before."""
    made = fill(store, 6)
    run(store)
    before = content(store)
    away = store.with_name("away")
    with opened(store) as product:
        store.rename(away)
        Run(product.settings).execute()
        assert find(product, WORD).hits == 6
        with pytest.raises(SessionGraphError):
            product.session(access.OWNER, SessionRequest(id=made[0][0].id))
        assert product.status(access.OWNER).store_problem
        away.rename(store)
        refresh(product)
        assert product.session(access.OWNER, SessionRequest(id=made[0][0].id)).session.id == made[0][0].id
        assert product.status(access.OWNER).store_problem is None
    assert content(store) == before == fresh(store)


@pytest.mark.parametrize("shift", [YEARS, -YEARS], ids=["forward", "back"])
def test_a_clock_that_jumps_hides_no_change(store: Path, monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    """Whatever the wall clock does between runs, and whatever times files have, each change is found."""
    made = fill(store, 8)
    times = [0, 1, int(time.time()) + YEARS, 2**31 - 1, 2**32, int(time.time())]
    for (_, path), moment in zip(made, times, strict=False):
        os.utime(path, (moment, moment))
    run(store)
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + shift)
    for (log, path), moment in zip(made, times, strict=False):
        log.turn(f"another {WORD}", "here").append(path)
        os.utime(path, (moment, moment))
    run(store)
    assert content(store) == fresh(store)
    with opened(store, freshness_seconds=0, auto_build=True, auto_refresh=True) as product:
        made[-1][0].turn(f"one more {WORD}", "here").append(made[-1][1])
        monkeypatch.setattr(time, "time", clock)
        assert _eventually(lambda: find(product, "one more").hits == 1)


@pytest.mark.parametrize("number", range(KILLS))
def test_a_server_that_is_killed_under_load_comes_back_whole(store: Path, number: int) -> None:
    """Server and workers are killed at random while they are asked and written to: answers were whole or none."""
    dice = random.Random(number)
    made = fill(store, 30, turns=4)
    private = Tokens(store.parent / "index" / tokens.FILE)
    token = private.create(access.OWNER, "chaos", int((time.time() + 3600) * 1000))
    private.close()
    answers: list[tuple[int, bytes]] = []
    for _ in range(3):
        server, port = _serve(store)
        stop = threading.Event()
        people = [threading.Thread(target=_ask, args=(port, token, stop, answers)) for _ in range(3)]
        for one in people:
            one.start()
        until = time.monotonic() + dice.uniform(0.1, 1.5)
        while time.monotonic() < until:
            log, path = dice.choice(made)
            log.turn(f"another {WORD}", "here").append(path)
            time.sleep(0.05)
            if dice.random() < 0.2:
                _kill_a_child(server, dice)
        server.kill()
        server.communicate()
        stop.set()
        for one in people:
            one.join()
    assert {status for status, _ in answers} <= {200, 503}
    assert all(json.loads(body)["ok"] == (status == 200) for status, body in answers)
    run(store)
    assert content(store) == fresh(store)


def _serve(store: Path) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "sessiongraph_web", "serve", "--port", "0", "--sessions", str(store)]
    server = subprocess.Popen(
        [*command, "--index", str(store.parent / "index")], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    found = re.search(r":(\d+)", server.stdout.readline().partition("//")[2])
    assert found
    return server, int(found[1])


def _ask(port: int, token: str, stop: threading.Event, answers: list[tuple[int, bytes]]) -> None:
    """Read searches and sessions until told to stop; a connection that breaks is no answer."""
    while not stop.is_set():
        for path in (f"/search.json?q={WORD}", "/sessions/session-0001.json", "/timeline.json"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            try:
                connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
                response = connection.getresponse()
                answers.append((response.status, response.read()))
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
            finally:
                connection.close()


def _kill_a_child(server: subprocess.Popen[str], dice: random.Random) -> None:
    """Kill one of the processes that a server started, if there is any."""
    listed = [path.read_text().split() for path in Path(f"/proc/{server.pid}/task").glob("*/children")]
    children = [int(child) for each in listed for child in each]
    if children:
        os.kill(dice.choice(children), signal.SIGKILL)
