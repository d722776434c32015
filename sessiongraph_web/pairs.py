"""Which tool result answers which tool call: pure, by call id and order within a turn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sessiongraph_web.models import Event


def pair(events: Iterable[Event]) -> dict[int, int]:
    """Return {ordinal: ordinal of its partner} for calls and results, both ways.

    Models give one id to several calls, or none. A result is paired only while exactly one call with its id is
    open in its turn; where several are, none of them is: nobody's output is shown under another call. A result
    that replaces another one on the surface answers no call a second time.
    """
    partners: dict[int, int] = {}
    waiting: dict[tuple[object, str], list[int]] = defaultdict(list)
    for event in events:
        if event.type == "tool/call":
            waiting[event.data.get("turn"), call_id(event)].append(event.ordinal)
        elif event.type == "tool/result" and event.surface_op in ("append", None):
            calls = waiting.pop((event.data.get("turn"), call_id(event)), [])
            if len(calls) == 1:
                partners[calls[0]] = event.ordinal
                partners[event.ordinal] = calls[0]
    return partners


def call_id(event: Event) -> str:
    """Return the call id of a tool/call or tool/result; an absent one is the empty id."""
    if event.type == "tool/call":
        found = event.data.get("callId")
    else:
        message = event.data.get("message")
        found = message.get("toolCallId") if isinstance(message, dict) else None
    return found if isinstance(found, str) else ""
