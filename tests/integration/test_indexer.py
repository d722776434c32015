"""Index runs: what they find, keep, extend and forget."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from sessiongraph_web import config, generation, indexer, schema, workers
from sessiongraph_web.indexer import Wish
from sessiongraph_web.reports import RunReport
from tests.builders import Log, compress, skippable
from tests.dumps import dump


def run(store: Path, wish: Wish | None = None, index: str = "index") -> RunReport:
    settings = config.load({"sessions": store, "index": store.parent / index})
    return indexer.Run(settings).execute(wish)


def fresh(store: Path) -> dict[str, object]:
    """Return the dump of an index that was built from nothing."""
    shutil.rmtree(store.parent / "fresh", ignore_errors=True)
    run(store, index="fresh")
    return dump(store.parent / "fresh")


def counts(report: RunReport) -> tuple[int, ...]:
    return report.indexed, report.extended, report.skipped, report.removed, report.failed


def texts(store: Path) -> list[str]:
    return [
        row[-1] for name, rows in dump(store.parent / "index").items() if name.endswith(".entry") for row in rows
    ]


def test_a_generation_that_no_database_holds_stops_no_run(store: Path) -> None:
    """A log with an absurd number in its name or header is indexed, and so are the others."""
    Log("/w/a").turn("hello", "world").write(store)
    named = Log("/w/a").turn("hello", "named")
    named.store(store, named.to_bytes(), f"session.v{'9' * 30}.jsonl.zstd")
    stated = Log("/w/a")
    stated.frames[0] = stated.frames[0].replace(b'"version":4', b'"version":' + b"9" * 30)
    stated.turn("hello", "stated").write(store)
    assert counts(run(store)) == (3, 0, 0, 0, 0)
    assert {"world", "named", "stated"} <= set(texts(store))


def test_a_second_run_reads_nothing(store: Path) -> None:
    """Unchanged logs are skipped unopened."""
    Log("/w/a").turn("hello", "world").write(store)
    assert counts(run(store)) == (1, 0, 0, 0, 0)
    second = run(store)
    assert counts(second) == (0, 0, 1, 0, 0)
    assert second.bytes_read == 0


def test_each_exact_cwd_has_a_database_of_its_own(store: Path) -> None:
    """`/w/a` and `/w/a/` are two workspaces although their project folder is one."""
    for cwd in ("/w/a", "/w/a/", "/w/A"):
        Log(cwd).turn("hello", "world").write(store)
    run(store)
    live = generation.live(store.parent / "index")
    assert live is not None
    sealed = {}
    for path in live.directory.glob("ws_*.db"):
        with sqlite3.connect(path) as connection:
            sealed[path.stem] = connection.execute("SELECT value FROM meta WHERE key = 'sealed_cwd'").fetchone()[
                0
            ]
        connection.close()
    assert sealed == {schema.database_name(cwd): cwd for cwd in ("/w/a", "/w/a/", "/w/A")}


def test_a_grown_log_is_read_from_its_end(store: Path) -> None:
    """An append decodes only the new frames, and the result equals a fresh build."""
    log = Log("/w/a")
    for number in range(50):
        log.turn(f"question {number}", "answer " * 40)
    path = log.write(store)
    whole = run(store).bytes_read
    log.turn("one more question", "and its answer")
    log.append(path)
    report = run(store)
    assert counts(report) == (0, 1, 0, 0, 0)
    assert report.bytes_read < whole / 10
    assert dump(store.parent / "index") == fresh(store)


def test_closers_of_an_open_turn_go_when_the_turn_goes_on(store: Path) -> None:
    """A log that ends inside a turn has synthetic closers in the index until more is appended."""
    log = Log("/w/a")
    log.start_turn("never answered")
    log.frame()
    path = log.write(store)
    run(store)
    assert "interrupted" in texts(store)
    log.assistant("an answer after all")
    log.end_turn()
    log.append(path)
    assert counts(run(store)) == (0, 1, 0, 0, 0)
    assert "interrupted" not in texts(store)
    assert dump(store.parent / "index") == fresh(store)


def test_a_rewound_log_that_grew_again_is_read_anew(store: Path) -> None:
    """Growth is no proof of an append: the bytes before the resume point are compared."""
    Log("/w/a", id="session-1").turn("first version", "old words").write(store)
    run(store)
    again = Log("/w/a", id="session-1").turn("second version", "new words").turn("and", "more")
    again.write(store)
    run(store)
    assert not any("old words" in text for text in texts(store))
    assert dump(store.parent / "index") == fresh(store)


def test_a_deleted_session_is_forgotten(store: Path) -> None:
    """What a successful listing no longer shows is gone from rows and terms."""
    Log("/w/a", id="session-1").turn("keep this", "kept").write(store)
    path = Log("/w/a", id="session-2").turn("goneword", "gone").write(store)
    run(store)
    shutil.rmtree(path.parent)
    assert counts(run(store)) == (0, 0, 1, 1, 0)
    assert dump(store.parent / "index") == fresh(store)


def test_a_missing_store_keeps_its_rows(store: Path) -> None:
    """An unmounted disk is no reason to forget; `prune` is."""
    Log("/w/a").turn("hello", "world").write(store)
    run(store)
    before = texts(store)
    store.rename(store.parent / "elsewhere")
    assert run(store).removed == 0
    assert texts(store) == before
    run(store, Wish(prune=True))
    assert texts(store) == []


def test_a_session_that_moved_to_another_cwd_leaves_the_old_workspace(store: Path) -> None:
    """The header decides: a rewritten header moves the rows."""
    path = Log("/w/a", id="session-1").turn("hello", "world").write(store)
    run(store)
    moved = Log("/w/b", id="session-1").turn("hello", "there").write(store.parent / "other")
    path.write_bytes(moved.read_bytes())
    run(store)
    assert dump(store.parent / "index") == fresh(store)


def test_a_parent_that_appears_later_is_linked(store: Path) -> None:
    """A child whose parent is not there has `parent_elsewhere`, until the parent is in the same workspace."""
    parent = Log("/w/a", id="session-p").turn("plan", "done")
    Log("/w/a", id="session-c", parent="session-p").turn("help", "helped").write(store)
    run(store)
    parent.write(store)
    run(store)
    assert dump(store.parent / "index") == fresh(store)


def test_a_duplicate_id_is_marked_in_both_places(store: Path) -> None:
    """Two logs with one id are both listed, and neither is any more once one of them is gone."""
    Log("/w/a", id="session-1").turn("one", "1").write(store)
    path = Log("/w/b", id="session-1").turn("two", "2").write(store)
    run(store)
    states = [row[5] for row in dump(store.parent / "index")["catalog.log"]]
    assert states == ["duplicate", "duplicate"]
    shutil.rmtree(path.parent)
    run(store)
    assert [row[5] for row in dump(store.parent / "index")["catalog.log"]] == ["indexed"]


def test_a_damaged_workspace_file_is_rebuilt_when_it_is_written(store: Path) -> None:
    """A file that is not a database any more costs a rebuild of that workspace, nothing else."""
    log = Log("/w/a")
    path = log.turn("hello", "world").write(store)
    Log("/w/b").turn("other", "thing").write(store)
    run(store)
    live = generation.live(store.parent / "index")
    assert live is not None
    live.file(f"{schema.database_name('/w/a')}.db").write_bytes(b"not a database" * 1000)
    log.turn("again", "and again")
    log.append(path)
    run(store)
    assert dump(store.parent / "index") == fresh(store)


def test_another_schema_is_built_anew(store: Path) -> None:
    """A catalog of another version is left alone, and a new generation takes its place."""
    Log("/w/a").turn("hello", "world").write(store)
    run(store)
    live = generation.live(store.parent / "index")
    assert live is not None
    with sqlite3.connect(live.catalog) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    assert counts(run(store)) == (1, 0, 0, 0, 0)
    after = generation.live(store.parent / "index")
    assert after is not None
    assert after.directory != live.directory


def _chopped(text: bytes) -> bytes:
    """Cut a text into frames that end anywhere, with others between them that hold nothing."""
    pieces = [compress(text[at : at + 97]) for at in range(0, len(text), 97)]
    return skippable(b"x") + (compress(b"") + skippable(b"")).join(pieces)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("session.v4.jsonl.zstd", _chopped),
        ("session.v4.jsonl.zstd", lambda text: compress(b"\n") + compress(text, content_size=True) + bytes(9)),
        ("session.v4.jsonl", lambda text: b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n")),
        ("session.v4.jsonl", lambda text: b"\n \n" + text.replace(b"\n", b"\n\0\0\n", 9)),
    ],
    ids=["chopped", "one frame", "edited", "zeros"],
)
def test_a_log_of_any_framing_is_followed_from_any_byte(
    name: str, stored: Callable[[bytes], bytes], store: Path
) -> None:
    """Whatever byte a look finds a file to end at, the index goes on to what a fresh build gives."""
    log = Log("/w/a").turn("question", "answer", [("bash", "{}", "output")]).turn("更多", "答案")
    log.frame()
    whole = stored(b"".join(log.frames))
    for end in (1, 13, len(whole) // 3, len(whole) // 2 + 1, len(whole) - 5, len(whole)):
        log.store(store, whole[:end], name)
        run(store)
    assert dump(store.parent / "index") == fresh(store)
    assert texts(store).count("答案") == 1


def test_files_of_the_index_are_private(store: Path) -> None:
    """Nobody else on the machine can read what was indexed."""
    Log("/w/a").turn("hello", "world").write(store)
    run(store)
    for path in (store.parent / "index").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_store_is_never_written(store: Path) -> None:
    """A run leaves every file of the store as it was, and adds none."""
    Log("/w/a").turn("hello", "world").write(store)
    before = {path: path.stat() for path in store.rglob("*")}
    run(store)
    after = {path: path.stat() for path in store.rglob("*")}
    assert {p: (s.st_mtime_ns, s.st_size, s.st_mode) for p, s in before.items()} == {
        p: (s.st_mtime_ns, s.st_size, s.st_mode) for p, s in after.items()
    }


def test_a_second_writer_is_told_to_wait(store: Path) -> None:
    """While one run holds the lock, another one gives up after its time with a sentence that says so."""
    settings = config.load({"sessions": store, "index": store.parent / "index", "lock_wait_seconds": 0})
    generation.make_private(settings.index)
    with indexer.locked(settings), pytest.raises(Exception, match="Another index run"):
        indexer.Run(settings).execute()


@pytest.mark.skipif(os.cpu_count() == 1, reason="needs two processors")
def test_many_workspaces_are_built_by_several_processes(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that is worth it goes to worker processes, with the same result."""
    for number in range(4):
        Log(f"/w/{number}").turn(f"hello {number}", "world").write(store)
    monkeypatch.setattr(workers, "INLINE_BYTES", 0)
    run(store)
    monkeypatch.undo()
    assert dump(store.parent / "index") == fresh(store)
