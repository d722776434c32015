"""What the model sees: the surface folded from a log's events, and the class that gives every event."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable
from typing import Any, Final

import msgspec

from sessiongraph_web.models import SURFACE_TYPES, Event, InvalidSurface, Replace, Surface

_CANONICAL: Final = msgspec.json.Encoder(order="sorted")
_DIGEST_BYTES: Final = 8


class Node(msgspec.Struct, frozen=True, gc=False):
    """One event on the surface. `digest` stands for all of a tool result but its content."""

    seq: int
    ordinal: int
    type: str
    digest: str | None


class Change(msgspec.Struct, frozen=True, gc=False):
    """What an event did to the surface: the node it added, and the nodes whose place it took."""

    added: Node | None = None
    shadowed: tuple[Node, ...] = ()


NOTHING: Final = Change()


class _Invalid(Exception):  # noqa: N818 - becomes `Fold.fault`
    """The event breaks the rules of the surface."""


class Fold:
    """The surface of a log so far. It stops at the first fault and keeps what was folded before.

    A gap that reported damage explains is no fault; from then on (`damaged`) a replacement takes the place of
    those of its nodes that are still there.
    """

    def __init__(
        self,
        nodes: Iterable[Node] | Callable[[], list[Node]] = (),
        next_seq: int = 0,
        fault: str | None = None,
        fault_ordinal: int | None = None,
        *,
        damaged: bool = False,
    ) -> None:
        self._earlier: Callable[[], list[Node]] | None = nodes if callable(nodes) else None
        self._nodes = [] if callable(nodes) else list(nodes)
        self.next_seq = next_seq
        self.fault = fault
        self.fault_ordinal = fault_ordinal
        self.damaged = damaged

    @property
    def nodes(self) -> list[Node]:
        """The surface. What was folded before is fetched when it is first needed: a mere append never does."""
        if self._earlier is not None:
            self._nodes[:0] = self._earlier()
            self._earlier = None
        return self._nodes

    @nodes.setter
    def nodes(self, nodes: list[Node]) -> None:
        self._earlier, self._nodes = None, nodes

    def push(self, event: Event, *, damaged: bool = False) -> Change:
        """Fold the next event; `damaged` says that damage was reported right before it."""
        if self.fault is not None:
            return NOTHING
        self.damaged |= damaged
        if event.seq == self.next_seq and _leaves_alone(event):
            self.next_seq += event.count
            return NOTHING
        try:
            return self._apply(event, damaged)
        except _Invalid as fault:
            self.fault, self.fault_ordinal = str(fault), event.ordinal
            return NOTHING

    def _apply(self, event: Event, gap_explained: bool) -> Change:
        seq = event.seq
        if seq != self.next_seq and not (gap_explained and seq is not None and seq > self.next_seq):
            raise _Invalid(f"session event seq {seq} is not contiguous; expected {self.next_seq}")
        self.next_seq = seq + event.count
        if event.type not in SURFACE_TYPES:
            for field in (event.surface_op, event.source_event_seqs):
                if isinstance(field, InvalidSurface):
                    raise _Invalid(field.message)
            return NOTHING
        operation = event.surface_op
        if operation is None:
            raise _Invalid(f'session event "{event.type}" is surface-eligible and requires a surfaceOp marker')
        if isinstance(operation, InvalidSurface):
            raise _Invalid(operation.message)
        node = Node(seq, event.ordinal, event.type, _digest(event))
        if isinstance(operation, Replace):
            return self._replace(event, node, operation)
        _check_sources(event, seq, ())
        self._nodes.append(node)
        return Change(node)

    def _replace(self, event: Event, node: Node, operation: Replace) -> Change:
        start, end = self._position(operation.start), self._position(operation.end)
        if self.damaged and (start is None or end is None):
            return self._replace_rest(event, node, operation)
        if start is None or end is None:
            side, missing = ("start", operation.start) if start is None else ("end", operation.end)
            raise _Invalid(f"surface replace: {side} seq {missing} not found in surface")
        if start > end:
            raise _Invalid(
                f"surface replace: start seq {operation.start} (index {start}) is after "
                f"end seq {operation.end} (index {end})"
            )
        shadowed = tuple(self.nodes[start : end + 1])
        _check_sources(event, node.seq, shadowed)
        if node.type == "tool/result":
            _check_rewrite(node, shadowed)
        self.nodes[start : end + 1] = [node]
        return Change(node, shadowed)

    def _replace_rest(self, event: Event, node: Node, operation: Replace) -> Change:
        """Replace what is left of a range of which damage took one end or both."""
        cited = event.source_event_seqs if isinstance(event.source_event_seqs, list) else []
        named = {operation.start, operation.end, *cited}
        shadowed = tuple(each for each in self.nodes if each.seq in named)
        position = self.nodes.index(shadowed[0]) if shadowed else len(self.nodes)
        kept = [each for each in self.nodes if each.seq not in named]
        self.nodes = [*kept[:position], node, *kept[position:]]
        return Change(node, shadowed)

    def _position(self, seq: int) -> int | None:
        """Find a node from the end, where replacements mostly point."""
        nodes = self.nodes
        for position in range(len(nodes) - 1, -1, -1):
            if nodes[position].seq == seq:
                return position
        return None


def classify(kind: str, ordinal: int, *, shadowed: Container[int], fault_ordinal: int | None) -> Surface:
    """Return the class of an event; `shadowed` holds the ordinals of replaced ones."""
    if fault_ordinal is not None and ordinal >= fault_ordinal:
        return "unknown"
    if ordinal in shadowed:
        return "shadowed"
    return "current" if kind in SURFACE_TYPES else "log-only"


def _leaves_alone(event: Event) -> bool:
    """Say whether an event neither touches the surface nor claims to: most do not."""
    return event.surface_op is None and event.source_event_seqs is None and event.type not in SURFACE_TYPES


def _check_sources(event: Event, seq: int, shadowed: tuple[Node, ...]) -> None:
    sources = event.source_event_seqs
    if isinstance(sources, InvalidSurface):
        raise _Invalid(sources.message)
    if sources is not None:
        if not sources and event.type != "assistant/message":
            raise _Invalid("sourceEventSeqs must not be empty except on assistant/message")
        if len(set(sources)) != len(sources):
            raise _Invalid("sourceEventSeqs must not contain duplicates")
        if sources and max(sources) >= seq:
            late = next(source for source in sources if source >= seq)
            raise _Invalid(f"sourceEventSeqs must reference earlier events: {late} >= current seq {seq}")
    if not shadowed:
        return
    cited = set(sources or ())
    missing = [str(node.seq) for node in shadowed if node.seq not in cited]
    if missing:
        raise _Invalid(
            "surface replace: sourceEventSeqs must include every shadowed surface node; "
            f"missing {', '.join(missing)}"
        )


def _check_rewrite(node: Node, shadowed: tuple[Node, ...]) -> None:
    if len(shadowed) != 1:
        raise _Invalid("tool/result surface replacement must rewrite exactly one current node")
    if shadowed[0].type != "tool/result":
        raise _Invalid("tool/result surface replacement must target a current tool/result")
    if shadowed[0].digest != node.digest:
        raise _Invalid("tool/result surface replacement may change only content")


def _digest(event: Event) -> str | None:
    """Return a digest of all of a tool result that a rewrite must keep."""
    if event.type != "tool/result":
        return None
    message = event.data.get("message")
    kept = {**event.data, "message": _without_content(message)} if isinstance(message, dict) else event.data
    return hashlib.blake2b(_CANONICAL.encode(kept), digest_size=_DIGEST_BYTES).hexdigest()


def _without_content(message: dict[str, Any]) -> dict[str, Any]:
    content: Any = message.get("content")
    first = content[0] if isinstance(content, list) and content else None
    if isinstance(first, dict) and first.get("type") == "tool-result":
        return {**message, "content": [{**first, "content": None}, *content[1:]]}
    return {**message, "content": None}
