"""A timeline by days of the reader's zone."""

from __future__ import annotations

from typing import Any

import pytest

from sessiongraph_web.answers import IndexNote, SessionSummary, TimelinePage
from sessiongraph_web.days import Span, by_day
from sessiongraph_web.models import Instant
from tests.answered import summary

HOUR = 3_600_000
NOON = 1_790_078_400_000 - 1_790_078_400_000 % 86_400_000 + 12 * HOUR  # of a day in September 2026


def session(created: int | None, last: int | None) -> SessionSummary:
    moments = {"created_at": created, "last_at": last}
    return summary(**{name: None if ms is None else Instant(ms) for name, ms in moments.items()})


def timeline(*sessions: SessionSummary, **changes: Any) -> TimelinePage:
    facts: dict[str, Any] = {"sort": "created", "zone": "UTC", "total": len(sessions), "next_cursor": None}
    note = IndexNote(epoch=1, refreshed_at=None, indexing=False)
    return TimelinePage(sessions=list(sessions), days=[], index=note, **facts | changes)


def test_a_day_is_the_readers_day() -> None:
    """The same moment is on another day in another zone."""
    late = session(NOON + 8 * HOUR, NOON + 9 * HOUR)
    assert [group.day for group in by_day(timeline(late))] == ["2026-09-22"]
    assert [group.day for group in by_day(timeline(late, zone="Asia/Shanghai"))] == ["2026-09-23"]


def test_sessions_keep_their_order_within_days() -> None:
    """Neighbours of one day are one group, titled for people."""
    groups = by_day(timeline(session(NOON, NOON), session(NOON - HOUR, NOON), session(NOON - 24 * HOUR, NOON)))
    assert [(group.title, len(group.rows)) for group in groups] == [
        ("Tuesday, September 22, 2026", 2),
        ("Monday, September 21, 2026", 1),
    ]


@pytest.mark.parametrize(
    ("created", "last", "span"),
    [
        (NOON, NOON + 6 * HOUR, Span(48, 24, "12:00 to 18:00")),
        (NOON, NOON, Span(48, 2, "12:00 to 12:00")),
        (NOON, NOON + 24 * HOUR, Span(48, 48, "12:00 to Sep 23, 12:00")),
        (NOON + 12 * HOUR - 1, NOON + 12 * HOUR - 1, Span(94, 2, "23:59 to 23:59")),
        (NOON, NOON - HOUR, Span(48, 2, "12:00 to 12:00")),
        (NOON, None, None),
    ],
)
def test_a_span_shows_when_within_its_day_a_session_ran(
    created: int, last: int | None, span: Span | None
) -> None:
    """A span begins and ends with its day at the latest, and is never too small to see."""
    ((row,),) = [group.rows for group in by_day(timeline(session(created, last)))]
    assert row.span == span


@pytest.mark.parametrize(("ms", "day"), [(None, None), (10**17, "+3170843-11-07"), (-(10**17), "-3166904-02-24")])
def test_times_beyond_the_calendar_have_a_day_too(ms: int | None, day: str | None) -> None:
    """A session without a usable time is listed, without a span."""
    (group,) = by_day(timeline(session(ms, ms)))
    assert (group.day, group.rows[0].span) == (day, None)
