"""What the page of a session offers to get about in it: marks of all its turns, finding, what is hidden."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from sessiongraph_web import markup, wording
from sessiongraph_web.answers import Occurrences, SessionPage, TurnList, TurnMark
from sessiongraph_web.cards import Prompt, Turn
from sessiongraph_web.models import Kind
from sessiongraph_web.web.links import Links

HIDEABLE: Final = ("tools", "reasoning", "context", "notes")
BAR_WIDTH: Final = 40
LABEL_CHARS: Final = 48
MOST_MARKED: Final = 30  # hits from the place of the reader on that are marked on the page
_ANYWHERE: Final = -1  # stands for a record
_FIRST_ARGUMENT: Final = re.compile(r'\{\s*"[^"]*":\s*\[?\s*"((?:[^"\\]|\\.)*)')

Parameters = Mapping[str, Sequence[str]]
Jump = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of the rail: a turn, or several where there are very many."""

    label: str
    url: str
    kind: Kind | None  # of the opening: a prompt, else an answer or a call, else nothing
    opening: str
    took: str | None
    width: int  # of its bar, which grows with the logarithm of the time it took
    bad: int  # turns that ended badly, and calls that failed
    here: bool  # on this page


def rail(
    listed: TurnList, page: SessionPage, turns: Sequence[Turn], kept: Parameters, links: Links
) -> list[Mark]:
    """Return the marks of all turns; those that the index does not know yet come from the page."""
    to = jumps(page, kept, links)
    marks = [_mark(mark, listed.longest_ms, turns, to(mark.ordinal)) for mark in listed.marks]
    known = listed.marks[-1].ordinal if listed.marks else -1
    numbers = {mark.last for mark in listed.marks}
    for turn in turns:
        start = _start(turn)
        if turn.number is not None and start > known and turn.number not in numbers:
            said = _said(turn.kind, turn.opening)
            marks.append(Mark(str(turn.number), to(start), *said, turn.took, 0, turn.failures, here=True))
    return marks


def _mark(mark: TurnMark, longest_ms: int, turns: Sequence[Turn], url: str) -> Mark:
    shown = [turn for turn in turns if turn.number is not None and mark.first <= turn.number <= mark.last]
    spent = mark.ended.ms - mark.started.ms if mark.started and mark.ended else 0
    share = math.log1p(max(0, spent)) / math.log1p(longest_ms) if longest_ms > 0 else 0
    kind, opening = _said(mark.kind, mark.opening)
    return Mark(
        label=str(mark.first) if mark.first == mark.last else f"{mark.first}–{mark.last}",
        url=url,
        kind=kind,
        opening=opening,
        took=wording.between(mark.started, mark.ended),
        width=round(BAR_WIDTH * share),
        bad=mark.bad_ends + max(mark.failures, sum(turn.failures for turn in shown)),  # some index no results
        here=bool(shown),
    )


def _said(kind: Kind | None, opening: str) -> tuple[Kind | None, str]:
    """Return what a line says a turn begins with: of a call its tool and first argument."""
    if kind == "tool_call":
        name, _, arguments = opening.partition(" ")
        found = _FIRST_ARGUMENT.match(arguments)
        opening = f"{name} {_written(found[1])}" if found else name
    return (kind, markup.clip(opening, LABEL_CHARS)) if opening else (None, "")


def _written(text: str) -> str:
    """Return what a JSON string says, on one line; one that is cut inside an escape stays as it stands."""
    try:
        return " ".join(msgspec.json.decode(f'"{text}"', type=str).split())
    except msgspec.DecodeError:
        return text


def _start(turn: Turn) -> int:
    """Return the record that a mark of a turn leads to: its prompt, else its first card."""
    places = [card.place for card in turn.cards if isinstance(card, Prompt)]
    places = places or [card.place for card in turn.cards if card.place is not None]
    return places[0].ordinal if places else -1


def jumps(page: SessionPage, kept: Parameters, links: Links) -> Jump:
    """Return what makes the address of a record inside the transcript; it keeps how the reader looks at it."""
    given = {name: list(values) for name, values in kept.items()}
    before, after = links.session(page.session, "", at=_ANYWHERE, **given).split(f"at={_ANYWHERE}")
    return lambda ordinal: f"{before}at={ordinal}{after}#e{ordinal}"


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


def place(page: SessionPage, at: int | None) -> int:
    """Return the record that a reader of a page is at: the one that was asked for, else the first."""
    return page.first_ordinal if at is None else at


def find(occurring: Occurrences, page: SessionPage, looks: Parameters, place: int, links: Links) -> Found:
    """Say what a text that was looked for in the whole session comes to, seen from a record."""
    query = wanted(looks)
    to = jumps(page, {**looks, "find": [query]}, links)
    following = next((ordinal for ordinal in occurring.onward if ordinal > place), None)
    is_hit = place in occurring.onward and not occurring.loose
    return Found(
        query=query,
        total=0 if occurring.loose else occurring.total,
        exact=occurring.exact,
        number=occurring.before + 1 if is_hit else None,
        ordinals=frozenset(occurring.onward[:MOST_MARKED]),
        previous=None if occurring.previous is None else to(occurring.previous),
        following=None if following is None else to(following),
    )


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
