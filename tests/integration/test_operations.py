"""What the operations answer: timeline, cursors, lineage, workspaces, status; and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import access, filters, presentation
from sessiongraph_web.access import OWNER, Caller
from sessiongraph_web.answers import Branch, Lineage
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.models import KINDS
from sessiongraph_web.operations import SessionGraph
from tests import products
from tests.builders import Log
from tests.products import find, timeline

HOUR_MS = 3_600_000
ZONES = ("UTC", "Pacific/Auckland", "America/Los_Angeles", "Asia/Kolkata")


def at(text: str) -> int:
    """Return a UTC time in Unix milliseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def code_of(ask: Any) -> str:
    with pytest.raises(SessionGraphError) as raised:
        ask()
    return raised.value.code


def trace(product: SessionGraph, session_id: str, caller: Caller = OWNER) -> Lineage:
    return product.trace(caller, filters.SessionRequest(id=session_id))


def tree(branches: list[Branch]) -> list[Any]:
    """Return the ids of a tree, None for the marker of what lies outside."""
    return [(branch.session.id if branch.session else None, tree(branch.descendants)) for branch in branches]


# Timeline


def test_a_session_that_spans_two_days_counts_on_both(store: Path, tmp_path: Path) -> None:
    """Entries count on the day of their own time, in the caller's zone; a session on every day it was active."""
    log = Log(created_at=at("2026-03-01T23:00"))
    log.user("before midnight")
    log.event("note/pause", {}, time=at("2026-03-02T00:30"))
    log.user("after midnight")
    log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        counted = {
            zone: [(day.day, day.sessions, day.entries) for day in timeline(product, tz=zone).days]
            for zone in ZONES
        }
        on_both = [timeline(product, day=day).total for day in ("2026-02-28", "2026-03-01", "2026-03-02")]

    assert counted == {
        "UTC": [("2026-03-01", 1, 1), ("2026-03-02", 1, 1)],
        "Pacific/Auckland": [("2026-03-02", 1, 2)],
        "America/Los_Angeles": [("2026-03-01", 1, 2)],
        "Asia/Kolkata": [("2026-03-02", 1, 2)],
    }
    assert on_both == [0, 1, 1]


@pytest.mark.shared
@pytest.mark.parametrize("machine", ZONES)
def test_days_do_not_depend_on_the_zone_of_the_machine(machine: str, shared: Path, tmp_path: Path) -> None:
    """The recorded case answers the same days for a given zone wherever the server stands."""
    places = ["--sessions", str(shared / "field-cases/D15/sessions"), "--index", str(tmp_path / "index")]
    command = [sys.executable, "-m", "sessiongraph_web", "timeline", *places, "--tz", "Asia/Kolkata", "--json"]
    here, there = (
        json.loads(subprocess.run(command, env={"TZ": zone}, capture_output=True, check=True).stdout)
        for zone in ("UTC", machine)
    )
    assert there["days"] == here["days"] != []
    assert there["sessions"] == here["sessions"]


@pytest.mark.shared
def test_clocks_that_were_wrong_break_nothing(shared: Path, tmp_path: Path) -> None:
    """Times in wrong units, before 1970, and running backwards: every list and page answers, in log order."""
    store = shared / "field-cases/D14/sessions"
    expected = json.loads((shared / "field-cases/D14/expect.json").read_text("utf-8"))["order"]
    with products.indexed(store, tmp_path / "index") as product:
        for zone in ZONES:
            (listed,) = timeline(product, tz=zone, sort="activity").sessions
        page = products.read(product, listed.id)
        answers = [page, timeline(product), product.workspaces(OWNER), product.status(OWNER)]

    assert [event.seq for event in page.events] == expected
    assert all(json.dumps(presentation.encode(answer), allow_nan=False) for answer in answers)


def test_the_timeline_is_filtered_and_paged(store: Path, tmp_path: Path) -> None:
    """Pages follow each other without a gap or a repeat, newest first, and filters leave out what they say."""
    logs = [Log(f"/w/{number % 2}", created_at=at(f"2026-05-{number + 1:02d}")) for number in range(9)]
    for log in logs:
        log.turn("prompt", "answer").write(store)
    Log("/w/0", parent=logs[0].id, origin="subagent", created_at=at("2026-06-01")).turn("a", "b").write(store)
    with products.indexed(store, tmp_path / "index") as product:
        pages = [timeline(product, limit=4, roots=1)]
        while pages[-1].next_cursor:
            pages.append(timeline(product, limit=4, roots=1, cursor=pages[-1].next_cursor))
        some = timeline(product, roots=1, workspace="/w/1", after="2026-05-03", before="2026-05-06")

    shown = [session.id for page in pages for session in page.sessions]
    assert shown == [log.id for log in reversed(logs)]
    assert [page.total for page in pages] == [9, 9, 9]
    assert [session.id for session in some.sessions] == [logs[5].id, logs[3].id]


# Cursors


def _words(store: Path, cwd: str, count: int = 5) -> list[Log]:
    logs = [Log(cwd).turn(f"needle number {number}", "needle again") for number in range(count)]
    for log in logs:
        log.write(store)
    return logs


@pytest.mark.parametrize("operation", ["search", "timeline"])
def test_a_cursor_is_bound_to_what_it_was_made_for(operation: str, store: Path, tmp_path: Path) -> None:
    """Altered, of another request, caller or operation: INVALID_CURSOR. The history changed: STALE_CURSOR."""
    _words(store, "/w/a")
    with products.indexed(store, tmp_path / "index") as product:

        def ask(caller: Caller = OWNER, **given: Any) -> Any:
            if operation == "search":
                return find(product, "needle", caller, limit=2, **given)
            return timeline(product, caller, limit=2, **given)

        cursor = ask().next_cursor
        other = (
            find(product, "needle", limit=2) if operation == "timeline" else timeline(product, limit=2)
        ).next_cursor
        altered = cursor[:-3] + ("AAA" if cursor[-3:] != "AAA" else "BBB")
        refused = [
            code_of(lambda: ask(cursor=altered)),
            code_of(lambda: ask(cursor=other)),
            code_of(lambda: ask(cursor=cursor, roots=1)),
            code_of(lambda: ask(access.workspaces("/w/a"), cursor=cursor)),
        ]
        _words(store, "/w/a", 1)
        products.refresh(product)
        stale = code_of(lambda: ask(cursor=cursor))

    assert refused == ["SESSION_QUERY_INVALID_CURSOR"] * 4
    assert stale == "SESSION_QUERY_STALE_CURSOR"


@pytest.mark.parametrize(
    ("query", "given", "fits"),
    [
        ("  needle \u3000 again\t", {}, True),
        ("needle again", {"kinds": "assistant,user", "workspace": ["/w/b", "/w/a"]}, True),
        ("needle again", {"kinds": ["assistant", "user", "user"], "workspace": ["/w/a", "/w/b", "/w/a"]}, True),
        ("Needle again", {}, False),
        ("again needle", {}, False),
        ("needle again", {"workspace": ["/w/a"]}, False),
        ("needle again", {"workspace": ["/w/a", "/w/b", "/w/b "]}, False),
        ("needle again", {"limit": 3}, False),
    ],
)
def test_a_cursor_fits_whatever_asks_the_same(
    query: str, given: dict[str, Any], fits: bool, store: Path, tmp_path: Path
) -> None:
    """White space round words and the order of values ask for nothing else; their case, and the limit, do."""
    _words(store, "/w/a", 2)
    _words(store, "/w/b", 2)
    asked: dict[str, Any] = {"kinds": "user,assistant", "workspace": ["/w/a", "/w/b"], "limit": 2}
    with products.indexed(store, tmp_path / "index") as product:
        first = find(product, "needle again", **asked)
        again: dict[str, Any] = {**asked, **given, "cursor": first.next_cursor}
        if fits:
            second = find(product, query, **again)
            ids = [hit.session.id for page in (first, second) for hit in page.sessions]
            assert len(set(ids)) == len(ids) == 4
        else:
            assert code_of(lambda: find(product, query, **again)) == "SESSION_QUERY_INVALID_CURSOR"


def test_others_growth_does_not_end_a_cursor_inside_a_session(store: Path, tmp_path: Path) -> None:
    """A search inside one session goes on while others of its workspace grow, but not when it grows itself."""
    log = Log("/w/a")
    for number in range(6):
        log.turn(f"needle {number}", "answer")
    path = log.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        given: dict[str, Any] = {"session": log.id, "group": "none", "limit": 2}
        cursor = find(product, "needle", **given).next_cursor
        _words(store, "/w/a", 1)
        products.refresh(product)
        after = find(product, "needle", **given, cursor=cursor)
        log.turn("needle more", "answer")
        log.append(path)
        products.refresh(product)
        stale = code_of(lambda: find(product, "needle", **given, cursor=cursor))

    assert len(after.entries) == 2
    assert stale == "SESSION_QUERY_STALE_CURSOR"


def test_foreign_growth_ends_no_cursor_of_a_scoped_caller(store: Path, tmp_path: Path) -> None:
    """What happens elsewhere neither ends a scoped caller's cursors nor moves the counter it is told."""
    _words(store, "/w/a")
    mine = access.workspaces("/w/a")
    with products.indexed(store, tmp_path / "index") as product:
        pages = find(product, "needle", mine, limit=2), timeline(product, mine, limit=2)
        before = product.status(mine).index
        _words(store, "/w/b")
        products.refresh(product)
        found = find(product, "needle", mine, limit=2, cursor=pages[0].next_cursor)
        listed = timeline(product, mine, limit=2, cursor=pages[1].next_cursor)
        after = product.status(mine).index

    assert (len(found.sessions), len(listed.sessions)) == (2, 2)
    assert (after.epoch, after.done, after.total) == (before.epoch, before.done, before.total)


# Lineage


def test_a_tree_is_ordered_by_creation_and_then_id(store: Path, tmp_path: Path) -> None:
    """Siblings come oldest first; those of one moment by id; one without a time last."""
    root = Log(id="root").turn("a", "b")
    root.write(store)
    for name, created_at in (("late", 9), ("b-same", 5), ("a-same", 5), ("early", 1)):
        Log(id=name, parent="root", created_at=created_at).turn("a", "b").write(store)
    with products.indexed(store, tmp_path / "index") as product:
        assert tree(trace(product, "root").descendants) == [
            (n, []) for n in ("early", "a-same", "b-same", "late")
        ]


def test_relatives_outside_the_view_are_one_marker(store: Path, tmp_path: Path) -> None:
    """Whether a relative is foreign or was never there, a scoped caller is told the same, once, and no id."""
    mine = access.workspaces("/w/a")
    answers = []
    for name in ("foreign", "absent"):
        place = tmp_path / name / "sessions"
        if name == "foreign":
            Log("/w/b", id="the-parent").turn("a", "b").write(place)
        Log("/w/a", id="child", parent="the-parent").turn("a", "b").write(place)
        Log("/w/a", id="grandchild", parent="child", created_at=7).turn("a", "b").write(place)
        with products.indexed(place) as product:
            lineage = trace(product, "child", mine)
            page = products.read(product, "child", mine)
            answers.append(presentation.encode(lineage) | {"page": presentation.encode(page)})

    assert answers[0] == answers[1]
    assert answers[0]["complete"] is False
    assert "the-parent" not in json.dumps(answers)


def test_hidden_descendants_are_one_marker(store: Path, tmp_path: Path) -> None:
    """Foreign children and grandchildren are one marker at the end of the tree, however many they are."""
    Log("/w/a", id="root").turn("a", "b").write(store)
    Log("/w/a", id="mine", parent="root").turn("a", "b").write(store)
    for number in range(3):
        Log("/w/b", id=f"foreign-{number}", parent="root" if number else "mine").turn("a", "b").write(store)
    with products.indexed(store, tmp_path / "index") as product:
        seen = tree(trace(product, "root", access.workspaces("/w/a")).descendants)

    assert seen == [("mine", []), (None, [])]


def test_a_loop_is_an_error_of_its_own_path_alone(store: Path, tmp_path: Path) -> None:
    """Sessions in a loop, or below one, are INVALID_LINEAGE; others are traced; nothing walks for ever."""
    for name, parent in (
        ("x", "y"),
        ("y", "x"),
        ("below", "x"),
        ("self", "self"),
        ("root", None),
        ("leaf", "root"),
    ):
        Log(id=name, parent=parent).turn("needle", "b").write(store)
    with products.indexed(store, tmp_path / "index") as product:
        codes = {name: code_of(lambda name=name: trace(product, name)) for name in ("x", "y", "below", "self")}
        fine = tree(trace(product, "root").descendants)
        read = [products.read(product, name).session.id for name in ("x", "below", "self")]

    assert set(codes.values()) == {"SESSION_QUERY_INVALID_LINEAGE"}
    assert fine == [("leaf", [])]
    assert read == ["x", "below", "self"]


def test_very_deep_and_very_wide_families_are_traced(store: Path, tmp_path: Path) -> None:
    """A thousand generations and two thousand siblings are an answer like any other, for every kind of caller."""
    for number in range(1000):
        Log(id=f"deep-{number}", parent=f"deep-{number - 1}" if number else None).write(store)
    for number in range(2000):
        Log(id=f"wide-{number:04}", parent="deep-999").write(store)
    with products.indexed(store, tmp_path / "index") as product:
        lineage = trace(product, "deep-999")
        depth, at_level = 0, trace(product, "deep-0").descendants
        while at_level and len(at_level) == 1 and at_level[0].session:
            depth, at_level = depth + 1, at_level[0].descendants
        log_id = products.read(product, "deep-0").session.log_id
        family = Caller("session", frozenset({"/w/a"}), log_id, with_descendants=True)
        shared = trace(product, "deep-999", family)

    assert [ancestor.id for ancestor in lineage.ancestors] == [f"deep-{n}" for n in range(998, -1, -1)]
    assert [branch.session.id for branch in lineage.descendants if branch.session] == [
        f"wide-{n:04}" for n in range(2000)
    ]
    assert depth == 999
    assert (len(shared.ancestors), len(shared.descendants)) == (999, 2000)


@pytest.mark.shared
def test_the_recorded_family_is_drawn_as_it_was(shared: Path, tmp_path: Path) -> None:
    """The field case: two levels below the top; the far subagent is hidden from its workspace; loops end."""
    expected = json.loads((shared / "field-cases/D12/expect.json").read_text("utf-8"))
    mine = access.workspaces("/w/demo/app")
    with products.indexed(shared / "field-cases/D12/sessions", tmp_path / "index") as product:
        listed = timeline(product, mine, limit=100).sessions
        whole, seen = trace(product, "session-top"), trace(product, "session-top", mine)
        orphan = trace(product, "orphan", mine)
        loops = [code_of(lambda name=name: trace(product, name, mine)) for name in ("loop-a", "loop-b", "self")]

    levels = ("sub-1", [("sub-2", [])])
    assert len(listed) == expected["sessions"]
    assert tree(whole.descendants) == [levels, ("sub-far", [])]
    assert tree(seen.descendants) == [levels, (None, [])]
    assert (orphan.ancestors, orphan.complete) == ([], False)
    assert loops == ["SESSION_QUERY_INVALID_LINEAGE"] * 3


@pytest.mark.shared
def test_inherited_tokens_are_not_counted_again(shared: Path, tmp_path: Path) -> None:
    """The field case: the border is the last inherited one, and a fork counts only what it used itself."""
    expected = json.loads((shared / "field-cases/D02/expect.json").read_text("utf-8"))
    with products.indexed(shared / "field-cases/D02/sessions", tmp_path / "index") as product:
        sessions = timeline(product).sessions
        hits = find(product, "shared", kinds=",".join(KINDS), group="none")
        copies = find(product, "shared", kinds=",".join(KINDS), group="none", inherited=1)

    assert sum(session.input_tokens for session in sessions) == expected["input_tokens_total"]
    assert [hit.inherited for hit in hits.entries] == [False, False]
    assert sum(hit.inherited for hit in copies.entries) > 0


# Workspaces, status, switched-off search, recall


def test_workspaces_are_listed_by_last_activity(store: Path, tmp_path: Path) -> None:
    """Each exact cwd is a workspace with its span and totals; a scoped caller sees its own."""
    Log("/w/old", created_at=at("2026-01-01")).turn("a", "b").write(store)
    Log("/w/new", created_at=at("2026-02-01")).turn("a", "b").write(store)
    Log("/w/new", created_at=at("2026-03-01")).turn("a", "b").write(store)
    Log("/w/new/", created_at=at("2026-04-01")).turn("a", "b").write(store)
    Log(None, created_at=at("2026-05-01")).turn("a", "b").write(store)
    with products.indexed(store, tmp_path / "index") as product:
        found = [(w.cwd, w.sessions, w.entries) for w in product.workspaces(OWNER).workspaces]
        mine = [w.cwd for w in product.workspaces(access.workspaces("/w/new")).workspaces]

    assert found == [(None, 1, 2), ("/w/new/", 1, 2), ("/w/new", 2, 4), ("/w/old", 1, 2)]
    assert mine == ["/w/new"]


def test_status_tells_each_caller_what_is_his(store: Path, tmp_path: Path) -> None:
    """The owner is told of every file, fault and run; a scoped caller of his own counts, and nothing else."""
    Log("/w/a").turn("a", "b").write(store)
    damaged = Log("/w/b").turn("a", "b")
    damaged.raw(b"{broken\n")
    path = damaged.write(store)
    with products.indexed(store, tmp_path / "index") as product:
        whole = product.status(OWNER, filters.StatusRequest(ledger=True))
        mine = product.status(access.workspaces("/w/a"), filters.StatusRequest(ledger=True))

    (problem,) = whole.problems or []
    assert whole.states == {"indexed": 1, "partial": 1}
    assert (problem.path, problem.session_id) == (str(path.relative_to(store)), damaged.id)
    assert [(f.code, f.line, f.offset > 0) for f in problem.faults] == [
        ("bad_line", len(damaged.events) + 2, True)
    ]
    assert [entry.state for entry in whole.ledger or []] == ["indexed", "partial"]
    assert len(whole.runs or []) == 1
    assert (mine.workspaces, mine.sessions, mine.index.total) == (1, 1, 1)
    hidden = (
        mine.sessions_path,
        mine.index_path,
        mine.index_bytes,
        mine.states,
        mine.problems,
        mine.ledger,
        mine.runs,
    )
    assert hidden == (None,) * 7


def test_status_answers_without_an_index(store: Path, tmp_path: Path) -> None:
    """Before the first run there is a status, and it says that nothing was looked at."""
    with products.opened(store, tmp_path / "none") as product:
        status = product.status(OWNER)

    assert (status.sessions, status.index.refreshed_at, status.index_bytes) == (0, None, None)


def test_everything_else_works_with_search_switched_off(store: Path, tmp_path: Path) -> None:
    """`search: false` refuses searches by its own code; sessions, traces, lists and exports go on."""
    log = Log().turn("needle", "answer")
    log.write(store)
    with products.indexed(store, tmp_path / "index", search=False) as product:
        code = code_of(lambda: find(product, "needle"))
        turns = products.read(product, log.id).session.turns
        archive = b"".join(product.export(OWNER, filters.ExportRequest(id=log.id)).chunks)

        assert (turns, trace(product, log.id).complete, timeline(product).total) == (1, True, 1)
    assert code == "SESSION_QUERY_SEARCH_DISABLED"
    assert archive.startswith(b"PK")


@pytest.mark.shared
def test_every_planted_needle_is_found_in_every_session_that_has_it(shared: Path, tmp_path: Path) -> None:
    """On a made corpus like a real machine's, each needle is found in exactly the sessions that hold it."""
    arguments = ["--mb", "12", "--sessions", "60", "--giant-mb", "3"]
    command = [sys.executable, str(shared / "corpus/make_corpus.py"), str(tmp_path / "corpus"), *arguments]
    subprocess.run(command, check=True, capture_output=True)
    truth = json.loads((tmp_path / "corpus/truth.json").read_text("utf-8"))["needles"]
    with products.indexed(tmp_path / "corpus/sessions", tool_result_chars=-1) as product:
        found = {
            needle: find(product, needle, match="phrase", kinds=",".join(KINDS)).session_count for needle in truth
        }

    assert found == {needle: planted["searchable_sessions"] for needle, planted in truth.items()}
