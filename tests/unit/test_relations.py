"""The relations of an event, in words and in a picture."""

from __future__ import annotations

from typing import Any

from sessiongraph_web import relations
from sessiongraph_web.answers import EventTrace
from sessiongraph_web.models import Instant


def trace(**changes: Any) -> EventTrace:
    facts: dict[str, Any] = {
        "session_id": "s",
        "log_id": 1,
        "seq": 5,
        "type": "user/message",
        "time": Instant(0),
        "surface": "shadowed",
        "replaced_by": None,
        "replacement_chain": [],
        "replaced_event_seqs": [],
        "source_event_seqs": [],
        "derived_event_seqs": [],
    }
    return EventTrace(**facts | changes)


def test_relations_that_an_event_has_not_are_left_out() -> None:
    """Only relations with members are listed; the chain goes on after the direct replacement."""
    found = relations.relations(trace(replaced_by=8, replacement_chain=[8, 9], source_event_seqs=[1]))
    assert [(one.name, one.seqs) for one in found] == [("Replaced by", [8]), ("Then by", [9]), ("Sources", [1])]
    assert relations.relations(None) == []


def test_what_an_event_comes_from_stands_left_and_what_came_of_it_right() -> None:
    """The event is in the middle of its column; each relation's word stands on its first line."""
    found = relations.relations(trace(source_event_seqs=[1, 2], derived_event_seqs=[7]))
    drawn = relations.picture(5, found)
    assert [(box.text, box.x < drawn.middle.x) for box in drawn.boxes] == [
        ("#1", True),
        ("#2", True),
        ("#7", False),
    ]
    assert [line.word for line in drawn.lines] == ["sources", "", "derived"]
    assert all(0 <= box.x <= drawn.width - relations.BOX_WIDTH for box in [*drawn.boxes, drawn.middle])
    assert all(0 <= box.y <= drawn.height - relations.BOX_HEIGHT for box in [*drawn.boxes, drawn.middle])


def test_a_picture_shows_a_few_and_counts_the_rest() -> None:
    """A summary that replaced hundreds of events is still a small picture."""
    drawn = relations.picture(5, relations.relations(trace(replaced_event_seqs=list(range(100, 400)))))
    assert [box.text for box in drawn.boxes] == ["#100", "#101", "#102", "#103", "+296"]
    assert drawn.boxes[-1].seq is None
