"""`check` looks at what runs take on trust, and finds what they cannot."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from sessiongraph_web import cli
from sessiongraph_web.checking import Check, CheckReport
from tests import indexes
from tests.builders import Log
from tests.indexes import run

NO_TOKENS = "INSERT INTO entry_fts (entry_fts, rowid, tokens) VALUES ('delete', 1, 'needle 广告')"
OTHER_ROW = "INSERT INTO entry_fts (rowid, tokens) VALUES (1, 'needle')"


def fill(store: Path) -> None:
    """Write sessions of two workspaces, one of them with everything that the index keeps."""
    main = Log("/w/a", id="session-main").turn("needle 广告", "answer", [("bash", "{}", "out")])
    main.title("About needles")
    main.write(store)
    Log("/w/a", id="session-fork", seeded_from=main).turn("needle again", "forked").write(store)
    Log("/w/b", id="session-other").turn("other", "thing").write(store)
    run(store)


def check(store: Path, **options: int) -> CheckReport:
    return Check(indexes.settings(store), **options).perform()


def test_a_sound_index_passes(store: Path) -> None:
    """Everything is looked at, and nothing is found."""
    fill(store)
    found = check(store)
    assert (found.sound, found.findings) == (True, [])
    assert (found.workspaces, found.sessions, found.reread) == (2, 3, 3)
    assert found.entries > 6


MISCOUNTED = "terms are counted wrongly"
UNLIKE_LEDGER = "is not what the ledger says"
UNLIKE_LOG = "differs from its log in"


@pytest.mark.parametrize(
    ("statements", "check_name", "detail"),
    [
        ([NO_TOKENS], "terms", f"2 {MISCOUNTED}, the first is 'needle'"),
        ([NO_TOKENS.replace(" 广告", ""), OTHER_ROW.replace("1,", "2,")], "terms", "the entries with 'needle'"),
        (["UPDATE entry SET text = text || ' altered' WHERE id = 1"], "terms", f"1 {MISCOUNTED}"),
        (["DELETE FROM session WHERE id = 'session-main'"], "ledger", UNLIKE_LEDGER),
        (["UPDATE session SET title = 'forged' WHERE id = 'session-main'"], "ledger", UNLIKE_LEDGER),
        (["UPDATE session SET entries = 99 WHERE id = 'session-main'"], "ledger", "entries of its own, not 99"),
        (["UPDATE entry SET surface = 'shadowed' WHERE id = 1"], "store", f"{UNLIKE_LOG} `entry`"),
        (["DELETE FROM citation"], "store", f"{UNLIKE_LOG} `citation`"),
        (["UPDATE meta SET value = '/w/b' WHERE key = 'sealed_cwd'"], "file", "damaged"),
        (["DROP INDEX entry_log"], "file", "entry_log is missing"),
    ],
)
def test_what_is_wrong_is_found(store: Path, statements: list[str], check_name: str, detail: str) -> None:
    """In terms, rows, counts, seals and tables, each under its own heading."""
    fill(store)
    with closing(sqlite3.connect(indexes.database(store))) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    found = check(store)
    assert not found.sound
    assert any(
        (finding.workspace, finding.check) == ("/w/a", check_name) and detail in finding.detail
        for finding in found.findings
    ), found.findings


def test_an_older_stretch_that_was_rewritten_under_the_same_facts_is_found(store: Path) -> None:
    """Size, time and inode are kept, and so is the end of the log: only reading it all tells."""
    log = Log("/w/a", id="session-1").turn("first words", "answer")
    for _ in range(3):
        log.turn("filler", "filler " * 9000)
    plain = log.write(store, compressed=False)
    run(store)
    facts = plain.stat()
    with plain.open("r+b") as file:
        content = file.read().replace(b"first words", b"other words")
        file.seek(0)
        file.write(content)
    os.utime(plain, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert run(store).skipped == 1
    found = check(store)
    assert {finding.check for finding in found.findings} == {"store"}


def test_the_sample_bounds_what_is_read_again(store: Path) -> None:
    """Zero reads every session."""
    for number in range(6):
        Log("/w/a", id=f"session-{number}").turn("hello", "world").write(store)
    run(store)
    assert [check(store, sample=sample).reread for sample in (2, 3, 0)] == [2, 3, 6]


def test_a_log_that_grew_since_is_not_held_against_the_index(store: Path) -> None:
    """What the next run will read is no fault of the last."""
    log = Log("/w/a").turn("hello", "world")
    path = log.write(store)
    run(store)
    log.turn("and", "more")
    log.append(path)
    assert check(store).sound


@pytest.mark.parametrize("break_it", [False, True])
def test_the_command_says_it_by_its_exit_code(store: Path, break_it: bool) -> None:
    """0 for a sound index, 1 for any other, and the report as text or JSON."""
    fill(store)
    if break_it:
        with closing(sqlite3.connect(indexes.database(store))) as connection:
            connection.execute(NO_TOKENS)
            connection.commit()
    places = ["--sessions", str(store), "--index", str(store.parent / "index")]
    text = CliRunner().invoke(cli.main, ["check", *places])
    assert (text.exit_code, "something is wrong" in text.output, "--force" in text.output) == (break_it,) * 3
    data = json.loads(CliRunner().invoke(cli.main, ["check", *places, "--json"]).stdout)
    assert data["sound"] is not break_it
    assert bool(data["findings"]) is break_it


def test_without_an_index_there_is_nothing_to_check(store: Path) -> None:
    """The error says how to build one."""
    result = CliRunner().invoke(cli.main, ["check", "--index", str(store.parent / "none")])
    assert result.exit_code != 0
