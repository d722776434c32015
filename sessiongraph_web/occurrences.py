"""Where a text occurs in one session: all the records that hold it, asked of the full-text index at once."""

from __future__ import annotations

import time
from typing import Final

from sessiongraph_web import tokenizer
from sessiongraph_web.answers import Occurrences
from sessiongraph_web.corpus import Located, View
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.rows import Reader, Source

QUERY_CHARS: Final = 4096  # as of any search
MOST: Final = 100_000  # of one session

_HOLDING: Final = """
    SELECT e.ordinal FROM entry_fts AS f CROSS JOIN entry AS e ON e.id = f.rowid
    WHERE f.entry_fts MATCH ?1 AND e.log_id = ?2 AND NOT (e.synthetic AND ?3)
    AND f.rowid >= (SELECT min(id) FROM entry WHERE log_id = ?2)
    AND f.rowid <= (SELECT max(id) FROM entry WHERE log_id = ?2) LIMIT ?4
"""


def occurrences(view: View, located: Located, text: str) -> Occurrences:
    """Return where a text occurs in a log that the caller was let in to, else where all its parts do."""
    if not view.settings.search:
        raise SessionGraphError("SESSION_QUERY_SEARCH_DISABLED")
    view.require_catalog()
    query = tokenizer.parse(text[:QUERY_CHARS])
    reader = Reader(time.monotonic() + view.settings.search_timeout_seconds)
    found = _holding(view, located, reader, tokenizer.match_expression(query))
    is_loose = not found and query.can_loosen and not reader.is_late
    if is_loose:
        found = _holding(view, located, reader, tokenizer.match_expression(query, loose=True))
    return Occurrences(
        ordinals=sorted(found[:MOST]),
        loose=is_loose and bool(found),
        exact=len(found) <= MOST and not reader.is_late,
    )


def _holding(view: View, located: Located, reader: Reader, expression: str | None) -> list[int]:
    """Return the ordinals of entries, one more than are wanted where there are more."""
    connection = view.database_of(located)
    if connection is None or expression is None:
        return []
    source = Source(located.cwd, connection, 0)
    is_running = bool(located.row["open_turn"]) and bool(view.locks.is_held(located.path))
    rows = reader.rows(source, _HOLDING, [expression, located.log_id, is_running, MOST + 1])
    return [row[0] for row in rows]
