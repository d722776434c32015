"""Tokens against SQLite's own FTS5, for texts and queries of any kind."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sessiongraph_web import literal
from sessiongraph_web.tokenizer import index_text, match_expression, parse, span_counter, spans

CJK = "广告哈身份证々ドラブがﾄﾞ결제\u1112\u1161\u11ab豈𠮷\U00030000か\u3099⽤"
WORDS = "aBcéÉß\u212aK0२я_\ue000"
OTHER = " .,-'\"()*^:，。“”\u0301\u0308\u0305\u3000\n🎉\u200f\ufeff"
characters = st.sampled_from([*CJK, *WORDS, *OTHER])
texts = st.text(characters, min_size=1, max_size=24)
latin_texts = st.text(st.sampled_from([*WORDS, *"aab  ", *OTHER]), min_size=1, max_size=24)
_IS_CJK = re.compile(f"[{CJK}]")
_IS_WORD = re.compile("[^\\W_]|[\ue000\u0301\u0308]")


class Index:
    """One text in a contentless table of pairs and in a stored table of its own words."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.executescript(
            "CREATE VIRTUAL TABLE pairs USING fts5 (tokens, content='', tokenize='unicode61');"
            "CREATE VIRTUAL TABLE stored USING fts5 (text, tokenize='unicode61');"
        )

    def finds(self, text: str, expression: str | None) -> bool:
        """Say whether FTS5 finds the text by its tokens."""
        tokens = index_text(text)
        self.connection.execute("INSERT INTO pairs (rowid, tokens) VALUES (1, ?)", [tokens])
        found = self.connection.execute("SELECT count(*) FROM pairs WHERE pairs MATCH ?", [expression or '""'])
        hits: int = found.fetchone()[0]
        self.connection.execute("INSERT INTO pairs (pairs, rowid, tokens) VALUES ('delete', 1, ?)", [tokens])
        return hits > 0

    def highlight(self, text: str, expression: str) -> str | None:
        """Return what `highlight()` makes of the text, None if it does not match."""
        self.connection.execute("INSERT INTO stored VALUES (?)", [text])
        found = self.connection.execute(
            "SELECT highlight(stored, 0, char(1), char(2)) FROM stored WHERE stored MATCH ?", [expression]
        ).fetchone()
        self.connection.execute("DELETE FROM stored")
        return found and str(found[0])


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    """An empty index, emptied again by everything that uses it."""
    made = Index()
    yield made
    made.connection.close()


@st.composite
def cuttings(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a text and a piece of it that holds a CJK character and cuts no word."""
    left, right = draw(st.text(characters, max_size=12)), draw(st.text(characters, max_size=12))
    text = left + draw(st.sampled_from(CJK)) + right
    start, end = draw(st.integers(0, len(left))), draw(st.integers(len(left) + 1, len(text)))
    while _cuts_word(text, start):
        start -= 1
    while _cuts_word(text, end):
        end += 1
    return text, text[start:end]


@given(cutting=cuttings())
@settings(max_examples=400, deadline=None)
@example(cutting=("我今天在改广告SDK", "告SDK"))
@example(cutting=("重跑gen-itgc后", "跑gen-itgc后"))
def test_any_substring_with_cjk_finds_its_entry(index: Index, cutting: tuple[str, str]) -> None:
    """Whatever is cut out of a text, a CJK character in it and words at its ends left whole, finds that text."""
    text, piece = cutting
    query = parse(piece, "phrase")
    assert index.finds(text, match_expression(query))
    assert spans(text, query)


@given(text=texts, piece=texts)
@settings(max_examples=400, deadline=None)
@example(text="身份登记；股份证明", piece="身份证")
@example(text="告。广", piece="告广")
def test_no_entry_without_the_substring_is_exact(index: Index, text: str, piece: str) -> None:
    """A text that is found holds the piece, what separates words left aside and accents and case folded."""
    assume(piece.strip(literal.SPACE))
    query = parse(piece, "phrase")
    if index.finds(text, match_expression(query)):
        assert _bare(piece) in _bare(text)


@given(text=texts, piece=texts)
@settings(max_examples=400, deadline=None)
def test_what_fts5_finds_has_spans_and_nothing_else(index: Index, text: str, piece: str) -> None:
    """Python sees a match exactly where FTS5 does."""
    assume(piece.strip(literal.SPACE))
    query = parse(piece, "phrase")
    assert index.finds(text, match_expression(query)) == bool(spans(text, query))


@given(text=latin_texts, query=latin_texts)
@settings(max_examples=400, deadline=None)
@example(text="a a a a", query='"a a"')
@example(text="a b a b a", query='"a b a" b')
def test_spans_are_what_highlight_marks(index: Index, text: str, query: str) -> None:
    """Without CJK, spans are FTS5's own: whole tokens with their marks, overlapping instances merged."""
    assume(query.strip(literal.SPACE))
    read = parse(query)
    expression = match_expression(read)
    assume(expression is not None and not read.excluded)
    marked = index.highlight(text, str(expression))
    if marked is not None:
        assert _marked(text, spans(text, read)) == marked


@given(text=texts, query=texts, loose=st.booleans())
@settings(max_examples=400, deadline=None)
@example(text="哈哈哈哈", query="哈哈", loose=False)
@example(text="Ab广ab。AB ab", query="ab", loose=False)
@example(text="a b a b a", query='"a b a" b', loose=False)
def test_counting_spans_is_counting_what_matches(index: Index, text: str, query: str, loose: bool) -> None:
    """Of a text that is found, the counter says how many spans there are."""
    assume(query.strip(literal.SPACE))
    read = parse(query)
    if index.finds(text, match_expression(read, loose=loose)):
        assert span_counter(read, loose=loose)(text) == len(spans(text, read, loose=loose))


@given(text=texts, query=st.text(min_size=1, max_size=40))
@settings(max_examples=300, deadline=None)
def test_no_query_is_a_syntax_error(index: Index, text: str, query: str) -> None:
    """Whatever is typed, FTS5 takes the expression, exact and loose."""
    assume(query.strip(literal.SPACE))
    read = parse(query)
    for loose in (False, True):
        index.finds(text, match_expression(read, loose=loose))
        spans(text, read, loose=loose)


def _cuts_word(text: str, border: int) -> bool:
    """Say whether a border lies between two characters of one word that is not CJK."""
    before, after = text[:border][-1:], text[border:][:1]
    sides = [bool(side and _IS_WORD.match(side) and not _IS_CJK.match(side)) for side in (before, after)]
    return all(sides)


def _bare(text: str) -> str:
    """Fold a text as FTS5 does and leave out what is between its tokens."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE VIRTUAL TABLE one USING fts5 (text, tokenize='unicode61');"
        "CREATE VIRTUAL TABLE terms USING fts5vocab (one, 'instance');"
    )
    connection.execute("INSERT INTO one VALUES (?)", [index_text(" ".join(text))])
    found = connection.execute("SELECT term FROM terms ORDER BY offset").fetchall()
    connection.close()
    return "".join(term for (term,) in found)


def _marked(text: str, found: list[tuple[int, int]]) -> str:
    for start, end in reversed(found):
        text = f"{text[:start]}\1{text[start:end]}\2{text[end:]}"
    return text
