"""The addresses of pages: how an id is spelled in a path, and the links that pages and JSON share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import unquote, urlencode

from datasette.utils import tilde_decode, tilde_encode

from sessiongraph_web.answers import Answer, SessionSummary
from sessiongraph_web.schema import database_name

MOST_SPELLED: Final = 256  # ids of sessions whose spelling is remembered: a page has hundreds of links to one
SPELLED_CHARS: Final = 256  # of an id that is

Value = str | int | bool | None | Sequence[str]
_CANONICAL: Final = re.compile(r"(?:[A-Za-z0-9_+-]|~[0-9A-F]{2})+")


def canonical(text: str) -> str:
    """Return the one spelling of an id in a path."""
    return str(tilde_encode(text))


def _spelled(session_id: str) -> str:
    return _remembered(session_id) if len(session_id) <= SPELLED_CHARS else canonical(session_id)


@lru_cache(MOST_SPELLED)
def _remembered(session_id: str) -> str:
    return canonical(session_id)


def decode(spelled: str) -> str | None:
    """Read an id from a path: tilde-encoded if it is canonical, else percent-encoded, decoded once.

    None for bytes that are no UTF-8.
    """
    try:
        if _CANONICAL.fullmatch(spelled) and canonical(tilde_decode(spelled)) == spelled:
            return str(tilde_decode(spelled))
        return unquote(spelled, errors="strict")
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True, slots=True)
class Links:
    """Makes addresses under one base path (`/` unless the server is mounted elsewhere)."""

    base: str = "/"

    def path(self, tail: str, **parameters: Value) -> str:
        """Return the address of a path below the base; parameters that are None, False or empty are left out."""
        pairs = [pair for name, value in parameters.items() for pair in _pairs(name, value)]
        return self.base.rstrip("/") + tail + (f"?{urlencode(pairs)}" if pairs else "")

    def session(self, session: SessionSummary, tail: str = "", **parameters: Value) -> str:
        """Return the address of a session's page (or of what lies under it); one of two twins is told apart."""
        return self.path(f"/sessions/{_spelled(session.id)}{tail}", log=_which(session), **parameters)

    def session_id(self, session_id: str, **parameters: Value) -> str:
        """Return the address of the session with this id."""
        return self.path(f"/sessions/{_spelled(session_id)}", **parameters)

    def event(self, session: SessionSummary, seq: int | None, ordinal: int, *, repeated: bool = False) -> str:
        """Return the permanent address of an event; one without a number of its own goes by its ordinal."""
        if seq is None:
            return self.session(session, "/events/-", ordinal=ordinal)
        return self.session(session, f"/events/{seq}", ordinal=ordinal if repeated else None)

    def place(self, session: SessionSummary, ordinal: int, find: str | None = None) -> str:
        """Return the address of an event inside the transcript, with what led there."""
        return self.session(session, at=ordinal, find=find) + f"#e{ordinal}"

    def trace(self, session: SessionSummary) -> str:
        """Return the address of a session's lineage."""
        return self.path(f"/trace/{_spelled(session.id)}", log=_which(session))

    def share(self, answer: Answer, parameters: Mapping[str, Sequence[str]]) -> str | None:
        """Return the address of the form that shares what a page shows; None where that is the owner's alone.

        It is the page's session, else the workspaces it was asked for, else those of the sessions it lists; where
        they are several, or none, the owner chooses there.
        """
        session, listed = getattr(answer, "session", None), getattr(answer, "sessions", None)
        if isinstance(session, SessionSummary):
            shared = self.path("/share", session=session.id, log=_which(session))
            return shared if session.cwd is not None else None
        if len(asked := parameters.get("session", ())) == 1:
            return self.path("/share", session=asked[0])
        shown = [getattr(one, "session", one) for one in (listed if isinstance(listed, list) else ())]
        seen = [one.cwd for one in shown if isinstance(one, SessionSummary) and one.cwd is not None]
        return self.path("/share", workspace=parameters.get("workspace") or list(dict.fromkeys(seen)))

    def database(self, cwd: str | None) -> str:
        """Return the address of a workspace's database in Datasette."""
        return self.path(f"/{database_name(cwd)}")

    def export(self, session: SessionSummary, suffix: str = ".zip", **parameters: Value) -> str:
        """Return the address of a session's download."""
        return self.path(f"/export/{_spelled(session.id)}{suffix}", log=_which(session), **parameters)


def without(parameters: Mapping[str, Sequence[str]], *names: str) -> dict[str, list[str]]:
    """Return request parameters less some: what a link that changes those keeps."""
    return {name: list(values) for name, values in parameters.items() if name not in names}


def _which(session: SessionSummary) -> int | None:
    """Return what an address must say of a session whose id several logs carry."""
    return session.log_id if session.duplicate else None


def _pairs(name: str, value: Value) -> list[tuple[str, str]]:
    if value is None or value is False or value == "":
        return []
    if value is True:
        return [(name, "1")]
    if isinstance(value, str | int):
        return [(name, str(value))]
    return [(name, item) for item in value]
