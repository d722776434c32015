"""What a log holds: the data that every layer reads, in one shape for all generations of logs.

What is made for every record is a `msgspec.Struct`: several times cheaper to make than a dataclass. Times inside
logs and tables are integer Unix milliseconds; in answers (`answers`) they are `Instant`s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

Kind = Literal["user", "assistant", "tool_call", "tool_result", "title", "todo", "turn_end"]
KINDS: Final[tuple[Kind, ...]] = (
    "user",
    "assistant",
    "tool_call",
    "tool_result",
    "title",
    "todo",
    "turn_end",
)
DEFAULT_KINDS: Final[tuple[Kind, ...]] = ("user", "assistant", "tool_call", "title")

Surface = Literal["current", "shadowed", "log-only", "unknown"]
SURFACES: Final[tuple[Surface, ...]] = ("current", "shadowed", "log-only", "unknown")
SURFACE_TYPES: Final[frozenset[str]] = frozenset(
    {"system/message", "developer/message", "user/message", "assistant/message", "tool/result"}
)

LogState = Literal[
    "indexed", "partial", "superseded", "duplicate", "unreadable", "newer", "unreachable", "pending", "ignored"
]
NEWEST_VERSION: Final = 4  # the newest generation of a log that was observed

_DAYS_TO_1970: Final = 719_468  # from 0000-03-01, where the civil-from-days algorithm starts
_MILLIS_A_DAY: Final = 86_400_000


class Instant:
    """A moment in Unix milliseconds; any integer is a moment, even one that no calendar library can hold."""

    __slots__ = ("ms",)

    def __init__(self, ms: int) -> None:
        self.ms = ms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instant) and other.ms == self.ms

    def __hash__(self) -> int:
        return hash(self.ms)

    def __repr__(self) -> str:
        return f"Instant({self.iso})"

    @property
    def iso(self) -> str:
        """UTC in ISO 8601 with milliseconds; years outside 0..9999 have a sign and six digits or more."""
        days, millis = divmod(self.ms, _MILLIS_A_DAY)
        year, month, day = _civil(days)
        shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+07d}"
        seconds, thousandths = divmod(millis, 1000)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return f"{shown}-{month:02d}-{day:02d}T{clock}.{thousandths:03d}Z"


def _civil(days: int) -> tuple[int, int, int]:
    """Turn days since 1970-01-01 into year, month, day (proleptic Gregorian), for any integer."""
    days += _DAYS_TO_1970
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day_of_year - (153 * shifted + 2) // 5 + 1


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a log. `cwd` is the exact string, or None with the reason in `cwd_problem`."""

    id: str
    version: int
    created_at: int | None
    cwd: str | None
    cwd_problem: str | None = None
    parent_session: str | None = None
    is_seeded: bool = False
    seed_length: int | None = None
    origin: str | None = None
    delegation_depth: int = 0
    agent_preset: str | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """A surface operation that takes the place of the nodes from `start` to `end` (seqs, inclusive)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class InvalidSurface:
    """A surface operation or source list that was present but malformed; `message` is the fold's sentence."""

    message: str


class Event(msgspec.Struct, eq=False):
    """One record of a log, normalised to one shape for all generations.

    `ordinal` is its 0-based position among the log's records and its address; `seq` is the number it carries
    (None where it carries no usable one). A packed row of generation 0 stands for `count` events that begin at
    `seq`. `data` has the shape of generation 4; in `detail="index"` reads it lacks what is never indexed.
    """

    ordinal: int
    seq: int | None
    type: str
    time: int | None
    data: dict[str, Any]
    surface_op: Literal["append"] | Replace | InvalidSurface | None = None
    source_event_seqs: list[int] | InvalidSurface | None = None
    count: int = 1
    ignorable: bool = False
    synthetic: bool = False
    line: bytes | None = None  # as stored; full reads alone keep it

    def __eq__(self, other: object) -> bool:
        """Compare what the record says, however it was spelled."""
        return isinstance(other, Event) and all(
            getattr(self, name) == getattr(other, name) for name in self.__struct_fields__ if name != "line"
        )

    @property
    def call_id(self) -> str | None:
        """The call that a `tool/call` makes or that a `tool/result` answers."""
        if self.type == "tool/call":
            return _text(self.data.get("callId"))
        message = self.data.get("message")
        if self.type != "tool/result" or not isinstance(message, dict):
            return None
        source = message.get("source")
        cited = _text(source.get("callId")) if isinstance(source, dict) else None
        return cited if cited is not None else _text(message.get("toolCallId"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


FaultCode = Literal[
    "torn_tail",
    "damaged_frame",
    "window_too_large",
    "not_zstd",
    "padding",
    "bad_line",
    "line_too_long",
    "bad_header",
    "second_header",
    "id_mismatch",
    "folder_mismatch",
    "version_mismatch",
    "newer_version",
    "empty_file",
    "seq_repeated",
    "seq_gap",
    "not_readable",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a log, where it is, and what it cost.

    `offset` is the byte offset of its frame (or of the line, in a plain log) in the stored file; `line` is
    1-based in the decompressed text; `ordinal` is that of the next event, so a page can show it in its place.
    """

    code: FaultCode
    message: str
    offset: int
    line: int | None = None
    ordinal: int | None = None


class FrameEnd(msgspec.Struct, frozen=True, gc=False):
    """The end of one whole frame (or of one stretch of a plain log): everything needed to start there again.

    Bytes `offset`..`end` of the stored file held the records `first_ordinal`..`ordinal - 1`. `clean` says that
    no line was left open at `end`, nor damage that the next event would have to explain, so that reading may
    resume there.
    """

    offset: int
    end: int
    first_ordinal: int
    ordinal: int
    line: int
    clean: bool
    next_seq: int = 0


@dataclass(frozen=True, slots=True)
class Resume:
    """Where to go on reading: a clean frame end, with the counters that belong to it.

    `skip` lines behind it are passed over without a look at them; the counters are those of the next line.
    """

    offset: int = 0
    ordinal: int = 0
    line: int = 0
    next_seq: int = 0
    skip: int = 0


Unit = Header | Event | Fault | FrameEnd


class Text(msgspec.Struct, frozen=True, gc=False):
    """One searchable text of an event: an entry before it has a row."""

    kind: Kind
    text: str
    tool: str | None = None
    clipped: bool = False
