"""What is pure in a search: shares, months, groups."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiongraph_web.answers import Facet
from sessiongraph_web.ranking import (
    VALUES_OF_A_FACET,
    Candidate,
    Group,
    SessionFacts,
    facets,
    grouped,
    shares,
)


def candidate(id_: int, log_id: int, time: int | None = 0) -> Candidate:
    """Return a candidate of which only its place matters."""
    return Candidate((0, log_id), id_, "s", id_, time, "user", None, 1, 1)


SHARES = [
    ([], 10, []),
    ([3], 10, [3]),
    ([30], 10, [10]),
    ([5, 5], 10, [5, 5]),
    ([1, 100], 10, [1, 9]),
    ([100, 2, 100], 10, [4, 2, 4]),
    ([0, 100, 100, 100], 9, [0, 3, 3, 3]),
    ([7, 7, 7], 2, [0, 1, 1]),
]


@pytest.mark.parametrize(("counts", "total", "given_out"), SHARES)
def test_small_counts_are_served_whole(counts: list[int], total: int, given_out: list[int]) -> None:
    """Who asks for little gets it all; the others get equal parts of the rest."""
    assert shares(counts, total) == given_out


@settings(deadline=None)
@given(counts=st.lists(st.integers(0, 1000), max_size=30), total=st.integers(0, 5000))
def test_shares_use_up_the_total(counts: list[int], total: int) -> None:
    """Nobody gets more than was asked for, all of the total is used, and no larger count gets less."""
    found = shares(counts, total)
    assert sum(found) == min(sum(counts), total)
    assert all(share <= count for share, count in zip(found, counts, strict=True))
    by_count = sorted(zip(counts, found, strict=True))
    assert [share for _, share in by_count] == sorted(found)


def test_a_group_keeps_three_more_and_counts_all() -> None:
    """The fifth match of a session is counted but not kept."""
    first, *rest = (candidate(n, 1) for n in range(6))
    assert grouped([first, *rest]) == [Group(first, rest[:3], 6)]


MONTHS = [
    (0, "UTC", "1970-01"),
    (-1, "UTC", "1969-12"),
    (2_678_400_000 - 1, "UTC", "1970-01"),
    (2_678_400_000 - 1, "Asia/Shanghai", "1970-02"),
    (2_678_400_000, "America/New_York", "1970-01"),
    (2_678_400_000 - 19_800_000, "Asia/Kolkata", "1970-02"),
    (2_678_400_000 - 19_800_001, "Asia/Kolkata", "1970-01"),
    (2_678_400_000 - 20_700_000, "Asia/Kathmandu", "1970-01"),
    (2**62, "UTC", "other"),
    (-(2**62), "UTC", "other"),
    (253_402_300_799_999, "Asia/Tokyo", "other"),
]


@pytest.mark.parametrize(("millis", "zone", "month"), MONTHS)
def test_months_are_those_of_the_zone(millis: int, zone: str, month: str) -> None:
    """The month of an entry is where the reader is; what no calendar holds is `other`."""
    found = facets(
        [candidate(1, 1, millis)], {(0, 1): SessionFacts(None, [])}, by_session=True, zone=ZoneInfo(zone)
    )
    assert found["month"] == [Facet(value=month, count=1)]


def test_facets_are_ordered_by_count_then_value() -> None:
    """The most frequent first; equals in the order of their names, no value before all."""
    sessions = {
        (0, 1): SessionFacts("/w/b", ["z"]),
        (0, 2): SessionFacts("/w/a", ["z", "y"]),
        (0, 3): SessionFacts(None, []),
    }
    found = facets([candidate(n, n) for n in (1, 2, 3)], sessions, by_session=True, zone=ZoneInfo("UTC"))
    assert found["model"] == [Facet(value="z", count=2), Facet(value="y", count=1)]
    assert [facet.value for facet in found["workspace"]] == [None, "/w/a", "/w/b"]


def test_a_facet_is_bounded() -> None:
    """Of thousands of values the most frequent are kept."""
    sessions = {(0, n): SessionFacts(f"/w/{n:04d}", []) for n in range(VALUES_OF_A_FACET + 50)}
    found = facets(
        [candidate(n, n) for n in range(len(sessions))], sessions, by_session=True, zone=ZoneInfo("UTC")
    )
    assert [facet.value for facet in found["workspace"]] == [f"/w/{n:04d}" for n in range(VALUES_OF_A_FACET)]
