"""Search: what matches a query in some workspaces, as one page of an answer."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import msgspec

from sessiongraph_web import matching, ranking, tokenizer
from sessiongraph_web.answers import (
    Hit,
    IndexNote,
    SearchPage,
    SessionHit,
    SessionSummary,
    Snippet,
    instant,
    session_summary,
)
from sessiongraph_web.config import Settings
from sessiongraph_web.filters import SearchRequest
from sessiongraph_web.matching import Live, Scope, Visible
from sessiongraph_web.models import KINDS
from sessiongraph_web.ranking import Candidate, Group, SessionFacts
from sessiongraph_web.rows import Reader, never
from sessiongraph_web.rows import Source as Source
from sessiongraph_web.tokenizer import Query


def search(
    sources: Sequence[Source],
    request: SearchRequest,
    *,
    settings: Settings,
    offset: int,
    deadline: float,
    index: IndexNote,
    visible: Visible,
    live: Live = lambda _cwd, _log_id: None,
    stop: Callable[[], bool] = never,
) -> tuple[SearchPage, int | None]:
    """Answer a search: the page that begins at `offset`, and the offset of the next one.

    `visible` and `live` tell of a log (by cwd and log id) whether the caller may see it and whether it is being
    written. At the `deadline` (of `time.monotonic`), or once `stop` says so, the answer is what was found until
    then, marked partial.
    Pages end with the candidates that were ranked, however many more match.
    """
    started = time.perf_counter()
    query = tokenizer.parse(request.query, request.match)
    reader = Reader(deadline, stop)
    asked = [source for source in sources if not request.workspaces or source.cwd in request.workspaces]
    scopes = [matching.scope(reader, n, source, request, visible, live) for n, source in enumerate(asked)]
    found = matching.find(reader, scopes, query, request)
    page = _Page(scopes, query, found.loose, settings.snippet_chars, visible, live)
    candidates = ranking.ordered(found.candidates, request.sort)
    groups = ranking.grouped(candidates)
    is_grouped = request.group == "session"
    end = offset + request.limit
    shown = SearchPage(
        query=query.text,
        match=request.match,
        sort=request.sort,
        group=request.group,
        kinds=list(found.kinds),
        widened=found.widened,
        loose=found.loose,
        sessions=page.sessions(groups[offset:end]) if is_grouped else [],
        entries=[] if is_grouped else page.hits(candidates[offset:end]),
        hits=0 if found.loose else found.count,
        hits_exact=(found.loose or found.count_is_exact) and not reader.is_late,
        session_count=len(groups),
        ranked_exactly=found.ranked_exactly and not reader.is_late,
        kind_counts={kind: found.kind_counts[kind] for kind in KINDS},
        facets=ranking.facets(
            candidates, _facts(scopes, candidates), by_session=is_grouped, zone=ZoneInfo(request.zone)
        ),
        counts_exact=found.kind_counts_exact and found.ranked_exactly and not reader.is_late,
        partial=reader.is_late,
        took_ms=round((time.perf_counter() - started) * 1000, 1),
        next_cursor=None,
        index=index,
    )
    return shown, end if end < len(groups if is_grouped else candidates) else None


@dataclass(frozen=True, slots=True)
class _Page:
    """Turns candidates into hits: reads their rows, whatever the time, since a page is small."""

    scopes: Sequence[Scope]
    query: Query
    loose: bool
    snippet_chars: int
    visible: Visible
    live: Live

    def hits(self, candidates: Sequence[Candidate]) -> list[Hit]:
        """Return the hits of candidates, in the same order."""
        rows: dict[tuple[int, int], sqlite3.Row] = {}
        for scope in self.scopes:
            ids = [candidate.id for candidate in candidates if candidate.session[0] == scope.number]
            sql = "SELECT * FROM entry WHERE id IN (SELECT value FROM json_each(?))"
            rows |= {(scope.number, row["id"]): row for row in _rows(scope, sql, ids)}
        found = ((candidate, rows.get((candidate.session[0], candidate.id))) for candidate in candidates)
        return [self._hit(candidate, row) for candidate, row in found if row is not None]

    def sessions(self, groups: Sequence[Group]) -> list[SessionHit]:
        """Return the hits of groups, in the same order."""
        hits = iter(self.hits([candidate for group in groups for candidate in (group.best, *group.more)]))
        summaries = self._summaries({group.best.session for group in groups})
        return [
            SessionHit(
                session=summaries[group.best.session],
                matches=group.matches,
                best=next(hits),
                more=[next(hits) for _ in group.more],
            )
            for group in groups
        ]

    def _hit(self, candidate: Candidate, row: sqlite3.Row) -> Hit:
        spans = tokenizer.spans(row["text"], self.query, loose=self.loose)
        excerpt = tokenizer.snippet(row["text"], spans, self.snippet_chars)
        return Hit(
            log_id=row["log_id"],
            session_id=candidate.session_id,
            ordinal=row["ordinal"],
            seq=row["seq"],
            time=instant(row["time"]),
            turn=row["turn"],
            kind=row["kind"],
            type=row["type"],
            surface=row["surface"],
            tool=row["tool"],
            inherited=bool(row["inherited"]),
            clipped=bool(row["clipped"]),
            spans=len(spans),
            snippet=Snippet(text=excerpt.text, matches=list(excerpt.matches)),
        )

    def _summaries(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], SessionSummary]:
        found = {}
        for scope in self.scopes:
            log_ids = [log_id for number, log_id in keys if number == scope.number]
            sql = "SELECT * FROM session WHERE log_id IN (SELECT value FROM json_each(?))"
            for row in _rows(scope, sql, log_ids):
                found[scope.number, row["log_id"]] = self._summary(scope, row)
        return found

    def _summary(self, scope: Scope, row: sqlite3.Row) -> SessionSummary:
        cwd = scope.source.cwd
        summary = session_summary(dict(row), cwd=cwd, live=self.live(cwd, row["log_id"]))
        if summary.parent_session is None or not scope.has_hidden:
            return summary
        sql = "SELECT log_id FROM session WHERE id = ?"
        parents = list(Reader(math.inf).rows(scope.source, sql, [summary.parent_session]))
        if any(self.visible(cwd, parent["log_id"]) for parent in parents):
            return summary
        return msgspec.structs.replace(summary, parent_session=None, parent_elsewhere=True)


def _rows(scope: Scope, sql: str, ids: Sequence[int]) -> list[sqlite3.Row]:
    return list(Reader(math.inf).rows(scope.source, sql, [json.dumps(ids)])) if ids else []


def _facts(scopes: Sequence[Scope], candidates: Iterable[Candidate]) -> dict[tuple[int, int], SessionFacts]:
    by_number = {scope.number: scope for scope in scopes}
    found = {}
    for number, log_id in {candidate.session for candidate in candidates}:
        scope = by_number[number]
        models = msgspec.json.decode(scope.sessions[log_id]["models"])
        found[number, log_id] = SessionFacts(scope.source.cwd, models)
    return found
