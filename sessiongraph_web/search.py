"""Search: what matches a query in some workspaces, as one page of an answer."""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from sessiongraph_web import matching, ranking, tokenizer
from sessiongraph_web.answers import (
    SESSION_COLUMNS,
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
    reader.look()  # what comes too late to read anything is partial too
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
        wanted = defaultdict(list)
        for candidate in candidates:
            wanted[candidate.session[0]].append(candidate.id)
        rows = {
            (number, row[0]): row
            for number, ids in wanted.items()
            for row in _rows(self.scopes[number], _ENTRIES, ids)
        }
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

    def _hit(self, candidate: Candidate, row: Any) -> Hit:
        _, seq, turn, type_, surface, inherited, clipped, text = row
        spans = tokenizer.spans(text, self.query, loose=self.loose)
        excerpt = tokenizer.snippet(text, spans, self.snippet_chars)
        return Hit(
            log_id=candidate.session[1],
            session_id=candidate.session_id,
            ordinal=candidate.ordinal,
            seq=seq,
            time=instant(candidate.time),
            turn=turn,
            kind=candidate.kind,
            type=type_,
            surface=surface,
            tool=candidate.tool,
            inherited=bool(inherited),
            clipped=bool(clipped),
            spans=len(spans),
            snippet=Snippet(text=excerpt.text, matches=list(excerpt.matches)),
        )

    def _summaries(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], SessionSummary]:
        wanted = defaultdict(list)
        for number, log_id in keys:
            wanted[number].append(log_id)
        return {
            (number, row[0]): self._summary(self.scopes[number], dict(zip(_SESSION_COLUMNS, row, strict=True)))
            for number, log_ids in wanted.items()
            for row in _rows(self.scopes[number], _SESSIONS, log_ids)
        }

    def _summary(self, scope: Scope, row: Mapping[str, Any]) -> SessionSummary:
        cwd = scope.source.cwd
        summary = session_summary(row, cwd=cwd, live=self.live(cwd, row["log_id"]))
        if summary.parent_session is None or not scope.has_hidden:
            return summary
        sql = "SELECT log_id FROM session WHERE id = ?"
        parents = Reader(math.inf).rows(scope.source, sql, [summary.parent_session])
        if any(self.visible(cwd, log_id) for (log_id,) in parents):
            return summary
        return msgspec.structs.replace(summary, parent_session=None, parent_elsewhere=True)


_ENTRIES: Final = """
    SELECT id, seq, turn, type, surface, inherited, clipped, text
    FROM entry WHERE id IN (SELECT value FROM json_each(?))
"""
_SESSION_COLUMNS: Final = (*SESSION_COLUMNS, "created_at", "last_at", "models")
_SESSIONS: Final = f"""
    SELECT {", ".join(_SESSION_COLUMNS)} FROM session WHERE log_id IN (SELECT value FROM json_each(?))
"""  # noqa: S608 - our own names, values are bound


def _rows(scope: Scope, sql: str, ids: Sequence[int]) -> Iterator[Any]:
    return Reader(math.inf).rows(scope.source, sql, [json.dumps(ids)])


def _facts(scopes: Sequence[Scope], candidates: Iterable[Candidate]) -> dict[tuple[int, int], SessionFacts]:
    found = {}
    for number, log_id in {candidate.session for candidate in candidates}:
        scope = scopes[number]
        models = msgspec.json.decode(scope.sessions[log_id].models)
        found[number, log_id] = SessionFacts(scope.source.cwd, models)
    return found
