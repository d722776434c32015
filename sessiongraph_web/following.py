"""What a follower of a session needs: where its log is, and how many records it holds by now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sessiongraph_web.access import Caller
from sessiongraph_web.corpus import View
from sessiongraph_web.filters import SessionRequest
from sessiongraph_web.reading import LogReader


@dataclass(frozen=True, slots=True)
class Followed:
    """A log that a caller may follow; `records` are the whole ones stored, closers left out."""

    path: Path
    records: int


def follow(view: View, caller: Caller, request: SessionRequest) -> Followed:
    """Find the log that the caller may see under this id, check that its header still says so, and count."""
    located = view.find(caller, request.id, request.log_id)
    view.check_header(located)
    reader = LogReader(view, located)
    return Followed(located.path, _records(reader))


def _records(reader: LogReader) -> int:
    """Return how many records there are: those that the index knows, and what was written since."""
    count = reader.map.records
    for event in reader.window(count)[1]:
        if not event.synthetic:
            count = event.ordinal + 1
    return count
