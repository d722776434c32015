"""Properties of access: code points decide, grants survive being written down, and keys tell callers apart."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from sessiongraph_web import access
from sessiongraph_web.access import NOBODY, OWNER, Caller

_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
_CWDS = st.text(_CHARACTERS, min_size=1, max_size=40)
_SETS = st.frozensets(_CWDS, min_size=1, max_size=4)
_SCOPED = _SETS.map(lambda cwds: access.workspaces(*cwds))
_ONE = st.builds(
    lambda cwd, log_id, family: Caller("session", frozenset({cwd}), log_id, family),
    _CWDS,
    st.integers(0, 2**48 - 1),
    st.booleans(),
)
_CALLERS = st.one_of(st.just(OWNER), _SCOPED, _ONE)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


def _edited(cwd: str, at: int, character: str, how: str) -> str:
    """Return the cwd with one code point added, removed or replaced."""
    at %= len(cwd) + 1
    if how == "insert":
        return cwd[:at] + character + cwd[at:]
    return cwd[:at] + ("" if how == "delete" else character) + cwd[at + 1 :]


@given(_SETS, st.data(), st.integers(0, 100), _CHARACTERS, st.sampled_from(["insert", "delete", "replace"]))
def test_a_cwd_that_differs_by_any_code_point_is_foreign(
    cwds: frozenset[str], data: st.DataObject, at: int, character: str, how: str
) -> None:
    """No caller sees a cwd one code point away from its own, in whichever direction."""
    other = _edited(data.draw(st.sampled_from(sorted(cwds))), at, character, how)
    assume(other not in cwds)

    assert not access.sees_workspace(access.workspaces(*cwds), other)
    assert not access.sees_session(access.workspaces(*cwds), other, 7)
    one = Caller("session", frozenset({min(cwds)}), 7, True)
    assert not access.sees_session(one, other, 7, (7,))


@given(_CWDS)
def test_what_only_looks_alike_is_foreign(cwd: str) -> None:
    """Other cases, normal forms, slashes and spellings of one folder are other workspaces."""
    caller = access.workspaces(cwd)
    forms = {unicodedata.normalize(form, cwd) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    alike = forms | {
        cwd.upper(),
        cwd.lower(),
        cwd.casefold(),
        cwd.strip(),
        f"{cwd}/",
        f"./{cwd}",
        f"{cwd}/.",
        f"{cwd} ",
    }

    assert access.sees_workspace(caller, cwd)
    assert not [other for other in alike - {cwd} if access.sees_workspace(caller, other)]


@given(_ONE, _CWDS, st.integers(0, 2**48 - 1), st.lists(st.integers(0, 2**48 - 1), max_size=3))
def test_a_one_session_caller_sees_that_session_and_its_family_alone(
    caller: Caller, cwd: str, log_id: int, ancestors: list[int]
) -> None:
    """Its own log in its own workspace; descendants only if they were granted; never the workspace."""
    own = next(iter(caller.cwds))
    assert caller.log_id is not None
    family = (*ancestors, caller.log_id)

    assert access.sees_session(caller, own, caller.log_id)
    assert access.sees_session(caller, own, log_id, family) == (
        caller.with_descendants or log_id == caller.log_id
    )
    assert access.sees_session(caller, own, log_id, tuple(ancestors)) == (
        log_id == caller.log_id or (caller.with_descendants and caller.log_id in ancestors)
    )
    assert not access.sees_workspace(caller, own)
    assert cwd == own or not access.sees_session(caller, cwd, caller.log_id, family)


@given(_CALLERS, st.integers(0, 2**48 - 1))
def test_a_session_without_a_cwd_is_the_owners(caller: Caller, log_id: int) -> None:
    """No grant reaches what belongs to no workspace."""
    assert access.sees_session(caller, None, log_id, (log_id,)) == caller.is_owner
    assert access.sees_workspace(caller, None) == caller.is_owner


@given(_CALLERS)
def test_a_grant_survives_being_written_down(caller: Caller) -> None:
    """What a caller may see is the same after a round through JSON."""
    written = json.loads(json.dumps(access.to_actor(caller)))

    assert access.from_actor(written) == (OWNER if caller.is_owner else caller)


@given(_JSON)
def test_no_other_data_makes_a_caller(data: Any) -> None:
    """Whatever else is read as a grant is nobody, who sees nothing."""
    caller = access.from_grant(data)

    assert caller == NOBODY or access.to_grant(caller) == data | {"cwds": sorted(set(data["cwds"]))}
    assert caller.is_known or not access.sees_session(caller, "/w/a", 1, (1,))


@given(_CALLERS, _CALLERS)
def test_callers_that_see_alike_share_a_key_and_no_others_do(one: Caller, other: Caller) -> None:
    """Cursors are bound to the key: it is the same exactly where the grant is."""
    assert (one.key == other.key) == (access.to_grant(one) == access.to_grant(other))
