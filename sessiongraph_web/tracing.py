"""Relations: the ancestors and descendants of a session, and what replaced or cites an event."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.faults import LOSSES
from sessiongraph_web.language import sentence
from sessiongraph_web.models import Event, Fault, Surface, Unit
from sessiongraph_web.surface import Fold, classify

T = TypeVar("T")

# The order of ASCII in the Unicode root collation, which the original sorts ids by.
_COLLATED: Final = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Record(Generic[T]):
    """One session among others: what lineage needs of it, and what the caller wants back."""

    id: str
    parent: str | None
    created_at: int | None
    value: T


@dataclass(slots=True)
class Branch(Generic[T]):
    """A descendant with its own descendants, siblings by creation and then id."""

    value: T
    descendants: list[Branch[T]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Lineage(Generic[T]):
    """The ancestors of a session, nearest first, and its descendants.

    `complete` says that the last ancestor has no parent; else `unresolved_parent` is the one that was not found.
    """

    target: T
    ancestors: list[T]
    descendants: list[Branch[T]]
    complete: bool
    unresolved_parent: str | None = None

    @property
    def root(self) -> T | None:
        """The first of all ancestors (or the target itself), if the chain is complete."""
        return (self.ancestors[-1] if self.ancestors else self.target) if self.complete else None


@dataclass(frozen=True, slots=True)
class EventRelations:
    """The relations of one event, as seqs; only the chain is transitive."""

    target: Event
    surface: Surface
    replaced_by: int | None
    replacement_chain: list[int]
    replaced_event_seqs: list[int]
    source_event_seqs: list[int]
    derived_event_seqs: list[int]


def lineage(records: Sequence[Record[T]], target: str) -> Lineage[T]:
    """Return the lineage of the session with the id `target`; of two records with one id the later counts.

    Errors: SESSION_QUERY_SESSION_NOT_FOUND, and SESSION_QUERY_INVALID_LINEAGE if the ancestors form a loop.
    """
    by_id = {record.id: record for record in records}
    found = by_id.get(target)
    if found is None:
        message = sentence('session "%(id)s" not found', id=target)
        raise SessionGraphError("SESSION_QUERY_SESSION_NOT_FOUND", message)
    ancestors, unresolved = _ancestors(by_id, found)
    return Lineage(
        target=found.value,
        ancestors=[record.value for record in ancestors],
        descendants=_descendants(records, found.id),
        complete=unresolved is None,
        unresolved_parent=unresolved,
    )


def _ancestors(by_id: dict[str, Record[T]], target: Record[T]) -> tuple[list[Record[T]], str | None]:
    ancestors: list[Record[T]] = []
    seen = {target.id}
    parent = target.parent
    while parent is not None:
        if parent in seen:
            message = sentence('session lineage contains a cycle at "%(id)s"', id=parent)
            raise SessionGraphError("SESSION_QUERY_INVALID_LINEAGE", message)
        seen.add(parent)
        record = by_id.get(parent)
        if record is None:
            return ancestors, parent
        ancestors.append(record)
        parent = record.parent
    return ancestors, None


def _descendants(records: Sequence[Record[T]], target: str) -> list[Branch[T]]:
    """Build the tree below a session without recursion; a session is expanded once, however often it occurs."""
    children: dict[str, list[Record[T]]] = {}
    for record in records:
        if record.parent is not None:
            children.setdefault(record.parent, []).append(record)
    roots: list[Branch[T]] = []
    expanded: set[str] = set()
    waiting = [(target, roots)]
    while waiting:
        identity, branches = waiting.pop()
        if identity in expanded:
            continue
        expanded.add(identity)
        for record in sorted(children.get(identity, ()), key=_by_age):
            branch = Branch(record.value)
            branches.append(branch)
            waiting.append((record.id, branch.descendants))
    return roots


def _by_age(record: Record[T]) -> tuple[bool, int, tuple[object, ...]]:
    return record.created_at is None, record.created_at or 0, collation_key(record.id)


def collation_key(text: str) -> tuple[object, ...]:
    """Return a sort key close to ICU's root collation: exact for ASCII, code points beyond; case decides last."""
    letters = unicodedata.normalize("NFD", text)
    base = [char for char in letters if not unicodedata.combining(char)]
    marks = [char for char in letters if unicodedata.combining(char)]
    return [_weight(char) for char in base], marks, [char.isupper() for char in base], text


def _weight(char: str) -> tuple[int, int]:
    position = _COLLATED.find(char.lower())
    return (0, position) if position >= 0 else (1, ord(char))


def event_trace(units: Iterable[Unit], seq: int, *, session_id: str) -> EventRelations:
    """Return the relations of the first event with this seq, from all the units of its log.

    Errors: SESSION_QUERY_EVENT_NOT_FOUND, even where the surface is invalid; else SESSION_QUERY_INVALID_SURFACE.
    """
    fold, target = Fold(), None
    replaced_by: dict[int, int] = {}  # ordinal -> ordinal
    seqs: dict[int, int] = {}  # of the events that replaced another
    taken: list[int] = []
    derived: list[int] = []
    for event, damaged in with_damage(units):
        change = fold.push(event, damaged=damaged)
        for node in change.shadowed:
            replaced_by[node.ordinal] = event.ordinal
            seqs[event.ordinal] = event.seq or 0
        if event.seq is None:
            continue
        if target is None and seq in range(event.seq, event.seq + event.count):
            target = event
            taken = [node.seq for node in change.shadowed]
        elif target is not None and isinstance(event.source_event_seqs, list) and seq in event.source_event_seqs:
            derived.append(event.seq)
    if target is None:
        message = sentence('session "%(id)s" has no event at seq %(seq)s', id=session_id, seq=seq)
        raise SessionGraphError("SESSION_QUERY_EVENT_NOT_FOUND", message)
    if fold.fault is not None:
        message = sentence("invalid session surface: %(fault)s", fault=fold.fault)
        raise SessionGraphError("SESSION_QUERY_INVALID_SURFACE", message)
    chain = [seqs[ordinal] for ordinal in _chain(replaced_by, target.ordinal)]
    return EventRelations(
        target=target,
        surface=classify(target.type, target.ordinal, shadowed=replaced_by, fault_ordinal=None),
        replaced_by=chain[0] if chain else None,
        replacement_chain=chain,
        replaced_event_seqs=taken,
        source_event_seqs=target.source_event_seqs if isinstance(target.source_event_seqs, list) else [],
        derived_event_seqs=derived,
    )


def with_damage(units: Iterable[Unit]) -> Iterator[tuple[Event, bool]]:
    """Yield the events, each with whether damage that takes events away was reported right before it."""
    damaged = False
    for unit in units:
        if isinstance(unit, Event):
            yield unit, damaged
            damaged = False
        elif isinstance(unit, Fault):
            damaged = damaged or unit.code in LOSSES


def _chain(replaced_by: dict[int, int], ordinal: int) -> Iterator[int]:
    while ordinal in replaced_by:
        ordinal = replaced_by[ordinal]
        yield ordinal
