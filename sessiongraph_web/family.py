"""The picture of a session's family: who is drawn, and where each box stands.

The session and its nearest relatives fit a first view: a long line of ancestors, many siblings and what lies deep
below are boxes that count whom they stand for. The text beside the picture has everybody.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

from sessiongraph_web.answers import Branch, Lineage, SessionSummary
from sessiongraph_web.language import gettext, ngettext

NODE_WIDTH: Final = 236
NODE_HEIGHT: Final = 52
GAP_WIDTH: Final = 92
GAP_HEIGHT: Final = 28
GUTTER: Final = 40  # between columns
SPACE: Final = 16  # between rows
INDENT: Final = 14  # of a level where the picture grows down
STEM: Final = 7  # from a box's left side to the line that its children hang on

MOST_ANCESTORS: Final = 3  # drawn; of a longer line the oldest, a count, and the parent are
LEVELS: Final = 3  # of descendants
MOST_CHILDREN: Final = 10  # of the session
MOST_GRANDCHILDREN: Final = 4  # of each of its descendants
MOST_DESCENDANTS: Final = 36
TITLE_CELLS: Final = 25  # widths of a Latin letter that fit into a box

Role = Literal["ancestor", "self", "fork", "subagent", "outside", "gap"]


@dataclass(frozen=True, slots=True)
class Box:
    """A relative; `session` is None for what lies outside the view, and for a gap, which stands for `more`.

    `line` is where the text beside the picture tells of it, counted from 0.
    """

    session: SessionSummary | None
    role: Role
    title: str
    more: int
    line: int
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A line from a parent to a child."""

    path: str
    role: Role


@dataclass(frozen=True, slots=True)
class Tree:
    """One drawing of a family."""

    boxes: list[Box]
    edges: list[Edge]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Family:
    """A family drawn twice: growing to the right, and growing down for narrow windows.

    `left_out` relatives are in the text only.
    """

    across: Tree
    down: Tree
    left_out: int


@dataclass(frozen=True, slots=True)
class _Member:
    session: SessionSummary | None
    role: Role
    line: int
    more: int = 0
    below: list[_Member] = field(default_factory=list)

    @property
    def size(self) -> tuple[int, int]:
        return (GAP_WIDTH, GAP_HEIGHT) if self.role == "gap" else (NODE_WIDTH, NODE_HEIGHT)


def family(answer: Lineage) -> Family:
    """Draw the family of a session."""
    line = [*_ancestors(answer), _Member(answer.session, "self", len(answer.ancestors) + (not answer.complete))]
    first = line[-1].line + 1
    lines = {id(branch): first + index for index, branch in enumerate(walk(answer.descendants))}
    line[-1].below.extend(_below(answer.descendants, lines, _kept(answer.descendants)))
    for parent, child in pairwise(line):
        parent.below.append(child)
    across, down = _Across(line[0]), _Down(line[0])
    return Family(across.tree(), down.tree(), sum(box.more for box in across.boxes))


def walk(branches: Iterable[Branch]) -> Iterator[Branch]:
    """Yield every branch of a tree, each before its own descendants."""
    waiting = list(branches)[::-1]
    while waiting:
        branch = waiting.pop()
        yield branch
        waiting += branch.descendants[::-1]


def fit(text: str, cells: int) -> str:
    """Cut a text to a width counted in Latin letters, of which a Chinese character takes two."""
    taken = 0
    for index, character in enumerate(text):
        taken += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if taken > cells:
            return text[: max(0, index - 1)].rstrip() + "…"
    return text


def _ancestors(answer: Lineage) -> list[_Member]:
    """Return the line of ancestors, oldest first, with a gap in the middle of a long one."""
    found = [] if answer.complete else [_Member(None, "outside", 0)]
    for ancestor in reversed(answer.ancestors):
        found.append(_Member(ancestor, "ancestor", len(found)))
    if len(found) <= MOST_ANCESTORS:
        return found
    return [found[0], _Member(None, "gap", 1, more=len(found) - 2), found[-1]]


def _kept(branches: Sequence[Branch]) -> set[int]:
    """Choose the descendants that are drawn, the nearest first."""
    kept: set[int] = set()
    level, most = [branches], MOST_CHILDREN
    for _ in range(LEVELS):
        chosen = [branch for siblings in level for branch in _first(siblings, most)]
        chosen = chosen[: MOST_DESCENDANTS - len(kept)]
        kept |= {id(branch) for branch in chosen}
        level, most = [branch.descendants for branch in chosen], MOST_GRANDCHILDREN
    return kept


def _first(siblings: Sequence[Branch], most: int) -> Sequence[Branch]:
    """Return the first of some siblings: all of them where a gap would stand for one."""
    return siblings if len(siblings) <= most + 1 else siblings[:most]


def _below(branches: Sequence[Branch], lines: Mapping[int, int], kept: set[int]) -> list[_Member]:
    members = [
        _Member(
            branch.session,
            "outside" if branch.session is None else branch.link or "fork",
            lines[id(branch)],
            below=_below(branch.descendants, lines, kept),
        )
        for branch in branches
        if id(branch) in kept
    ]
    rest = [branch for branch in branches if id(branch) not in kept]
    if rest:
        members.append(_Member(None, "gap", lines[id(rest[0])], more=sum(1 for _ in walk(rest))))
    return members


class _Drawing:
    """Boxes and edges while they are placed."""

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self.edges: list[Edge] = []

    def tree(self) -> Tree:
        return Tree(
            self.boxes,
            self.edges,
            width=max(box.x + box.width for box in self.boxes) + 1,
            height=max(box.y + box.height for box in self.boxes) + 1,
        )

    def _box(self, member: _Member, x: int, y: int) -> Box:
        width, height = member.size
        box = Box(member.session, member.role, _title(member), member.more, member.line, x, y, width, height)
        self.boxes.append(box)
        return box


class _Across(_Drawing):
    """Ancestors left, descendants right: a first child shares its parent's row, each other takes a new one."""

    def __init__(self, root: _Member) -> None:
        super().__init__()
        self._place(root, 1, 1 + NODE_HEIGHT // 2, None)

    def _place(self, member: _Member, x: int, middle: int, parent: Box | None) -> int:
        """Place a member and what is below it around a middle line; return where that ends."""
        box = self._box(member, x, middle - member.size[1] // 2)
        if parent:
            self.edges.append(Edge(_elbow(parent, box), member.role))
        end = box.y + box.height
        for index, child in enumerate(member.below):
            row = end + SPACE + child.size[1] // 2 if index else middle
            end = max(end, self._place(child, x + box.width + GUTTER, row, box))
        return end


class _Down(_Drawing):
    """Everybody in a row of their own, a little to the right of their parent."""

    def __init__(self, root: _Member) -> None:
        super().__init__()
        self._place(root, 1, 1, None)

    def _place(self, member: _Member, x: int, y: int, parent: Box | None) -> int:
        box = self._box(member, x, y)
        if parent:
            self.edges.append(Edge(_stem(parent, box), member.role))
        end = y + box.height
        for child in member.below:
            end = self._place(child, x + INDENT, end + SPACE // 2, box)
        return end


def _elbow(parent: Box, child: Box) -> str:
    left, right = parent.x + parent.width, child.x
    start, end = parent.y + parent.height // 2, child.y + child.height // 2
    middle = (left + right) // 2
    return f"M{left} {start}H{middle}V{end}H{right}"


def _stem(parent: Box, child: Box) -> str:
    return f"M{parent.x + STEM} {parent.y + parent.height}V{child.y + child.height // 2}H{child.x}"


def _title(member: _Member) -> str:
    if member.role == "gap":
        return ngettext("and %(num)s more", "and %(num)s more", member.more)
    if member.session is None:
        return gettext("Outside your view")
    return fit(member.session.title, TITLE_CELLS)
