"""The order of candidates, their groups by session and their facets: what is pure in a search."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal

import msgspec

from sessiongraph_web.answers import Facet
from sessiongraph_web.models import Kind

Sort = Literal["relevance", "newest", "oldest"]

MORE_OF_A_SESSION: Final = 3  # matches shown beside a session's best
FACETS: Final = ("workspace", "kind", "tool", "model", "month")
VALUES_OF_A_FACET: Final = 200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """An entry that matches, as far as order and counts need it.

    `session` is the number of its workspace and the log id. Thousands are made for a search, and structs are made
    several times as fast as dataclasses.
    """

    session: tuple[int, int]
    id: int
    session_id: str
    ordinal: int
    time: int | None
    kind: Kind
    tool: str | None
    length: int
    spans: int


@dataclass(slots=True)
class Group:
    """The matches of one session in order: the best, up to three more, and how many there are."""

    best: Candidate
    more: list[Candidate] = field(default_factory=list)
    matches: int = 1


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What facets need of a session."""

    cwd: str | None
    models: Sequence[str]


def ordered(candidates: Iterable[Candidate], sort: Sort) -> list[Candidate]:
    """Sort candidates; entries without a time come last of their equals, later events of a session first."""
    return sorted(candidates, key=_KEYS[sort])


def grouped(candidates: Iterable[Candidate]) -> list[Group]:
    """Group sorted candidates by session; a session stands where its best match stands."""
    groups: dict[tuple[int, int], Group] = {}
    for candidate in candidates:
        group = groups.get(candidate.session)
        if group is None:
            groups[candidate.session] = Group(candidate)
            continue
        group.matches += 1
        if len(group.more) < MORE_OF_A_SESSION:
            group.more.append(candidate)
    return list(groups.values())


def shares(counts: Sequence[int], total: int) -> list[int]:
    """Divide `total` fairly: small counts are served whole, large ones get equal parts of what is left."""
    given = [0] * len(counts)
    left = total
    for served, index in enumerate(sorted(range(len(counts)), key=lambda index: counts[index])):
        given[index] = min(counts[index], left // (len(counts) - served))
        left -= given[index]
    return given


def facets(
    candidates: Sequence[Candidate],
    sessions: Mapping[tuple[int, int], SessionFacts],
    *,
    by_session: bool,
    zone: tzinfo,
) -> dict[str, list[Facet]]:
    """Count the sessions, or the entries, that have each workspace, kind, tool, model and month.

    The most frequent values of each are kept.
    """
    month = _months(zone)
    entries = Counter([one.session for one in candidates])
    weights = dict.fromkeys(entries, 1) if by_session else entries
    of_sessions: dict[str, Iterable[tuple[str | None, int]]] = {
        "workspace": [(sessions[session].cwd, weight) for session, weight in weights.items()],
        "model": [(model, weight) for session, weight in weights.items() for model in sessions[session].models],
    }
    pairs: dict[str, Iterable[tuple[tuple[int, int], str]]] = {
        "kind": [(one.session, one.kind) for one in candidates],
        "tool": [(one.session, one.tool) for one in candidates if one.tool is not None],
        "month": [(one.session, month(one.time)) for one in candidates if one.time is not None],
    }
    counts = of_sessions | {
        name: Counter([value for _, value in (set(found) if by_session else found)]).items()
        for name, found in pairs.items()
    }
    return {name: _counted(counts[name]) for name in FACETS}


def _counted(found: Iterable[tuple[str | None, int]]) -> list[Facet]:
    counts: Counter[str | None] = Counter()
    for value, count in found:
        counts[value] += count
    ordered_counts = sorted(counts.items(), key=lambda item: (-item[1], item[0] or ""))
    return [Facet(value=value, count=count) for value, count in ordered_counts[:VALUES_OF_A_FACET]]


def _months(zone: tzinfo) -> Callable[[int], str]:
    """Return the function from Unix milliseconds to `YYYY-MM` in a zone; it remembers the months that it met."""
    starts: list[int] = []
    months: list[tuple[int, str]] = []

    def month(millis: int) -> str:
        index = bisect_right(starts, millis) - 1
        if index >= 0 and millis < months[index][0]:
            return months[index][1]
        try:
            start, end, name = _month(millis, zone)
        except (OverflowError, ValueError):
            return "other"  # a clock that was wrong by millennia
        starts.insert(index + 1, start)
        months.insert(index + 1, (end, name))
        return name

    return month


def _month(millis: int, zone: tzinfo) -> tuple[int, int, str]:
    """Return when the month of a moment begins, when the next one does, and its name."""
    moment = (_EPOCH + timedelta(milliseconds=millis)).astimezone(zone)
    start = datetime(moment.year, moment.month, 1, tzinfo=zone)
    end = datetime(moment.year + moment.month // 12, moment.month % 12 + 1, 1, tzinfo=zone)
    return (start - _EPOCH) // _MILLISECOND, (end - _EPOCH) // _MILLISECOND, f"{start.year:04d}-{start.month:02d}"


def _by_relevance(one: Candidate) -> tuple[int, int, bool, int, str, tuple[int, int], int]:
    time = one.time
    return -one.spans, one.length, time is None, -(time or 0), one.session_id, one.session, -one.ordinal


def _by_newest(one: Candidate) -> tuple[bool, int, str, tuple[int, int], int]:
    time = one.time
    return time is None, -(time or 0), one.session_id, one.session, -one.ordinal


def _by_oldest(one: Candidate) -> tuple[bool, int, str, tuple[int, int], int]:
    time = one.time
    return time is None, time or 0, one.session_id, one.session, one.ordinal


_KEYS: Final[Mapping[Sort, Callable[[Candidate], tuple[object, ...]]]] = {
    "relevance": _by_relevance,
    "newest": _by_newest,
    "oldest": _by_oldest,
}
