"""Answers made by hand, for tests of how they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sessiongraph_web.answers import DamageNote, EventView, Relative, SessionPage, SessionSummary
from sessiongraph_web.models import Instant

START_MS: Final = 1_790_000_000_000


def summary(**changes: Any) -> SessionSummary:
    """Return a session as lists show it."""
    facts: dict[str, Any] = {
        "log_id": 7,
        "id": "session-1",
        "title": "A title",
        "cwd": "/w/a",
        "created_at": Instant(START_MS),
        "last_at": Instant(START_MS + 60_000),
        "version": 4,
    }
    return SessionSummary(**facts | changes)


def event(kind: str, data: dict[str, Any], ordinal: int = 0, **changes: Any) -> EventView:
    """Return one event; its time is a second per ordinal after the start."""
    facts: dict[str, Any] = {
        "ordinal": ordinal,
        "seq": ordinal,
        "type": kind,
        "time": Instant(START_MS + ordinal * 1000),
        "turn": 1,
        "surface": "current",
        "inherited": False,
        "synthetic": False,
        "replaced_by": None,
        "partner": None,
        "data": data,
    }
    return EventView(**facts | changes)


def page(
    *events: EventView,
    next_ordinal: int | None = None,
    damage: Sequence[DamageNote] = (),
    children: Sequence[Relative] = (),
    session: SessionSummary | None = None,
    ran_later: Sequence[str] = (),
) -> SessionPage:
    """Return a session page of these events."""
    return SessionPage(
        session=session or summary(),
        parent=None,
        children=list(children),
        damage=list(damage),
        events=list(events),
        first_ordinal=events[0].ordinal if events else 0,
        next_ordinal=next_ordinal,
        previous_ordinal=None,
        last_ordinal=events[-1].ordinal if events else None,
        ran_later=list(ran_later),
    )


def user(text: str, ordinal: int = 0, kind: str = "user", **changes: Any) -> EventView:
    """Return a user message."""
    data = {"content": [{"type": "text", "text": text}], "source": {"kind": kind}, "id": f"m{ordinal}"}
    return event("user/message", data, ordinal, **changes)


def answer(text: str, ordinal: int = 0, calls: Sequence[str] = (), **changes: Any) -> EventView:
    """Return an assistant message that asks for the calls with these ids."""
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool-call", "id": call, "name": "bash", "arguments": "{}"} for call in calls]
    data = {
        "message": {"content": content, "source": {"kind": "model", "model": "m-1"}},
        **changes.pop("more", {}),
    }
    return event("assistant/message", data, ordinal, **changes)


def call(call_id: str, name: str, arguments: str, ordinal: int = 0, **changes: Any) -> EventView:
    """Return a tool call."""
    return event("tool/call", {"callId": call_id, "name": name, "arguments": arguments}, ordinal, **changes)


def result(call_id: str, text: str, ordinal: int = 1, **changes: Any) -> EventView:
    """Return a tool result; `more` adds to its data."""
    message = {"toolCallId": call_id, "content": [{"type": "text", "text": text}], "isError": False}
    return event("tool/result", {"message": message, **changes.pop("more", {})}, ordinal, **changes)
