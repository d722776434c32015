"""The relations of an event: what each is called, and a small picture of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sessiongraph_web.answers import EventTrace
from sessiongraph_web.language import gettext

BOX_WIDTH: Final = 76
BOX_HEIGHT: Final = 26
ROW: Final = BOX_HEIGHT + 8
COLUMN: Final = BOX_WIDTH + 120  # room for the word on the line
MOST_BOXES: Final = 4  # of one relation; the others are in the list beside

Side = Literal["left", "right"]
SIDES: Final[tuple[Side, ...]] = ("left", "right")


@dataclass(frozen=True, slots=True)
class Relation:
    """One kind of relation of an event: what it is called, and the seqs it leads to."""

    name: str
    meaning: str
    side: Side
    seqs: list[int]


def relations(trace: EventTrace | None) -> list[Relation]:
    """Return the relations that an event has, in the order they are shown."""
    if trace is None:
        return []
    replaced_by = [] if trace.replaced_by is None else [trace.replaced_by]
    found = [
        Relation(gettext("Replaced by"), gettext("took its place in what the model sees"), "right", replaced_by),
        Relation(
            gettext("Then by"),
            gettext("the rest of the chain of replacements"),
            "right",
            trace.replacement_chain[1:],
        ),
        Relation(gettext("Replaces"), gettext("lost their place to this one"), "left", trace.replaced_event_seqs),
        Relation(gettext("Sources"), gettext("this one was made from"), "left", trace.source_event_seqs),
        Relation(gettext("Derived"), gettext("made from this one"), "right", trace.derived_event_seqs),
    ]
    return [relation for relation in found if relation.seqs]


@dataclass(frozen=True, slots=True)
class Box:
    """One event of the picture; without a `seq` it stands for those that are left out."""

    seq: int | None
    text: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line between the event and a related one, with its word on the first of a kind."""

    path: str
    word: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Picture:
    """An event in the middle: left of it what it comes from, right what came of it."""

    boxes: list[Box]
    lines: list[Line]
    middle: Box
    width: int
    height: int


def picture(seq: int, found: Sequence[Relation]) -> Picture:
    """Draw the relations of one event."""
    sides = {side: [row for one in found if one.side == side for row in _rows(one)] for side in SIDES}
    rows = max(1, *(len(side) for side in sides.values()))
    left = COLUMN if sides["left"] else 0
    middle = Box(seq, f"#{seq}", left + 1, (rows - 1) * ROW // 2 + 1)
    boxes: list[Box] = []
    lines: list[Line] = []
    for side, listed in sides.items():
        x = 1 if side == "left" else middle.x + COLUMN
        offset = (rows - len(listed)) * ROW // 2 + 1
        for index, (word, related, text) in enumerate(listed):
            box = Box(related, text, x, offset + index * ROW)
            boxes.append(box)
            lines.append(_line(box, middle, word) if side == "left" else _line(middle, box, word))
    width = middle.x + BOX_WIDTH + (COLUMN if sides["right"] else 0) + 1
    return Picture(boxes, lines, middle, width, rows * ROW)


def _rows(relation: Relation) -> list[tuple[str, int | None, str]]:
    """Return word, seq and text of each box of a relation; its word stands on the first line alone."""
    shown = relation.seqs[:MOST_BOXES]
    rows: list[tuple[str, int | None, str]] = [("", seq, f"#{seq}") for seq in shown]
    if len(relation.seqs) > len(shown):
        rows.append(("", None, f"+{len(relation.seqs) - len(shown)}"))
    return [(relation.name.lower(), *rows[0][1:]), *rows[1:]]


def _line(start: Box, end: Box, word: str) -> Line:
    left, right = start.x + BOX_WIDTH, end.x
    top, bottom = start.y + BOX_HEIGHT // 2, end.y + BOX_HEIGHT // 2
    centre = (left + right) // 2
    path = f"M{left} {top}C{centre} {top} {centre} {bottom} {right} {bottom}"
    return Line(path, word, centre, (top + bottom) // 2 - 4)
