"""The picture of a family: the session and its nearest relatives, and what stands for the others."""

from __future__ import annotations

from itertools import combinations
from typing import Final

import pytest

from sessiongraph_web import family, presentation
from sessiongraph_web.answers import Branch, Lineage, SessionSummary
from sessiongraph_web.family import Box, Tree
from tests.answered import summary

WIDE: Final = 1206  # pixels that a page of 1280 has for a picture
NARROW: Final = 329  # and one of 360


def named(title: str) -> SessionSummary:
    return summary(id=title, title=title)


def branch(title: str, *below: Branch) -> Branch:
    return Branch(session=named(title), link="fork", descendants=list(below))


def lineage(*branches: Branch, ancestors: int = 0, complete: bool = True) -> Lineage:
    return Lineage(
        session=named("self"),
        ancestors=[named(f"ancestor {n}") for n in range(ancestors)],
        complete=complete,
        descendants=list(branches),
    )


def chain(length: int, *, after: str = "d") -> Branch:
    """Return a branch that is a line of forks of forks."""
    made = branch(f"{after}{length}")
    for n in range(length - 1, 0, -1):
        made = branch(f"{after}{n}", made)
    return made


FAMILIES: Final = {
    "alone": lineage(),
    "a chain of fifty": lineage(ancestors=50),
    "a chain of fifty, and fifty below": lineage(chain(50), ancestors=50),
    "a chain that leads out of the view": lineage(branch("a"), ancestors=60, complete=False),
    "two hundred children": lineage(*(branch(f"c{n}") for n in range(200))),
    "forty by four": lineage(*(branch(f"c{n}", *(branch(f"g{n}.{m}") for m in range(4))) for n in range(40))),
    "a broad and deep one": lineage(*(chain(20, after=f"{n}.") for n in range(30)), ancestors=3),
}


def places(tree: Tree) -> dict[str, tuple[int, int]]:
    return {box.title: (box.x, box.y) for box in tree.boxes}


def own(tree: Tree) -> Box:
    return next(box for box in tree.boxes if box.role == "self")


def test_a_tree_grows_to_the_right_and_down() -> None:
    """Ancestors stand left, oldest first; a first child stands in its parent's row, each other in a new one."""
    tree = family.family(lineage(branch("a", branch("b"), branch("c")), branch("d"), ancestors=2)).across
    column, row = family.NODE_WIDTH + family.GUTTER, family.NODE_HEIGHT + family.SPACE
    assert {title: (x // column, y // row) for title, (x, y) in places(tree).items()} == {
        "ancestor 1": (0, 0),
        "ancestor 0": (1, 0),
        "self": (2, 0),
        "a": (3, 0),
        "b": (4, 0),
        "c": (4, 1),
        "d": (3, 2),
    }
    assert len(tree.edges) == len(tree.boxes) - 1


def test_in_a_narrow_window_everybody_has_a_row() -> None:
    """Rows follow each other as in the text, each a little to the right of its parent."""
    answer = lineage(branch("a", branch("b"), branch("c")), branch("d"), ancestors=1)
    boxes = family.family(answer).down.boxes
    assert [box.title for box in boxes] == ["ancestor 0", "self", "a", "b", "c", "d"]
    assert [(box.x - 1) // family.INDENT for box in boxes] == [0, 1, 2, 3, 3, 2]
    assert [box.y for box in boxes] == sorted({box.y for box in boxes})


def test_a_long_line_of_ancestors_is_its_ends_and_a_count() -> None:
    """The oldest, how many come after it, the parent, the session."""
    found = family.family(lineage(ancestors=50))
    assert [(box.title, box.role, box.more) for box in found.across.boxes] == [
        ("ancestor 49", "ancestor", 0),
        ("and 48 more", "gap", 48),
        ("ancestor 0", "ancestor", 0),
        ("self", "self", 0),
    ]
    assert found.left_out == 48


@pytest.mark.parametrize("answer", FAMILIES.values(), ids=FAMILIES)
def test_the_first_view_holds_the_session_and_who_stands_next_to_it(answer: Lineage) -> None:
    """Without scrolling: whole boxes, in a wide window with the first child, in a narrow one with all levels."""
    found = family.family(answer)
    own_box = own(found.across)
    assert own_box.x + own_box.width <= WIDE and own_box.y < 100
    if len(answer.ancestors) != family.MOST_ANCESTORS:
        beside = [box for box in found.across.boxes if box.x > own_box.x][:1]
        assert all(box.x + box.width <= WIDE for box in beside)
    assert found.down.width <= NARROW
    assert own(found.down).y < 300


@pytest.mark.parametrize("answer", FAMILIES.values(), ids=FAMILIES)
def test_everybody_is_drawn_or_counted_once(answer: Lineage) -> None:
    """Boxes and what gaps stand for are the lines of the text; each gap leads to the first of its own."""
    found = family.family(answer)
    lines = presentation.outline(answer)
    for tree in (found.across, found.down):
        drawn = [box for box in tree.boxes if box.role != "gap"]
        assert [lines[box.line].session for box in drawn] == [box.session for box in drawn]
        assert len(drawn) + found.left_out == len(lines)
        assert {box.line for box in drawn}.isdisjoint(box.line for box in tree.boxes if box.role == "gap")
        assert len(tree.boxes) <= 2 * family.MOST_DESCENDANTS + 8


@pytest.mark.parametrize("answer", FAMILIES.values(), ids=FAMILIES)
def test_no_box_covers_another(answer: Lineage) -> None:
    """Every box has room of its own inside the picture, and a line from its parent."""
    found = family.family(answer)
    for tree in (found.across, found.down):
        assert not [
            (one.title, other.title)
            for one, other in combinations(tree.boxes, 2)
            if one.x < other.x + other.width
            and other.x < one.x + one.width
            and one.y < other.y + other.height
            and other.y < one.y + one.height
        ]
        assert all(box.x + box.width < tree.width and box.y + box.height < tree.height for box in tree.boxes)
        assert len(tree.edges) == len(tree.boxes) - 1


def test_what_lies_outside_the_view_is_a_marker() -> None:
    """An incomplete ancestry and a hidden branch are boxes without a session."""
    hidden = Branch(session=None, link=None, descendants=[])
    boxes = family.family(lineage(hidden, complete=False)).across.boxes
    assert [(box.role, box.session is None) for box in boxes] == [
        ("outside", True),
        ("self", False),
        ("outside", True),
    ]


def test_titles_fit_their_boxes_by_width() -> None:
    """A Chinese character is as wide as two Latin letters."""
    assert family.fit("广告投放模块", 8) == "广告投…"
    assert family.fit("abcdefgh", 8) == "abcdefgh"
