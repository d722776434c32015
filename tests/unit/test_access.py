"""Callers as values: what they may see, and that nothing but what we wrote is read back as one."""

from __future__ import annotations

from typing import Any

import pytest

from sessiongraph_web import access
from sessiongraph_web.access import NOBODY, OWNER, Caller

SCOPED = access.workspaces("/w/a")
ONE = Caller("session", frozenset({"/w/a"}), 7, False)
FAMILY = Caller("session", frozenset({"/w/a"}), 7, True)
CALLERS = [OWNER, SCOPED, access.workspaces("/w/a", "/w/a/", "工作"), ONE, FAMILY]


@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.kind)
def test_an_actor_stands_for_exactly_its_caller(caller: Caller) -> None:
    """What `to_actor` writes is read back as the same caller."""
    assert access.from_actor(access.to_actor(caller)) == caller


@pytest.mark.parametrize(
    "actor",
    [
        None,
        {},
        {"id": "root"},
        {"id": "sessiongraph:owner"},
        {"sessiongraph": None},
        {"sessiongraph": []},
        {"sessiongraph": {}},
        {"sessiongraph": {"kind": "owner"}},
        {"sessiongraph": {"kind": "owner", "cwds": ["/w/a"]}},
        {"sessiongraph": {"kind": "owner", "cwds": None}},
        {"sessiongraph": {"kind": "OWNER", "cwds": []}},
        {"sessiongraph": {"kind": "nobody", "cwds": []}},
        {"sessiongraph": {"kind": "workspaces", "cwds": []}},
        {"sessiongraph": {"kind": "workspaces", "cwds": "/w/a"}},
        {"sessiongraph": {"kind": "workspaces", "cwds": {"/w/a": 1}}},
        {"sessiongraph": {"kind": "workspaces", "cwds": [None]}},
        {"sessiongraph": {"kind": "workspaces", "cwds": [""]}},
        {"sessiongraph": {"kind": "workspaces", "cwds": [["/w/a"]]}},
        {"sessiongraph": {"kind": "workspaces", "cwds": ["/w/a", 1]}},
        {"sessiongraph": {"kind": "workspaces", "cwds": ["/w/\0"]}},
        {"sessiongraph": {"kind": "workspaces", "cwds": ["/w/\udc80"]}},
        {"sessiongraph": {"kind": "session", "cwds": ["/w/a"]}},
        {"sessiongraph": {"kind": "session", "cwds": ["/w/a"], "log_id": 7}},
        {"sessiongraph": {"kind": "session", "cwds": ["/w/a"], "log_id": "7", "with_descendants": False}},
        {"sessiongraph": {"kind": "session", "cwds": ["/w/a"], "log_id": True, "with_descendants": False}},
        {"sessiongraph": {"kind": "session", "cwds": ["/w/a"], "log_id": 7, "with_descendants": 1}},
        {"sessiongraph": {"kind": "session", "cwds": ["/w/a", "/w/b"], "log_id": 7, "with_descendants": False}},
        {"sessiongraph": {"kind": "session", "cwds": [], "log_id": 7, "with_descendants": False}},
        "root",
        ["sessiongraph"],
    ],
)
def test_an_actor_of_any_other_make_is_nobody(actor: Any) -> None:
    """Whoever else signs actors grants nothing here, however close the shape."""
    assert access.from_actor(actor) == NOBODY


@pytest.mark.parametrize(
    ("caller", "cwd", "expected"),
    [
        (OWNER, "/w/a", True),
        (OWNER, None, True),
        (SCOPED, "/w/a", True),
        (SCOPED, "/w/a/", False),
        (SCOPED, "/w/A", False),
        (SCOPED, "/w/a/b", False),
        (SCOPED, "/w/./a", False),
        (SCOPED, "", False),
        (SCOPED, None, False),
        (access.workspaces("/caf\u00e9"), "/cafe\u0301", False),
        (ONE, "/w/a", False),
        (FAMILY, "/w/a", False),
        (NOBODY, "/w/a", False),
        (NOBODY, None, False),
    ],
)
def test_a_workspace_is_seen_by_its_exact_cwd(caller: Caller, cwd: str | None, expected: bool) -> None:
    """Code point for code point; a session without cwd is the owner's alone."""
    assert access.sees_workspace(caller, cwd) is expected


@pytest.mark.parametrize(
    ("caller", "cwd", "log_id", "lineage", "expected"),
    [
        (ONE, "/w/a", 7, (), True),
        (ONE, "/w/a", 8, (7,), False),
        (FAMILY, "/w/a", 8, (7,), True),
        (FAMILY, "/w/a", 9, (8, 7), True),
        (FAMILY, "/w/a", 9, (8,), False),
        (FAMILY, "/w/b", 8, (7,), False),
        (FAMILY, "/w/b", 7, (), False),
        (FAMILY, None, 7, (), False),
        (SCOPED, "/w/a", 8, (), True),
        (SCOPED, "/w/b", 8, (7,), False),
        (OWNER, None, 8, (), True),
        (NOBODY, "/w/a", 7, (7,), False),
    ],
)
def test_a_session_is_seen_alone_or_with_what_came_from_it(
    caller: Caller, cwd: str | None, log_id: int, lineage: tuple[int, ...], expected: bool
) -> None:
    """A session's descendants come with it only if that was granted, and never from another workspace."""
    assert access.sees_session(caller, cwd, log_id, lineage) is expected


def test_a_callers_key_tells_apart_what_may_be_seen() -> None:
    """Cursors are bound to it: two callers share a key only if they see the same."""
    keys = [caller.key for caller in [*CALLERS, NOBODY, Caller("session", frozenset({"/w/a"}), 8, False)]]

    assert len(set(keys)) == len(keys)
    assert access.workspaces("/w/b", "/w/a").key == access.workspaces("/w/a", "/w/b").key


@pytest.mark.parametrize("other", [access.workspaces("/w/a\0/w/b"), Caller("workspaces", frozenset({"/w/a"}), 7)])
def test_a_name_is_for_people_only(other: Caller) -> None:
    """Two callers who see the same are equal whatever they are called; those who do not are not."""
    assert Caller("workspaces", frozenset({"/w/a"}), name="for B") == SCOPED
    assert other != SCOPED
