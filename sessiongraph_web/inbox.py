"""Queued prompts: which of those that a page shows being queued became prompts later in the log."""

from __future__ import annotations

from itertools import islice
from typing import Final

from sessiongraph_web import documents, loose, redact
from sessiongraph_web.models import Event
from sessiongraph_web.reading import LogReader

LOOK_AHEAD: Final = 200  # records behind a page that are read for what it shows being queued: most runs soon
MOST_CANDIDATES: Final = 8  # prompts of the same words that are looked at


def queued(event: Event) -> dict[str, str]:
    """Return {message id: text} of the prompts of a person that an event puts into the inbox."""
    if event.type != "agent/inbox/spliced":
        return {}
    messages = map(loose.mapping, loose.items(event.data.get("inserted")))
    return {
        identity: documents.blocks_text(message.get("content"))
        for message in messages
        if (identity := loose.string(message.get("id"))) and loose.at(message, "source.kind") == "user"
    }


def run_later(reader: LogReader, events: list[Event]) -> list[str]:
    """Return the ids of the messages that these neighbouring events queue, and that run behind them."""
    waiting: dict[str, str] = {}
    for event in events:
        waiting |= queued(event)
        waiting.pop(_prompted(event), None)
    if not waiting:
        return []
    behind = events[-1].ordinal + 1
    ran = {_prompted(event) for event in islice(reader.window(behind)[1], LOOK_AHEAD)} & waiting.keys()
    far = {
        identity for identity in waiting.keys() - ran if _runs_far(reader, identity, waiting[identity], behind)
    }
    return sorted(ran | far)


def _runs_far(reader: LogReader, identity: str, text: str, behind: int) -> bool:
    """Say whether one of the prompts that say the same is this message; one without words is not looked for."""
    candidates = reader.map.prompts(behind, redact.mask(text)[0]) if text else []
    return any(_prompted(reader.at(ordinal)) == identity for ordinal in candidates[:MOST_CANDIDATES])


def _prompted(event: Event) -> str:
    """Return the id of the message that an event is; empty if it is none."""
    return (loose.string(event.data.get("id")) or "") if event.type == "user/message" else ""
