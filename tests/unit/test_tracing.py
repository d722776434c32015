"""Relations: ancestors and descendants of sessions, and what replaced or cites an event."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessiongraph_web import logs, tracing
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.tracing import Branch, Record, event_trace, lineage
from tests.builders import Log


def _records(*rows: tuple[str, str | None, int | None]) -> list[Record[str]]:
    return [Record(identity, parent, created, identity) for identity, parent, created in rows]


def test_the_tree_below_and_the_chain_above() -> None:
    """Ancestors come nearest first, siblings by creation, then id."""
    records = _records(
        ("root", None, 1), ("b", "root", 5), ("a", "root", 5), ("early", "root", 2), ("a1", "a", 9)
    )
    found = lineage(records, "root")
    assert found.descendants == [Branch("early"), Branch("a", [Branch("a1")]), Branch("b")]
    assert (found.ancestors, found.complete, found.root) == ([], True, "root")
    found = lineage(records, "a1")
    assert (found.ancestors, found.complete, found.root) == (["a", "root"], True, "root")


def test_a_parent_that_is_missing() -> None:
    """The chain ends at a parent that was not found, and says which."""
    found = lineage(_records(("a", "gone", 1)), "a")
    assert (found.ancestors, found.complete, found.unresolved_parent, found.root) == ([], False, "gone", None)


@pytest.mark.parametrize(
    "rows", [[("a", "a", 1)], [("a", "b", 1), ("b", "a", 1)], [("a", "b", 1), ("b", "b", 1)]]
)
def test_loops_are_errors(rows: list[tuple[str, str | None, int | None]]) -> None:
    """A loop among the ancestors is an error that names where it closes."""
    with pytest.raises(SessionGraphError) as raised:
        lineage(_records(*rows), "a")
    assert raised.value.code == "SESSION_QUERY_INVALID_LINEAGE"
    assert "contains a cycle at" in raised.value.detail


def test_an_unknown_session() -> None:
    """A session that is not among the records is not found."""
    with pytest.raises(SessionGraphError) as raised:
        lineage(_records(("a", None, 1)), "b")
    assert raised.value.code == "SESSION_QUERY_SESSION_NOT_FOUND"


def test_very_deep_and_very_wide_trees() -> None:
    """Neither depth nor width meets a limit, nor do ids that occur twice."""
    deep = _records(("s0", None, 0), *((f"s{n}", f"s{n - 1}", n) for n in range(1, 20_000)))
    found = lineage(deep, "s0")
    depth, branches = 0, found.descendants
    while branches:
        depth, branches = depth + 1, branches[0].descendants
    assert depth == 19_999
    assert len(lineage(deep, "s19999").ancestors) == 19_999
    doubled = _records(*((f"s{n}", f"s{n - 1}", n) for n in range(1, 60) for _ in "ab"), ("s0", None, 0))
    assert len(lineage(doubled, "s0").descendants) == 2


def test_the_order_of_ids() -> None:
    """Ids sort as the original sorts them: punctuation, digits, letters, and case only to break a tie."""
    ids = ["b", "B", "a", "A", "10", "2", "-x", "_x", "ab", "aB", "Ab", "AB", "ac", "é", "e", "f", "中", ""]
    assert sorted(ids, key=tracing.collation_key) == [
        "", "_x", "-x", "10", "2", "a", "A", "ab", "aB", "Ab", "AB", "ac", "b", "B", "e", "é", "f", "中",
    ]  # fmt: skip


def test_relations_of_an_event(store: Path) -> None:
    """What replaced it, what it replaced, what it cites and what cites it, after the log is folded."""
    for version in (0, 3, 4):
        log = Log(version=version)
        first, second = log.user("one"), log.user("two")
        summary = log.compact("sum", first, second, [first, second])
        last = log.compact("sum of sums", summary, summary, [summary])
        units = list(logs.read(log.write(store)))
        found = event_trace(units, first, session_id=log.id)
        assert (found.surface, found.replaced_by, found.replacement_chain) == (
            "shadowed",
            summary,
            [summary, last],
        )
        assert (found.replaced_event_seqs, found.source_event_seqs) == ([], [])
        assert found.derived_event_seqs == [summary]
        found = event_trace(units, last, session_id=log.id)
        assert (found.surface, found.replaced_by, found.replacement_chain) == ("current", None, [])
        assert (found.replaced_event_seqs, found.source_event_seqs) == ([summary], [summary])


def test_a_seq_inside_a_packed_row(store: Path) -> None:
    """An event that generation 0 packed with others is found in its row."""
    log = Log(version=0)
    log.assistant("a long answer in many pieces")
    units = list(logs.read(log.write(store)))
    found = event_trace(units, 3, session_id=log.id)
    assert (found.target.type, found.target.seq, found.surface) == ("text-chunks", 1, "log-only")
    assert found.derived_event_seqs == [log.seq - 1]


def test_an_event_that_is_not_there(store: Path) -> None:
    """A missing event is not found, even where the surface is invalid."""
    log = Log()
    log.replace("user/message", {}, 7, 8)
    units = list(logs.read(log.write(store)))
    for seq, code in ((5, "SESSION_QUERY_EVENT_NOT_FOUND"), (0, "SESSION_QUERY_INVALID_SURFACE")):
        with pytest.raises(SessionGraphError) as raised:
            event_trace(units, seq, session_id="s")
        assert raised.value.code == code


def test_damage_that_explains_a_gap_spoils_no_trace(store: Path) -> None:
    """Behind a damaged line the relations of the events that are left are known."""
    log = Log()
    first = log.user("one")
    log.raw(b"damaged\n")
    log.seq += 1
    second = log.user("two")
    log.compact("sum", first, second, [first, 1, second])
    found = event_trace(logs.read(log.write(store)), second, session_id=log.id)
    assert (found.surface, found.replaced_by) == ("shadowed", 3)
