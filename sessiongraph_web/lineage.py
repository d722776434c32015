"""A session's relatives as a caller sees them: parent, children, ancestors, descendants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Final, Literal

from sessiongraph_web import access
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import Branch, Relative, SessionSummary, instant
from sessiongraph_web.corpus import Located, View
from sessiongraph_web.errors import SessionGraphError

MOST_RELATIVES: Final = 2000  # of one session, in a lineage or an export


def parent(view: View, caller: Caller, located: Located) -> Relative | None:
    """Return the parent, the marker without an id if it lies outside the view, or None for a root."""
    parent_id = located.row["parent_session"]
    if parent_id is None:
        return None
    found = view.exactly(caller, parent_id)
    return _relative(view, _nearest(found, located), "parent") if found else Relative(id=None)


def children(view: View, caller: Caller, located: Located) -> list[Relative]:
    """Return the visible children, oldest first."""
    found = _children(view, caller, {located.id: located.cwd})
    return [_relative(view, child, _link(child)) for child in found if child.log_id != located.log_id]


def ancestors(view: View, caller: Caller, located: Located) -> tuple[list[SessionSummary], bool]:
    """Walk up to the root: the visible ancestors, and whether the walk reached it. A loop is INVALID_LINEAGE."""
    seen, at = {located.id}, located
    found: list[Located] = []
    complete = True
    while complete and (parent_id := at.row["parent_session"]) is not None:
        if parent_id in seen:
            raise SessionGraphError("SESSION_QUERY_INVALID_LINEAGE")
        seen.add(parent_id)
        candidates = view.exactly(caller, parent_id)
        complete = bool(candidates)
        if complete:
            at = _nearest(candidates, at)
            found.append(at)
    return view.summaries(caller, found), complete


def descendants(view: View, caller: Caller, root: Located) -> list[Branch]:
    """Return the tree below a session, oldest first; a session is shown once however often it is reached."""
    found = list(_below(view, caller, root))
    summaries = view.summaries(caller, [child for child, _ in found])
    branches: dict[int, list[Branch]] = {root.log_id: []}
    for summary, (child, parent) in zip(summaries, found, strict=True):
        below = branches[child.log_id] = []
        branches[parent.log_id].append(Branch(session=summary, link=_link(child), descendants=below))
    return branches[root.log_id]


def has_hidden(view: View, root: Located, branches: list[Branch]) -> bool:
    """Say whether anything below the session lies outside what `branches` show."""
    below = {branch.session.id: branch.session.cwd for branch in _flatten(branches) if branch.session}
    shown = below | {root.id: root.cwd}
    return any(child.id not in shown for child in _children(view, access.OWNER, shown))


def preorder(view: View, caller: Caller, root: Located) -> list[Located]:
    """Return the descendants of a session in its own workspace, depth first, each once."""
    below: dict[int, list[Located]] = {root.log_id: []}
    for child, parent in _below(view, caller, root, within=root.cwd):
        below[parent.log_id].append(child)
        below[child.log_id] = []
    found, waiting = [], list(reversed(below[root.log_id]))
    while waiting:
        at = waiting.pop()
        found.append(at)
        waiting.extend(reversed(below[at.log_id]))
    return found


def _below(
    view: View, caller: Caller, root: Located, within: str | EllipsisType | None = ...
) -> Iterator[tuple[Located, Located]]:
    """Yield every visible descendant once, with the parent it was reached from: level by level, oldest first."""
    level, seen = {root.id: root}, {root.log_id}
    while level and len(seen) <= MOST_RELATIVES:
        parents = {parent.id: parent.cwd for parent in level.values()}
        found = [child for child in _children(view, caller, parents) if child.log_id not in seen]
        if within is not ...:
            found = [child for child in found if child.cwd == within]
        found = found[: MOST_RELATIVES + 1 - len(seen)]
        seen |= {child.log_id for child in found}
        for child in found:
            yield child, level[child.row["parent_session"]]
        level = {child.id: child for child in reversed(found)}


def _children(view: View, caller: Caller, parents: Mapping[str, str | None]) -> list[Located]:
    """Return the visible children of sessions, given as {id: cwd}, oldest first.

    A child whose own workspace holds its parent's id descends from the log there, not from a twin elsewhere.
    """
    found = view.children(caller, parents)
    strays = {child.row["parent_session"] for child in found if child.cwd != parents[child.row["parent_session"]]}
    homes = {(twin.id, twin.cwd) for parent in strays for twin in view.exactly(access.OWNER, parent)}
    return [
        child
        for child in found
        if child.cwd == parents[parent := child.row["parent_session"]] or (parent, child.cwd) not in homes
    ]


def _link(located: Located) -> Literal["fork", "subagent"]:
    return "subagent" if located.row["origin"] == "subagent" else "fork"


def _relative(view: View, located: Located, link: Literal["parent", "fork", "subagent"]) -> Relative:
    return Relative(
        id=located.id,
        log_id=located.log_id,
        title=view.title(located),
        created_at=instant(located.row["created_at"]),
        link=link,
    )


def _nearest(found: Sequence[Located], child: Located) -> Located:
    """Of several logs with one id, take the one in the child's own workspace."""
    return min(found, key=lambda located: (located.cwd != child.cwd, located.log_id))


def _flatten(branches: list[Branch]) -> Iterator[Branch]:
    waiting = list(reversed(branches))
    while waiting:
        branch = waiting.pop()
        yield branch
        waiting.extend(reversed(branch.descendants))
