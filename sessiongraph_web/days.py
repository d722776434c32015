"""Groups the sessions of a timeline by day, and says when within it each ran, in the reader's zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final
from zoneinfo import ZoneInfo

from sessiongraph_web import wording
from sessiongraph_web.answers import SessionSummary, TimelinePage
from sessiongraph_web.language import gettext
from sessiongraph_web.models import Instant

BAR_WIDTH: Final = 96  # pixels of a whole day
MIN_WIDTH: Final = 2  # pixels of a moment
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Span:
    """Where on the bar of its day a session stands, and the same in words."""

    x: int
    width: int
    said: str


@dataclass(frozen=True, slots=True)
class Row:
    """One session of a day."""

    session: SessionSummary
    span: Span | None


@dataclass(frozen=True, slots=True)
class DayGroup:
    """The sessions of one day (`YYYY-MM-DD`); None is the day of those without a time."""

    day: str | None
    title: str
    rows: list[Row]


def by_day(answer: TimelinePage) -> list[DayGroup]:
    """Group the sessions of a page, in their order, by the day they are listed under."""
    zone = ZoneInfo(answer.zone)
    is_recent = answer.sort == "activity"
    dated = [(_local(s.last_at if is_recent else s.created_at, zone), s) for s in answer.sessions]
    groups = groupby(dated, key=lambda pair: pair[0].date() if pair[0] else _outside(pair[1], is_recent))
    found = []
    for day, pairs in groups:
        title = day if isinstance(day, str) or day is None else wording.long_day(day)
        found.append(
            DayGroup(str(day) if day else None, title or "", [Row(s, _span(s, at, zone)) for at, s in pairs])
        )
    return found


def _outside(session: SessionSummary, is_recent: bool) -> str | None:
    """Return the UTC day of a time that no calendar holds."""
    return wording.day(session.last_at if is_recent else session.created_at)


def _local(moment: Instant | None, zone: ZoneInfo) -> datetime | None:
    try:
        return datetime.fromtimestamp(moment.ms / 1000, zone) if moment else None
    except (ValueError, OverflowError, OSError):
        return None


def _span(session: SessionSummary, on: datetime | None, zone: ZoneInfo) -> Span | None:
    """Return the part of a session's time that falls on the day of a moment."""
    start, end = _local(session.created_at, zone), _local(session.last_at, zone)
    if on is None or start is None or end is None:
        return None
    end = max(start, end)  # a fork may have nothing later than what it copied
    midnight = on.replace(hour=0, minute=0, second=0, microsecond=0)
    first = max(0.0, (start - midnight) / _DAY)
    last = min(1.0, (end - midnight) / _DAY)
    x = min(BAR_WIDTH - MIN_WIDTH, int(first * BAR_WIDTH))
    width = max(MIN_WIDTH, round((last - first) * BAR_WIDTH))
    said = gettext("%(start)s to %(end)s", start=_clock(start, midnight), end=_clock(end, midnight))
    return Span(x, min(width, BAR_WIDTH - x), said)


def _clock(moment: datetime, midnight: datetime) -> str:
    same_day = midnight <= moment < midnight + _DAY
    return f"{moment:%H:%M}" if same_day else wording.day_and_time(moment)
