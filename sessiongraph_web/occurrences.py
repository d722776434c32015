"""Where a text occurs in one session, seen from a record of it: asked of the full-text index at once.

Entries of one log are numbered in the order of its records, whatever lies between them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from sessiongraph_web import tokenizer
from sessiongraph_web.answers import Occurrences
from sessiongraph_web.corpus import Located, View
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.rows import Reader, Source

MOST_ONWARD: Final = 40  # entries from the record on whose places are told

_HOLDING: Final = """
    FROM entry_fts AS f CROSS JOIN entry AS e ON e.id = f.rowid
    WHERE f.entry_fts MATCH ?1 AND e.log_id = ?2 AND NOT (e.synthetic AND ?3)
    AND f.rowid <= (SELECT id FROM entry WHERE log_id = ?2 ORDER BY ordinal DESC, id DESC LIMIT 1)
"""
_COUNT: Final = f"""
    SELECT count(*), ifnull(sum(e.ordinal < ?4), 0), max(CASE WHEN e.ordinal < ?4 THEN e.ordinal END) {_HOLDING}
    AND f.rowid >= (SELECT id FROM entry WHERE log_id = ?2 ORDER BY ordinal, id LIMIT 1)
"""  # noqa: S608 - words of ours
_ONWARD: Final = f"""
    SELECT e.ordinal {_HOLDING}
    AND f.rowid >= (SELECT id FROM entry WHERE log_id = ?2 AND ordinal >= ?4 ORDER BY ordinal, id LIMIT 1)
    ORDER BY f.rowid LIMIT {MOST_ONWARD}
"""  # noqa: S608 - words of ours


def occurrences(view: View, located: Located, text: str, place: int) -> Occurrences:
    """Return where a text occurs in a log that the caller was let in to, else where all its parts do."""
    if not view.settings.search:
        raise SessionGraphError("SESSION_QUERY_SEARCH_DISABLED")
    view.require_catalog()
    query = tokenizer.parse(text[: tokenizer.MAX_QUERY_CHARACTERS])
    reader = Reader(time.monotonic() + view.settings.search_timeout_seconds)
    found = _found(view, located, reader, tokenizer.match_expression(query), place)
    if found.total or reader.is_late or not query.can_loosen:
        return found
    loose = _found(view, located, reader, tokenizer.match_expression(query, loose=True), place)
    return msgspec.structs.replace(loose, loose=True) if loose.total else found


def _found(view: View, located: Located, reader: Reader, expression: str | None, place: int) -> Occurrences:
    connection = view.database_of(located)
    if connection is None or expression is None:
        return Occurrences()
    source = Source(located.cwd, connection, 0)
    is_running = bool(located.row["open_turn"]) and bool(view.locks.is_held(located.path))
    bound: Sequence[Any] = (expression, located.log_id, is_running, place)
    counted = list(reader.rows(source, _COUNT, bound)) or [(0, 0, None)]
    total, before, previous = counted[0]
    onward = [row[0] for row in reader.rows(source, _ONWARD, bound)] if total > before else []
    return Occurrences(total=total, before=before, previous=previous, onward=onward, exact=not reader.is_late)
