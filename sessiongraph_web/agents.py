"""Who calls a tool: an agent with its session, or a workspace; and what of a lineage it may be shown."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

import msgspec

from sessiongraph_web import access
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import Branch, Lineage, SessionSummary
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import SessionRequest
from sessiongraph_web.operations import SessionGraph


@dataclass(frozen=True, slots=True)
class Agent:
    """Who calls: a session, a workspace, or (with neither) the owner himself."""

    cwd: str | None = None
    session: SessionSummary | None = None

    @property
    def caller(self) -> Caller:
        """What is visible beyond the agent's own session."""
        if self.cwd is not None:
            return access.workspaces(self.cwd)
        return access.OWNER if self.session is None else access.NOBODY


def agent_of(product: SessionGraph, session_id: str) -> Agent:
    """Return the agent whose session has exactly this id; none, or several, is TOOL_MISSING_AGENT."""
    try:
        session = product.session(access.OWNER, SessionRequest(id=session_id, limit=1)).session
    except SessionGraphError as error:
        raise SessionGraphError("SESSION_QUERY_TOOL_MISSING_AGENT") from error
    if session.id != session_id:
        raise SessionGraphError("SESSION_QUERY_TOOL_MISSING_AGENT")
    return Agent(session.cwd, session)


def prune(whole: Lineage, cwd: str | None) -> Lineage:
    """Return a lineage as a session in `cwd` sees it: one mark for each way that leads out of its workspace."""

    def is_inside(session: SessionSummary) -> bool:
        return cwd is not None and session.cwd == cwd

    ancestors = list(takewhile(is_inside, whole.ancestors))
    descendants: list[Branch] = []
    waiting = [(whole.descendants, descendants)]
    while waiting:
        found, shown = waiting.pop()
        for branch in found:
            below: list[Branch] = []
            inside = branch.session is not None and is_inside(branch.session)
            shown.append(
                Branch(
                    session=branch.session if inside else None,
                    link=branch.link if inside else None,
                    descendants=below,
                )
            )
            if inside:
                waiting.append((branch.descendants, below))
    complete = whole.complete and len(ancestors) == len(whole.ancestors)
    return msgspec.structs.replace(whole, ancestors=ancestors, complete=complete, descendants=descendants)
