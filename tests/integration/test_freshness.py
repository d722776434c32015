"""What dsh writes is found soon, cheaply, and without anybody waiting for it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import access, generation, indexer, logs, refresher, schema, workers
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import SearchRequest
from sessiongraph_web.indexer import Wish
from sessiongraph_web.jobs import Job
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.refresher import Refresher
from sessiongraph_web.standstill import Standstill
from sessiongraph_web.web import live
from tests import indexes
from tests.builders import Log
from tests.indexes import content, fresh, run
from tests.shared import SHARED, shared_folders

REWRITTEN = {"activity", "session", "meta"}


def rows(path: Path) -> dict[str, Counter[tuple[Any, ...]]]:
    """Return every row of every table, so that what was added or rewritten shows."""
    with closing(sqlite3.connect(path)) as connection:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not name.startswith("entry_fts")
        ]
        return {name: Counter(connection.execute(f"SELECT * FROM {name}")) for name in names}  # noqa: S608


def large(store: Path) -> tuple[Log, Path]:
    """Write a session of some size, the kind that a person works in for days."""
    log = Log("/w/a", id="session-1")
    for number in range(400):
        log.turn(f"question {number}", "answer " * 100, [("bash", '{"command": "ls"}', "output " * 200)])
    return log, log.write(store)


def test_an_appended_turn_costs_its_own_bytes_and_rows_alone(store: Path) -> None:
    """Nothing that was read, folded or written before is touched, however long the session is."""
    log, path = large(store)
    run(store)
    before, size = rows(indexes.database(store)), path.stat().st_size
    log.turn("one more", "and done", [("bash", "{}", "more output")])
    log.append(path)
    added = path.stat().st_size - size
    report = run(store)
    assert (report.extended, report.bytes_read) == (1, added)
    after = rows(indexes.database(store))
    changed = {name: (found - before[name]).total() for name, found in after.items()}
    assert changed == {
        "entry": 4,
        "frame": 1,
        "surface_node": 4,
        "citation": 1,
        "prompt": 1,
        "shadow": 0,
        "session": 1,
        "log": 1,
        "activity": changed["activity"],
        "meta": 1,
    }
    assert changed["activity"] <= 1
    assert content(store) == fresh(store)


def test_an_append_fetches_the_surface_only_if_it_replaces(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn puts nodes at the end; only a replacement must know what is there."""
    from sessiongraph_web.surfacerows import SurfaceRows

    fetched: list[int] = []
    earlier = SurfaceRows.earlier
    monkeypatch.setattr(SurfaceRows, "earlier", lambda self: fetched.append(1) or earlier(self))
    log = Log("/w/a", id="session-1").turn("question", "answer", [("bash", "{}", "long output")])
    path = log.write(store)
    run(store)
    fetched.clear()
    log.turn("more", "and more")
    log.append(path)
    run(store)
    assert fetched == []
    on_surface = [event["seq"] for event in log.events if event.get("surfaceOp") == "append"]
    log.compact("summary", on_surface[0], on_surface[-2], on_surface[:-1])
    log.frame()
    log.append(path)
    run(store)
    assert fetched == [1]
    assert content(store) == fresh(store)


def test_what_took_a_place_keeps_it_from_run_to_run(store: Path) -> None:
    """A replacement stands where the replaced stood: a later one finds the same range as in one reading."""
    log = Log("/w/a", id="session-1")
    log.turn("first", "answer", [("bash", "{}", "long output")]).turn("second", "answer")
    path = log.write(store)
    run(store)
    old = next(event for event in log.events if event["type"] == "tool/result")
    message = {**old["data"]["message"], "content": [{"type": "text", "text": "pruned"}]}
    log.replace("tool/result", {**old["data"], "message": message}, old["seq"], old["seq"])
    log.frame()
    log.append(path)
    run(store)
    surface = [event["seq"] for event in log.events if event.get("surfaceOp") == "append" and event is not old]
    pruned = log.seq - 1
    log.compact("summary", surface[0], surface[-1], [*surface, pruned])
    log.frame()
    log.append(path)
    run(store)
    assert content(store) == fresh(store)
    with closing(sqlite3.connect(indexes.database(store))) as connection:
        assert connection.execute("SELECT count(*) FROM surface_node").fetchone()[0] == 1


def test_a_live_session_is_found_within_two_seconds(store: Path) -> None:
    """A slow writer appends in halves of frames; each message is found two seconds after it is whole."""
    log = Log("/w/a", id="session-1").turn("begun", "yes")
    path = log.write(store)
    run(store)
    settings = indexes.settings(store)
    with closing(SessionGraph(settings)) as product:
        product.search(access.OWNER, SearchRequest(query="begun"))
        for number in range(2):
            log.turn(f"live{number}", "noted")
            written = path.stat().st_size
            log.append(path)
            stored = path.read_bytes()
            half = written + (len(stored) - written) // 2
            path.write_bytes(stored[:half])
            time.sleep(0.2)
            product.search(access.OWNER, SearchRequest(query=f"live{number}"))
            path.write_bytes(stored)
            deadline = time.monotonic() + settings.freshness_seconds + 5  # with room for a busy machine
            while not product.search(access.OWNER, SearchRequest(query=f"live{number}")).hits:
                assert time.monotonic() < deadline
                time.sleep(0.05)
    assert content(store) == fresh(store)


@pytest.mark.shared
def test_a_live_session_of_the_field_is_found_while_it_is_written(store: Path, shared: Path) -> None:
    """The recorded slow writer: half a frame now, the other half later (Z03)."""
    path = Log("/w/a", id="session-1").turn("begun", "yes").write(store)
    run(store)
    tool = shared / "field-cases" / "tools" / "slow_writer.py"
    writer = subprocess.Popen([sys.executable, tool, path, "4"])
    found = []
    with closing(SessionGraph(indexes.settings(store, freshness_seconds=0))) as product:
        while writer.poll() is None:
            found.append(product.search(access.OWNER, SearchRequest(query="live0 ")).hits)
            time.sleep(0.1)
    assert 1 in found
    assert set(found) <= {0, 1}
    run(store)
    assert content(store) == fresh(store)


def test_a_question_does_not_wait_for_a_long_run(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`look` gives up after its time; the run goes on, and a second question does not start another one."""
    begun, let_go, runs = threading.Event(), threading.Event(), []

    class SlowRun:
        def __init__(self, *_: object, **__: object) -> None:
            runs.append(self)

        def execute(self, _wish: object) -> None:
            begun.set()
            let_go.wait(60)

    monkeypatch.setattr(indexer, "Run", SlowRun)
    waits: list[float] = []
    asked = Refresher(indexes.settings(store, freshness_seconds=0))
    wait_for = asked._condition.wait_for
    monkeypatch.setattr(
        asked._condition,
        "wait_for",
        lambda predicate, timeout=None: waits.append(timeout) or wait_for(predicate, timeout),  # type: ignore[arg-type]
    )
    asked.look()
    assert begun.wait(10)
    asked.look()
    assert not let_go.is_set()
    assert len(runs) == 1
    assert refresher.QUERY_WAIT_SECONDS == 0.05
    assert [wait for wait in waits if wait is not None] == [refresher.QUERY_WAIT_SECONDS] * 2
    let_go.set()
    asked.close()


def replace_alike(path: Path) -> None:
    """Put another log in the place of one, with the same size and times."""
    other, facts = path.with_name("other"), path.stat()
    other.write_bytes(path.read_bytes().replace(b"one", b"two"))
    other.replace(path)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)


def point_elsewhere(link: Path) -> None:
    link.unlink()
    link.symlink_to("nowhere")


def in_store(change: Callable[[Path], object]) -> Callable[[Path], object]:
    """Change the log at a path of its own."""
    return lambda store: change(store / "--w-a--" / "session-1" / "session.v4.jsonl")


def leave_a_row_in_the_wal(store: Path) -> None:
    """Write as a run does that is killed before it can settle."""
    script = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        'c.execute("DELETE FROM log"); os._exit(1)'
    )
    subprocess.run([sys.executable, "-c", script, indexes.database(store)], check=False)


CHANGES: dict[str, Callable[[Path], object]] = {
    "another file alike": in_store(replace_alike),
    "other times": in_store(lambda path: os.utime(path, ns=(1, 1))),
    "gone": in_store(lambda path: path.unlink()),
    "no file any more": in_store(lambda path: (path.unlink(), path.mkdir())),
    "newer beside it": in_store(lambda path: Log("/w/a", id="session-1", version=5).write(path.parents[2])),
    "new session": lambda store: Log("/w/a", id="session-2").turn("more", "x").write(store),
    "new workspace": lambda store: Log("/w/b", id="session-2").turn("more", "x").write(store),
    "stray grown": lambda store: (store / "stray" / "deep" / "notes").write_text("more"),
    "stray new": lambda store: (store / "stray" / "deep" / "other").touch(),
    "link elsewhere": lambda store: point_elsewhere(store / "link"),
    "what a link names": lambda store: (store.parent / "named").write_text("more"),
    "store gone": lambda store: store.rename(store.parent / "elsewhere"),
    "workspace file gone": lambda store: indexes.database(store).unlink(),
    "workspace file of before": leave_a_row_in_the_wal,
    "catalog gone": lambda store: indexes.live(store).catalog.unlink(),
    "pointer gone": lambda store: (store.parent / "index" / "current").unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=[name.replace(" ", "-") for name in CHANGES])
def test_no_change_escapes_a_look_that_runs_nothing(store: Path, change: Callable[[Path], object]) -> None:
    """A look at what stands still compares it with what was seen; whatever differs is for a run."""
    Log("/w/a", id="session-1").turn("one", "answer").write(store, compressed=False)
    (store / "stray" / "deep").mkdir(parents=True)
    (store / "stray" / "deep" / "notes").write_text("mine")
    (store.parent / "named").touch()
    (store / "link").symlink_to(store.parent / "named")
    run(store)
    found = still(store)
    assert found.holds(store.parent / "index")
    change(store)
    assert not found.holds(store.parent / "index")
    run(store)
    if store.exists():
        assert content(store) == fresh(store)


def still(store: Path) -> Standstill:
    """Return what a run leaves that had nothing to do."""
    idle = indexer.Run(indexes.settings(store))
    idle.execute()
    assert idle.standstill is not None
    return idle.standstill


def test_a_look_at_what_stands_still_runs_nothing(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the lock is taken nor a database opened; the time of the look is noted."""
    path = Log("/w/a", id="session-1").turn("hello", "world").write(store)
    run(store)
    asked = Refresher(indexes.settings(store, freshness_seconds=0))
    asked.heal(30)
    monkeypatch.setattr(asked, "_standstill", still(store))
    (store.parent / "index" / "index.lock").unlink()
    monkeypatch.setattr(schema, "open_writer", lambda _: pytest.fail("opened"))
    generation.look(indexes.live(store), 0)
    before = asked.rounds
    asked.look()
    while asked.rounds == before:
        time.sleep(0.01)
    monkeypatch.undo()
    assert asked.problem is None
    assert not (store.parent / "index" / "index.lock").exists()
    assert (generation.looked_at(indexes.live(store)) or 0) > 0
    shutil.rmtree(path.parent)
    assert asked.heal(30)
    assert content(store) == fresh(store)
    asked.close()


def test_what_is_written_is_looked_for_while_somebody_watches(store: Path) -> None:
    """Nobody asks anything: the page that follows the index is enough, and waits for nothing."""
    log = Log("/w/a", id="session-1").turn("hello", "world")
    path = log.write(store)
    run(store)
    with closing(SessionGraph(indexes.settings(store, freshness_seconds=0))) as product:
        source = live.index(product, access.OWNER).source
        before = product.note(access.OWNER).epoch
        log.turn("more", "written")
        log.append(path)
        while product.note(access.OWNER).epoch == before:
            source.state()
            time.sleep(0.05)
    assert content(store) == fresh(store)


def test_a_run_that_had_something_to_do_leaves_no_standstill(store: Path) -> None:
    """What it did not see to the end is for the next one."""
    Log("/w/a", id="session-1").turn("hello", "world").write(store)
    busy = indexer.Run(indexes.settings(store))
    busy.execute()
    assert busy.standstill is None


def test_a_store_that_is_out_of_reach_is_no_standstill(store: Path) -> None:
    """Its return must be seen."""
    store.rmdir()
    run(store)
    assert not still(store).holds(store.parent / "index")


def test_a_log_that_could_not_be_read_is_no_standstill(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run tries again."""
    Log("/w/a", id="session-1").turn("hello", "world").write(store)
    trouble = SessionGraphError("SESSION_QUERY_PERSISTENCE_FAILED", "This log cannot be read.")
    monkeypatch.setattr(logs, "peek_header", lambda *_: (_ for _ in ()).throw(trouble))
    run(store)
    failing = indexer.Run(indexes.settings(store))
    failing.execute()
    assert failing.standstill is None


def test_a_generation_that_waits_to_be_swept_is_no_standstill(store: Path) -> None:
    """It is swept by a run once nobody uses it."""
    Log("/w/a", id="session-1").turn("hello", "world").write(store)
    run(store)
    with generation.using(indexes.live(store)):
        run(store, Wish(force=True))
        waiting = indexer.Run(indexes.settings(store))
        waiting.execute()
    assert waiting.standstill is None
    assert still(store).holds(store.parent / "index")


def test_a_server_reads_a_large_log_in_another_process(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own goes on answering: nothing of one large session is read there, of a small one everything."""
    here: list[Job] = []
    attempt = workers.attempt

    def watched(job: Job, watch: Any) -> Any:
        here.append(job)
        return attempt(job, watch)

    monkeypatch.setattr(workers, "attempt", watched)
    log, path = large(store)
    monkeypatch.setattr(workers, "ASIDE_BYTES", path.stat().st_size)
    asked = Refresher(indexes.settings(store))
    assert asked.heal(120)
    assert (asked.problem, here) == (None, [])
    log.turn("one more", "and done")
    log.append(path)
    assert asked.heal(120)
    assert (asked.problem, len(here)) == (None, 1)
    asked.close()
    assert content(store) == fresh(store)


def _steps(case: str) -> list[Path]:
    return [path for path in shared_folders(f"field-cases/{case}", "step*") if path.is_dir()]


@pytest.mark.shared
@pytest.mark.parametrize(
    "case", [folder.name for folder in shared_folders("field-cases") if list(folder.glob("step*"))]
)
def test_a_store_that_changes_as_in_the_field_is_followed(store: Path, case: str) -> None:
    """At every step the index equals a fresh build of the store as it then stands."""
    for step in _steps(case):
        shutil.rmtree(store)
        shutil.copytree(
            step / "sessions" if (step / "sessions").is_dir() else step, store, copy_function=shutil.copy2
        )
        run(store)
        assert content(store) == fresh(store), step.name


@pytest.mark.shared
def test_what_was_rewound_or_deleted_in_the_field_is_not_found(store: Path) -> None:
    """The words that the recorded cases expect, and no others (S09, S10)."""
    import json

    assert SHARED is not None
    for case in ("S09", "S10"):
        expected = json.loads((SHARED / "field-cases" / case / "expect.json").read_text("utf-8"))
        for number, step in enumerate(_steps(case), 1):
            shutil.rmtree(store)
            shutil.copytree(step / "sessions", store, copy_function=shutil.copy2)
            run(store)
            told = expected.get(f"step{number}", {})
            words = {word: hits for word, hits in (told.get("search") or told).items() if isinstance(hits, int)}
            with closing(SessionGraph(indexes.settings(store, auto_refresh=False))) as product:
                found = {word: product.search(access.OWNER, SearchRequest(query=word)).hits for word in words}
            assert found == words, step.name
        shutil.rmtree(store.parent / "index")
