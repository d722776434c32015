"""The download of a session's events as JSON, NDJSON or Markdown, made as it is sent."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from sessiongraph_web import documents, logs, logtext
from sessiongraph_web.answers import DamageNote, SessionSummary, instant
from sessiongraph_web.entrynames import download_name
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.exportmarkdown import Markdown
from sessiongraph_web.faults import LOSSES
from sessiongraph_web.models import Event, Fault, Header, Instant, InvalidSurface, Replace
from sessiongraph_web.packing import Download, Source
from sessiongraph_web.redact import mask_value
from sessiongraph_web.screen import safe_json
from sessiongraph_web.surface import Fold

Format = Literal["md", "json", "ndjson"]
MEDIA_TYPES: Final[dict[Format, str]] = {
    "md": "text/markdown; charset=utf-8",
    "json": "application/json; charset=utf-8",
    "ndjson": "application/x-ndjson; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Told:
    """One event on its way out: normalised, with its turn, and masked where it has to be."""

    event: Event
    turn: int | None
    inherited: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """What the end of a log says of the events before it."""

    replaced_by: dict[int, int]  # {ordinal: seq of the event that took its place}
    fault_ordinal: int | None  # where the surface cannot be told any more


def standing(source: Source, limits: logs.Limits) -> Standing:
    """Read a log for which of its events others took the place of."""
    fold, replaced_by, damaged = Fold(), dict[int, int](), False
    for unit in logs.read(source.path, version=source.version, detail="index", limits=limits):
        if isinstance(unit, Fault):
            damaged = damaged or unit.code in LOSSES
        elif isinstance(unit, Event):
            shadowed = fold.push(unit, damaged=damaged).shadowed
            damaged = False
            replaced_by |= {node.ordinal: unit.seq for node in shadowed if unit.seq is not None}
    return Standing(replaced_by, fold.fault_ordinal)


def text_download(
    source: Source, summary: SessionSummary, form: Format, *, redact: bool, limits: logs.Limits
) -> Download:
    """Return the events of a log, as stored: closing events that are only added on pages are left out.

    A failure while chunks are taken raises: what was sent until then is no whole document of any of the forms.
    """
    logtext.require(source.path)
    reading = Reading(source, summary, redact=redact, limits=limits)
    made = {"md": _markdown, "json": _json, "ndjson": _ndjson}[form](reading)
    return Download(download_name(source.session_id, form), MEDIA_TYPES[form], _blocks(made))


class Reading:
    """One pass over a log, and what it came to."""

    def __init__(self, source: Source, summary: SessionSummary, *, redact: bool, limits: logs.Limits) -> None:
        self._source, self._redact, self._limits = source, redact, limits
        self._inherited_count = summary.inherited_count
        self.masked = self.events = self.damage = 0
        self.session: dict[str, Any] = self._shown(_plain(summary))

    def units(self) -> Generator[Told | DamageNote, None, None]:
        """Yield the events and what is damaged between them; a log that is another session's by now raises."""
        turn: int | None = None
        source = self._source
        with closing(logs.read(source.path, version=source.version, limits=self._limits)) as units:
            for unit in units:
                match unit:
                    case Header() if (unit.id, unit.cwd) != (source.session_id, source.cwd):
                        raise SessionGraphError("SESSION_QUERY_SOURCE_CONFLICT")
                    case Fault(code="bad_header") if source.cwd is not None:
                        raise SessionGraphError("SESSION_QUERY_SOURCE_CONFLICT")
                    case Event():
                        self.events += 1
                        own, turn = documents.turn_of(unit, turn)
                        unit.data = self._shown(unit.data)
                        yield Told(unit, own, unit.ordinal < self._inherited_count)
                    case Fault():
                        self.damage += 1
                        yield DamageNote(
                            code=unit.code,
                            message=unit.message,
                            offset=unit.offset,
                            line=unit.line,
                            ordinal=unit.ordinal,
                        )

    def _shown(self, value: dict[str, Any]) -> dict[str, Any]:
        if not self._redact:
            return value
        masked, count = mask_value(value)
        self.masked += count
        return masked if isinstance(masked, dict) else {"withheld": masked}

    @property
    def end(self) -> dict[str, int]:
        """What can be told only behind the last event."""
        return {"events": self.events, "damaged": self.damage, "masked": self.masked}


def _json(reading: Reading) -> Iterator[str | bytes]:
    """Yield one object: the session, its events, what is damaged, and counts."""
    yield b'{"ok":true,"session":' + _encoded(reading.session) + b',"events":['
    damage = []
    before = b"\n"
    for unit in reading.units():
        if isinstance(unit, DamageNote):
            damage.append(_plain(unit))
        else:
            yield before + _encoded(_event(unit))
            before = b",\n"
    yield b'\n],"damage":' + _encoded(damage) + b',"counts":' + _encoded(reading.end) + b"}\n"


def _ndjson(reading: Reading) -> Iterator[str | bytes]:
    """Yield one record a line, told apart by `record`: a session, events and damage in log order, the end."""
    yield _line("session", reading.session)
    for unit in reading.units():
        if isinstance(unit, DamageNote):
            yield _line("damage", _plain(unit))
        else:
            yield _line("event", _event(unit))
    yield _line("end", reading.end)


def _markdown(reading: Reading) -> Iterator[str | bytes]:
    """Yield the transcript."""
    page = Markdown()
    yield page.head(reading.session)
    for unit in reading.units():
        if isinstance(unit, DamageNote):
            yield from page.damage(unit)
        else:
            yield from page.event(unit.event, unit.turn)
    yield from page.end(reading.masked)


def _event(told: Told) -> dict[str, Any]:
    event = told.event
    sources = event.source_event_seqs
    return {
        "ordinal": event.ordinal,
        "seq": event.seq,
        "type": event.type,
        "time": moment.iso if (moment := instant(event.time)) else None,
        "turn": told.turn,
        "inherited": told.inherited,
        "surface_op": _operation(event.surface_op),
        "source_event_seqs": None if isinstance(sources, InvalidSurface) else sources,
        "data": event.data,
    }


def _operation(operation: object) -> str | dict[str, Any] | None:
    if isinstance(operation, Replace):
        return {"op": "replace", "start_seq": operation.start, "end_seq": operation.end}
    return operation if isinstance(operation, str) else None


def _plain(answer: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(answer, enc_hook=_iso)
    return plain


def _iso(value: object) -> object:
    if isinstance(value, Instant):
        return value.iso
    raise NotImplementedError(type(value).__name__)


def _line(record: str, value: dict[str, Any]) -> bytes:
    return _encoded({"record": record, **value}) + b"\n"


def _encoded(value: object) -> bytes:
    return safe_json(msgspec.json.encode(value))


def _blocks(pieces: Iterable[str | bytes]) -> Iterator[bytes]:
    """Join small pieces, after the first: that one is sent before the log is opened."""
    waiting: list[bytes] = []
    size, least = 0, 1
    for piece in pieces:
        waiting.append(piece.encode() if isinstance(piece, str) else piece)
        size += len(waiting[-1])
        if size >= least:
            yield b"".join(waiting)
            waiting.clear()
            size, least = 0, logtext.BLOCK_BYTES
    yield b"".join(waiting)
