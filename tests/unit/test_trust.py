"""A full-text index that was not touched is trusted, whatever the texts."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiongraph_web import tokenizer, trust
from sessiongraph_web.errors import SessionGraphError

TEXTS = st.lists(st.text(st.sampled_from("aZ9_-. é\u0301ß广告SDKか\U00020000\x00\u200d“")), max_size=12)


def filled(texts: list[str]) -> sqlite3.Connection:
    """Return a table of entries with its full-text index."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT)")
    connection.execute("CREATE VIRTUAL TABLE entry_fts USING fts5 (tokens, content='', tokenize='unicode61')")
    for number, text in enumerate(texts, 1):
        safe = text.replace("\0", "\ufffd")
        connection.execute("INSERT INTO entry VALUES (?, ?)", (number, safe))
        connection.execute(
            "INSERT INTO entry_fts (rowid, tokens) VALUES (?, ?)", (number, tokenizer.index_text(safe))
        )
    connection.commit()
    return connection


@settings(deadline=None)
@given(TEXTS)
def test_an_index_that_was_not_touched_is_trusted(texts: list[str]) -> None:
    """No text makes it look wiped: a false alarm would build a workspace anew for nothing."""
    with closing(filled(texts)) as connection:
        trust.check_terms(connection)


@pytest.mark.parametrize("statement", ["DELETE FROM entry_fts_data", "DELETE FROM entry WHERE id = 1"])
def test_an_index_that_counts_other_entries_is_not(statement: str) -> None:
    """More rows than the totals of FTS5 say, or fewer."""
    with closing(filled(["one word", "two words"] * 100)) as connection:
        connection.execute(statement)
        with pytest.raises(SessionGraphError, match="SESSIONGRAPH_CORRUPT"):
            trust.check_terms(connection)
