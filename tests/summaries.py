"""What a log holds, summed up: the facts that recorded logs and field cases are compared by."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessiongraph_web import documents, logs, tracing
from sessiongraph_web.models import Event, Fault, FrameEnd, Header, Text, Unit
from sessiongraph_web.repair import OpenTurn
from sessiongraph_web.surface import Fold, classify


@dataclass
class Summary:
    """One log, read to its end."""

    path: Path
    header: Header | None = None
    events: list[Event] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    frames: list[FrameEnd] = field(default_factory=list)
    texts: list[tuple[Event, Text]] = field(default_factory=list)
    pairs: dict[int, int] = field(default_factory=dict)  # ordinal of a result -> ordinal of its call
    surfaces: dict[int, str] = field(default_factory=dict)  # ordinal -> class
    digest: documents.Digest = field(default_factory=documents.Digest)
    fold: Fold = field(default_factory=Fold)
    open_turn: OpenTurn = field(default_factory=OpenTurn)

    @property
    def codes(self) -> list[str]:
        return [fault.code for fault in self.faults]

    def hits(self, needle: str, *, inherited: bool = False) -> int:
        """Count the entries that hold a word (CJK: a substring); those inherited only on request."""
        border = 0 if inherited else self.digest.inherited_count
        word = rf"(?<!\w){re.escape(needle)}(?!\w)" if needle.isascii() else re.escape(needle)
        held = re.compile(word, re.IGNORECASE)
        return sum(bool(held.search(text.text)) for event, text in self.texts if event.ordinal >= border)

    def to_json(self) -> dict[str, Any]:
        """Return the facts that are recorded of a genuine log."""
        digest = self.digest
        return {
            "id": self.header.id if self.header else None,
            "version": self.header.version if self.header else None,
            "frames": len(self.frames),
            "records": len(self.events),
            "events": sum(event.count for event in self.events),
            "types": dict(sorted(Counter(event.type for event in self.events).items())),
            "kinds": dict(sorted(Counter(text.kind for _, text in self.texts).items())),
            "surfaces": dict(sorted(Counter(self.surfaces.values()).items())),
            "inherited_count": digest.inherited_count,
            "title": digest.title,
            "turns": digest.turns,
            "tool_calls": digest.tool_calls,
            "tool_errors": digest.tool_errors,
            "tokens": [digest.input_tokens, digest.output_tokens],
            "models": digest.models,
            "paired_calls": len(self.pairs),
            "open_turn": self.open_turn.is_open,
            "surface_fault": self.fold.fault,
            "faults": self.codes,
        }


def summarise(path: Path, *, detail: logs.Detail = "full", limits: logs.Limits | None = None) -> Summary:
    """Read a log and sum it up."""
    units = list(logs.read(path, detail=detail, limits=limits or logs.Limits()))
    return summarise_units(path, units)


def summarise_units(path: Path, units: list[Unit]) -> Summary:
    """Sum up units that were read before."""
    made = Summary(path)
    for unit in units:
        if isinstance(unit, Header):
            made.header, made.digest = unit, documents.Digest(unit)
        elif isinstance(unit, Fault):
            made.faults.append(unit)
        elif isinstance(unit, FrameEnd):
            made.frames.append(unit)
    _take_events(made, units)
    return made


def _take_events(made: Summary, units: list[Unit]) -> None:
    pairs, shadowed = documents.Pairs(), set()
    for event, damaged in tracing.with_damage(units):
        made.events.append(event)
        made.digest.push(event)
        made.open_turn.push(event)
        shadowed |= {node.ordinal for node in made.fold.push(event, damaged=damaged).shadowed}
        call = pairs.push(event)
        if call is not None:
            made.pairs[event.ordinal] = call
        made.texts += [(event, text) for text in documents.extract(event, tool_result_chars=-1)]
    for event in made.events:
        made.surfaces[event.ordinal] = classify(
            event.type, event.ordinal, shadowed=shadowed, fault_ordinal=made.fold.fault_ordinal
        )


def summarise_store(store: Path) -> list[Summary]:
    """Sum up every log of a store."""
    return [summarise(log.path) for log in logs.discover(store).logs]
