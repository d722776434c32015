"""Who asks and what they may see: a pure value made from Datasette's actor, and the questions put to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeGuard

ACTOR_KEY: Final = "sessiongraph"  # the only key of an actor that we write or trust
_UNUSABLE: Final = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller: the owner of the machine, some exact workspaces, one session, or nobody.

    `cwds` holds exact strings, compared code point for code point and never normalised. A one-session caller has
    the `log_id` of that session and the one cwd it belongs to (None for a session without one).
    """

    kind: Literal["owner", "workspaces", "session", "nobody"]
    cwds: frozenset[str] = frozenset()
    log_id: int | None = None
    with_descendants: bool = False
    name: str = field(default="", compare=False)  # for people to read

    @property
    def is_owner(self) -> bool:
        return self.kind == "owner"

    @property
    def is_known(self) -> bool:
        return self.kind != "nobody"

    @property
    def key(self) -> str:
        """A stable text for what this caller may see, to which cursors are bound."""
        session = f"{self.log_id}{'+' if self.with_descendants else ''}" if self.kind == "session" else ""
        return "\0".join([self.kind, session, *sorted(self.cwds)])


OWNER: Final = Caller("owner", name="owner")
NOBODY: Final = Caller("nobody")


def workspaces(*cwds: str) -> Caller:
    """Return the caller that sees exactly these workspaces."""
    return Caller("workspaces", frozenset(cwds))


def sees_workspace(caller: Caller, cwd: str | None) -> bool:
    """Say whether the caller may see everything in a workspace; a session without cwd is the owner's."""
    if caller.is_owner:
        return True
    return caller.kind == "workspaces" and cwd is not None and cwd in caller.cwds


def sees_session(caller: Caller, cwd: str | None, log_id: int, lineage: tuple[int, ...] = ()) -> bool:
    """Say whether the caller may see one log.

    `lineage` holds the log ids of the session's ancestors in the same workspace, for callers that were given a
    session with its descendants.
    """
    if sees_workspace(caller, cwd):
        return True
    if caller.kind != "session" or cwd is None or cwd not in caller.cwds:
        return False
    return caller.log_id == log_id or (caller.with_descendants and caller.log_id in lineage)


def is_usable(cwd: object) -> TypeGuard[str]:
    """Say whether a cwd can name a workspace: a text that a header may hold and a database be sealed for."""
    return isinstance(cwd, str) and cwd != "" and not _UNUSABLE.search(cwd)


def to_grant(caller: Caller) -> dict[str, Any]:
    """Return what a caller may see as plain data; `from_grant` reads it back."""
    grant: dict[str, Any] = {"kind": caller.kind, "cwds": sorted(caller.cwds)}
    if caller.kind == "session":
        grant |= {"log_id": caller.log_id, "with_descendants": caller.with_descendants}
    return grant


def from_grant(grant: object) -> Caller:
    """Read a caller from plain data; anything that is not exactly what `to_grant` writes is nobody."""
    if not isinstance(grant, Mapping):
        return NOBODY
    cwds = grant.get("cwds")
    if not isinstance(cwds, list) or not all(is_usable(cwd) for cwd in cwds):
        return NOBODY
    kind, log_id, with_descendants = (grant.get(key) for key in ("kind", "log_id", "with_descendants"))
    if kind == "owner" and not cwds:
        return OWNER
    if kind == "workspaces" and cwds:
        return Caller("workspaces", frozenset(cwds))
    if kind == "session" and len(cwds) == 1 and type(log_id) is int and type(with_descendants) is bool:
        return Caller("session", frozenset(cwds), log_id, with_descendants)
    return NOBODY


def to_actor(caller: Caller) -> dict[str, Any]:
    """Return the Datasette actor that stands for a caller; `from_actor` reads it back."""
    return {"id": f"{ACTOR_KEY}:{caller.name or caller.kind}", ACTOR_KEY: to_grant(caller)}


def from_actor(actor: object) -> Caller:
    """Read a caller from an actor; one that `to_actor` did not write is nobody."""
    return from_grant(actor.get(ACTOR_KEY)) if isinstance(actor, Mapping) else NOBODY
