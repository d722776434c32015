"""A damaged index is noticed by the next question and the next run, set aside, and built again from the store."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sessiongraph_web import access, schema
from sessiongraph_web.filters import SearchRequest
from sessiongraph_web.operations import SessionGraph
from tests import indexes
from tests.builders import Log
from tests.indexes import content, fresh, run

Damage = Callable[[Path], None]


def fill(store: Path) -> list[Log]:
    """Write two workspaces; the damage is done to `/w/a`."""
    made = []
    for cwd in ("/w/a", "/w/b"):
        for number in range(3):
            log = Log(cwd, id=f"session-{cwd[-1]}-{number}")
            for turn in range(20):
                log.turn(f"needle {turn} 广告SDK", f"answer {number} " * 60)
            log.write(store)
            made.append(log)
    return made


def sql(*statements: str) -> Damage:
    """Do something to a database behind the back of the index."""

    def act(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    return act


def zero_a_page(path: Path) -> None:
    """Wipe a page that is in use: one of the entries'."""
    with closing(sqlite3.connect(path)) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'entry'").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((page - 1) * schema.PAGE_BYTES)
        file.write(b"\0" * schema.PAGE_BYTES)


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def make_foreign(path: Path) -> None:
    """Put another program's database in the place."""
    path.unlink()
    sql("CREATE TABLE mine (a)", "INSERT INTO mine VALUES ('precious')")(path)


def leave_a_wal(path: Path) -> None:
    """Put there the `-wal` of another database, as a crude copy of files does."""
    other = path.with_name("other.db")
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE x (a)")
        connection.execute("INSERT INTO x VALUES (zeroblob(50000))")
        connection.commit()
        shutil.copy(f"{other}-wal", f"{path}-wal")
    other.unlink()


DROP_SHADOW = sql(
    "PRAGMA writable_schema=on",
    "DELETE FROM sqlite_master WHERE name = 'entry_fts_idx'",
    "PRAGMA writable_schema=off",
)
DAMAGES: dict[str, Damage] = {
    "zeroed page": zero_a_page,
    "truncated file": truncate,
    "not a database": lambda path: path.write_bytes(b"no database" * 5000) and None,  # type: ignore[func-returns-value]
    "empty file": lambda path: path.write_bytes(b"") and None,  # type: ignore[func-returns-value]
    "missing shadow table": DROP_SHADOW,
    "wiped shadow table": sql("UPDATE entry_fts_data SET block = zeroblob(length(block)) WHERE id > 10"),
    "emptied shadow table": sql("DELETE FROM entry_fts_data"),
    "shadow table without leaves": sql("DELETE FROM entry_fts_data WHERE id > 10"),
    "shadow table without its last leaf": sql(
        "DELETE FROM entry_fts_data WHERE id = (SELECT max(id) FROM entry_fts_data)"
    ),
    "emptied index of terms": sql("DELETE FROM entry_fts_idx"),
    "cleared index": sql("INSERT INTO entry_fts (entry_fts) VALUES ('delete-all')"),
    "missing table": sql("DROP TABLE entry"),
    "foreign file": make_foreign,
    "older schema": sql("PRAGMA user_version = 1"),
    "wrong seal": sql("UPDATE meta SET value = '/w/b' WHERE key = 'sealed_cwd'"),
    "deleted file": lambda path: path.unlink(),
}


@pytest.fixture(params=DAMAGES, ids=lambda name: name.replace(" ", "-"))
def damage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_run_finds_damage_and_rebuilds_that_workspace_alone(store: Path, damage: str) -> None:
    """Nothing in the store changed, so nothing but the damage can be the reason."""
    fill(store)
    run(store)
    other = indexes.database(store, "/w/b").stat().st_mtime_ns
    path = indexes.database(store)
    DAMAGES[damage](path)
    report = run(store)
    assert (report.indexed, report.skipped, report.outcome) == (3, 3, "complete")
    assert report.problem is not None
    assert report.problem.startswith("the file of workspace /w/a was damaged (")
    assert content(store) == fresh(store)
    assert indexes.database(store, "/w/b").stat().st_mtime_ns == other
    assert not path.exists()
    assert path.with_name(path.stem + ".damaged").exists() == (damage != "deleted file")
    assert run(store).problem is None


def test_a_question_finds_damage_and_is_answered(store: Path, damage: str) -> None:
    """The workspace is rebuilt while the question waits; `status` then says what happened."""
    fill(store)
    run(store)
    DAMAGES[damage](indexes.database(store))
    with closing(SessionGraph(indexes.settings(store, auto_refresh=False))) as product:
        assert product.search(access.OWNER, SearchRequest(query="needle", limit=100)).hits == 120
        runs = product.status(access.OWNER).runs
    assert runs is not None
    assert "workspace /w/a was damaged" in (runs[0].problem or "")
    assert content(store) == fresh(store)


def test_a_wal_that_was_left_behind_is_settled(store: Path) -> None:
    """Rows that a killed writer had committed are kept, and the file is whole again by itself."""
    fill(store)
    run(store)
    path = indexes.database(store)
    script = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA wal_autocheckpoint=0');"
        "c.execute(\"UPDATE meta SET value = value + 1 WHERE key = 'revision'\"); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", script, path], check=False)
    assert schema.has_wal(path)
    report = run(store)
    assert (report.indexed, report.problem) == (0, None)
    assert not schema.has_wal(path)
    assert content(store) == fresh(store)


def test_the_wal_of_another_database_is_no_part_of_ours(store: Path) -> None:
    """A `-wal` that does not belong to its file is set aside with it, or ignored; the rows stay right."""
    fill(store)
    run(store)
    leave_a_wal(indexes.database(store))
    run(store)
    assert content(store) == fresh(store)


def test_an_older_copy_of_a_workspace_is_brought_up_to_date(store: Path) -> None:
    """A file put back from a backup lacks what was appended, and holds what was deleted since."""
    made = fill(store)
    run(store)
    path = indexes.database(store)
    shutil.copy(path, path.with_name("backup"))
    Log("/w/a", id="session-new").turn("later", "session").write(store)
    shutil.rmtree(made[0].folder(store))
    run(store)
    path.with_name("backup").replace(path)
    run(store)
    assert content(store) == fresh(store)


@pytest.mark.parametrize("how", ["garbage", "zeroed", "deleted", "older schema", "foreign", "missing table"])
def test_a_damaged_catalog_costs_a_new_generation(store: Path, how: str) -> None:
    """A question notices it too, and is answered from the new one."""
    fill(store)
    run(store)
    old = indexes.live(store)
    match how:
        case "garbage":
            old.catalog.write_bytes(b"garbage" * 4000)
        case "zeroed":
            with old.catalog.open("r+b") as file:
                file.seek(schema.PAGE_BYTES)
                file.write(b"\0" * schema.PAGE_BYTES * 30)
        case "deleted":
            old.catalog.unlink()
        case "older schema":
            sql("PRAGMA user_version = 7")(old.catalog)
        case "foreign":
            make_foreign(old.catalog)
        case "missing table":
            sql("DROP TABLE workspace")(old.catalog)
    settings = indexes.settings(store, auto_refresh=how == "deleted", freshness_seconds=0)
    with closing(SessionGraph(settings)) as product:
        if how == "deleted":  # to a reader an index without catalog is none yet
            run(store)
        assert product.search(access.OWNER, SearchRequest(query="needle", limit=100)).hits == 120
    assert indexes.live(store) != old
    assert content(store) == fresh(store)


def test_a_lost_pointer_costs_nothing(store: Path) -> None:
    """Without `current` the newest generation is taken up again as it is."""
    fill(store)
    run(store)
    before = indexes.live(store)
    (store.parent / "index" / "current").unlink()
    report = run(store)
    assert (report.indexed, report.skipped) == (0, 6)
    assert indexes.live(store) == before


@pytest.mark.parametrize("part", ["TOKENIZER_VERSION", "REDACTION_VERSION"])
def test_other_tokens_or_masks_are_built_anew(store: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Every file says what made it; an index of another make is not answered from."""
    fill(store)
    monkeypatch.setattr(schema, "FORMAT", schema.FORMAT + (1000 if part == "TOKENIZER_VERSION" else 1))
    run(store)
    old = indexes.live(store)
    monkeypatch.undo()
    with pytest.raises(Exception, match="CORRUPT"):
        schema.open_reader(old.file(f"{schema.database_name('/w/a')}.db"))
    assert run(store).indexed == 6
    assert indexes.live(store) != old
    assert content(store) == fresh(store)


def test_every_version_is_in_the_format() -> None:
    """A change of schema, tokens or masking makes another format."""
    from sessiongraph_web.redact import REDACTION_VERSION
    from sessiongraph_web.tokenizer import TOKENIZER_VERSION

    parts = divmod(schema.FORMAT, 1_000_000)
    assert (parts[0], *divmod(parts[1], 1000)) == (schema.SCHEMA_VERSION, TOKENIZER_VERSION, REDACTION_VERSION)


@pytest.mark.shared
@pytest.mark.parametrize("how", ["drop", "garble"])
def test_damage_as_it_was_met_in_the_field_is_healed(store: Path, shared: Path, how: str) -> None:
    """FTS tables without a shadow table, or wiped, in a database that looks healthy (S12)."""
    fill(store)
    run(store)
    tool = shared / "field-cases" / "tools" / "corrupt_fts.py"
    subprocess.run([sys.executable, tool, indexes.database(store), "entry_fts", how], check=True)
    assert run(store).indexed == 3
    assert content(store) == fresh(store)


def test_a_foreign_file_is_kept_as_it_was(store: Path) -> None:
    """It is refused and moved aside, never written or deleted."""
    fill(store)
    run(store)
    path = indexes.database(store)
    make_foreign(path)
    run(store)
    with closing(sqlite3.connect(path.with_name(path.stem + ".damaged"))) as kept:
        assert kept.execute("SELECT a FROM mine").fetchall() == [("precious",)]
