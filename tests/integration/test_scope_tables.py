"""The scope tables: caller by target by operation. What is foreign answers as what was never there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from sessiongraph_web import access, filters
from sessiongraph_web.access import Caller
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.operations import SessionGraph
from tests import products, scopes
from tests.builders import Log
from tests.scopes import ABOUT_A_SESSION, LISTS, outcome

OPERATIONS: Final = {**ABOUT_A_SESSION, **LISTS}
REFUSED: Final = (
    '{"code": "SESSION_QUERY_SESSION_NOT_FOUND", "detail": "There is no such session here.", "fields": {}}'
)
LISTING: Final = ("search", "selection", "export_set", "tool")  # what finds nothing rather than refuses
FEW: Final = 60  # instructions of SQLite: less than one row costs
# The one thing that is told of what is outside: that a session has relatives there.
MARK: Final = re.compile(
    r'(?:, )?\{"descendants": \[\], "link": null, "session": null\}|\\n- \[outside workspace subtree\]'
)


@dataclass(frozen=True, slots=True)
class Row:
    """A workspace served twice: alone, and beside a near miss of its name."""

    own: str
    foreign: str | None
    alone: SessionGraph
    beside: SessionGraph

    @property
    def caller(self) -> Caller:
        return access.workspaces(self.own)


@pytest.fixture(scope="module", params=scopes.TARGETS)
def row(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Row]:
    """One row of the table."""
    root = tmp_path_factory.mktemp("row")
    own, foreign = scopes.workspaces(request.param, root)
    mine = scopes.own_logs(own).values()
    with ExitStack() as stack:
        alone = stack.enter_context(_served(root / "alone", mine))
        beside = stack.enter_context(_served(root / "beside", [*mine, *scopes.foreign_logs(foreign)]))
        yield Row(own, foreign, alone, beside)


def _served(root: Path, logs: Collection[Log]) -> AbstractContextManager[SessionGraph]:
    """Write logs into a store of their own and open a product on it."""
    scopes.put_images(root / "sessions")
    scopes.write(root / "sessions", logs)
    return products.indexed(root / "sessions")


def test_a_foreign_session_answers_as_a_missing_one(row: Row) -> None:
    """Whatever is asked about it: the same code, sentence and fields, or the same empty list."""
    told = {
        name: {
            outcome(row.beside, operation, row.caller, id_)
            for id_ in (scopes.ALONE, scopes.CHILD, scopes.MISSING)
        }
        for name, operation in ABOUT_A_SESSION.items()
    }
    assert {name: answers for name, answers in told.items() if len(answers) > 1} == {}
    refused = {name for name, answers in told.items() if answers == {REFUSED}}
    assert refused == {name for name in told if not name.startswith(LISTING)}


def test_no_answer_depends_on_what_is_beside(row: Row) -> None:
    """Every operation on every session tells a scoped caller the same, with the foreign workspace and without."""
    assert _differing(row.alone, row.beside, row.caller, marked=(scopes.MAIN,)) == {}


def test_the_owner_is_told_of_what_is_beside(row: Row) -> None:
    """So that the table can fail: to him each operation tells a foreign session from a missing one, and
    each list differs."""
    same = {
        name
        for name, operation in LISTS.items()
        if outcome(row.alone, operation, access.OWNER) == outcome(row.beside, operation, access.OWNER)
    }
    alike = {
        name
        for name, operation in ABOUT_A_SESSION.items()
        if outcome(row.beside, operation, access.OWNER, scopes.ALONE)
        == outcome(row.beside, operation, access.OWNER, scopes.MISSING)
    }
    assert alike == {
        "session by log",
        "attachment",
        *(name for name in ABOUT_A_SESSION if name.startswith("tool")),
    }
    assert same - {"search a workspace", "timeline of a workspace"} == {"grants", "revoke"}


def test_no_operation_escapes_the_table() -> None:
    """Each public method of the product is asked by a row that begins with its name."""
    methods = {name for name, value in vars(SessionGraph).items() if callable(value) and not name.startswith("_")}
    assert {name for name in methods - {"close"} if not any(row.startswith(name) for row in OPERATIONS)} == set()


def _differing(
    alone: SessionGraph, beside: SessionGraph, caller: Caller, *, marked: Collection[str] = ()
) -> Mapping[tuple[str, str], list[str]]:
    """Return what answers otherwise with others beside, and check that nothing foreign is in any answer."""
    differing = {}
    asked = (*scopes.OWN, scopes.ALONE, scopes.CHILD, scopes.MISSING)
    for name, operation in OPERATIONS.items():
        if caller.kind == "session" and name.startswith("tool"):
            continue  # tools are for whole workspaces
        for session_id in asked if name in ABOUT_A_SESSION else ("",):
            both = [outcome(product, operation, caller, session_id) for product in (alone, beside)]
            if session_id in marked and name in ("trace", "tool session_trace"):
                both[1], marks = MARK.subn("", both[1])
                assert marks == 1
            if both[0] != both[1]:
                differing[name, session_id] = both
            assert scopes.SECRET not in both[1].replace(scopes.ALONE, ""), name
    return differing


FAMILY: Final = (scopes.MAIN, scopes.FORK, scopes.SUBAGENT)
# {what was shared: (its id, with descendants, all that may be seen)}
SHARED_SESSIONS: Final = {
    "a session": (scopes.MAIN, False, (scopes.MAIN,)),
    "a session with descendants": (scopes.MAIN, True, FAMILY),
    "a fork": (scopes.FORK, True, (scopes.FORK,)),
    "a subagent": (scopes.SUBAGENT, False, (scopes.SUBAGENT,)),
    "a stray": (scopes.STRAY, True, (scopes.STRAY,)),
    "a twin": (scopes.TWIN, True, (scopes.TWIN,)),
}


@pytest.mark.parametrize("shared", SHARED_SESSIONS)
def test_a_shared_session_answers_as_if_it_were_the_only_one(tmp_path: Path, shared: str) -> None:
    """A caller with one session (and its descendants) is told nothing of the others in its workspace."""
    session_id, with_descendants, seen = SHARED_SESSIONS[shared]
    mine = scopes.own_logs(scopes.SHOP)
    others = [*mine.values(), *scopes.foreign_logs("/w")]
    with (
        _served(tmp_path / "alone", [mine[id_] for id_ in seen]) as alone,
        _served(tmp_path / "beside", others) as beside,
    ):
        log_id = _log_id(beside, scopes.SHOP, session_id)
        caller = Caller("session", frozenset({scopes.SHOP}), log_id, with_descendants)
        assert _differing(alone, beside, caller, marked={scopes.MAIN} & {session_id}) == {}


@pytest.mark.parametrize("kind", ["workspace", "session"])
def test_what_others_write_ends_no_cursor(tmp_path: Path, kind: str) -> None:
    """A cursor outlives the growth of what its caller may not see, and ends with the growth of what he may."""
    store = tmp_path / "sessions"
    mine = scopes.own_logs(scopes.SHOP)
    hidden = mine[scopes.TWIN] if kind == "session" else Log("/w", id="session-beside").turn("a", "b")
    paths = {log.id: log.write(store) for log in [*mine.values(), hidden]}
    with products.indexed(store) as product:
        session = Caller("session", frozenset({scopes.SHOP}), _log_id(product, scopes.SHOP, scopes.MAIN), True)
        caller = session if kind == "session" else access.workspaces(scopes.SHOP)
        cursors = _cursors(product, caller)
        hidden.turn(f"more of the {scopes.ASKED}", "and more").append(paths[hidden.id])
        products.refresh(product)
        assert _use(product, caller, cursors) == {None}
        mine[scopes.MAIN].turn(f"more of the {scopes.ASKED}", "and more").append(paths[scopes.MAIN])
        products.refresh(product)
        assert _use(product, caller, cursors) == {"SESSION_QUERY_STALE_CURSOR"}


def test_a_cursor_is_of_no_use_to_others(row: Row) -> None:
    """What one caller was given is INVALID_CURSOR to every other one, and so is what was altered."""
    log_id = _log_id(row.beside, row.own, scopes.MAIN)
    callers = [
        access.OWNER,
        row.caller,
        *(Caller("session", frozenset({row.own}), log_id, w) for w in (True, False)),
    ]
    callers += [access.workspaces(row.own, "/w/other"), access.workspaces(row.own + "/other"), access.NOBODY]
    given = {caller: _cursors(row.beside, caller) for caller in callers[:3]}
    for caller in callers:
        for other, cursors in given.items():
            expected = {None} if other == caller else {"SESSION_QUERY_INVALID_CURSOR"}
            assert _use(row.beside, caller, cursors) == expected
            altered = {name: cursor[:-2] + cursor[-1] + cursor[-2] for name, cursor in cursors.items()}
            assert _use(row.beside, caller, altered) == {"SESSION_QUERY_INVALID_CURSOR"}


def test_an_unclear_beginning_names_the_callers_own_sessions_alone(row: Row) -> None:
    """Several sessions begin alike: the caller is offered his own, and one of them alone is simply meant."""
    with pytest.raises(SessionGraphError) as unclear:
        row.beside.session(row.caller, filters.SessionRequest(id="session-common"))
    assert (unclear.value.code, unclear.value.fields) == (
        "SESSIONGRAPH_AMBIGUOUS_ID",
        {"candidates": sorted(scopes.OWN)},
    )
    for beginning in ("session-common-tw", "common-tw"):
        found = row.beside.session(row.caller, filters.SessionRequest(id=beginning)).session
        assert (found.id, found.cwd, found.duplicate) == (scopes.TWIN, row.own, False)


def _log_id(product: SessionGraph, cwd: str, session_id: str) -> int:
    """Return which log is a workspace's session of this id."""
    return product.session(access.workspaces(cwd), filters.SessionRequest(id=session_id)).session.log_id


def _cursors(product: SessionGraph, caller: Caller) -> dict[str, str]:
    """Return the cursors that a caller is given."""
    found = {
        "search": products.find(product, scopes.ASKED, caller, limit=1, group="none").next_cursor,
        "timeline": products.timeline(product, caller, limit=1).next_cursor,
    }
    return {name: cursor for name, cursor in found.items() if cursor is not None}


def _use(product: SessionGraph, caller: Caller, cursors: Mapping[str, str]) -> set[str | None]:
    """Return the codes with which cursors are refused, None for one that is taken."""
    codes: set[str | None] = set()
    for name, cursor in cursors.items():
        try:
            if name == "search":
                products.find(product, scopes.ASKED, caller, limit=1, group="none", cursor=cursor)
            else:
                products.timeline(product, caller, limit=1, cursor=cursor)
            codes.add(None)
        except SessionGraphError as error:
            codes.add(error.code)
    return codes


@pytest.mark.parametrize("kind", ["workspace", "session"])
def test_a_lookup_costs_the_same_whatever_is_foreign(tmp_path: Path, kind: str) -> None:
    """How many foreign sessions carry an id, or begin like it, is not told by the work of looking: SQLite's
    instructions are counted."""
    mine = scopes.own_logs(scopes.SHOP)
    foreign = [Log("/w", id=f"session-abcdef-{number}") for number in range(200)]
    with _served(tmp_path, [*mine.values(), *foreign]) as product:
        log_id = _log_id(product, scopes.SHOP, scopes.MAIN)
        session = Caller("session", frozenset({scopes.SHOP}), log_id, True)
        caller = session if kind == "session" else access.workspaces(scopes.SHOP)
        missing = _steps(product, caller, "session-fedcba-77")
        for asked in ("session-abcdef", "abcdef", "session-abcdef-7", "session-abcdef-77"):
            assert abs(_steps(product, caller, asked) - missing) < FEW
        assert abs(_steps(product, access.OWNER, "session-abcdef") - missing) > 10 * FEW


@pytest.mark.parametrize("last", ["\ud7ff", "\ue000", "\U0010ffff", "\x7f", "~", "*", "%", "_", "\uffff"])
def test_a_beginning_may_end_in_any_character(tmp_path: Path, last: str) -> None:
    """What begins so is found, whatever the last character: none is a fault, and none a joker."""
    logs = [Log(scopes.SHOP, id=f"session-abcdef{last}-on"), Log(scopes.SHOP, id="session-abcdef-other")]
    with _served(tmp_path, logs) as product:
        for caller in (access.OWNER, access.workspaces(scopes.SHOP)):
            asked = filters.SessionRequest(id=f"abcdef{last}")
            assert product.session(caller, asked).session.id == f"session-abcdef{last}-on"


def _steps(product: SessionGraph, caller: Caller, session_id: str) -> int:
    """Return how many instructions SQLite needs to look for a session."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with product.corpus.view() as view:
        view.require_catalog().set_progress_handler(count, 1)
        try:
            view.find(caller, session_id, None)
        except SessionGraphError as error:
            assert caller.is_owner or error.code == "SESSION_QUERY_SESSION_NOT_FOUND"
        finally:
            view.require_catalog().set_progress_handler(None, 0)
    return steps
