"""A first build: workspaces can be searched one by one, the most recent first, and one can see how far it is."""

from __future__ import annotations

import itertools
import os
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from sessiongraph_web import indexer, schema, shell, workers
from sessiongraph_web.jobs import Job
from sessiongraph_web.logs import Limits
from sessiongraph_web.models import Header
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.workers import Progress, take
from tests import indexes
from tests.builders import Log


def job(name: str, *, work: int, changed_at: int) -> Job:
    """Return a job with one log of that size and age."""
    from sessiongraph_web.jobs import LogTask

    header = Header(name, 4, None, f"/w/{name}")
    task = LogTask(1, Path(name), header, work, changed_at)
    return Job(Path(name), header.cwd, True, (task,), (), {}, 0, Limits())


def test_recent_and_large_workspaces_are_begun_first() -> None:
    """One process takes what changed last, the others what takes longest."""
    jobs = [
        job("old-large", work=900, changed_at=1),
        job("new-small", work=10, changed_at=9),
        job("newer", work=20, changed_at=8),
        job("middle", work=500, changed_at=5),
    ]
    taken = [take(jobs, newest=newest).cwd for newest in (True, False, True, False)]
    assert taken == ["/w/new-small", "/w/old-large", "/w/newer", "/w/middle"]
    assert jobs == []


@pytest.mark.parametrize("inline_bytes", [0, 10**9], ids=["processes", "inline"])
def test_a_workspace_can_be_searched_before_the_others_are_done(
    store: Path, monkeypatch: pytest.MonkeyPatch, inline_bytes: int
) -> None:
    """The generation is there from the start; what it lacks is said as done and total."""
    monkeypatch.setattr(workers, "INLINE_BYTES", inline_bytes)
    for age, name in enumerate("dcba"):
        path = Log(f"/w/{name}").turn("hello", "world").write(store)
        os.utime(path, (1_700_000_000 + age, 1_700_000_000 + age))
    seen: list[tuple[list[str | None], int, int, bool]] = []
    settings = indexes.settings(store, auto_refresh=False)

    def watch(_: Progress) -> None:
        with closing(SessionGraph(settings)) as product, product.corpus.view() as view:
            assert view.catalog is not None
            rows = view.catalog.execute("SELECT cwd FROM workspace").fetchall()
            note = view.note()
            seen.append(([row[0] for row in rows], note.done, note.total, note.indexing))

    indexer.Run(settings, on_progress=watch).execute()
    first = seen[0]
    assert first[2:] == (4, True)
    known = [cwds for cwds, *_ in seen]
    assert all(set(before) <= set(after) for before, after in itertools.pairwise(known))
    if inline_bytes:
        assert next(sorted(cwds) for cwds in known if len(cwds) == 2) == ["/w/a", "/w/b"]
    with closing(SessionGraph(settings)) as product, product.corpus.view() as view:
        note = view.note()
        assert (note.done, note.total, note.indexing) == (4, 4, False)


def test_workers_start_without_the_program_that_starts_them(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs as the main module is not imported again in a worker: it may be large, or not made for that."""
    monkeypatch.setattr(workers, "INLINE_BYTES", 0)
    for name in "ab":
        Log(f"/w/{name}").turn("hello", "world").write(store)
    program = tmp_path / "program.py"
    program.write_text("from pathlib import Path\nPath(__file__).with_suffix('.imported').touch()\n")
    main = ModuleType("__main__")
    main.__file__ = str(program)
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert indexer.Run(indexes.settings(store)).execute().indexed == 2
    assert not program.with_suffix(".imported").exists()
    assert sys.modules["__main__"] is main


def test_progress_is_told_inside_a_large_log(store: Path) -> None:
    """By bytes, ending at the whole, so that an estimate can be made while the first log is still being read."""
    log = Log("/w/a")
    for _ in range(60):
        log.turn("question", os.urandom(40_000).hex())
    path = log.write(store)
    told: list[Progress] = []
    indexer.Run(indexes.settings(store), on_progress=told.append).execute()
    inside = [progress for progress in told if progress.logs == 0]
    assert len(inside) >= 3
    assert all(before.bytes <= after.bytes for before, after in itertools.pairwise(told))
    size = path.stat().st_size
    assert (told[-1].logs, told[-1].bytes, told[-1].bytes_total) == (1, size, size)


def test_an_estimate_is_by_bytes_and_needs_something_to_judge_by() -> None:
    """Half of the bytes in four seconds leaves four more."""
    assert Progress(0, 10, 0, 100, 5.0).seconds_left is None
    assert Progress(1, 10, 50, 100, 0.5).seconds_left is None
    assert Progress(1, 10, 50, 100, 4.0).seconds_left == 4.0


def test_an_append_to_a_large_log_is_small_work(store: Path) -> None:
    """What is read counts, not what is there: no process is started for it, and progress ends at the whole."""
    log = Log("/w/a")
    for _ in range(30):
        log.turn("question", os.urandom(20_000).hex())
    path = log.write(store)
    indexes.run(store)
    before = path.stat().st_size
    log.turn("more", "and more")
    log.append(path)
    told: list[Progress] = []
    indexer.Run(indexes.settings(store), on_progress=told.append).execute()
    added = path.stat().st_size - before
    assert (told[-1].bytes, told[-1].bytes_total) == (added, added)


def test_files_that_nobody_names_are_deleted(store: Path) -> None:
    """What a killed build left goes with the next run."""
    Log("/w/a").turn("hello", "world").write(store)
    indexes.run(store)
    litter = indexes.live(store).directory / f"{schema.database_name('/w/gone')}.db"
    litter.write_bytes(b"half a database")
    indexes.run(store)
    assert not litter.exists()


def test_progress_is_plain_lines_now_and_then_where_they_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe or a log: no control characters, and nothing at all of a run that ends soon."""
    say = shell.ProgressLine()
    for logs, seconds in ((1, 0.5), (3, 9.9), (4, 10.0), (5, 12.0), (8, 21.0), (10, 22.0)):
        say(Progress(logs, 10, logs * 1000, 10_000, seconds))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "Indexing 4 of 10 logs, 40 %, about 15 s left",
        "Indexing 8 of 10 logs, 80 %, about 5 s left",
    ]
