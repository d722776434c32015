"""The order of candidates, their groups by session and their facets: what is pure in a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Literal

from sessiongraph_web.answers import Facet
from sessiongraph_web.models import Kind

Sort = Literal["relevance", "newest", "oldest"]

MORE_OF_A_SESSION: Final = 3  # matches shown beside a session's best
_QUARTER_MS: Final = 900_000  # every zone's months begin on a quarter of an hour
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that matches, as far as order and counts need it. `source` is the index of its workspace."""

    source: int
    id: int
    log_id: int
    session_id: str
    ordinal: int
    time: int | None
    kind: Kind
    tool: str | None
    length: int
    spans: int

    @property
    def session_key(self) -> tuple[int, int]:
        return self.source, self.log_id


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
        group = groups.get(candidate.session_key)
        if group is None:
            groups[candidate.session_key] = Group(candidate)
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
    candidates: Iterable[Candidate],
    sessions: Mapping[tuple[int, int], SessionFacts],
    *,
    by_session: bool,
    zone: tzinfo,
) -> dict[str, list[Facet]]:
    """Count the sessions, or the entries, that have each workspace, kind, tool, model and month."""
    month = _months(zone)
    entries: Counter[tuple[str, str | None]] = Counter()
    seen: set[tuple[tuple[int, int], str, str | None]] = set()
    for candidate in candidates:
        key = candidate.session_key
        for name, value in _values(candidate, sessions[key], month):
            if by_session:
                seen.add((key, name, value))
            else:
                entries[name, value] += 1
    counts = Counter((name, value) for _, name, value in seen) if by_session else entries
    found: dict[str, list[Facet]] = {name: [] for name in ("workspace", "kind", "tool", "model", "month")}
    for (name, value), count in sorted(counts.items(), key=lambda item: (-item[1], item[0][1] or "")):
        found[name].append(Facet(value=value, count=count))
    return found


def _values(
    candidate: Candidate, session: SessionFacts, month: Callable[[int], str]
) -> Iterable[tuple[str, str | None]]:
    yield "workspace", session.cwd
    yield "kind", candidate.kind
    if candidate.tool is not None:
        yield "tool", candidate.tool
    for model in session.models:
        yield "model", model
    if candidate.time is not None:
        yield "month", month(candidate.time)


def _months(zone: tzinfo) -> Callable[[int], str]:
    """Return the function from Unix milliseconds to `YYYY-MM` in a zone; it remembers what it was asked."""
    known: dict[int, str] = {}

    def month(millis: int) -> str:
        quarter = millis // _QUARTER_MS
        if quarter not in known:
            known[quarter] = _month(quarter, zone)
        return known[quarter]

    return month


def _month(quarter: int, zone: tzinfo) -> str:
    try:
        return (_EPOCH + timedelta(minutes=15 * quarter)).astimezone(zone).strftime("%Y-%m")
    except (OverflowError, ValueError):
        return "other"  # a clock that was wrong by millennia


def _by_relevance(candidate: Candidate) -> tuple[int, int, bool, int, str, int, int]:
    return -candidate.spans, candidate.length, *_by_newest(candidate)


def _by_newest(candidate: Candidate) -> tuple[bool, int, str, int, int]:
    is_timeless = candidate.time is None
    return is_timeless, -(candidate.time or 0), candidate.session_id, candidate.log_id, -candidate.ordinal


def _by_oldest(candidate: Candidate) -> tuple[bool, int, str, int, int]:
    is_timeless = candidate.time is None
    return is_timeless, candidate.time or 0, candidate.session_id, candidate.log_id, candidate.ordinal


_KEYS: Final[Mapping[Sort, Callable[[Candidate], tuple[object, ...]]]] = {
    "relevance": _by_relevance,
    "newest": _by_newest,
    "oldest": _by_oldest,
}
