"""Index runs that are killed, run into each other, or have no room: the next start is consistent and complete."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import access, config, generation, indexer, schema
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import SearchRequest
from sessiongraph_web.operations import SessionGraph
from tests import indexes
from tests.builders import Log
from tests.indexes import content, fresh, run
from tests.processes import let_everybody, start_index, unprivileged

KILLS = int(os.environ.get("SESSIONGRAPH_KILLS", "4"))  # of each kind; 17 or more for a thorough look
COMMAND = Path(sys.executable).with_name("sessiongraph-web")


def fill(store: Path, workspaces: int = 4, logs: int = 4) -> list[tuple[Log, Path]]:
    """Write sessions into several workspaces."""
    made = []
    for cwd in range(workspaces):
        for number in range(logs):
            log = Log(f"/w/{cwd}", id=f"session-{cwd}-{number}")
            for turn in range(8):
                log.turn(
                    f"question {turn} 广告SDK", "answer " * 200, [("bash", '{"command": "ls"}', "out " * 300)]
                )
            made.append((log, log.write(store)))
    return made


def kill_at_random(process: subprocess.Popen[bytes], dice: random.Random, span: float) -> None:
    """Kill the coordinator, or it and its workers at once, some time into the run."""
    time.sleep(dice.uniform(0, span))
    if dice.random() < 0.5:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()


def check(store: Path) -> None:
    """The next run ends well, and gives what a fresh build gives; nothing is left over."""
    run(store)
    assert content(store) == fresh(store)
    run(store)  # what a reader may still have opened during the last run goes in the next
    directory = indexes.live(store).directory
    with closing(schema.open_reader(directory / schema.CATALOG)) as catalog:
        named = {row[0] for row in catalog.execute("SELECT file FROM workspace")}
    assert {path.name for path in directory.glob("ws_*.db")} == named


def change(made: list[tuple[Log, Path]], dice: random.Random, word: str) -> None:
    """Append to some logs, and move, remove or replace others."""
    for log, path in made:
        action = dice.random()
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(log.to_bytes())
        elif action < 0.4:
            log.turn(f"{word} more", "and more")
            log.append(path)
        elif action < 0.5:
            shutil.rmtree(path.parent)
        elif action < 0.7:
            path.write_bytes(Log(f"/w/{word}", id=log.id).turn(f"{word} moved", "here").to_bytes())


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_build_is_gone_on_with(store: Path, number: int) -> None:
    """Whenever SIGKILL comes, to the coordinator alone or to all of its processes."""
    fill(store)
    kill_at_random(start_index(store, store.parent / "index"), random.Random(number), 1.5)
    check(store)


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_refresh_is_gone_on_with(store: Path, number: int) -> None:
    """Appends, removals and moves between workspaces are all there or not at all."""
    dice = random.Random(number)
    made = fill(store)
    run(store)
    change(made, dice, "first")
    kill_at_random(start_index(store, store.parent / "index"), dice, 1.2)
    change(made, dice, "second")
    check(store)


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_rebuild_is_gone_on_with(store: Path, number: int) -> None:
    """Of a damaged workspace, or of everything."""
    dice = random.Random(number)
    fill(store)
    run(store)
    indexes.database(store, "/w/1").write_bytes(b"damaged" * 10_000)
    wish = dice.choice(["verify", "force"])
    kill_at_random(start_index(store, store.parent / "index", wish), dice, 1.2)
    check(store)


class PowerCut(BaseException):
    """Nothing catches this on purpose."""


def test_a_run_may_end_before_any_of_its_transactions(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut at every single one, the next run gives what a fresh build gives: appends, moves, removals, migrations,
    a rebuild."""
    made = fill(store, workspaces=3, logs=3)
    Log("/w/0", id="session-old", version=3).turn("before", "migration").write(store)
    run(store)
    shutil.copytree(store.parent / "index", store.parent / "kept")
    for (log, path), action in zip(made, ["append", "move", "delete"] * 3, strict=True):
        match action:
            case "append":
                log.turn("more", "and more")
                log.append(path)
            case "move":
                cwd = "/w/1" if log.cwd != "/w/1" else "/w/2"
                path.write_bytes(Log(cwd, id=log.id).turn("moved", "x").to_bytes())
            case "delete":
                shutil.rmtree(path.parent)
    Log("/w/0", id="session-old").turn("after", "migration").write(store)
    expected = fresh(store)
    transaction, left = schema.transaction, [0]

    def counted(connection: sqlite3.Connection) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise PowerCut
        return transaction(connection)

    for number in range(100):
        shutil.rmtree(store.parent / "index")
        shutil.copytree(store.parent / "kept", store.parent / "index", copy_function=shutil.copy2)
        indexes.database(store, "/w/2").write_bytes(b"damaged" * 5000)
        left[0] = number
        monkeypatch.setattr(schema, "transaction", counted)
        try:
            run(store)
        except PowerCut:
            monkeypatch.undo()
        else:
            break
        run(store)
        assert content(store) == expected, f"cut before transaction {number}"
    monkeypatch.undo()
    assert number > 10
    assert content(store) == expected


def test_an_interrupted_repair_goes_on(store: Path) -> None:
    """What an older copy of a workspace lacks is read even if the run that noticed was stopped."""
    Log("/w/a", id="session-0").turn("first", "one").write(store)
    run(store)
    path = indexes.database(store)
    shutil.copy(path, path.with_name("backup"))
    for number in range(1, 4):
        Log("/w/a", id=f"session-{number}").turn("later", "one").write(store)
    run(store)
    path.with_name("backup").replace(path)
    stop = threading.Event()
    report = indexer.Run(indexes.settings(store), stop=stop, on_progress=lambda _: stop.set()).execute()
    assert report.outcome == "interrupted"
    run(store)
    assert content(store) == fresh(store)


def test_workers_do_not_outlive_their_coordinator(store: Path) -> None:
    """They end with it, and the lock that the next run waits for is free."""
    fill(store)
    process = start_index(store, store.parent / "index")
    while not list((store.parent / "index").glob("g*/ws_*.db")):
        time.sleep(0.01)
    process.kill()
    process.wait()
    with generation.writing(indexes.live(store), timeout=5):
        pass
    process.communicate()


def test_an_interrupted_forced_build_keeps_what_it_finished(store: Path) -> None:
    """The old generation is served until the new one is complete; a second attempt goes on with the first."""
    fill(store, workspaces=2, logs=2)
    run(store)
    old = indexes.live(store)
    settings = indexes.settings(store)
    stop = threading.Event()
    first = indexer.Run(settings, stop=stop, on_progress=lambda seen: seen.logs == 2 and stop.set())
    assert first.execute(indexer.Wish(force=True)).outcome == "interrupted"
    assert indexes.live(store) == old
    run(store)
    assert indexes.live(store) == old
    again = run(store, indexer.Wish(force=True))
    assert (again.indexed, again.skipped, again.outcome) == (2, 2, "complete")
    assert indexes.live(store) != old
    assert not old.directory.exists()
    assert content(store) == fresh(store)


def test_ctrl_c_leaves_a_usable_index_and_the_next_run_goes_on(store: Path) -> None:
    """The command ends after the logs it is reading, says so, and exits as programs do that were interrupted."""
    fill(store, workspaces=8, logs=12)
    command = [COMMAND, "index", "--sessions", store, "--index", store.parent / "index"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    while not list((store.parent / "index").glob("g*/ws_*.db")):
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert b"Traceback" not in err, err
    assert process.returncode in (130, 0), err
    if process.returncode == 130:
        assert b"interrupted; run it again to go on" in out
        assert b"Stopping after the logs being read" in err
    with closing(SessionGraph(indexes.settings(store, auto_refresh=False))) as product:
        product.search(access.OWNER, SearchRequest(query="question"))
    check(store)


def test_readers_never_wait_for_a_writer(store: Path) -> None:
    """A search answers while a run holds the lock and a workspace's database is being written."""
    Log("/w/a").turn("hello", "world").write(store)
    run(store)
    settings = indexes.settings(store, lock_wait_seconds=0)
    with indexer.locked(settings), closing(schema.open_writer(indexes.database(store))) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM entry")
        with closing(SessionGraph(settings)) as product:
            assert product.search(access.OWNER, SearchRequest(query="hello")).hits == 1
        writer.execute("ROLLBACK")


def test_many_writers_and_readers_at_once(store: Path) -> None:
    """One indexer writes at a time; readers see a turn whole or not yet, no error, never less than before."""
    made = fill(store, workspaces=2, logs=2)
    run(store)
    stop, problems, seen = threading.Event(), list[BaseException](), list[int]()
    readers = [threading.Thread(target=_read, args=(store, stop, problems, seen)) for _ in range(8)]
    for reader in readers:
        reader.start()
    try:
        for number in range(3):
            for log, path in made:
                log.turn(f"pair{number}", f"pair{number}")
                log.append(path)
            writers = [start_index(store, store.parent / "index") for _ in range(4)]
            for writer in writers:
                _, err = writer.communicate(timeout=120)
                assert (writer.returncode, err) == (0, b"")
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert problems == []
    assert set(seen) <= {8 * done for done in range(4)} | {2 * n for n in range(13)}
    assert content(store) == fresh(store)


def _read(store: Path, stop: threading.Event, problems: list[BaseException], seen: list[int]) -> None:
    settings = indexes.settings(store, auto_refresh=False)
    last = [0, 0, 0]
    try:
        with closing(SessionGraph(settings)) as product:
            while not stop.is_set():
                for number in range(3):
                    page = product.search(access.OWNER, SearchRequest(query=f"pair{number}", group="none"))
                    seen.append(page.hits)
                    assert page.hits % 2 == 0, "a log's turn was seen in part"
                    assert page.hits >= last[number], "something was there and is gone"
                    last[number] = page.hits
    except BaseException as problem:  # noqa: BLE001 - raised again by the test
        problems.append(problem)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with little room."""
    path = tmp_path / "small"
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", path], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_a_full_disk_is_told_and_the_old_index_still_answers(store: Path, small_disk: Path) -> None:
    """No damage is reported where room is missing, nothing is rebuilt, and room is all that is needed."""
    settings = config.load({"sessions": store, "index": small_disk / "index", "auto_refresh": False})
    log = Log("/w/a", id="session-1").turn("hello", "world")
    path = log.write(store)
    indexer.Run(settings).execute()
    ballast = small_disk / "ballast"
    dice = random.Random(1)
    for _ in range(300):
        log.turn(" ".join(f"{dice.getrandbits(40):x}" for _ in range(300)), "long")
    log.append(path)
    with pytest.raises(OSError, match="No space"), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    with pytest.raises(SessionGraphError) as error:
        indexer.Run(settings).execute()
    assert error.value.code == "SESSION_QUERY_INDEX_FAILED"
    assert error.value.detail.startswith("The disk that holds the index is full")
    with closing(SessionGraph(settings)) as product:
        assert product.search(access.OWNER, SearchRequest(query="hello")).hits == 1
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    assert indexer.Run(settings).execute().outcome == "complete"
    shutil.copytree(small_disk / "index", store.parent / "index")
    assert content(store) == fresh(store)


def test_a_build_without_room_leaves_no_litter(store: Path, small_disk: Path) -> None:
    """The file that could not be finished is not left on the full disk."""
    settings = config.load({"sessions": store, "index": small_disk / "index"})
    dice = random.Random(1)
    log = Log("/w/a")
    for _ in range(300):
        log.turn(" ".join(f"{dice.getrandbits(40):x}" for _ in range(300)), "long")
    log.write(store)
    with pytest.raises(SessionGraphError, match="disk that holds the index is full"):
        indexer.Run(settings).execute()
    assert list(small_disk.glob("index/g*/ws_*")) == []


def test_a_limit_on_the_size_of_files_is_a_disk_that_is_full(store: Path) -> None:
    """`ulimit -f`, or a quota: the run says so, the old index still answers, and room is all that is needed."""
    log = Log("/w/a", id="session-1").turn("hello", "world")
    path = log.write(store)
    run(store)
    dice = random.Random(1)
    for _ in range(300):
        log.turn(" ".join(f"{dice.getrandbits(40):x}" for _ in range(300)), "long")
    log.append(path)
    size = indexes.database(store).stat().st_size
    let_everybody(store.parent, write=True)

    def act() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        with pytest.raises(SessionGraphError, match="The disk that holds the index is full"):
            run(store)
        with closing(SessionGraph(indexes.settings(store, auto_refresh=False))) as product:
            assert product.search(access.OWNER, SearchRequest(query="hello")).hits == 1

    unprivileged(act)
    assert run(store).outcome == "complete"
    assert content(store) == fresh(store)


def test_a_read_only_index_is_served_and_not_written(store: Path) -> None:
    """Without the right to write, a search answers from the index as it is, and a run says what is wrong."""
    Log("/w/a").turn("hello", "world").write(store)
    run(store)
    with closing(SessionGraph(indexes.settings(store))) as product:
        assert product.tokens.signing_key
    let_everybody(store.parent)

    def act() -> None:
        settings = indexes.settings(store, auto_refresh=False)
        with closing(SessionGraph(settings)) as product:
            assert product.search(access.OWNER, SearchRequest(query="hello")).hits == 1
            assert product.status(access.OWNER).sessions == 1
        with pytest.raises(SessionGraphError, match="The index directory cannot be written"):
            indexer.Run(settings).execute()

    unprivileged(act)


def test_an_index_that_was_not_closed_is_not_read_without_its_wal(store: Path) -> None:
    """Rows in a `-wal` would be missed by a reader that cannot use it: an error says so."""
    Log("/w/a").turn("hello", "world").write(store)
    run(store)
    path = indexes.database(store)
    with closing(sqlite3.connect(path)) as keeper:
        keeper.execute("PRAGMA wal_autocheckpoint=0")
        keeper.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")
        keeper.commit()
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{path}{suffix}.kept")
    for suffix in ("", "-wal"):
        Path(f"{path}{suffix}.kept").replace(f"{path}{suffix}")
    let_everybody(store.parent)

    def act() -> None:
        with pytest.raises(SessionGraphError, match="was not closed"):
            schema.open_reader(path)

    unprivileged(act)
    with closing(schema.open_reader(path)) as reader:
        assert reader.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()[0] > 0


def test_a_read_only_store_is_indexed(store: Path) -> None:
    """Nothing of a run needs to write there."""
    log = Log("/w/a")
    log.turn("hello", "world").write(store)
    let_everybody(store)
    for folder in ("index", "fresh"):
        (store.parent / folder).mkdir()
        let_everybody(store.parent / folder, write=True)
    store.parent.chmod(0o777)

    def act() -> None:
        assert run(store).indexed == 1
        assert content(store) == fresh(store)

    unprivileged(act)
