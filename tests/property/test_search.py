"""Searches against what reading every entry would give."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiongraph_web import tokenizer
from sessiongraph_web.models import DEFAULT_KINDS, KINDS, Kind
from sessiongraph_web.ranking import Sort
from tests.workspaces import Workspace, find

WORDS = ["fox", "Fox.", "dog", "广告", "告", "广", "广告SDK", "a", "-", "\n"]
SESSIONS = ["s1", "s2", "orphan"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
queries = st.sampled_from(
    [
        "fox",
        "fox dog",
        "fox -dog",
        '"fox dog"',
        "广告",
        "告",
        "广 fox",
        "广告SDK",
        "dog -广告",
        "a a",
        "告 -x",
        "广告告",
    ]
)


@dataclass(frozen=True)
class Entry:
    """What is drawn for one entry."""

    session: str
    text: str
    time: int | None
    kind: Kind
    inherited: bool


entries = st.builds(
    Entry,
    session=st.sampled_from(SESSIONS),
    text=texts,
    time=st.none() | st.integers(0, 3),
    kind=st.sampled_from(KINDS[:4]),
    inherited=st.booleans(),
)


@pytest.mark.parametrize("match", ["terms", "phrase", "text"])
@given(
    drawn=st.lists(entries, max_size=10),
    query=queries,
    kinds=st.none() | st.just(("tool_result",)),
    sort=st.sampled_from(["relevance", "newest", "oldest"]),
    inherited=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_a_search_is_what_reading_everything_would_give(
    match: tokenizer.Match,
    drawn: list[Entry],
    query: str,
    kinds: tuple[Kind, ...] | None,
    sort: Sort,
    inherited: bool,
) -> None:
    """Hits, their order, the counts and the kinds are those of a filter and a sort over all entries."""
    read = tokenizer.parse(query, match)
    wanted = {
        number: entry
        for number, entry in enumerate(drawn, start=1)
        if (inherited or not entry.inherited or entry.session == "orphan") and _matches(entry.text, read)
    }
    searched = kinds or DEFAULT_KINDS
    is_widened = kinds is None and bool(wanted) and not any(entry.kind in searched for entry in wanted.values())
    if is_widened:
        searched = KINDS
    hits = [number for number, entry in wanted.items() if entry.kind in searched]
    with tempfile.TemporaryDirectory() as folder:
        page, _ = find(
            _filled(Path(folder), drawn),
            query=query,
            match=match,
            kinds=kinds,
            sort=sort,
            inherited=inherited,
            group="none",
        )
    if page.loose:
        assert (page.hits, hits) == (0, [])
        return
    assert [hit.ordinal for hit in page.entries] == sorted(
        hits, key=lambda number: _key(number, drawn, read, sort)
    )
    assert (page.hits, page.widened, tuple(page.kinds)) == (len(hits), is_widened, tuple(searched))
    counts = {kind: sum(entry.kind == kind for entry in wanted.values()) for kind in KINDS}
    assert page.kind_counts == counts


def _filled(folder: Path, drawn: list[Entry]) -> Workspace:
    workspace = Workspace(folder)
    for id_ in SESSIONS:
        workspace.session(id_, parent_elsewhere=int(id_ == "orphan"))
    for entry in drawn:
        workspace.entry(
            entry.session, entry.text, time=entry.time, kind=entry.kind, inherited=int(entry.inherited)
        )
    return workspace


def _matches(text: str, query: tokenizer.Query) -> bool:
    """Say whether every piece is in a text, and nothing that is excluded."""
    if query.match == "text":
        return bool(tokenizer.spans(text, query))
    pieces = [bool(tokenizer.spans(text, tokenizer.parse(piece, "phrase"))) for piece in query.pieces]
    unwanted = [bool(tokenizer.spans(text, tokenizer.parse(piece, "phrase"))) for piece in query.excluded]
    return bool(pieces) and all(pieces) and not any(unwanted)


def _key(number: int, drawn: list[Entry], query: tokenizer.Query, sort: Sort) -> tuple[object, ...]:
    entry = drawn[number - 1]
    is_timeless, moment = entry.time is None, entry.time or 0
    if sort == "oldest":
        return is_timeless, moment, entry.session, number
    newest = is_timeless, -moment, entry.session, -number
    if sort == "newest":
        return newest
    return -len(tokenizer.spans(entry.text, query)), len(entry.text), *newest
