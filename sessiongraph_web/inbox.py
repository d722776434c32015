"""Queued prompts: which of those that a page shows being queued became prompts later in the log."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from sessiongraph_web import documents, loose
from sessiongraph_web.models import Event
from sessiongraph_web.reading import LogReader

LOOK_AHEAD: Final = 200  # records that came since the log was indexed, of which the index cannot tell


def queued(event: Event) -> list[str]:
    """Return the ids of the messages of a person that an event puts into the inbox."""
    if event.type != "agent/inbox/spliced":
        return []
    messages = map(loose.mapping, loose.items(event.data.get("inserted")))
    return [
        identity
        for message in messages
        if (identity := loose.string(message.get("id"))) and loose.at(message, "source.kind") == "user"
    ]


def run_later(reader: LogReader, events: list[Event]) -> list[str]:
    """Return the ids of the messages that these neighbouring events queue, and that run behind them.

    A message keeps its id from the inbox to the prompt, whatever it holds: words, images, or what others say too.
    """
    waiting = {documents.message_key(identity): identity for event in events for identity in queued(event)}
    for message in _prompts(events):
        waiting.pop(message, None)
    if not waiting:
        return []
    behind = events[-1].ordinal + 1
    recent = islice(reader.window(max(behind, reader.map.records))[1], LOOK_AHEAD)
    ran = reader.map.run_behind(behind, waiting) | _prompts(recent)
    return sorted(waiting[message] for message in ran & waiting.keys())


def _prompts(events: Iterable[Event]) -> set[int]:
    return {message for event in events if (message := documents.prompt_key(event)) is not None}
