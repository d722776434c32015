"""What is given to others, or may be: access and downloads, as the operations on them answer."""

from __future__ import annotations

from typing import Literal

import msgspec

from sessiongraph_web.answers import Answer, SessionSummary
from sessiongraph_web.models import Instant

GrantState = Literal["in force", "expired", "ended"]


class Grant(Answer, frozen=True, kw_only=True):
    """Access that was given: to whom is unknown, for the secret is known to its holder alone (the owner's)."""

    id: str
    kind: Literal["token", "link", "browser"]
    label: str
    opens: Literal["owner", "workspaces", "session", "nobody"]
    workspaces: list[str]
    session_id: str | None
    with_descendants: bool
    created_at: Instant | None
    expires_at: Instant | None
    state: GrantState


class Selection(Answer, frozen=True, kw_only=True):
    """What a set of sessions comes to before it is downloaded; `bytes` as stored."""

    sessions: list[SessionSummary]
    bytes: int
    most_sessions: int
    most_bytes: int
    unreachable: list[str]  # ids of sessions that belong to it and cannot be read now
    complete: bool  # False: so many entries match that only the sessions of the newest ones are known


class ShareOffer(Answer, frozen=True, kw_only=True):
    """What a request to share would open: one session, or one workspace (the owner's), or one of `choices`."""

    session: SessionSummary | None
    workspace: str | None
    choices: list[str] = msgspec.field(default_factory=list)  # workspaces, latest activity first
    with_descendants: bool
    days: int
    label: str


class Shared(Answer, frozen=True, kw_only=True):
    """Access that was just given. `secret` is told here once; only its hash is kept."""

    secret: str
    grant: Grant
    session: SessionSummary | None
    workspace: str | None
