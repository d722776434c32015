"""How numbers, sizes, times and names of things are said to a reader."""

from __future__ import annotations

from datetime import date, datetime
from typing import Final

from sessiongraph_web.language import N_, gettext
from sessiongraph_web.models import Instant

_UNITS: Final = (
    (86_400, N_("%(num)s d")),
    (3600, N_("%(num)s h")),
    (60, N_("%(num)s min")),
    (1, N_("%(num)s s")),
)
_KIBI: Final = 1024

KINDS: Final[dict[str, str]] = {
    "user": N_("Prompts"),
    "assistant": N_("Answers"),
    "tool_call": N_("Tool calls"),
    "tool_result": N_("Tool output"),
    "title": N_("Titles"),
    "todo": N_("To-do lists"),
    "turn_end": N_("Turn ends"),
}
KIND: Final[dict[str, str]] = {
    "user": N_("Prompt"),
    "assistant": N_("Answer"),
    "tool_call": N_("Tool call"),
    "tool_result": N_("Tool output"),
    "title": N_("Title"),
    "todo": N_("To-do list"),
    "turn_end": N_("Turn end"),
}
FACETS: Final[dict[str, str]] = {
    "workspace": N_("Workspace"),
    "kind": N_("Kind"),
    "tool": N_("Tool"),
    "model": N_("Model"),
    "month": N_("Month"),
}
FLAGS: Final[dict[str, str]] = {
    "roots": N_("no forks, no subagents"),
    "inherited": N_("with what forks copied"),
    "live": N_("live now"),
}
STATES: Final[dict[str, str]] = {
    "indexed": N_("read whole"),
    "partial": N_("read in part: something in it is damaged"),
    "ignored": N_("no session log"),
    "superseded": N_("an older generation of a log that was migrated"),
    "duplicate": N_("its id occurs in another place too"),
    "unreadable": N_("could not be read"),
    "newer": N_("written by a newer dsh; read as well as it can be"),
    "unreachable": N_("its folder cannot be listed now; what was indexed is kept"),
    "pending": N_("not read yet"),
}
STATE: Final[dict[str, str]] = {
    "indexed": N_("indexed"),
    "partial": N_("partial"),
    "ignored": N_("ignored"),
    "superseded": N_("superseded"),
    "duplicate": N_("duplicate"),
    "unreadable": N_("unreadable"),
    "newer": N_("newer"),
    "unreachable": N_("unreachable"),
    "pending": N_("pending"),
}
SURFACES: Final[dict[str, str]] = {
    "current": N_("current"),
    "shadowed": N_("shadowed"),
    "log-only": N_("log-only"),
    "unknown": N_("unknown"),
}
ROLES: Final[dict[str, str]] = {
    "self": N_("this session"),
    "ancestor": N_("ancestor"),
    "fork": N_("fork"),
    "subagent": N_("subagent"),
}
TASKS: Final[dict[str, str]] = {
    "pending": N_("to do"),
    "in_progress": N_("in progress"),
    "completed": N_("done"),
}
GRANTS: Final[dict[str, str]] = {
    "in force": N_("in force"),
    "expired": N_("expired"),
    "ended": N_("ended"),
}
OUTCOMES: Final[dict[str, str]] = {
    "complete": N_("complete"),
    "interrupted": N_("interrupted"),
    "failed": N_("failed"),
}
FILTERS: Final[dict[str, str]] = {
    "workspace": N_("workspace"),
    "kinds": N_("kinds"),
    "tool": N_("tool"),
    "model": N_("model"),
    "session": N_("session"),
    "parent": N_("parent"),
    "types": N_("types"),
    "surfaces": N_("surfaces"),
    "after": N_("after"),
    "before": N_("before"),
    "created_after": N_("created after"),
    "created_before": N_("created before"),
    "seq_from": N_("from event"),
    "seq_to": N_("up to event"),
    "month": N_("month"),
}
MONTHS: Final = (
    *(N_("Jan"), N_("Feb"), N_("Mar"), N_("Apr"), N_("May"), N_("Jun")),
    *(N_("Jul"), N_("Aug"), N_("Sep"), N_("Oct"), N_("Nov"), N_("Dec")),
)
LONG_MONTHS: Final = (
    *(N_("January"), N_("February"), N_("March"), N_("April"), N_("May"), N_("June")),
    *(N_("July"), N_("August"), N_("September"), N_("October"), N_("November"), N_("December")),
)
WEEKDAYS: Final = (
    *(N_("Monday"), N_("Tuesday"), N_("Wednesday"), N_("Thursday"), N_("Friday")),
    *(N_("Saturday"), N_("Sunday")),
)


def compact(value: int) -> str:
    """Write a large number in two or three digits: `950`, `12k`, `1.4M`."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")):
        if value >= size:
            scaled = value / size
            return f"{scaled:.1f}{unit}" if scaled < 10 else f"{scaled:.0f}{unit}"
    return str(value)


def byte_size(value: int) -> str:
    """Write a size in bytes with a binary unit."""
    size = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _KIBI:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= _KIBI
    return f"{size:.1f} TiB"


def duration(milliseconds: int) -> str:
    """Write how long something took: `40 ms`, `3.2 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`."""
    if milliseconds < 1000:
        return gettext("%(num)s ms", num=max(0, milliseconds))
    seconds = milliseconds / 1000
    if seconds < 60:
        return gettext("%(num)s s", num=round(seconds, 1))
    whole = round(seconds)
    index, size, unit = next((index, size, unit) for index, (size, unit) in enumerate(_UNITS) if whole >= size)
    finer_size, finer = _UNITS[index + 1]
    rest = whole % size // finer_size
    said = gettext(unit, num=whole // size)
    return f"{said} {gettext(finer, num=rest)}" if rest else said


def between(start: Instant | None, end: Instant | None) -> str | None:
    """Write the time from one moment to another; None where it is unknown or runs backwards."""
    if start is None or end is None or end.ms < start.ms:
        return None
    return duration(end.ms - start.ms)


def utc(moment: Instant) -> str:
    """Write a moment to the minute in UTC: `2026-11-22 10:15 UTC`."""
    date, _, clock = moment.iso.partition("T")
    return f"{date} {clock[:5]} UTC"


def long_day(day: date) -> str:
    """Write a day with its weekday: `Sunday, November 22, 2026`."""
    return gettext(
        "%(weekday)s, %(month)s %(day)s, %(year)s",
        weekday=gettext(WEEKDAYS[day.weekday()]),
        month=gettext(LONG_MONTHS[day.month - 1]),
        day=day.day,
        year=day.year,
    )


def day_and_time(moment: datetime) -> str:
    """Write a moment of a year that is known: `Nov 22, 15:04`."""
    month, time = gettext(MONTHS[moment.month - 1]), f"{moment:%H:%M}"
    return gettext("%(month)s %(day)s, %(time)s", month=month, day=moment.day, time=time)


def clock(moment: Instant) -> str:
    """Write the time of day of a moment in UTC, to the second."""
    return moment.iso.partition("T")[2][:8]


def day(moment: Instant | None) -> str | None:
    """Return the UTC day of a moment as `YYYY-MM-DD`."""
    return moment.iso.partition("T")[0] if moment else None
