"""The geometry of the pictures: the activity calendar and the family tree."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import Final, Literal

from sessiongraph_web import wording
from sessiongraph_web.answers import Branch, DayCount, Lineage, SessionSummary
from sessiongraph_web.language import gettext

WEEKS: Final = 53
CELL: Final = 11  # pixels of a day's side
STEP: Final = 14
LEFT: Final = 30  # room for the names of weekdays
TOP: Final = 20  # room for the names of months
LEVELS: Final = 4

NODE_WIDTH: Final = 236
NODE_HEIGHT: Final = 52
COLUMN: Final = NODE_WIDTH + 44
ROW: Final = NODE_HEIGHT + 16
MAX_NODES: Final = 150  # drawn in a tree; the text beside it goes on
TITLE_CELLS: Final = 25  # widths of a Latin letter that fit into a node


@dataclass(frozen=True, slots=True)
class Day:
    """One cell of the calendar. `level` 0 is no activity, 4 the busiest days."""

    day: str
    sessions: int
    entries: int
    x: int
    y: int
    level: int


@dataclass(frozen=True, slots=True)
class Month:
    """The name of a month above the week it begins in."""

    name: str
    x: int


@dataclass(frozen=True, slots=True)
class Heatmap:
    """A year of days in weeks of columns, Monday on top."""

    days: list[Day]
    months: list[Month]
    width: int
    height: int
    active_days: int
    first: str
    last: str
    earlier: str | None  # the day that the calendar before this one ends with, if anything happened by then
    later: str | None


def heatmap(
    counts: Sequence[DayCount], today: date, until: date | None = None, oldest: date | None = None
) -> Heatmap:
    """Lay out the 53 weeks that end with a day: today, or the last active one if that year holds none.

    `oldest` is the day that the whole history begins with.
    """
    by_day = {count.day: count for count in counts if count.sessions or count.entries}
    end = min(until, today) if until else _end(by_day, today)
    start = end - timedelta(days=end.weekday(), weeks=WEEKS - 1)
    dates = [start + timedelta(days=offset) for offset in range((end - start).days + 1)]
    shown = [by_day[one.isoformat()] for one in dates if one.isoformat() in by_day]
    steps = _steps([count.entries for count in shown])
    return Heatmap(
        days=[_day(one, start, by_day.get(one.isoformat()), steps) for one in dates],
        months=_months(dates, start),
        width=LEFT + WEEKS * STEP,
        height=TOP + 7 * STEP,
        active_days=len(shown),
        first=dates[0].isoformat(),
        last=dates[-1].isoformat(),
        earlier=(start - timedelta(days=1)).isoformat() if oldest and oldest < start else None,
        later=min(today, end + timedelta(weeks=WEEKS)).isoformat() if end < today else None,
    )


def _end(by_day: Iterable[str], today: date) -> date:
    last = max(by_day, default=None)
    if last is None:
        return today
    try:
        last_active = date.fromisoformat(last)
    except ValueError:
        return today
    return last_active if last_active < today - timedelta(weeks=WEEKS - 1) else today


def _day(one: date, start: date, count: DayCount | None, steps: Sequence[int]) -> Day:
    week, weekday = divmod((one - start).days, 7)
    entries = count.entries if count else 0
    return Day(
        day=one.isoformat(),
        sessions=count.sessions if count else 0,
        entries=entries,
        x=LEFT + week * STEP,
        y=TOP + weekday * STEP,
        level=1 + sum(entries >= step for step in steps) if count else 0,
    )


def _steps(values: Sequence[int]) -> list[int]:
    """Return the quartiles, so that the levels tell days apart whatever the busiest one was."""
    ordered = sorted(values)
    return [ordered[len(ordered) * part // LEVELS] for part in range(1, LEVELS)] if ordered else []


def _months(dates: Sequence[date], start: date) -> list[Month]:
    last_week = (dates[-1] - start).days // 7
    firsts = [one for one in dates if one.day == 1 and (one - start).days // 7 < last_week]
    return [
        Month(gettext(wording.MONTHS[one.month - 1]), LEFT + (one - start).days // 7 * STEP) for one in firsts
    ]


@dataclass(frozen=True, slots=True)
class Node:
    """A box of the family tree; `session` is None for what lies outside the view."""

    session: SessionSummary | None
    role: Literal["ancestor", "self", "fork", "subagent", "outside"]
    title: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A line from a parent's right side to a child's left."""

    path: str
    role: str


@dataclass(frozen=True, slots=True)
class Tree:
    """The family of a session, ancestors to the left. `left_out` descendants are in the text only."""

    nodes: list[Node]
    edges: list[Edge]
    width: int
    height: int
    left_out: int


def lineage(answer: Lineage) -> Tree:
    """Lay out a lineage as a tree that grows to the right."""
    chain: list[Node] = [] if answer.complete else [_outside(0, 0)]
    for ancestor in reversed(answer.ancestors):
        chain.append(_node(ancestor, "ancestor", len(chain), 0))
    chain.append(_node(answer.session, "self", len(chain), 0))
    layout = _Layout(room=max(0, MAX_NODES - len(chain)))
    layout.edges += [_edge(parent, child) for parent, child in pairwise(chain)]
    layout.place(answer.descendants, chain[-1], len(chain))
    nodes = chain + layout.nodes
    return Tree(
        nodes=nodes,
        edges=layout.edges,
        width=max(node.x for node in nodes) + NODE_WIDTH + 2,
        height=max(node.y for node in nodes) + NODE_HEIGHT + 2,
        left_out=layout.left_out,
    )


class _Layout:
    """Places descendants row by row: a first child shares its parent's row, each further one takes a new row."""

    def __init__(self, room: int) -> None:
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.left_out = 0
        self._room = room
        self._rows = 1

    def place(self, branches: Sequence[Branch], parent: Node, column: int) -> None:
        row: int | None = self._rows - 1
        for branch in branches:
            if len(self.nodes) >= self._room:
                self.left_out += sum(1 for _ in walk([branch]))
                continue
            if row is None:
                row, self._rows = self._rows, self._rows + 1
            node = _branch_node(branch, column, row)
            self.nodes.append(node)
            self.edges.append(_edge(parent, node))
            self.place(branch.descendants, node, column + 1)
            row = None


def walk(branches: Iterable[Branch]) -> Iterator[Branch]:
    """Yield every branch of a tree, each before its own descendants."""
    waiting = list(branches)[::-1]
    while waiting:
        branch = waiting.pop()
        yield branch
        waiting += branch.descendants[::-1]


def _branch_node(branch: Branch, column: int, row: int) -> Node:
    if branch.session is None:
        return _outside(column, row)
    return _node(branch.session, branch.link or "fork", column, row)


def _outside(column: int, row: int) -> Node:
    return Node(None, "outside", gettext("Outside your view"), 1 + column * COLUMN, 1 + row * ROW)


def _node(
    session: SessionSummary, role: Literal["ancestor", "self", "fork", "subagent"], column: int, row: int
) -> Node:
    return Node(session, role, fit(session.title, TITLE_CELLS), 1 + column * COLUMN, 1 + row * ROW)


def _edge(parent: Node, child: Node) -> Edge:
    left, right = parent.x + NODE_WIDTH, child.x
    start, end = parent.y + NODE_HEIGHT // 2, child.y + NODE_HEIGHT // 2
    middle = (left + right) // 2
    return Edge(f"M{left} {start}C{middle} {start} {middle} {end} {right} {end}", child.role)


def fit(text: str, cells: int) -> str:
    """Cut a text to a width counted in Latin letters, of which a Chinese character takes two."""
    taken = 0
    for index, character in enumerate(text):
        taken += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if taken > cells:
            return text[: max(0, index - 1)].rstrip() + "…"
    return text
