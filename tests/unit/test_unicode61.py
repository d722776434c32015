"""The table of unicode61 against the SQLite that is installed."""

from __future__ import annotations

import sqlite3
import textwrap
from collections.abc import Iterable
from itertools import groupby

import pytest

from sessiongraph_web import unicode61

_SURROGATES = range(0xD800, 0xE000)


Probe = tuple[list[int], dict[int, int], list[int]]


@pytest.fixture(scope="module")
def probe() -> Probe:
    """The word characters, foldings and diacritics of the SQLite that is installed."""
    return _probe()


def test_table_is_what_sqlite_does(probe: Probe) -> None:
    """Every code point is of a word, a diacritic or neither, and folds, exactly as in SQLite's unicode61."""
    tokens, folds, diacritics = probe
    assert "".join(map(chr, diacritics)) == unicode61.DIACRITICS
    assert folds == unicode61.FOLDS
    assert tokens == [code for first, last in unicode61.TOKEN_RANGES for code in range(first, last + 1)]


def test_table_is_written_in_its_shortest_form(probe: Probe) -> None:
    """The checked-in text is what `render` makes of the probe, so that a newer SQLite gives a readable diff."""
    assert render(*probe) == (unicode61.TOKENS, unicode61.FOLDED, unicode61.DIACRITICS)


def render(tokens: list[int], folds: dict[int, int], diacritics: list[int]) -> tuple[str, str, str]:
    """Write a probe as the constants of `unicode61`."""
    ranges = (f"{first:x}-{last:x}" for first, last in _ranges(tokens))
    runs = (":".join(f"{part:x}" for part in run) for run in _runs(dict(folds)))
    return _wrap(ranges), _wrap(runs), "".join(map(chr, diacritics))


def _wrap(words: Iterable[str]) -> str:
    return "\n" + textwrap.fill(" ".join(words), 110, break_on_hyphens=False) + "\n"


def _ranges(codes: list[int]) -> list[tuple[int, int]]:
    groups = groupby(enumerate(codes), key=lambda pair: pair[1] - pair[0])
    return [(members[0][1], members[-1][1]) for _, group in groups if (members := list(group))]


def _runs(folds: dict[int, int]) -> list[tuple[int, int, int, int, int]]:
    """Cut the folding into runs: first, last, step, target of the first, growth of the target per step."""
    runs = []
    while folds:
        first = min(folds)
        shapes = [
            (_last(folds, first, step, grow), step, grow) for step, grow in ((1, 1), (1, 0), (2, 2), (2, 0))
        ]
        last, step, grow = max(shapes, key=lambda shape: (shape[0] - first) // shape[1])
        runs.append((first, last, step, folds[first], grow))
        for code in range(first, last + 1, step):
            del folds[code]
    return runs


def _last(folds: dict[int, int], first: int, step: int, grow: int) -> int:
    code = first
    while folds.get(code + step) == folds[code] + grow:
        code += step
    return code


def _probe() -> Probe:
    """Ask SQLite what becomes of `x?y` for every code point: one token of three, of two, or two tokens."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(
        "CREATE VIRTUAL TABLE probe USING fts5 (text, content='', tokenize='unicode61');"
        "CREATE VIRTUAL TABLE vocabulary USING fts5vocab (probe, 'instance'); BEGIN;"
    )
    texts = ((code, f"x{chr(code)}y") for code in range(1, 0x110000) if code not in _SURROGATES)
    connection.executemany("INSERT INTO probe (rowid, text) VALUES (?, ?)", texts)
    found = connection.execute("SELECT doc, term FROM vocabulary WHERE term NOT IN ('x', 'y')")
    terms = dict(found.fetchall())
    connection.close()
    tokens = sorted(code for code, term in terms.items() if len(term) == 3)
    folds = {code: ord(terms[code][1]) for code in tokens if terms[code][1] != chr(code)}
    return tokens, folds, sorted(code for code, term in terms.items() if len(term) == 2)
