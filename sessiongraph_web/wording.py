"""How numbers, sizes, times and names of things are said to a reader."""

from __future__ import annotations

from typing import Final

from sessiongraph_web.language import grouped
from sessiongraph_web.models import Instant

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"))
_KIBI: Final = 1024

KINDS: Final[dict[str, str]] = {
    "user": "Prompts",
    "assistant": "Answers",
    "tool_call": "Tool calls",
    "tool_result": "Tool output",
    "title": "Titles",
    "todo": "To-do lists",
    "turn_end": "Turn ends",
}
KIND: Final[dict[str, str]] = {
    "user": "Prompt",
    "assistant": "Answer",
    "tool_call": "Tool call",
    "tool_result": "Tool output",
    "title": "Title",
    "todo": "To-do list",
    "turn_end": "Turn end",
}
FACETS: Final[dict[str, str]] = {
    "workspace": "Workspace",
    "kind": "Kind",
    "tool": "Tool",
    "model": "Model",
    "month": "Month",
}
FLAGS: Final[dict[str, str]] = {
    "roots": "no forks, no subagents",
    "inherited": "with what forks copied",
    "live": "live now",
}
STATES: Final[dict[str, str]] = {
    "indexed": "read whole",
    "partial": "read in part: something in it is damaged",
    "ignored": "no session log",
    "superseded": "an older generation of a log that was migrated",
    "duplicate": "its id occurs in another place too",
    "unreadable": "could not be read",
    "newer": "written by a newer dsh; read as well as it can be",
    "unreachable": "its folder cannot be listed now; what was indexed is kept",
    "pending": "not read yet",
}


def count(value: int, one: str, many: str | None = None) -> str:
    """Write a number of things: `1 turn`, `12 turns`."""
    return f"{grouped(value)} {one if value == 1 else many or one + 's'}"


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
        return f"{max(0, milliseconds)} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for index, (size, unit) in enumerate(_UNITS):
        if whole >= size:
            finer_size, finer = _UNITS[index + 1] if index + 1 < len(_UNITS) else (1, "s")
            rest = whole % size // finer_size
            return f"{whole // size} {unit}" + (f" {rest} {finer}" if rest else "")
    return f"{whole} s"


def between(start: Instant | None, end: Instant | None) -> str | None:
    """Write the time from one moment to another; None where it is unknown or runs backwards."""
    if start is None or end is None or end.ms < start.ms:
        return None
    return duration(end.ms - start.ms)


def utc(moment: Instant) -> str:
    """Write a moment to the minute in UTC: `2026-11-22 10:15 UTC`."""
    date, _, clock = moment.iso.partition("T")
    return f"{date} {clock[:5]} UTC"


def clock(moment: Instant) -> str:
    """Write the time of day of a moment in UTC, to the second."""
    return moment.iso.partition("T")[2][:8]


def day(moment: Instant | None) -> str | None:
    """Return the UTC day of a moment as `YYYY-MM-DD`."""
    return moment.iso.partition("T")[0] if moment else None
