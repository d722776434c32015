"""The geometry of the activity calendar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from sessiongraph_web import wording
from sessiongraph_web.answers import DayCount
from sessiongraph_web.language import gettext

WEEKS: Final = 53
CELL: Final = 11  # pixels of a day's side
STEP: Final = 14
LEFT: Final = 30  # room for the names of weekdays
TOP: Final = 20  # room for the names of months
LEVELS: Final = 4


@dataclass(frozen=True, slots=True)
class Day:
    """One cell of the calendar. `level` 0 is no activity, 4 the busiest days."""

    day: str
    sessions: int
    entries: int
    x: int
    y: int
    level: int


@dataclass(frozen=True, slots=True)
class Month:
    """The name of a month above the week it begins in."""

    name: str
    x: int


@dataclass(frozen=True, slots=True)
class Heatmap:
    """A year of days in weeks of columns, Monday on top."""

    days: list[Day]
    months: list[Month]
    width: int
    height: int
    active_days: int
    first: str
    last: str
    earlier: str | None  # the day that the calendar before this one ends with, if anything happened by then
    later: str | None


def heatmap(
    counts: Sequence[DayCount], today: date, until: date | None = None, oldest: date | None = None
) -> Heatmap:
    """Lay out the 53 weeks that end with a day: today, or the last active one if that year holds none.

    `oldest` is the day that the whole history begins with.
    """
    by_day = {count.day: count for count in counts if count.sessions or count.entries}
    end = min(until, today) if until else _end(by_day, today)
    start = end - timedelta(days=end.weekday(), weeks=WEEKS - 1)
    dates = [start + timedelta(days=offset) for offset in range((end - start).days + 1)]
    shown = [by_day[one.isoformat()] for one in dates if one.isoformat() in by_day]
    steps = _steps([count.entries for count in shown])
    return Heatmap(
        days=[_day(one, start, by_day.get(one.isoformat()), steps) for one in dates],
        months=_months(dates, start),
        width=LEFT + WEEKS * STEP,
        height=TOP + 7 * STEP,
        active_days=len(shown),
        first=dates[0].isoformat(),
        last=dates[-1].isoformat(),
        earlier=(start - timedelta(days=1)).isoformat() if oldest and oldest < start else None,
        later=min(today, end + timedelta(weeks=WEEKS)).isoformat() if end < today else None,
    )


def _end(by_day: Iterable[str], today: date) -> date:
    last = max(by_day, default=None)
    if last is None:
        return today
    try:
        last_active = date.fromisoformat(last)
    except ValueError:
        return today
    return last_active if last_active < today - timedelta(weeks=WEEKS - 1) else today


def _day(one: date, start: date, count: DayCount | None, steps: Sequence[int]) -> Day:
    week, weekday = divmod((one - start).days, 7)
    entries = count.entries if count else 0
    return Day(
        day=one.isoformat(),
        sessions=count.sessions if count else 0,
        entries=entries,
        x=LEFT + week * STEP,
        y=TOP + weekday * STEP,
        level=1 + sum(entries >= step for step in steps) if count else 0,
    )


def _steps(values: Sequence[int]) -> list[int]:
    """Return the quartiles, so that the levels tell days apart whatever the busiest one was."""
    ordered = sorted(values)
    return [ordered[len(ordered) * part // LEVELS] for part in range(1, LEVELS)] if ordered else []


def _months(dates: Sequence[date], start: date) -> list[Month]:
    last_week = (dates[-1] - start).days // 7
    firsts = [one for one in dates if one.day == 1 and (one - start).days // 7 < last_week]
    return [
        Month(gettext(wording.MONTHS[one.month - 1]), LEFT + (one - start).days // 7 * STEP) for one in firsts
    ]
