"""A session's relatives as a caller sees them: parent, children, ancestors, descendants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    return _relative(_nearest(found, located), "parent") if found else Relative(id=None)


def children(view: View, caller: Caller, located: Located) -> list[Relative]:
    """Return the visible children, oldest first."""
    found = view.relatives(caller, located.id)
    return [_relative(child, _link(child)) for child in found if child.log_id != located.log_id]


def ancestors(view: View, caller: Caller, located: Located) -> tuple[list[SessionSummary], bool]:
    """Walk up to the root: the visible ancestors, and whether the walk reached it. A loop is INVALID_LINEAGE."""
    seen, at = {located.id}, located
    found: list[SessionSummary] = []
    while (parent_id := at.row["parent_session"]) is not None:
        if parent_id in seen:
            raise SessionGraphError("SESSION_QUERY_INVALID_LINEAGE")
        seen.add(parent_id)
        candidates = view.exactly(caller, parent_id)
        if not candidates:
            return found, False
        at = _nearest(candidates, at)
        found.append(view.summary(caller, at))
    return found, True


def descendants(view: View, caller: Caller, root: Located) -> list[Branch]:
    """Return the tree below a session, oldest first; a session is shown once however often it is reached."""
    branches: dict[int, list[Branch]] = {root.log_id: []}
    waiting = [root]
    while waiting and len(branches) < MOST_RELATIVES:
        at = waiting.pop(0)
        for child in view.relatives(caller, at.id):
            if child.log_id in branches:
                continue
            below = branches[child.log_id] = []
            branches[at.log_id].append(
                Branch(session=view.summary(caller, child), link=_link(child), descendants=below)
            )
            waiting.append(child)
    return branches[root.log_id]


def has_hidden(view: View, root: Located, branches: list[Branch]) -> bool:
    """Say whether anything below the session lies outside what `branches` show."""
    shown = {root.id} | {branch.session.id for branch in _flatten(branches) if branch.session}
    everything = (child for session_id in shown for child in view.relatives(access.OWNER, session_id))
    return any(child.id not in shown for child in everything)


def preorder(view: View, caller: Caller, root: Located) -> list[Located]:
    """Return the descendants of a session in its own workspace, depth first, each once."""
    seen, waiting = {root.log_id}, [root]
    found: list[Located] = []
    while waiting and len(found) < MOST_RELATIVES:
        at = waiting.pop()
        if at.log_id != root.log_id:
            found.append(at)
        below = [c for c in view.relatives(caller, at.id) if c.log_id not in seen and c.cwd == root.cwd]
        seen |= {child.log_id for child in below}
        waiting.extend(reversed(below))
    return found


def visible_ids(view: View, caller: Caller) -> list[int]:
    """Return the logs of a one-session caller: the session, and its descendants if they were given too."""
    row = view.require_catalog().execute("SELECT id FROM session WHERE log_id = ?", (caller.log_id,)).fetchone()
    if row is None:
        return []
    roots = [located for located in view.exactly(caller, row["id"]) if located.log_id == caller.log_id]
    found = [located.log_id for located in roots]
    if caller.with_descendants:
        found += [located.log_id for root in roots for located in preorder(view, caller, root)]
    return found


def _link(located: Located) -> Literal["fork", "subagent"]:
    return "subagent" if located.row["origin"] == "subagent" else "fork"


def _relative(located: Located, link: Literal["parent", "fork", "subagent"]) -> Relative:
    row = located.row
    return Relative(
        id=located.id, log_id=located.log_id, title=row["title"], created_at=instant(row["created_at"]), link=link
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
