"""The entries of workspace databases that match a query: all SQL that a search needs to find them.

Rows of `entry` are numbered in the order in which they were indexed, and a full build indexes logs oldest first.
Where a workspace has more matches than are ranked, the highest numbers stand for the newest entries (for the
oldest, when those are asked for, the lowest).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sessiongraph_web import ranking, tokenizer
from sessiongraph_web.filters import SearchRequest, Sort
from sessiongraph_web.models import DEFAULT_KINDS, KINDS, Kind
from sessiongraph_web.ranking import Candidate
from sessiongraph_web.rows import Condition, Reader, Source
from sessiongraph_web.tokenizer import Query

RANKED_OF_WORKSPACE: Final = 1000  # candidates of one workspace; counts stop here too
RANKED_WHOLE: Final = 10_000  # candidates of all workspaces together; once there are more, counts share it
RANKED_IN_ALL: Final = 1000  # candidates of an answer, once a workspace or all together have more than may be
READ_AT_ONCE: Final = 2000  # candidates that are read before all are counted, shared by the workspaces
BOUNDED_SESSIONS: Final = 32  # so few sessions are looked for between their first and last entry

Visible = Callable[[str | None, int], bool]
Live = Callable[[str | None, int], bool | None]


class Session(NamedTuple):
    """What a search needs of a session."""

    id: str
    models: str  # JSON


@dataclass(frozen=True, slots=True)
class Scope:
    """One workspace as a request sees it: its sessions that count, and what their entries must fulfil."""

    number: int
    source: Source
    sessions: Mapping[int, Session]
    has_hidden: bool  # sessions that the caller may not see
    entries: Condition
    ids: tuple[int, int] | None  # where the entries lie, if that is known to be narrow


@dataclass(slots=True)
class Found:
    """What matches: the candidates that were ranked, and the counts of all."""

    kinds: Sequence[Kind]
    loose: bool = False
    widened: bool = False
    candidates: list[Candidate] = field(default_factory=list)
    count: int = 0
    count_is_exact: bool = True
    ranked_exactly: bool = True
    kind_counts: Counter[str] = field(default_factory=Counter)
    kind_counts_exact: bool = True


@dataclass(slots=True)
class _Tally:
    """How many entries of a workspace match, by kind, among the newest `most` and one."""

    by_kind: Mapping[str, int]
    most: int
    candidates: list[Candidate] | None = None  # of the kinds that are looked for, if they were read on the way

    @property
    def is_cut(self) -> bool:
        return sum(self.by_kind.values()) > self.most

    def of(self, kinds: Sequence[Kind]) -> int:
        return sum(self.by_kind.get(kind, 0) for kind in kinds)


@dataclass(frozen=True, slots=True)
class _Asked:
    """An FTS5 expression put to one workspace."""

    reader: Reader
    scope: Scope
    expression: str
    sort: Sort
    count_spans: Callable[[str], int] | None  # None where the order does not depend on them

    def where(self, kinds: Sequence[Kind] = KINDS) -> tuple[str, list[Any]]:
        """Return the clauses from FROM to WHERE, and what is bound to them."""
        condition = Condition(list(self.scope.entries.terms), [self.expression, *self.scope.entries.bound])
        if self.scope.ids:
            condition.add("f.rowid BETWEEN ? AND ?", *self.scope.ids)
        if len(kinds) < len(KINDS):
            condition.add(f"e.kind IN ({_listed(kinds)})")
        joined = "FROM entry_fts AS f CROSS JOIN entry AS e ON e.id = f.rowid"
        return f"{joined} WHERE f.entry_fts MATCH ? AND {condition.sql}", condition.bound

    def rows(self, sql: str, bound: Sequence[Any]) -> Iterator[Any]:
        return self.reader.rows(self.scope.source, sql, bound)


def scope(
    reader: Reader, number: int, source: Source, request: SearchRequest, visible: Visible, live: Live
) -> Scope:
    """Read which sessions of a workspace a request is about."""
    asked = _session_condition(request)
    columns = "log_id, id, models, open_turn, parent_session, parent_elsewhere"
    sql = f"SELECT {columns}, {asked.sql} FROM session"  # noqa: S608 - our own names, values are bound
    rows = list(reader.rows(source, sql, asked.bound))
    seen = [row for row in rows if visible(source.cwd, row[0])]
    known = {row[1] for row in seen}  # a hidden parent is as good as one that is not there
    kept: dict[int, Session] = {}
    orphans, running = [], []
    for log_id, id_, models, open_turn, parent, parent_elsewhere, is_asked in seen:
        if not is_asked or (request.parents and parent not in known):
            continue
        if request.live is not None and live(source.cwd, log_id) is not request.live:
            continue
        kept[log_id] = Session(id_, models)
        if parent_elsewhere or (parent is not None and parent not in known):
            orphans.append(log_id)
        if open_turn and live(source.cwd, log_id):
            running.append(log_id)
    entries = _entry_condition(request)
    if not request.inherited:
        entries.add("(e.inherited = 0 OR e.log_id IN (SELECT value FROM json_each(?)))", json.dumps(orphans))
    if running:
        entries.add("NOT (e.synthetic AND e.log_id IN (SELECT value FROM json_each(?)))", json.dumps(running))
    ids = None
    if len(kept) < len(rows):
        logs = list(kept)
        entries.add("e.log_id IN (SELECT value FROM json_each(?))", json.dumps(logs))
        ids = _id_range(reader, source, logs)
    return Scope(number, source, kept, len(seen) < len(rows), entries, ids)


def _session_condition(request: SearchRequest) -> Condition:
    condition = Condition()
    condition.among("id", request.sessions)
    condition.among("parent_session", request.parents)
    condition.between("created_at", request.created_after, request.created_before)
    if request.roots:
        condition.add("parent_session IS NULL AND NOT parent_elsewhere")
    if request.models:
        condition.add(
            "EXISTS (SELECT 1 FROM json_each(models) AS a JOIN json_each(?) AS b ON a.value = b.value)",
            json.dumps(request.models),
        )
    return condition


def _entry_condition(request: SearchRequest) -> Condition:
    condition = Condition()
    condition.among("e.type", request.types)
    condition.among("e.surface", request.surfaces)
    condition.among("e.tool", request.tools)
    condition.between("e.time", request.after, request.before)
    condition.between("e.seq", request.seq_from, request.seq_to)
    return condition


def _id_range(reader: Reader, source: Source, logs: Sequence[int]) -> tuple[int, int] | None:
    if len(logs) > BOUNDED_SESSIONS:
        return None
    sql = "SELECT min(id), max(id) FROM entry WHERE log_id IN (SELECT value FROM json_each(?))"
    for first, last in reader.rows(source, sql, [json.dumps(logs)]):
        return (0, -1) if first is None else (first, last)
    return None


def find(reader: Reader, scopes: Sequence[Scope], query: Query, request: SearchRequest) -> Found:
    """Find the candidates of a search: exact ones, or if there are none, those that hold the query's parts."""
    if query.match == "text":
        return _scan(reader, scopes, query, request)
    found = _look_up(reader, scopes, query, request, loose=False)
    if found.count or reader.is_late or not query.can_loosen:
        return found
    loose = _look_up(reader, scopes, query, request, loose=True)
    return loose if loose.count else found


def _look_up(
    reader: Reader, scopes: Sequence[Scope], query: Query, request: SearchRequest, *, loose: bool
) -> Found:
    """Ask the full-text index."""
    found = Found(kinds=request.kinds or DEFAULT_KINDS, loose=loose)
    expression = tokenizer.match_expression(query, loose=loose)
    if expression is None:
        return found
    count_spans = tokenizer.span_counter(query, loose=loose) if request.sort == "relevance" else None
    asked = [_Asked(reader, scope, expression, request.sort, count_spans) for scope in scopes]
    tallies = _tallies(asked, found.kinds)
    for tally in tallies:
        found.kind_counts.update({kind: min(n, tally.most) for kind, n in tally.by_kind.items()})
    if request.kinds is None and found.kind_counts and not _have_any(asked, tallies, DEFAULT_KINDS):
        found.kinds, found.widened = KINDS, True
    counts = [tally.most if tally.is_cut else tally.of(found.kinds) for tally in tallies]
    is_cut = any(tally.is_cut for tally in tallies) or sum(counts) > RANKED_WHOLE
    shares = ranking.shares(counts, RANKED_IN_ALL) if is_cut else counts
    for one, tally, share in zip(asked, tallies, shares, strict=True):
        if tally.candidates is None or found.widened:
            _collect(found, one, tally, share)
        else:
            found.candidates += tally.candidates
            found.count += len(tally.candidates)
    return found


def _tallies(asked: Sequence[_Asked], kinds: Sequence[Kind]) -> list[_Tally]:
    """Count the matches of each workspace; read on the way what is few enough to be ranked in any case."""
    few = min(RANKED_OF_WORKSPACE, READ_AT_ONCE // max(1, len(asked)))
    has_few = [_has_at_most(few, one) for one in asked]
    most = min(RANKED_OF_WORKSPACE, RANKED_WHOLE // max(1, has_few.count(False)))
    return [
        _read(one, kinds) if is_few else _tally(one, most) for one, is_few in zip(asked, has_few, strict=True)
    ]


def _has_at_most(few: int, asked: _Asked) -> bool:
    """Say whether the full-text index alone finds no more entries than these."""
    within, ids = ("AND rowid BETWEEN ? AND ?", asked.scope.ids) if asked.scope.ids else ("", ())
    sql = f"SELECT 1 FROM entry_fts WHERE entry_fts MATCH ? {within} LIMIT 1 OFFSET {few}"  # noqa: S608
    return not list(asked.rows(sql, [asked.expression, *ids]))


def _tally(asked: _Asked, most: int) -> _Tally:
    where, bound = asked.where()
    sql = f"""
        SELECT kind, count(*) FROM (
            SELECT e.kind {where} ORDER BY f.rowid {_direction(asked.sort)} LIMIT {most + 1}
        ) GROUP BY kind
    """  # noqa: S608 - our own names, values are bound
    return _Tally(dict(asked.rows(sql, bound)), most)


def _read(asked: _Asked, kinds: Sequence[Kind]) -> _Tally:
    """Count the matches of a workspace by reading all: the texts of these kinds, of the others that they are."""
    where, bound = asked.where()
    text = f"CASE WHEN e.kind IN ({_listed(kinds)}) THEN e.text END" if asked.count_spans else "NULL"
    sql = f"SELECT {_COLUMNS}, {text} {where}"
    rows = list(asked.rows(sql, bound))
    wanted = frozenset(kinds)
    candidates = _candidates(asked, (row for row in rows if row[_KIND] in wanted))
    return _Tally(Counter([row[_KIND] for row in rows]), RANKED_OF_WORKSPACE, candidates)


def _have_any(asked: Sequence[_Asked], tallies: Sequence[_Tally], kinds: Sequence[Kind]) -> bool:
    """Say whether any entry of these kinds matches; only where there are many others must the index be asked."""
    return any(tally.of(kinds) for tally in tallies) or any(
        tally.is_cut and _has(one, kinds) for one, tally in zip(asked, tallies, strict=True)
    )


def _has(asked: _Asked, kinds: Sequence[Kind]) -> bool:
    where, bound = asked.where(kinds)
    return bool(list(asked.rows(f"SELECT 1 {where} LIMIT 1", bound)))


def _collect(found: Found, asked: _Asked, tally: _Tally, share: int) -> None:
    """Add the newest candidates of a workspace, at most `share`, and its counts."""
    if not share:
        found.count += tally.of(found.kinds)
        found.ranked_exactly = found.ranked_exactly and not tally.of(found.kinds)
        return
    where, bound = asked.where(found.kinds)
    sql = f"""
        SELECT {_COLUMNS}, {"e.text" if asked.count_spans else "NULL"}
        {where} ORDER BY f.rowid {_direction(asked.sort)} LIMIT {share + 1}
    """
    candidates = _candidates(asked, asked.rows(sql, bound))
    is_more = len(candidates) > share
    del candidates[share:]
    by_kind = Counter(candidate.kind for candidate in candidates)
    found.candidates += candidates
    found.kind_counts.update({kind: max(0, by_kind[kind] - tally.by_kind.get(kind, 0)) for kind in by_kind})
    found.kind_counts_exact = found.kind_counts_exact and not tally.is_cut
    found.ranked_exactly = found.ranked_exactly and not is_more
    if tally.is_cut and is_more:
        found.count += min(tally.most, max(share, tally.of(found.kinds)))
        found.count_is_exact = False
    else:
        found.count += len(candidates) if tally.is_cut else tally.of(found.kinds)


def _scan(reader: Reader, scopes: Sequence[Scope], query: Query, request: SearchRequest) -> Found:
    """Read every entry that may hold a literal text, newest first."""
    found = Found(kinds=request.kinds or DEFAULT_KINDS)
    others: list[Candidate] = []  # of kinds that are not looked at unless the default ones hold nothing
    for scope in scopes:
        room = dict.fromkeys((True, False), RANKED_OF_WORKSPACE)
        for candidate in _literal_matches(reader, scope, query, request.sort):
            is_wanted = candidate.kind in found.kinds
            if not room[is_wanted]:
                found.kind_counts_exact = False
                if is_wanted:
                    found.count_is_exact = found.ranked_exactly = False
                    break
                continue
            room[is_wanted] -= 1
            found.kind_counts[candidate.kind] += 1
            (found.candidates if is_wanted else others).append(candidate)
    if request.kinds is None and not found.candidates and others:
        found.kinds, found.widened, found.candidates = KINDS, True, others
        found.count_is_exact = found.ranked_exactly = found.kind_counts_exact
    found.count = len(found.candidates)
    return found


def _literal_matches(reader: Reader, scope: Scope, query: Query, sort: Sort) -> Iterator[Candidate]:
    condition = Condition(list(scope.entries.terms), list(scope.entries.bound))
    if scope.ids:
        condition.add("e.id BETWEEN ? AND ?", *scope.ids)
    necessary = tokenizer.necessary_expression(query)
    if necessary:
        condition.add("e.id IN (SELECT rowid FROM entry_fts WHERE entry_fts MATCH ?)", necessary)
    sql = f"""
        SELECT {_COLUMNS}, e.text
        FROM entry AS e WHERE {condition.sql} ORDER BY e.id {_direction(sort)}
    """  # noqa: S608 - our own names, values are bound
    count_spans = tokenizer.span_counter(query)
    for row in reader.rows(scope.source, sql, condition.bound):
        candidate = _candidate(scope, row, count_spans(row[_TEXT]))
        if candidate and candidate.spans:
            yield candidate


def _candidates(asked: _Asked, rows: Iterable[Any]) -> list[Candidate]:
    """Return what ranking needs of rows."""
    scope, count = asked.scope, asked.count_spans
    found = (_candidate(scope, row, count(row[_TEXT]) if count else 0) for row in rows)
    return [candidate for candidate in found if candidate is not None]


_COLUMNS: Final = "e.id, e.log_id, e.ordinal, e.time, e.kind, e.tool, e.length"
_KIND: Final = 4  # where the kind and the text stand in a row
_TEXT: Final = 7


def _candidate(scope: Scope, row: Any, spans: int) -> Candidate | None:
    """Return what ranking needs of a row; None for the entry of a session that came after `scope` was taken."""
    id_, log_id, ordinal, time_, kind, tool, length, _ = row
    session = scope.sessions.get(log_id)
    if session is None:
        return None
    return Candidate((scope.number, log_id), id_, session.id, ordinal, time_, kind, tool, length, spans)


def _listed(kinds: Sequence[Kind]) -> str:
    """Write kinds as SQL: they are words of ours."""
    return ", ".join(f"'{kind}'" for kind in kinds)


def _direction(sort: Sort) -> str:
    return "ASC" if sort == "oldest" else "DESC"
