"""Searches in workspace databases: what is found, in which order, how it is counted and shown."""

from __future__ import annotations

import math
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web.answers import Facet, Hit, SessionHit, SessionSummary, Snippet
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import SearchRequest
from sessiongraph_web.models import DEFAULT_KINDS, KINDS, Instant
from sessiongraph_web.search import search
from tests.workspaces import NOTE, SETTINGS, Workspace, everything, find, texts

DAY = 86_400_000


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An empty workspace `/w/a`."""
    return Workspace(tmp_path)


def ordinals(workspace: Workspace, **request: Any) -> list[int]:
    """Return the ordinals of flat hits, in order."""
    page, _ = find(workspace, group="none", **request)
    return [hit.ordinal for hit in page.entries]


def test_a_hit_says_what_it_is_and_where(workspace: Workspace) -> None:
    """A hit carries its address, its kind, its moment, and a snippet with offsets in code points."""
    workspace.session("s1", log_id=7, title="Ads", created_at=5, models='["m1"]', entries=1, last_at=9)
    workspace.entry(
        "s1", "𠮷 改广告SDK", 3, seq=11, time=9, turn=2, kind="tool_call", type="tool/call", tool="bash"
    )
    page, next_offset = find(workspace, query="广告")
    session = SessionSummary(
        log_id=7,
        id="s1",
        title="Ads",
        cwd="/w/a",
        created_at=Instant(5),
        last_at=Instant(9),
        version=4,
        entries=1,
        models=["m1"],
        live=False,
    )
    hit = Hit(
        log_id=7,
        session_id="s1",
        ordinal=3,
        seq=11,
        time=Instant(9),
        turn=2,
        kind="tool_call",
        type="tool/call",
        surface="current",
        tool="bash",
        inherited=False,
        clipped=False,
        spans=1,
        snippet=Snippet(text="𠮷 改广告SDK", matches=[(3, 5)]),
    )
    assert page.sessions == [SessionHit(session=session, matches=1, best=hit, more=[])]
    assert (page.hits, page.session_count, page.entries, next_offset) == (1, 1, [], None)
    assert (page.hits_exact, page.ranked_exactly, page.counts_exact, page.partial) == (True, True, True, False)
    assert (page.query, page.match, page.sort, page.group) == ("广告", "terms", "relevance", "session")
    assert page.facets == {
        "workspace": [Facet(value="/w/a", count=1)],
        "kind": [Facet(value="tool_call", count=1)],
        "tool": [Facet(value="bash", count=1)],
        "model": [Facet(value="m1", count=1)],
        "month": [Facet(value="1970-01", count=1)],
    }


ENTRIES = (
    "the quick brown fox",  # 1
    "a fox and a dog",  # 2
    "狐狸 fox 跳过了懒狗",  # 3
    "quick connection reset by peer",  # 4
    "reset the connection",  # 5
    "身份登记；股份证明",  # 6
    "gen-itgc 重跑gen-itgc后再看",  # 7
    'say "fox"bar NEAR( AND OR NOT * ^ x:y {a} <mark>',  # 8
    "CAFÉ STRASSE ﬁx",  # 9
    "split  \n\t over   lines",  # 10
)
FOUND: dict[tuple[str, str], set[int]] = {
    ("fox", "terms"): {1, 2, 3, 8},
    ("fox -dog", "terms"): {1, 3, 8},
    ("fox -懒狗", "terms"): {1, 2, 8},
    ("fox quick", "terms"): {1},
    ("quick reset", "terms"): {4},
    ('"connection reset"', "terms"): {4},
    ("“connection reset”", "terms"): {4},
    ("connection reset", "phrase"): {4},
    ("fox -dog", "phrase"): set(),
    ("-fox", "terms"): {1, 2, 3, 8},
    ("跳过", "terms"): {3},
    ("懒", "terms"): {3},
    ("了懒狗", "terms"): {3},
    ("fox跳", "phrase"): {3},
    ("fox跳", "terms"): {3},
    ("重跑gen", "terms"): {7},
    ("itgc后", "terms"): {7},
    ("gen", "terms"): {7},
    ('foo"bar', "terms"): set(),
    ('fox"bar', "terms"): {8},
    ("NEAR(", "terms"): {8},
    ("NOT near", "terms"): {8},
    ("x:y", "terms"): {8},
    ("tokens:fox", "terms"): set(),
    ("cafe", "terms"): {9},
    ("fo", "terms"): set(),
    ("fo*", "terms"): set(),
    ("<mark>", "terms"): {8},
    ("OX", "text"): {1, 2, 3, 8},
    ("over lines", "text"): {10},
    ("strasse", "text"): {9},
    ("straße", "text"): set(),
    ("cafe", "text"): set(),
    ("café", "text"): {9},
    ("过了", "text"): {3},
    ("<MARK>", "text"): {8},
    ("了 懒", "text"): set(),
    ("%", "text"): set(),
    ("{a}", "text"): {8},
}


@pytest.mark.parametrize(("query", "match"), FOUND)
def test_what_is_found(workspace: Workspace, query: str, match: str) -> None:
    """The entries that a query finds exactly, in each of the three modes."""
    workspace.many("s", ENTRIES)
    page, _ = find(workspace, query=query, match=match, group="none")
    found = {hit.ordinal for hit in page.entries if not page.loose}
    assert (found, page.hits) == (FOUND[query, match], len(FOUND[query, match]))


def test_parts_that_lie_apart_are_no_exact_hit(workspace: Workspace) -> None:
    """Only where nothing is exact, entries with all the pairs are answered, labelled, and count as no hit."""
    workspace.many("s", ENTRIES)
    page, _ = find(workspace, query="身份证")
    assert (page.loose, page.hits, page.hits_exact, texts(page)) == (True, 0, True, ["身份登记；股份证明"])
    assert page.sessions[0].best.snippet.matches == [(0, 2), (6, 8)]
    workspace.entry("s", "我的身份证")
    page, _ = find(workspace, query="身份证")
    assert (page.loose, page.hits, texts(page)) == (False, 1, ["我的身份证"])


def test_a_quoted_run_is_never_taken_apart(workspace: Workspace) -> None:
    """Quotes ask for exactly this, and so does the phrase mode."""
    workspace.many("s", ENTRIES)
    for query, match in (('"身份证"', "terms"), ("身份证", "phrase")):
        page, _ = find(workspace, query=query, match=match)
        assert (page.loose, page.hits, page.sessions) == (False, 0, [])


HOSTILE = [
    *('"', '""', "'", "*", "^", "(", ")", "{", "}", "AND", "OR", "NOT", "NEAR", "NEAR(a b, 2)", "a AND", "NOT a"),
    *(
        "tokens:a",
        "{tokens}: a",
        "a + b",
        "a * b",
        "-",
        "--",
        "- a",
        "\\",
        "\0",
        "a\0b",
        "\x01\x1b[31m",
        "\u202eabc",
    ),
    *(
        "🎉",
        "👩‍👩‍👧",
        "\ud800",
        "a\udfffb",
        "%",
        "_",
        "' OR 1=1 --",
        '"; DROP TABLE entry; --',
        "<script>",
        "]]>",
    ),
    *(
        "שלום עולם",
        "العربية",
        "ไทย",
        "हिन्दी",
        "\u0301",
        "ﷺ",
        "‘’“”„",
        "«»",
        "\u200b",
        "\ufdd0\ufdd1",
        "\U0010ffff",
    ),
    *("(" * 300, '"' * 4096, "a " * 2048, "字" * 4096, "字 " * 2048, "-a " * 1365, '-"x" ' * 819, "a-" * 2048),
]


@pytest.mark.parametrize("query", HOSTILE, ids=lambda query: ascii(query[:20]))
@pytest.mark.parametrize("match", ["terms", "phrase", "text"])
def test_no_query_breaks_a_search(workspace: Workspace, query: str, match: str) -> None:
    """Operators, quotes, controls and any script are text; at worst nothing is found, and nothing is damaged."""
    workspace.many("s", ["a b", "字字字", "x"])
    page, _ = find(workspace, query=query, match=match)
    assert page.hits <= 3
    assert find(workspace, query="字")[0].hits == 1


@pytest.mark.parametrize("query", ["x" * 200_000, "a " * 5000, '"' * 9999, "字" * 5000])
def test_a_query_beyond_the_limit_is_refused_by_name(workspace: Workspace, query: str) -> None:
    """Too long is one error, which says how much is taken."""
    with pytest.raises(SessionGraphError, match="longer than 4,096 characters") as caught:
        find(workspace, query=query)
    assert caught.value.code == "SESSION_QUERY_INVALID_QUERY"


@pytest.mark.parametrize("match", ["terms", "phrase", "text"])
def test_a_blank_query_is_refused(workspace: Workspace, match: str) -> None:
    """White space asks nothing."""
    with pytest.raises(SessionGraphError) as caught:
        find(workspace, query=" \u3000", match=match)
    assert caught.value.code == "SESSION_QUERY_INVALID_QUERY"


def test_relevance_is_spans_then_brevity_then_recency(workspace: Workspace) -> None:
    """More matches first, then the shorter text, then the newer; equals by session, later events first."""
    workspace.entry("b", "needle needle", 1, time=1)
    workspace.entry("b", "needle and some more text", 2, time=9)
    workspace.entry("b", "needle it", 3, time=5)
    workspace.entry("b", "needle is", 4, time=7)
    workspace.entry("c", "needle if", 1, time=7)
    workspace.entry("a", "needle in", 1, time=7)
    workspace.entry("a", "needle on", 2, time=7)
    workspace.entry("a", "needle at", 3, time=None)
    page, _ = find(workspace, query="needle", group="none")
    assert texts(page) == [
        "needle needle",
        *("needle on", "needle in", "needle is", "needle if"),
        *("needle it", "needle at", "needle and some more text"),
    ]


def test_sessions_stand_where_their_best_match_stands(workspace: Workspace) -> None:
    """A group shows its best match, how many there are, and at most three more in order."""
    workspace.many("many", [f"needle {'x ' * n}" for n in range(6)])
    workspace.entry("one", "needle needle")
    page, _ = find(workspace, query="needle")
    assert [(hit.session.id, hit.matches, hit.best.ordinal) for hit in page.sessions] == [
        ("one", 1, 7),
        ("many", 6, 1),
    ]
    assert [more.ordinal for more in page.sessions[1].more] == [2, 3, 4]
    assert (page.hits, page.session_count) == (7, 2)


def test_time_order_goes_by_the_moment_of_an_entry(workspace: Workspace) -> None:
    """Newest and oldest first, whatever the order of indexing; entries without a time come last in both."""
    for moment in (30, None, 10, 20):
        workspace.entry("s", "needle", time=moment)
    assert ordinals(workspace, query="needle", sort="newest") == [1, 4, 3, 2]
    assert ordinals(workspace, query="needle", sort="oldest") == [3, 4, 1, 2]


def test_pages_follow_each_other_without_gap_or_repeat(workspace: Workspace) -> None:
    """The offset that a page names begins the next one; the last names none, and beyond it is an empty page."""
    workspace.many("s", [f"needle {n}" for n in range(7)])
    seen: list[int] = []
    offset: int | None = 0
    while offset is not None:
        page, next_offset = find(workspace, query="needle", group="none", limit=3, offset=offset)
        seen += [hit.ordinal for hit in page.entries]
        offset = next_offset
    assert (sorted(seen), len(seen)) == ([1, 2, 3, 4, 5, 6, 7], 7)
    assert find(workspace, query="needle", group="none", limit=3, offset=70)[0].entries == []


def test_default_kinds_leave_results_out_but_count_them(workspace: Workspace) -> None:
    """Tool results are not hits of a default search, but every kind's count is told."""
    workspace.entry("s", "needle asked")
    workspace.entry("s", "needle found", kind="tool_result", tool="bash")
    workspace.entry("s", "needle done", kind="turn_end")
    page, _ = find(workspace, query="needle")
    assert (texts(page), page.hits, page.widened, page.kinds) == (["needle asked"], 1, False, list(DEFAULT_KINDS))
    assert page.kind_counts == {
        **dict.fromkeys(KINDS, 0),
        "user": 1,
        "tool_result": 1,
        "turn_end": 1,
    }


@pytest.mark.parametrize("match", ["terms", "text"])
def test_a_search_widens_to_all_kinds_and_says_so(workspace: Workspace, match: str) -> None:
    """Where the default kinds hold nothing, all kinds are searched; named kinds are never widened."""
    workspace.entry("s", "needle found", kind="tool_result")
    page, _ = find(workspace, query="needle", match=match)
    assert (texts(page), page.hits, page.widened, page.kinds) == (["needle found"], 1, True, list(KINDS))
    page, _ = find(workspace, query="needle", match=match, kinds=("user",))
    assert (texts(page), page.hits, page.widened, page.kinds) == ([], 0, False, ["user"])
    assert page.kind_counts["tool_result"] == 1


def test_exact_hits_of_other_kinds_come_before_loose_ones(workspace: Workspace) -> None:
    """A whole word in a tool result beats its parts in a message."""
    workspace.entry("s", "身份登记；股份证明")
    workspace.entry("s", "身份证", kind="tool_result")
    page, _ = find(workspace, query="身份证")
    assert (texts(page), page.loose, page.widened) == (["身份证"], False, True)


def fill_many(workspace: Workspace, count: int) -> None:
    """Add entries that match, newest shortest, and older ones that match twice."""
    workspace.session("s")
    workspace.many("s", ["needle needle"] * 2)
    workspace.many("s", (f"needle {n:04d}" for n in range(count)))


def test_beyond_a_thousand_the_newest_are_ranked_and_the_answer_says_so(workspace: Workspace) -> None:
    """The newest thousand are ranked exactly; counts stop there and are marked as lower bounds."""
    fill_many(workspace, 1000)
    page, _ = find(workspace, query="needle", group="none")
    assert (page.hits, page.hits_exact, page.ranked_exactly, page.counts_exact) == (1000, False, False, False)
    assert texts(page)[0] == "needle 0999"
    page, _ = find(workspace, query="needle", group="none", sort="oldest")
    assert texts(page)[:3] == ["needle needle", "needle needle", "needle 0000"]


@pytest.mark.parametrize("match", ["terms", "text"])
def test_exactly_a_thousand_are_all_ranked(workspace: Workspace, match: str) -> None:
    """A thousand candidates of a workspace are no more than can be ranked."""
    fill_many(workspace, 998)
    page, _ = find(workspace, query="needle", match=match, group="none")
    assert (page.hits, page.hits_exact, page.ranked_exactly, page.counts_exact) == (1000, True, True, True)
    assert texts(page)[:2] == ["needle needle", "needle needle"]


def test_a_literal_search_stops_counting_at_a_thousand_too(workspace: Workspace) -> None:
    """The same bound holds for the scan."""
    fill_many(workspace, 1000)
    page, _ = find(workspace, query="NEEDLE", match="text", group="none")
    assert (page.hits, page.hits_exact, page.ranked_exactly) == (1000, False, False)


def test_other_kinds_do_not_push_out_the_searched_ones(workspace: Workspace) -> None:
    """However many newer tool results match, older messages are found and counted exactly."""
    workspace.entry("s", "needle old")
    workspace.many("s", ["needle out"] * 1500, kind="tool_result")
    page, _ = find(workspace, query="needle")
    assert (texts(page), page.hits, page.hits_exact, page.widened) == (["needle old"], 1, True, False)
    assert (page.kind_counts["user"], page.kind_counts["tool_result"], page.counts_exact) == (1, 1000, False)


def test_one_crowded_workspace_leaves_room_for_the_others(tmp_path: Path) -> None:
    """Small workspaces are ranked whole beside one that has more than may be."""
    crowded, small = Workspace(tmp_path, "/w/a"), Workspace(tmp_path, "/w/b")
    fill_many(crowded, 3000)
    small.entry("t", "needle needle needle")
    page, _ = find(crowded, small, query="needle")
    assert page.sessions[0].session.cwd == "/w/b"
    assert (page.hits, page.hits_exact, page.ranked_exactly) == (1001, False, False)


@pytest.mark.parametrize(
    ("workspaces", "hits", "ranked"), [(10, 9000, 9000), (11, 11 * 900, 11 * 900), (12, 12 * 833, 1000)]
)
def test_many_crowded_workspaces_share_what_is_counted(
    tmp_path: Path, workspaces: int, hits: int, ranked: int
) -> None:
    """Ten thousand matches are counted exactly wherever they are; beyond, each workspace counts to its share."""
    crowded = [Workspace(tmp_path, f"/w/{n}").session(f"s{n}") for n in range(workspaces)]
    for n, one in enumerate(crowded):
        one.many(f"s{n}", ["needle"] * 900)
    page, _ = find(*crowded, query="needle")
    is_exact = hits == ranked
    assert (page.hits, page.hits_exact, page.ranked_exactly, page.counts_exact) == (hits, *[is_exact] * 3)
    assert (page.kind_counts["user"], sum(session.matches for session in page.sessions)) == (hits, ranked)


def test_inherited_entries_are_the_parents_hits(workspace: Workspace) -> None:
    """A copy counts only if it is asked for, or if the parent is in no log of this workspace."""
    workspace.entry("parent", "needle one")
    workspace.session("fork", parent_session="parent", inherited_count=1)
    workspace.entry("fork", "needle one", inherited=1).entry("fork", "needle two")
    workspace.session("orphan", parent_elsewhere=1, inherited_count=1)
    workspace.entry("orphan", "needle one", inherited=1)
    own = [("fork", False), ("orphan", True), ("parent", False)]
    assert _found(workspace) == own
    assert _found(workspace, inherited=True) == sorted([*own, ("fork", True)])
    assert find(workspace, query="needle")[0].kind_counts["user"] == 3


def _found(workspace: Workspace, **request: Any) -> list[tuple[str, bool]]:
    page, _ = find(workspace, query="needle", group="none", **request)
    return sorted((hit.session_id, hit.inherited) for hit in page.entries)


@pytest.mark.parametrize(("running", "found"), [(True, 1), (False, 2), (None, 2)])
def test_closers_are_left_out_while_the_session_runs(
    workspace: Workspace, running: bool | None, found: int
) -> None:
    """What repair added to an open turn is no hit while dsh may still write the real end."""
    workspace.session("s", open_turn=1).entry("s", "interrupted here", kind="turn_end")
    workspace.entry("s", "interrupted", kind="turn_end", synthetic=1)
    page, _ = find(workspace, query="interrupted", kinds=("turn_end",), running=lambda _cwd, _log: running)
    assert page.hits == found


def test_hidden_sessions_are_neither_found_nor_counted(workspace: Workspace) -> None:
    """A caller with one session gets hits, counts, facets and groups of that one alone."""
    workspace.session("secret", parent_elsewhere=0)
    workspace.many("secret", ["needle hidden"] * 1200)
    workspace.session("mine", parent_session="secret").entry("mine", "needle mine")
    workspace.many("secret", ["needle hidden"] * 10)
    for match in ("terms", "text"):
        page, _ = find(
            workspace, query="needle", match=match, visible=lambda _cwd, log: log == workspace.log_ids["mine"]
        )
        assert (texts(page), page.hits, page.hits_exact, page.session_count) == (["needle mine"], 1, True, 1)
        assert page.kind_counts == {**dict.fromkeys(KINDS, 0), "user": 1}
        assert page.facets["month"] == [Facet(value="1970-01", count=1)]
        assert page.sessions[0].session.parent_session is None
        assert page.sessions[0].session.parent_elsewhere


def test_a_visible_parent_is_named(workspace: Workspace) -> None:
    """Who sees the parent is told its id."""
    workspace.session("parent").session("child", parent_session="parent").entry("child", "needle")
    page, _ = find(workspace, query="needle")
    assert page.sessions[0].session.parent_session == "parent"


def test_one_id_in_two_logs_is_two_sessions(workspace: Workspace) -> None:
    """Groups go by log, since an id may occur twice."""
    workspace.session("twin", log_id=1).entry("twin", "needle")
    workspace.session("twin", log_id=2).entry("twin", "needle")
    page, _ = find(workspace, query="needle")
    assert [(hit.session.id, hit.session.log_id, hit.matches) for hit in page.sessions] == [
        ("twin", 2, 1),
        ("twin", 1, 1),
    ]


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"root", "child", "lost", "live"}),
    ({"sessions": ("root", "nobody")}, {"root"}),
    ({"sessions": ("nobody",)}, set()),
    ({"parents": ("root",)}, {"child"}),
    ({"roots": True}, {"root", "live"}),
    ({"models": ("m2",)}, {"root", "child"}),
    ({"models": ("m2", "m3")}, {"root", "child", "live"}),
    ({"models": ("%", "m")}, set()),
    ({"created_after": 200}, {"child", "lost"}),
    ({"created_after": 200, "created_before": 200}, {"child"}),
    ({"created_before": 99}, set()),
    ({"live": True}, {"live"}),
    ({"live": False}, {"root", "child"}),
    ({"types": ("tool/call",)}, {"child"}),
    ({"types": ("user/message", "tool/call")}, {"root", "child", "lost", "live"}),
    ({"surfaces": ("shadowed",)}, {"lost"}),
    ({"tools": ("bash",)}, {"child"}),
    ({"tools": ("bas",)}, set()),
    ({"after": 20}, {"child", "lost", "live"}),
    ({"after": 20, "before": 30}, {"child", "lost"}),
    ({"seq_from": 2, "seq_to": 2}, {"child"}),
    ({"seq_from": 3}, {"lost", "live"}),
    ({"workspaces": ("/w/a",)}, {"root", "child", "lost", "live"}),
    ({"workspaces": ("/w/a/",)}, set()),
    ({"kinds": ("tool_call",), "tools": ("bash",), "models": ("m2",)}, {"child"}),
]


@pytest.mark.parametrize(("request_fields", "found"), FILTERS)
@pytest.mark.parametrize("match", ["terms", "text"])
def test_filters(workspace: Workspace, match: str, request_fields: dict[str, Any], found: set[str]) -> None:
    """Every filter, alone and with others, indexed and scanned; values within one are alternatives."""
    workspace.session("root", created_at=100, models='["m1", "m2"]').entry("root", "needle", 1, time=10)
    workspace.session("child", created_at=200, models='["m2"]', parent_session="root")
    workspace.entry("child", "needle", 2, time=20, kind="tool_call", type="tool/call", tool="bash")
    workspace.session("lost", created_at=300, parent_elsewhere=1)
    workspace.entry("lost", "needle", 3, time=30, surface="shadowed")
    workspace.session("live", models='["m3"]').entry("live", "needle", 4, time=40)
    states = {workspace.log_ids["live"]: True, workspace.log_ids["lost"]: None}
    page, _ = find(
        workspace, query="needle", match=match, running=lambda _cwd, log: states.get(log, False), **request_fields
    )
    assert ({hit.session.id for hit in page.sessions}, page.hits) == (found, len(found))


def test_facets_count_sessions_or_entries(tmp_path: Path) -> None:
    """Grouped answers count sessions and flat ones entries; months are those of the reader's zone."""
    first, second = Workspace(tmp_path, "/w/a"), Workspace(tmp_path, None)
    first.session("s", models='["m1", "m2"]')
    first.entry("s", "needle", time=31 * DAY - 1).entry(
        "s", "needle", time=31 * DAY, kind="tool_call", tool="bash"
    )
    second.session("t", models='["m2"]').entry("t", "needle", time=None)
    page, _ = find(first, second, query="needle", group="none")
    assert page.facets == {
        "workspace": [Facet(value="/w/a", count=2), Facet(value=None, count=1)],
        "kind": [Facet(value="user", count=2), Facet(value="tool_call", count=1)],
        "tool": [Facet(value="bash", count=1)],
        "model": [Facet(value="m2", count=3), Facet(value="m1", count=2)],
        "month": [Facet(value="1970-01", count=1), Facet(value="1970-02", count=1)],
    }
    page, _ = find(first, second, query="needle", zone="Asia/Shanghai")
    assert page.facets["model"] == [Facet(value="m2", count=2), Facet(value="m1", count=1)]
    assert page.facets["month"] == [Facet(value="1970-02", count=1)]


def test_workspaces_are_ranked_as_one(tmp_path: Path) -> None:
    """Hits of several databases stand in one order, each under its own cwd."""
    first, second = Workspace(tmp_path, "/w/a"), Workspace(tmp_path, "/w/b")
    first.entry("s", "needle", time=1).entry("s2", "needle needle", time=1)
    second.entry("t", "needle", time=2)
    page, _ = find(first, second, query="needle")
    assert [(hit.session.id, hit.session.cwd) for hit in page.sessions] == [
        ("s2", "/w/a"),
        ("t", "/w/b"),
        ("s", "/w/a"),
    ]


@pytest.mark.parametrize("match", ["terms", "phrase", "text"])
def test_at_the_deadline_the_answer_is_partial(workspace: Workspace, match: str) -> None:
    """A search that is late returns what there is, and claims no exactness."""
    workspace.many("s", ["needle"] * 50)
    page, _ = find(workspace, query="needle", match=match, deadline=0)
    assert (page.partial, page.hits_exact, page.ranked_exactly, page.counts_exact) == (True, False, False, False)
    assert find(workspace, query="needle", match=match)[0].hits == 50


def test_what_is_late_before_it_reads_anything_is_partial() -> None:
    """Where the time was up before a workspace was opened, the empty answer claims nothing."""
    page, _ = find(query="needle", deadline=0)
    assert (page.hits, page.partial, page.hits_exact) == (0, True, False)


def test_the_deadline_stops_a_scan_on_its_way(workspace: Workspace) -> None:
    """What was found before the deadline is answered, with its snippets."""
    workspace.many("s", ["needle"] + ["x" * 20_000] * 2000 + ["needle"])
    page, _ = find(workspace, query="needle", match="text", deadline=time.monotonic() + 0.002)
    assert page.partial
    assert page.hits in (0, 1)
    assert texts(page) == ["needle"][: page.hits]


def test_a_cancelled_search_is_aborted(workspace: Workspace) -> None:
    """An interrupt that is not the deadline's, as when the client has gone, is SESSION_QUERY_ABORTED."""
    workspace.many("s", ["needle"] * 500)
    source = workspace.source()
    source.connection.set_trace_callback(lambda _sql: source.connection.interrupt())
    with closing(source.connection), pytest.raises(SessionGraphError) as caught:
        search(
            [source],
            SearchRequest(query="needle"),
            settings=SETTINGS,
            offset=0,
            deadline=math.inf,
            index=NOTE,
            visible=everything,
        )
    assert caught.value.code == "SESSION_QUERY_ABORTED"


def test_a_damaged_index_is_told_apart_from_no_hits(workspace: Workspace) -> None:
    """A full-text table that cannot be read is SESSIONGRAPH_CORRUPT, never an empty answer."""
    workspace.many("s", ["needle"] * 50)
    workspace.writer.execute("DELETE FROM entry_fts_data WHERE id > 10")
    with pytest.raises(SessionGraphError) as caught:
        find(workspace, query="needle")
    assert caught.value.code == "SESSIONGRAPH_CORRUPT"


def test_snippets_show_the_first_match_and_offsets_in_code_points(workspace: Workspace) -> None:
    """A long text is cut round its first match; every match in the window is marked."""
    workspace.entry("s", "𠮷 " * 400 + "needle\n\n  and needle " + "tail " * 100)
    page, _ = find(workspace, query="needle")
    snippet = page.sessions[0].best.snippet
    assert len(snippet.text) == SETTINGS.snippet_chars
    assert [snippet.text[start:end] for start, end in snippet.matches] == ["needle", "needle"]
    assert snippet.text.startswith("…") and snippet.text.endswith("…")
    assert "needle and needle tail" in snippet.text


def test_nothing_is_written(workspace: Workspace) -> None:
    """Searching leaves the database as it was."""
    workspace.entry("s", "needle")
    before = list(workspace.writer.iterdump())
    find(workspace, query="needle")
    assert list(workspace.writer.iterdump()) == before


def test_without_workspaces_nothing_is_found() -> None:
    """A caller who sees no workspace gets an empty answer, exact and whole."""
    page, next_offset = find(query="needle")
    assert (page.hits, page.hits_exact, page.partial, page.sessions, next_offset) == (0, True, False, [], None)
    assert page.facets == {name: [] for name in ("workspace", "kind", "tool", "model", "month")}


def test_a_word_that_only_results_hold_is_found_however_often(workspace: Workspace) -> None:
    """Where only tool results match, the search widens to them, and counts no further than a thousand."""
    workspace.many("s", ["needle out"] * 1100, kind="tool_result")
    page, _ = find(workspace, query="needle")
    assert (page.widened, page.hits, page.hits_exact, page.ranked_exactly) == (True, 1000, False, False)
    assert page.kind_counts["tool_result"] == 1000


def test_lone_surrogates_in_filters_match_nothing(workspace: Workspace) -> None:
    """Values that came around the parameters' checks find nothing, and break nothing."""
    workspace.entry("s", "needle")
    for name in ("sessions", "tools", "models", "types", "workspaces", "parents"):
        assert find(workspace, query="needle", **{name: ("\ud800",)})[0].hits == 0
