"""Giving access away: what a link opens and until when, the list of what was given, and taking it back."""

from __future__ import annotations

import time
from typing import Final

from sessiongraph_web import access, catalog, lists
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import instant
from sessiongraph_web.corpus import Located, View
from sessiongraph_web.errors import invalid_parameter
from sessiongraph_web.filters import ShareRequest
from sessiongraph_web.grants import Grant, GrantState, Shared, ShareOffer
from sessiongraph_web.tokens import Token, Tokens

DAY_MS: Final = 86_400_000


def offer(view: View, caller: Caller, request: ShareRequest) -> ShareOffer:
    """Say what a request to share would open."""
    located = _session(view, caller, request)
    known = [] if located else _workspaces(view, caller)
    if request.workspace is not None and request.workspace not in known:
        raise invalid_parameter("workspace", "`%(parameter)s` is not the exact directory of any session")
    is_open = located is None and request.workspace is None
    return ShareOffer(
        session=view.summary(caller, located) if located else None,
        workspace=request.workspace,
        choices=[cwd for cwd in known if cwd in request.among or not request.among] if is_open else [],
        with_descendants=request.descendants,
        days=request.days,
        label=request.label,
    )


def share(view: View, caller: Caller, request: ShareRequest, private: Tokens) -> Shared:
    """Give access to one session, or to one workspace; the secret is in this answer and nowhere else."""
    offered = offer(view, caller, request)
    if offered.session:
        cwds = frozenset(filter(None, [offered.session.cwd]))
        given = Caller("session", cwds, offered.session.log_id, request.descendants)
    else:
        given = access.workspaces(request.workspace or "")
    expires_at = int(time.time() * 1000) + request.days * DAY_MS
    secret = private.create(given, request.label, expires_at)
    found = private.find(secret)
    assert found is not None  # noqa: S101 - made just now
    return Shared(secret=secret, grant=_grant(view, found), session=offered.session, workspace=offered.workspace)


def grants(view: View, private: Tokens) -> list[Grant]:
    """Return every token and link that was given, newest first; sign-ins count as what they were made with."""
    return [_grant(view, token) for token in private.list() if token.kind != "browser"]


def revoke(private: Tokens, token_id: str) -> None:
    """End a grant, and every sign-in made with it."""
    if not private.revoke(token_id):
        raise invalid_parameter("token", "`%(parameter)s` names no grant that is in force")


def _session(view: View, caller: Caller, request: ShareRequest) -> Located | None:
    if request.session is None:
        return None
    located = view.find(caller, request.session, request.log_id)
    view.check_header(located)
    if located.cwd is None:
        raise invalid_parameter("session", "`%(parameter)s` has no workspace, so it is yours alone")
    return located


def _workspaces(view: View, caller: Caller) -> list[str]:
    """Return the workspaces that can be shared, latest activity first."""
    found = lists.workspaces(view, caller, view.note()).workspaces
    return [workspace.cwd for workspace in found if workspace.cwd is not None]


def _grant(view: View, token: Token) -> Grant:
    caller = token.caller
    log_id = caller.log_id if caller.kind == "session" else None
    return Grant(
        id=token.id,
        kind=token.kind,
        label=token.label,
        opens=caller.kind,
        workspaces=sorted(caller.cwds),
        session_id=catalog.session_id(view.catalog, log_id) if view.catalog and log_id is not None else None,
        with_descendants=caller.with_descendants,
        created_at=instant(token.created_at),
        expires_at=instant(token.expires_at),
        state=_state(token),
    )


def _state(token: Token) -> GrantState:
    if token.revoked_at is not None:
        return "ended"
    return "in force" if token.expires_at > time.time() * 1000 else "expired"
