"""Answers as data and as lists."""

from __future__ import annotations

import json

import msgspec
import pytest

from sessiongraph_web import presentation
from sessiongraph_web.answers import Branch, EventPage, IndexNote, Lineage, Relative, SessionSummary
from sessiongraph_web.models import Instant
from tests.answered import answer, call, event, page, result, summary, user


def test_an_answer_is_encoded_field_by_field() -> None:
    """Moments are ISO 8601 with milliseconds in UTC; nothing is left out or renamed."""
    note = IndexNote(epoch=3, refreshed_at=Instant(1_790_000_000_123), indexing=True, done=1, total=2)
    assert presentation.envelope(note) == {
        "ok": True,
        "epoch": 3,
        "refreshed_at": "2026-09-21T14:13:20.123Z",
        "indexing": True,
        "done": 1,
        "total": 2,
    }


def test_what_a_log_holds_is_encoded_as_it_is() -> None:
    """Nested data, astral characters and large numbers reach strict JSON unchanged."""
    data = {"a": [1, None, {"b": "😀\u2028</script>"}], "n": 2**63 - 1, "f": 1.5}
    encoded = presentation.encode(page(event("x", data)))
    assert json.loads(msgspec.json.encode(encoded))["events"][0]["data"] == data


def test_every_field_of_a_session_is_in_its_json() -> None:
    """A twin keeps no field from its reader."""
    assert set(presentation.encode(summary())) == set(SessionSummary.__struct_fields__)


@pytest.mark.parametrize(
    ("shown", "about"),
    [
        (user("one\ntwo"), "one two"),
        (answer("hello"), "hello"),
        (answer("", calls=["c1", "c2"]), "calls bash, calls bash"),
        (call("c1", "bash", '{"command":"ls"}'), 'bash {"command":"ls"}'),
        (result("c1", "\x1b[31mred\x1b[0m"), "red"),
        (event("turn/start", {"turn": 3}), "Turn begins · 3"),
        (event("turn/end", {"turn": 3, "reason": {"kind": "completed"}}), "Turn ends · 3 · completed"),
        (event("plan/mode", {}), "Plan mode"),
        (event("session/title", {"title": "广告", "messageSeqs": [1]}), "Title · 广告"),
        (event("command/run", {"name": "goal", "args": "ship"}), "Command · goal · ship"),
        (
            event("agent/inbox/spliced", {"inserted": [{"content": [{"type": "text", "text": "go on"}]}]}),
            "queued: go on",
        ),
        (event("agent/inbox/spliced", {"inserted": [], "removedCount": 1}), "Inbox"),
        (event("x", {"a": 1}), '{"a": 1}'),
        (event("x", {}), "{}"),
    ],
)
def test_a_row_says_what_an_event_says(shown: object, about: str) -> None:
    """A list of events shows the beginning of each text, on one line and without colours."""
    assert [row.about for row in presentation.rows([shown])] == [about]  # type: ignore[list-item]


@pytest.mark.parametrize("text", ["<" * 600_000, "1" * 600_000, "广告" * 300_000])
def test_an_event_is_shown_within_what_a_page_may_weigh(text: str) -> None:
    """A larger record is cut, as it is understood and as it was written, and how much is left out is said."""
    target = event("x", {"text": text})
    whole = presentation.event(
        EventPage(
            session=summary(),
            target=target,
            before=[],
            after=[],
            repeats=[],
            trace=None,
            raw={"data": {"text": text}},
        )
    )
    assert whole.raw is not None
    assert presentation.MAX_EVENT_BYTES * 0.9 < len(whole.text.encode()) <= presentation.MAX_EVENT_BYTES
    assert presentation.MAX_RAW_BYTES * 0.9 < len(whole.raw.encode()) <= presentation.MAX_RAW_BYTES
    assert whole.left_out == 600_016 - len(whole.text.unescape())
    assert whole.raw_left_out == 600_034 - len(whole.raw.unescape())


def test_colours_go_before_text_does() -> None:
    """A record that would weigh too much in colours is shown without them, and whole."""
    target = event("x", {str(number): "广告" * 6 for number in range(800)})
    page = EventPage(
        session=summary(), target=target, before=[], after=[], repeats=[], trace=None, raw=target.data
    )
    whole = presentation.event(page)
    assert (whole.left_out, whole.raw_left_out) == (0, 0)
    assert "<span" in whole.text
    assert whole.raw is not None
    assert "<span" not in whole.raw


def named(name: str) -> SessionSummary:
    return summary(id=name, title=name)


def test_a_lineage_in_text_is_indented_from_its_oldest_ancestor() -> None:
    """Ancestors, the session, its descendants: each a level deeper than its parent."""
    grandchild = Branch(session=named("grandchild"), link="fork", descendants=[])
    child = Branch(session=named("child"), link="subagent", descendants=[grandchild])
    hidden = Branch(session=None, link=None, descendants=[])
    lineage = Lineage(
        session=named("self"),
        ancestors=[named("parent"), named("grandparent")],
        complete=False,
        descendants=[child, hidden],
    )
    lines = [(line.depth, line.session and line.session.id, line.role) for line in presentation.outline(lineage)]
    assert lines == [
        (0, None, "outside"),
        (1, "grandparent", "ancestor"),
        (2, "parent", "ancestor"),
        (3, "self", "self"),
        (4, "child", "subagent"),
        (5, "grandchild", "fork"),
        (4, None, "outside"),
    ]


def test_relatives_that_may_not_be_seen_stay_unnamed() -> None:
    """A relative without an id has no id in the JSON either."""
    encoded = presentation.encode(Relative(id=None))
    assert (encoded["id"], encoded["title"]) == (None, None)
