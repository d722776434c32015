"""One shape for all generations of logs: how a decoded record becomes an event as generation 4 would write it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from sessiongraph_web.models import SURFACE_TYPES, Event, InvalidSurface, Replace

MAX_SAFE: Final = 2**53 - 1
PACKED: Final = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
_MAX_CITED: Final = 100_000  # numbers that one source list may name; ranges make long ones cheap to write
# What generation 4 calls the messages that plugins of older ones injected; any other becomes `plugin:<name>`.
_PLUGINS: Final = {"@deepseek-ai/dsh-system-prompt": "runtime-context", "compact": "compact-checkpoint"}


def build(
    kind: str,
    ordinal: int,
    data: dict[str, Any],
    *,
    seq: object,
    time: object,
    operation: object,
    sources: object,
    ignorable: bool,
) -> Event:
    """Make the event, in the shape of generation 4 whatever wrote it."""
    number = whole(seq)
    count = 1
    if kind in SURFACE_TYPES:
        _to_newest(kind, data)
        surface = None if operation is msgspec.UNSET else _surface_op(kind, operation)
        cited = None if sources is msgspec.UNSET else _sources(kind, number, sources)
    else:
        surface = None if operation is msgspec.UNSET else _ineligible(kind, "surfaceOp")
        cited = None if sources is msgspec.UNSET else _ineligible(kind, "sourceEventSeqs")
        if kind in PACKED:
            packed = data.get(PACKED[kind])
            count = max(1, len(packed)) if isinstance(packed, list) else 1
    return Event(ordinal, number, kind, moment(time), data, surface, cited, count, ignorable)


def _surface_op(kind: str, value: object) -> Any:
    """Read a surface operation; the sentences are those of the fold, which raises them in its own order."""
    if value == "append":
        return "append"
    if not isinstance(value, dict):
        return InvalidSurface(f'session event "{kind}" carries an invalid surfaceOp')
    keys = ("start", "end") if "start" in value else ("startSeq", "endSeq")
    start, end = whole(value.get(keys[0])), whole(value.get(keys[1]))
    if len(value) != 3 or value.get("op") != "replace" or start is None or end is None:
        return InvalidSurface(f'session event "{kind}" carries an invalid replace surfaceOp')
    return Replace(start, end)


def _sources(kind: str, seq: int | None, value: object) -> list[int] | InvalidSurface:
    if not isinstance(value, list):
        return InvalidSurface(f"sourceEventSeqs on event at seq {seq} must be an array when present")
    only = whole(value[0]) if len(value) == 1 else None  # as every result cites its call
    if only is not None:
        return [only]
    cited: list[int] = []
    for member in value:
        first, last = member if isinstance(member, list) and len(member) == 2 else (member, member)
        low, high = whole(first), whole(last)
        if low is None or high is None or high < low or high - low >= _MAX_CITED - len(cited):
            return InvalidSurface(
                f'session event "{kind}" sourceEventSeqs must densely contain non-negative safe integers'
            )
        cited.extend(range(low, high + 1))
    return cited


def _ineligible(kind: str, field: str) -> Any:
    return InvalidSurface(f'session event "{kind}" is not surface-eligible and cannot carry {field}')


def _to_newest(kind: str, data: dict[str, Any]) -> None:
    """Rewrite what generations before 4 spelled otherwise: tool results and the sources of injected messages."""
    message = data if kind == "user/message" else data.get("message")
    if not isinstance(message, dict):
        return
    source = message.get("source")
    if isinstance(source, dict) and source.get("kind") == "plugin" and isinstance(source.get("plugin"), str):
        name = source["plugin"]
        source["kind"] = "system-prompt" if kind == "system/message" else _PLUGINS.get(name, f"plugin:{name}")
    content = message.get("content")
    if kind != "tool/result" or not isinstance(content, list) or len(content) != 1:
        return
    block = content[0]
    if not isinstance(block, dict) or block.get("type") != "tool-result":
        return
    if isinstance(block.get("content"), list | str):
        message |= {key: item for key, item in block.items() if key != "type"} | {"role": "tool"}


def whole(value: object) -> int | None:
    """Return a non-negative safe integer, or None for anything else."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_SAFE else None


def moment(value: object) -> int | None:
    if type(value) is float:
        value = int(value)
    return value if type(value) is int and -MAX_SAFE <= value <= MAX_SAFE else None
