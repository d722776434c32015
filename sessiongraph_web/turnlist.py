"""The turns of a whole session as marks on a line: from the index, bounded however many there are."""

from __future__ import annotations

from typing import Final

from sessiongraph_web import redact
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import TurnList, TurnMark, instant
from sessiongraph_web.corpus import Located, View
from sessiongraph_web.turnspans import TurnSpan

MOST_MARKS: Final = 200  # of one session; where it has more turns, a mark stands for several


def turns(view: View, caller: Caller, located: Located, *, masked: bool) -> TurnList:
    """Return the turns of a session in the order of its log."""
    spans = view.map_of(located).turns(MOST_MARKS)
    hidden = masked or not caller.is_owner
    return TurnList(
        marks=[_mark(span, hidden=hidden) for span in spans],
        longest_ms=max((span.ended - span.started for span in spans if span.started and span.ended), default=0),
    )


def _mark(span: TurnSpan, *, hidden: bool) -> TurnMark:
    return TurnMark(
        first=span.first,
        last=span.last,
        ordinal=span.ordinal,
        started=instant(span.started),
        ended=instant(span.ended),
        kind=span.kind,
        opening=redact.mask(span.opening)[0] if hidden else span.opening,
        bad_ends=span.bad_ends,
        failures=span.failures,
    )
