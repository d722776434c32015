"""The geometry of calendars."""

from __future__ import annotations

from datetime import date

from sessiongraph_web import pictures
from sessiongraph_web.answers import DayCount

TODAY = date(2026, 11, 26)  # a Thursday


def day(name: str, entries: int) -> DayCount:
    return DayCount(day=name, sessions=1, entries=entries)


def test_a_calendar_is_a_year_of_weeks_that_ends_today() -> None:
    """53 columns, Monday on top, the last column up to today."""
    made = pictures.heatmap([], TODAY)
    assert (made.first, made.last, len(made.days), made.active_days) == ("2025-11-24", "2026-11-26", 368, 0)
    assert {cell.level for cell in made.days} == {0}


def test_levels_tell_days_apart_by_quartile() -> None:
    """The busiest quarter has the highest level whatever the numbers are."""
    made = pictures.heatmap([day(f"2026-11-0{n}", 10**n) for n in range(1, 5)], TODAY)
    assert [cell.level for cell in made.days if cell.sessions] == [1, 2, 3, 4]


def test_an_old_history_is_shown_where_it_ended() -> None:
    """If the last year holds nothing, the calendar ends with the last active day."""
    made = pictures.heatmap([day("2020-02-29", 3)], TODAY)
    assert (made.last, made.active_days) == ("2020-02-29", 1)


def test_two_years_of_history_are_walked_year_by_year() -> None:
    """Each calendar leads to the one before while anything happened then, and back up to today."""
    history = [day("2024-12-01", 3), day("2025-06-01", 4), day("2026-11-01", 5)]
    oldest = date(2024, 12, 1)
    latest = pictures.heatmap(history, TODAY, oldest=oldest)
    assert (latest.active_days, latest.earlier, latest.later) == (1, "2025-11-23", None)
    before = pictures.heatmap(history, TODAY, date(2025, 11, 23), oldest)
    assert (before.active_days, before.first, before.last) == (2, "2024-11-18", "2025-11-23")
    assert (before.earlier, before.later) == (None, "2026-11-26")


def test_no_calendar_goes_beyond_today() -> None:
    """A day to come is as good as today."""
    assert pictures.heatmap([], TODAY, date(2030, 1, 1)).last == "2026-11-26"


def test_a_day_that_is_no_day_is_not_drawn() -> None:
    """A time outside the calendar spoils nothing."""
    assert pictures.heatmap([day("+010000-01-01", 3)], TODAY).active_days == 0
