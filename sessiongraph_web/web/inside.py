"""What the page of a session offers to get about in it: marks of all its turns, finding, what is hidden."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sessiongraph_web import markup, wording
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import Hit, SearchPage, SessionPage, TurnList, TurnMark
from sessiongraph_web.cards import Prompt, Turn
from sessiongraph_web.filters import SearchRequest, Sort
from sessiongraph_web.models import KINDS
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.web.links import Links

HIDEABLE: Final = ("tools", "reasoning", "context", "notes")
BAR_WIDTH: Final = 40
MOST_MARKED: Final = 30  # hits from the place of the reader on that are marked on the page
FIND_CHARS: Final = 4096  # as of any search

Parameters = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of the rail: a turn, or several where there are very many."""

    label: str
    url: str
    prompt: str
    took: str | None
    width: int  # of its bar, which grows with the logarithm of the time it took
    bad: int  # turns that ended badly, and calls that failed
    here: bool  # on this page


def rail(
    listed: TurnList, page: SessionPage, turns: Sequence[Turn], kept: Parameters, links: Links
) -> list[Mark]:
    """Return the marks of all turns; those that the index does not know yet come from the page."""
    marks = [_mark(mark, listed, page, turns, kept, links) for mark in listed.marks]
    known = listed.marks[-1].ordinal if listed.marks else -1
    numbers = {mark.last for mark in listed.marks}
    for turn in turns:
        start = _start(turn)
        if turn.number is not None and start > known and turn.number not in numbers:
            url = jump(page, start, kept, links)
            marks.append(Mark(str(turn.number), url, turn.prompt, turn.took, 0, turn.failures, here=True))
    return marks


def _mark(
    mark: TurnMark, listed: TurnList, page: SessionPage, turns: Sequence[Turn], kept: Parameters, links: Links
) -> Mark:
    shown = [turn for turn in turns if turn.number is not None and mark.first <= turn.number <= mark.last]
    spent = mark.ended.ms - mark.started.ms if mark.started and mark.ended else 0
    share = math.log1p(max(0, spent)) / math.log1p(listed.longest_ms) if listed.longest_ms > 0 else 0
    return Mark(
        label=str(mark.first) if mark.first == mark.last else f"{mark.first}–{mark.last}",
        url=jump(page, mark.ordinal, kept, links),
        prompt=markup.clip(mark.prompt, 48),
        took=wording.between(mark.started, mark.ended),
        width=round(BAR_WIDTH * share),
        bad=mark.bad_ends + max(mark.failures, sum(turn.failures for turn in shown)),  # some index no results
        here=bool(shown),
    )


def _start(turn: Turn) -> int:
    """Return the record that a mark of a turn leads to: its prompt, else its first card."""
    places = [card.place for card in turn.cards if isinstance(card, Prompt)]
    places = places or [card.place for card in turn.cards if card.place is not None]
    return places[0].ordinal if places else -1


def jump(page: SessionPage, ordinal: int, kept: Parameters, links: Links) -> str:
    """Return the address of a record inside the transcript that keeps how the reader looks at it."""
    given = {name: list(values) for name, values in kept.items()}
    return links.session(page.session, "", at=ordinal, **given) + f"#e{ordinal}"


@dataclass(frozen=True, slots=True)
class Found:
    """What a search inside the session found, seen from where the reader is."""

    query: str
    total: int
    exact: bool
    number: int | None  # of the hit that the reader is at
    ordinals: frozenset[int]
    previous: str | None
    following: str | None


def find(
    product: SessionGraph, caller: Caller, page: SessionPage, looks: Parameters, at: int | None, links: Links
) -> Found:
    """Look for a text in the whole session: the hits before a record, and those from it on, one search each."""
    query, place = wanted(looks), _seq_at(page, at)
    kept = {**looks, "find": [query]}
    onward = search(product, caller, page.session.id, query, "oldest", place, limit=MOST_MARKED)
    before = search(product, caller, page.session.id, query, "newest", None, place - 1, limit=1)
    ahead = [hit for hit in onward.entries if hit.seq != place]

    def way(hits: list[Hit]) -> str | None:
        return jump(page, hits[0].ordinal, kept, links) if hits else None

    return Found(
        query=query,
        total=onward.hits + before.hits,
        exact=onward.hits_exact and before.hits_exact,
        number=before.hits + 1 if len(ahead) < len(onward.entries) else None,
        ordinals=frozenset(hit.ordinal for hit in onward.entries),
        previous=way(before.entries),
        following=way(ahead),
    )


def _seq_at(page: SessionPage, ordinal: int | None) -> int:
    """Return the number of the event at a place of the page, of its first one where none is given."""
    wanted = page.first_ordinal if ordinal is None else ordinal
    found = (event.seq for event in page.events if event.ordinal == wanted and event.seq is not None)
    return next(found, wanted)


def search(
    product: SessionGraph,
    caller: Caller,
    session_id: str,
    query: str,
    sort: Sort = "oldest",
    first: int | None = None,
    last: int | None = None,
    limit: int = 1,
) -> SearchPage:
    """Search one session, every kind of entry and what it inherited, in the order of time."""
    request = SearchRequest(
        query=query[:FIND_CHARS],
        sort=sort,
        group="none",
        limit=limit,
        kinds=KINDS,
        sessions=(session_id,),
        inherited=True,
        seq_from=None if first is None else max(0, first),
        seq_to=last,
    )
    return product.search(caller, request)


def hidden(looks: Parameters) -> list[str]:
    """Return the kinds of cards that the reader does not want to see."""
    given = {name for value in looks.get("hide", []) for name in value.split(",")}
    return [name for name in HIDEABLE if name in given]


def wanted(looks: Parameters) -> str:
    """Return the text that the reader looks for, if any."""
    return "".join(looks.get("find", [])[:1]).strip()


def kept(looks: Parameters) -> dict[str, list[str]]:
    """Return the looks that links inside the session keep."""
    return {name: list(values) for name, values in looks.items() if name in ("view", "hide", "find")}
