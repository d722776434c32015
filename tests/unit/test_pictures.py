"""The geometry of calendars and family trees."""

from __future__ import annotations

from datetime import date

from sessiongraph_web import pictures
from sessiongraph_web.answers import Branch, DayCount, Lineage, SessionSummary
from tests.answered import summary

TODAY = date(2026, 11, 26)  # a Thursday


def day(name: str, entries: int) -> DayCount:
    return DayCount(day=name, sessions=1, entries=entries)


def test_a_calendar_is_a_year_of_weeks_that_ends_today() -> None:
    """53 columns, Monday on top, the last column up to today."""
    made = pictures.heatmap([], TODAY)
    assert (made.first, made.last, len(made.days), made.active_days) == ("2025-11-24", "2026-11-26", 368, 0)
    assert {cell.level for cell in made.days} == {0}


def test_levels_tell_days_apart_by_quartile() -> None:
    """The busiest quarter has the highest level whatever the numbers are."""
    made = pictures.heatmap([day(f"2026-11-0{n}", 10**n) for n in range(1, 5)], TODAY)
    assert [cell.level for cell in made.days if cell.sessions] == [1, 2, 3, 4]


def test_an_old_history_is_shown_where_it_ended() -> None:
    """If the last year holds nothing, the calendar ends with the last active day."""
    made = pictures.heatmap([day("2020-02-29", 3)], TODAY)
    assert (made.last, made.active_days) == ("2020-02-29", 1)


def test_two_years_of_history_are_walked_year_by_year() -> None:
    """Each calendar leads to the one before while anything happened then, and back up to today."""
    history = [day("2024-12-01", 3), day("2025-06-01", 4), day("2026-11-01", 5)]
    oldest = date(2024, 12, 1)
    latest = pictures.heatmap(history, TODAY, oldest=oldest)
    assert (latest.active_days, latest.earlier, latest.later) == (1, "2025-11-23", None)
    before = pictures.heatmap(history, TODAY, date(2025, 11, 23), oldest)
    assert (before.active_days, before.first, before.last) == (2, "2024-11-18", "2025-11-23")
    assert (before.earlier, before.later) == (None, "2026-11-26")


def test_no_calendar_goes_beyond_today() -> None:
    """A day to come is as good as today."""
    assert pictures.heatmap([], TODAY, date(2030, 1, 1)).last == "2026-11-26"


def test_a_day_that_is_no_day_is_not_drawn() -> None:
    """A time outside the calendar spoils nothing."""
    assert pictures.heatmap([day("+010000-01-01", 3)], TODAY).active_days == 0


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


def grid(tree: pictures.Tree) -> dict[str, tuple[int, int]]:
    """Return the column and row of each box."""
    return {node.title: (node.x // pictures.COLUMN, node.y // pictures.ROW) for node in tree.nodes}


def test_a_tree_grows_to_the_right_and_down() -> None:
    """Ancestors stand left, oldest first; a first child stands in its parent's row, each other in a new one."""
    tree = pictures.lineage(lineage(branch("a", branch("b"), branch("c")), branch("d"), ancestors=2))
    assert grid(tree) == {
        "ancestor 1": (0, 0),
        "ancestor 0": (1, 0),
        "self": (2, 0),
        "a": (3, 0),
        "b": (4, 0),
        "c": (4, 1),
        "d": (3, 2),
    }
    assert len(tree.edges) == len(tree.nodes) - 1


def test_what_lies_outside_the_view_is_a_marker() -> None:
    """An incomplete ancestry and a hidden branch are boxes without a session."""
    hidden = Branch(session=None, link=None, descendants=[])
    tree = pictures.lineage(lineage(hidden, complete=False))
    assert [(node.role, node.session is None) for node in tree.nodes] == [
        ("outside", True),
        ("self", False),
        ("outside", True),
    ]


def test_a_large_family_is_drawn_in_part_and_counted() -> None:
    """What is not drawn is said, in numbers of sessions."""
    tree = pictures.lineage(lineage(*[branch(f"c{n}", branch(f"d{n}")) for n in range(200)]))
    assert len(tree.nodes) == pictures.MAX_NODES
    assert tree.left_out == 401 - pictures.MAX_NODES


def test_titles_fit_their_boxes_by_width() -> None:
    """A Chinese character is as wide as two Latin letters."""
    assert pictures.fit("广告投放模块", 8) == "广告投…"
    assert pictures.fit("abcdefgh", 8) == "abcdefgh"


def test_a_family_of_two_hundred_has_room_for_every_box_it_draws() -> None:
    """No box covers another, every line ends at boxes, and what is not drawn is counted."""
    children = [branch(f"child {n}", *(branch(f"grandchild {n}.{m}") for m in range(4))) for n in range(40)]
    made = pictures.lineage(lineage(*children))
    places = [(node.x, node.y) for node in made.nodes]
    assert (len(made.nodes), made.left_out) == (pictures.MAX_NODES, 201 - pictures.MAX_NODES)
    assert len(set(places)) == len(places)
    assert len(made.edges) == len(made.nodes) - 1
    assert made.width > max(x for x, _ in places) + pictures.NODE_WIDTH
    assert made.height > max(y for _, y in places) + pictures.NODE_HEIGHT
