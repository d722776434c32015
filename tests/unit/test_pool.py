"""Readers that are kept between answers: which come back, which are closed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sessiongraph_web import pool, schema
from sessiongraph_web.pool import Pool


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """A pool that keeps two readers."""
    monkeypatch.setattr(pool, "MOST_IDLE", 2)
    made = Pool()
    yield made
    made.close()


def databases(directory: Path, count: int) -> list[Path]:
    """Make some databases in a directory."""
    directory.mkdir()
    paths = [directory / f"{number}.db" for number in range(count)]
    for path in paths:
        connection = schema.create(path, schema.CATALOG_DDL)
        schema.settle(connection, path)
        connection.close()
    return paths


def lent(readers: Pool, path: Path) -> sqlite3.Connection:
    """Borrow a reader and give it back."""
    with readers.lease(path) as connection:
        return connection


def is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_a_reader_comes_back(few: Pool, tmp_path: Path) -> None:
    """Who asks for a database again gets the reader that rests, and two at once get two."""
    (path,) = databases(tmp_path / "g1", 1)
    first = lent(few, path)
    with ExitStack() as stack:
        both = [stack.enter_context(few.lease(path)) for _ in range(2)]

    assert both[0] is first
    assert both[1] is not first


def test_those_that_rested_longest_are_closed(few: Pool, tmp_path: Path) -> None:
    """Beyond what is kept, the readers go that nobody asked for since."""
    one, two, three = databases(tmp_path / "g1", 3)
    readers = [lent(few, path) for path in (one, two)]
    assert lent(few, one) is readers[0]
    last = lent(few, three)

    assert [is_open(reader) for reader in (*readers, last)] == [True, False, True]


def test_readers_of_another_generation_are_closed(few: Pool, tmp_path: Path) -> None:
    """Once the pool has settled in a directory, it keeps readers on files of that one alone."""
    (old,), (new,) = databases(tmp_path / "g1", 1), databases(tmp_path / "g2", 1)
    with few.lease(old) as late:
        resting = lent(few, old)
        few.settle(tmp_path / "g2")
        assert not is_open(resting)

    assert (is_open(late), is_open(lent(few, new))) == (False, True)


def test_a_reader_that_met_a_fault_is_closed(few: Pool, tmp_path: Path) -> None:
    """What an answer failed over is not given to the next one."""
    (path,) = databases(tmp_path / "g1", 1)
    with pytest.raises(ValueError, match="unhappy"), few.lease(path) as reader:
        raise ValueError("unhappy")

    assert not is_open(reader)
