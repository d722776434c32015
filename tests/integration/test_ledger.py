"""The ledger: every file of the store has a row that says what became of it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import access, logs, schema
from sessiongraph_web.faults import MOST_KEPT
from sessiongraph_web.filters import SearchRequest, SessionRequest
from sessiongraph_web.indexer import Wish
from sessiongraph_web.operations import SessionGraph
from tests import indexes
from tests.builders import Log
from tests.indexes import content, fresh, run
from tests.processes import let_everybody, unprivileged

NOT_UTF8 = b"--w-\xff--"


def ledger(store: Path) -> dict[str, tuple[str, str | None]]:
    """Return {path: (state, reason)}."""
    with sqlite3.connect(indexes.live(store).catalog) as connection:
        rows = connection.execute("SELECT path, state, reason FROM log").fetchall()
    connection.close()
    return {path: (state, reason) for path, state, reason in rows}


def walked(store: Path) -> set[str]:
    """Return the path of every file under the store, but for locks, as a ledger can show it."""
    found = set()
    for folder, _, files in os.walk(os.fsencode(store)):
        for name in files:
            if name != b"session.lock":
                path = os.path.relpath(os.path.join(folder, name), os.fsencode(store))  # noqa: PTH118 - bytes
                found.add(path.decode("utf-8", "backslashreplace"))
    return found


def fill(store: Path) -> None:
    """Write logs of all kinds, and things that are none, at every depth."""
    path = Log("/w/a", id="session-1").turn("hello", "world").write(store)
    (path.parent / "session.lock").touch()
    (path.parent / "session.v3.jsonl.zstd").write_bytes(b"older")
    (path.parent / "session.v5.jsonl.zstd.tmp").write_bytes(b"not yet")
    (path.parent / "notes.txt").write_text("mine")
    (path.parent / "deep" / "er").mkdir(parents=True)
    (path.parent / "deep" / "er" / "session.v4.jsonl.zstd").write_bytes(b"x")
    (path.parent / "linked.txt").symlink_to(path.parent / "notes.txt")
    (path.parent / "dead-link").symlink_to("nowhere")
    os.mkfifo(path.parent / "pipe")
    Log("/w/a", id="session-2", version=0).turn("old", "log").write(store, compressed=False)
    Log("/w/a", id="session-3").store(store, b"")
    Log("/w/a", id="session-4").store(store, b"no zstd at all")
    torn = Log("/w/b", id="session-5").turn("cut", "off").write(store)
    torn.write_bytes(torn.read_bytes()[:-3])
    (store / "README").write_text("hands off")
    (store / ".hidden").mkdir()
    (store / ".hidden" / "session.v4.jsonl.zstd").write_bytes(b"x")
    (store / "session.jsonl").write_text("misplaced")
    (store / "empty").mkdir()
    foreign = Path(os.fsdecode(os.fsencode(store) + b"/" + NOT_UTF8)) / "session-6"
    shutil.copytree(path.parent, foreign, ignore=lambda *_: ["deep", "pipe", "dead-link", "linked.txt"])


def test_every_file_of_the_store_is_accounted_for(store: Path) -> None:
    """The ledger lists what a walk over the directory lists, locks left aside, and each row says why."""
    fill(store)
    run(store)
    rows = ledger(store)
    assert set(rows) == walked(store)
    ignored = {path.rsplit("/", 1)[-1] for path, (state, _) in rows.items() if state == "ignored"}
    strays = {"notes.txt", "session.v5.jsonl.zstd.tmp", "README", "pipe", "linked.txt", "dead-link"}
    assert ignored == strays | {"session.v4.jsonl.zstd"}  # in a folder where no log belongs
    assert all(reason for state, reason in rows.values() if state != "indexed")


def test_a_file_that_is_gone_leaves_the_ledger(store: Path) -> None:
    """Whatever it was."""
    fill(store)
    run(store)
    shutil.rmtree(store)
    store.mkdir()
    run(store)
    assert ledger(store) == {}


def test_a_path_of_the_ledger_leads_back_to_its_file(store: Path) -> None:
    """Also where a folder's name is no text: it is shown with its bytes spelled out."""
    fill(store)
    run(store)
    with sqlite3.connect(indexes.live(store).catalog) as connection:
        rows = connection.execute("SELECT log_id, path FROM log WHERE session_id IS NOT NULL").fetchall()
    connection.close()
    found = {logs.locate(store, path, log_id) for log_id, path in rows}
    assert len(found) == len(rows)
    assert all(path.is_file() for path in found)
    assert any(r"\xff" in path for _, path in rows)


NAMES = {
    "bytes": (b"bad", b"bad\xff"),
    "cut": (b"plain", b"\xe4\xb8"),
    "alike": (rb"\xff", b"\xff"),
    "both": (b"\xff\xfe", b"\xff\xff"),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_a_log_whose_path_is_no_text_is_a_session_like_any_other(store: Path, names: tuple[bytes, bytes]) -> None:
    """It is found, read and followed, and told from a neighbour that is shown alike."""
    paths = []
    for number, name in enumerate(names):
        log = Log("/w/a", id=f"session-{number}").turn(f"needle {number}", "found")
        path = log.write(store)
        paths.append(path.parent.rename(path.parent.with_name(os.fsdecode(name))) / path.name)
    run(store)
    log.turn("needle 1", "more")
    log.append(paths[1])
    assert run(store).extended == 1
    with closing(SessionGraph(indexes.settings(store))) as product:
        assert product.search(access.OWNER, SearchRequest(query="needle", group="none")).hits == 3
        for number, prompts in ((0, 1), (1, 2)):
            page = product.session(access.OWNER, SessionRequest(id=f"session-{number}"))
            said = [event for event in page.events if event.type == "user/message"]
            assert len(said) == prompts
    assert content(store) == fresh(store)


def test_a_log_behind_a_link_is_read_by_its_path_in_the_store(store: Path) -> None:
    """A project folder may be a link to elsewhere; the path in the store is what the ledger knows."""
    path = Log("/w/a", id="session-1").turn("hello", "world").write(store)
    project = path.parent.parent
    project.rename(store.parent / "elsewhere")
    project.symlink_to(store.parent / "elsewhere")
    run(store)
    assert set(ledger(store)) == {str(path.relative_to(store))}
    assert content(store) == fresh(store)


def test_damage_is_located_by_byte_and_line(store: Path) -> None:
    """Each fault of a partial log says where it is."""
    log = Log("/w/a", id="session-1").turn("hello", "world")
    log.raw(b"this is no JSON\n")
    log.frame()
    log.turn("and", "on")
    path = log.write(store)
    run(store)
    faults: list[dict[str, Any]] = faults_of(store)
    assert [(fault["code"], fault["line"]) for fault in faults] == [("bad_line", 9)]
    assert 0 < faults[0]["offset"] < path.stat().st_size
    assert ledger(store)[str(path.relative_to(store))] == ("partial", faults[0]["message"])


def test_of_very_many_faults_the_first_are_kept_and_all_are_counted(store: Path) -> None:
    """A log may be bad in every line: rows and what is carried from run to run stay bounded, also as it grows."""
    log = Log("/w/a", id="session-1").turn("hello", "world")
    log.raw(b"this is no JSON\n" * (MOST_KEPT + 50))
    log.frame()
    path = log.turn("and", "on").write(store)
    run(store)
    log.raw(b"nor is this\n" * 30)
    log.frame()
    log.turn("and", "further")
    log.append(path)
    assert run(store).extended == 1
    assert len(faults_of(store)) == MOST_KEPT
    assert content(store) == fresh(store)
    with closing(SessionGraph(indexes.settings(store))) as product:
        (entry,) = product.status(access.OWNER).problems or []
        page = product.session(access.OWNER, SessionRequest(id="session-1"))
    assert (len(entry.faults), entry.damage) == (MOST_KEPT, MOST_KEPT + 80)
    assert (len(page.damage), page.session.damage) == (MOST_KEPT, MOST_KEPT + 80)
    with closing(SessionGraph(indexes.settings(store, index="none", auto_build=False))) as product:
        bare = product.session(access.OWNER, SessionRequest(id="session-1"))
    assert (bare.damage, bare.session.damage) == (page.damage, page.session.damage)


def test_a_name_that_says_another_generation_is_told(store: Path) -> None:
    """dsh would refuse such a log; here the header counts, and the fault is told."""
    path = Log("/w/a", id="session-1", version=3).turn("hello", "world").write(store)
    path = path.rename(path.with_name("session.v4.jsonl.zstd"))
    run(store)
    (fault,) = faults_of(store)
    assert (fault["code"], fault["line"]) == ("version_mismatch", 1)
    said = "the header says version 3, the file's name 4"
    assert ledger(store) == {str(path.relative_to(store)): ("partial", said)}


def test_a_duplicate_keeps_what_else_is_to_be_said_of_it(store: Path) -> None:
    """While two logs carry one id, and after one of them is gone."""
    torn = Log("/w/a", id="session-1").turn("hello", "world")
    torn.raw(b"this is no JSON\n")
    torn.frame()
    torn.write(store)
    twin = Log("/w/b", id="session-1").turn("hello", "there").write(store)
    run(store)
    reasons = {reason for _, reason in ledger(store).values()}
    also = "another log carries the same session id"
    assert reasons == {also, f"{also}; {faults_of(store)[0]['message']}"}
    assert content(store) == fresh(store)
    shutil.rmtree(twin.parent)
    run(store)
    assert content(store) == fresh(store)


def faults_of(store: Path) -> list[dict[str, Any]]:
    """Return the faults of every row of the ledger."""
    return [fault for row in content(store)["catalog.log"] for fault in json.loads(row[-1])]


def test_a_log_that_was_migrated_leaves_its_older_self_behind(store: Path) -> None:
    """A newer generation beside a log makes it superseded: no session any more, in rows and terms."""
    Log("/w/a", id="session-1", version=3).turn("before", "migration").write(store)
    run(store)
    Log("/w/a", id="session-1", version=4).turn("after", "migration").write(store)
    report = run(store)
    assert (report.indexed, report.removed) == (1, 1)
    assert content(store) == fresh(store)
    next(store.rglob("session.v4.jsonl.zstd")).unlink()
    assert run(store).indexed == 1
    assert content(store) == fresh(store)


def test_a_file_that_was_replaced_while_it_was_read_is_read_again(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was indexed is the old file's, the fingerprint the new one's: the next run must not go on there."""
    path = Log("/w/a", id="session-1").turn("old words", "old answer").write(store)
    other = Log("/w/a", id="session-1").turn("new words", "new answer").write(store.parent / "other")
    fingerprint = logs.fingerprint

    def replaced(path: Path, offset: int) -> str:
        if other.exists():
            other.replace(path)
        return fingerprint(path, offset)

    monkeypatch.setattr(logs, "fingerprint", replaced)
    run(store)
    assert not other.exists()
    monkeypatch.undo()
    run(store)
    assert path.exists()
    assert content(store) == fresh(store)


def test_a_project_that_cannot_be_listed_keeps_its_sessions(store: Path) -> None:
    """They are unreachable, since when it says; `prune` forgets them, or their return settles it."""
    path = Log("/w/a", id="session-1").turn("hello", "world").write(store)
    Log("/w/b", id="session-2").turn("other", "thing").write(store)
    for folder in ("index", "fresh"):
        (store.parent / folder).mkdir()
    let_everybody(store.parent, write=True)
    before = path.parent.parent.stat().st_mode
    unprivileged(lambda: run(store))
    path.parent.parent.chmod(0)

    def look() -> None:
        report = run(store)
        assert report.removed == 0
        assert set(unreachable(store)) == {str(path.relative_to(store))}
        assert [row[-1] for row in content(store)[schema.database_name("/w/a") + ".entry"]] == ["hello", "world"]

    unprivileged(look)
    path.parent.parent.chmod(before)

    def come_back() -> None:
        run(store)
        assert unreachable(store) == {}
        assert content(store) == fresh(store)

    unprivileged(come_back)
    path.parent.parent.chmod(0)

    def forget() -> None:
        assert run(store, Wish(prune=True)).removed == 1
        assert [row[0] for row in content(store)["catalog.workspace"]] == [schema.database_name("/w/b")]

    unprivileged(forget)
    path.parent.parent.chmod(before)


def unreachable(store: Path) -> dict[str, int]:
    """Return {path: since when} of what could not be looked at."""
    with sqlite3.connect(indexes.live(store).catalog) as connection:
        rows = connection.execute("SELECT path, unreachable_since FROM log WHERE unreachable_since IS NOT NULL")
        found = dict(rows.fetchall())
    connection.close()
    return found


def test_a_log_that_cannot_be_opened_fails_alone_and_is_tried_again(store: Path) -> None:
    """Rights do not show in size or time of a file: every run tries, and only the first one counts a failure."""
    path = Log("/w/a", id="session-1").turn("hello", "world").write(store)
    Log("/w/b", id="session-2").turn("other", "thing").write(store)
    for folder in ("index", "fresh"):
        (store.parent / folder).mkdir()
    let_everybody(store.parent, write=True)
    path.chmod(0)

    def fail() -> None:
        first, second = run(store), run(store)
        assert (first.indexed, first.failed) == (1, 1)
        assert (second.indexed, second.failed) == (0, 0)
        state, reason = ledger(store)[str(path.relative_to(store))]
        assert (state, reason) == ("unreadable", "This log cannot be read: Permission denied.")

    unprivileged(fail)
    path.chmod(0o644)

    def succeed() -> None:
        assert run(store).indexed == 1
        assert content(store) == fresh(store)

    unprivileged(succeed)
