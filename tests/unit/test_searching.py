"""What a search page offers to change."""

from __future__ import annotations

from typing import Any

import pytest

from sessiongraph_web.answers import Facet, IndexNote, SearchPage
from sessiongraph_web.web.links import Links
from sessiongraph_web.web.searching import Choice, describe


def found(**changes: Any) -> SearchPage:
    facts: dict[str, Any] = {
        "query": "a",
        "match": "terms",
        "sort": "relevance",
        "group": "session",
        "kinds": ["user"],
        "widened": False,
        "loose": False,
        "sessions": [],
        "entries": [],
        "hits": 0,
        "hits_exact": True,
        "session_count": 0,
        "ranked_exactly": True,
        "kind_counts": {"user": 3, "assistant": 4, "tool_result": 9},
        "facets": {},
        "counts_exact": True,
        "partial": False,
        "took_ms": 1.0,
        "next_cursor": None,
        "index": IndexNote(epoch=1, refreshed_at=None, indexing=False),
    }
    return SearchPage(**facts | changes)


def facets(name: str, *values: str) -> dict[str, list[Facet]]:
    return {name: [Facet(value=value, count=5) for value in values]}


def test_kinds_are_one_click_away_with_their_counts() -> None:
    """The usual kinds together come first; each kind that holds anything stands beside."""
    offers = describe(found(), {"q": ["a"], "cursor": ["x"]}, Links())
    assert offers.kinds == [
        Choice("Conversation", "/search?q=a", chosen=True, count=7),
        Choice("Prompts", "/search?q=a&kinds=user", count=3),
        Choice("Answers", "/search?q=a&kinds=assistant", count=4),
        Choice("Tool output", "/search?q=a&kinds=tool_result", count=9),
    ]


def test_without_its_session_a_list_of_entries_is_one_of_sessions() -> None:
    """Dropping the last session drops the flat list with it; dropping one of two keeps it."""
    (one,) = describe(found(), {"q": ["a"], "session": ["s1"], "group": ["none"]}, Links()).chips
    two = describe(found(), {"q": ["a"], "session": ["s1", "s2"], "group": ["none"]}, Links()).chips
    assert one.url == "/search?q=a"
    assert [chip.url for chip in two] == [
        "/search?q=a&session=s2&group=none",
        "/search?q=a&session=s1&group=none",
    ]


def test_each_filter_has_a_chip_that_drops_it_alone() -> None:
    """A chip leads to the same search without its one value, on the first page."""
    given = {"q": ["a"], "workspace": ["/w/a", "/w/b"], "created_after": ["2026-01-01"], "sort": ["newest"]}
    assert describe(found(), {**given, "cursor": ["x"]}, Links()).chips == [
        Choice("workspace: /w/a", "/search?q=a&workspace=%2Fw%2Fb&created_after=2026-01-01&sort=newest"),
        Choice("workspace: /w/b", "/search?q=a&workspace=%2Fw%2Fa&created_after=2026-01-01&sort=newest"),
        Choice("created after: 2026-01-01", "/search?q=a&workspace=%2Fw%2Fa&workspace=%2Fw%2Fb&sort=newest"),
    ]


def test_a_facet_adds_its_value_or_drops_it() -> None:
    """A value that is chosen is dropped by its own link."""
    (box,) = describe(
        found(facets=facets("tool", "bash", "read")), {"q": ["a"], "tool": ["bash"]}, Links()
    ).facets
    assert box.choices == [
        Choice("bash", "/search?q=a", chosen=True, count=5),
        Choice("read", "/search?q=a&tool=bash&tool=read", count=5),
    ]


@pytest.mark.parametrize(
    ("given", "url", "chosen"),
    [
        ({}, "/search?q=a&after=2028-02-01&before=2028-02-29", False),
        ({"after": ["2028-02-01"], "before": ["2028-02-29"]}, "/search?q=a", True),
        ({"after": ["2028-02-03"]}, "/search?q=a&after=2028-02-01&before=2028-02-29", False),
    ],
)
def test_a_month_is_a_range_of_days(given: dict[str, list[str]], url: str, chosen: bool) -> None:
    """A month of the facet becomes its first and last day."""
    answer = found(facets=facets("month", "2028-02", "2028-01"))
    (box,) = describe(answer, {"q": ["a"], **given}, Links()).facets
    assert box.choices[0] == Choice("2028-02", url, chosen, 5)


def test_months_are_listed_latest_first() -> None:
    """However many matches each has; the values of other facets stand by how many they have."""
    answer = found(facets=facets("tool", "b", "a") | facets("month", "2026-09", "2027-01", "2026-10"))
    boxes = describe(answer, {"q": ["a"]}, Links()).facets
    listed = [[choice.label for choice in box.choices] for box in boxes]
    assert listed == [["b", "a"], ["2027-01", "2026-10", "2026-09"]]


def test_a_facet_with_one_value_narrows_nothing() -> None:
    """What all hits share is no choice."""
    assert describe(found(facets=facets("model", "m-1")), {"q": ["a"]}, Links()).facets == []


def test_a_long_facet_is_cut_and_counted() -> None:
    """The most frequent values are shown, the others counted."""
    (box,) = describe(found(facets=facets("tool", *(f"t{n}" for n in range(30)))), {"q": ["a"]}, Links()).facets
    assert (len(box.choices), box.left_out) == (8, 22)


def test_the_next_page_keeps_the_search() -> None:
    """A cursor goes on with the same request."""
    assert describe(found(next_cursor="c"), {"q": ["广"], "tool": ["x"]}, Links()).next_url == (
        "/search?q=%E5%B9%BF&tool=x&cursor=c"
    )


def test_the_form_of_more_filters_keeps_what_it_does_not_ask() -> None:
    """Every other parameter comes along, and further values of those it asks; nothing that is blank."""
    given = {"q": ["a"], "workspace": ["/w/a"], "tool": ["bash", "read"], "after": [""], "cursor": ["x"]}
    offers = describe(found(), given, Links())
    assert offers.kept == [("q", "a"), ("workspace", "/w/a"), ("tool", "read")]
    assert [chip.label for chip in offers.chips] == ["workspace: /w/a", "tool: bash", "tool: read"]


def test_flags_are_said_in_words() -> None:
    """A chip of a flag says what it does."""
    given = {"q": ["a"], "roots": ["1"], "live": ["1"], "kinds": ["tool_result"]}
    chips = describe(found(), given, Links()).chips
    assert [chip.label for chip in chips] == ["no forks, no subagents", "live now", "kinds: Tool output"]


def test_other_ways_to_ask_are_offered() -> None:
    """Each leads to the same query, asked so that it finds more."""
    given = {"q": ["a"], "tool": ["bash"], "sort": ["newest"], "match": ["phrase"]}
    assert describe(found(match="phrase"), given, Links()).instead == [
        Choice("the same without filters", "/search?q=a&sort=newest&match=phrase"),
        Choice("its words in any order", "/search?q=a&tool=bash&sort=newest"),
        Choice("it as a piece of text, inside words too", "/search?q=a&tool=bash&sort=newest&match=text"),
        Choice(
            "what forks copied from their parents too",
            "/search?q=a&tool=bash&sort=newest&match=phrase&inherited=1",
        ),
    ]
