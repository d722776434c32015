"""The index's way through a log: typed records that skip what is never indexed, many lines in one call.

Whatever these decoders refuse goes to the full decoder (`lines`); what they take is what that one would take,
since skipped parts are checked for syntax. They never see broken UTF-8, deep nesting or escaped NULs.
"""

from __future__ import annotations

from functools import cache, reduce
from operator import or_
from types import GenericAlias
from typing import Annotated, Any, Final, cast

import msgspec

from sessiongraph_web.generations import MAX_SAFE, PACKED, build
from sessiongraph_web.models import SURFACE_TYPES, Event

_KEPT: Final = (
    "user/message",
    "system/message",
    "developer/message",
    "tool/call",
    "tool/result",
    "turn/start",
    "turn/end",
    "step/start",
    "step/end",
    "session/title",
    "session/end-seed",
    "todo/write",
    *PACKED,
)
_SKIPPED: Final = (
    "agent-preset/selected",
    "agent/inbox/spliced",
    "approval/asked",
    "approval/decided",
    "approval/policy",
    "assistant/attempt",
    "assistant/chunk",
    "command/done",
    "command/run",
    "compaction/end",
    "compaction/prune",
    "compaction/start",
    "compaction/summary",
    "deliverables/presented",
    "feedback/message-delete",
    "feedback/message-put",
    "feedback/record",
    "goal/change",
    "hook/invoked",
    "hook/result",
    "image/offload",
    "job/registered",
    "job/settled",
    "llm/retry",
    "llm/retry-started",
    "model/selection",
    "permission/preset",
    "plan/mode",
    "request/context",
    "request/header",
    "sandbox/mode",
    "schedule/change",
    "session-log-deepseek/delivery-accepted",
    "session/title-llm-request",
    "subagent/catalog",
    "subagent/descriptor",
    "subagent/model-selection-policy",
    "tool-workflow/agent-end",
    "tool-workflow/agent-start",
    "tool-workflow/run-end",
    "tool-workflow/run-start",
    "tool/ptc-dispatch",
    "tool/ptc-dispatch-start",
    "web/deepseek-search-llm-request",
    "working-directory/change",
    "workspace/changes",
)
_LEVELS: Final = 6  # of nesting inside `data` that typed records take; deeper ones are decoded fully

_Int63 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Scalar: Final[Any] = str | _Int63 | float | bool | None


def _nested(inner: Any, _: int) -> Any:
    return _Scalar | GenericAlias(list, inner) | GenericAlias(dict, (str, inner))


_Value: Final[Any] = reduce(_nested, range(_LEVELS), _Scalar)


class Record(msgspec.Struct, tag_field="type"):
    """The envelope of an event; `data` is added by the subclass of each event type."""

    seq: int | None = None
    seq0: int | None = None
    time: int | None = None
    time0: int | None = None
    surfaceOp: Any = msgspec.UNSET  # noqa: N815 - the log's own spelling
    sourceEventSeqs: Any = msgspec.UNSET  # noqa: N815
    ignorable: Any = None


class _Skipped(msgspec.Struct, gc=False):
    """Any object; its fields are checked for syntax and skipped."""


class _Source(msgspec.Struct, gc=False):
    kind: str | None = None
    provider: str | None = None
    model: str | None = None


class _Message(msgspec.Struct):
    content: list[dict[str, _Value]]
    role: str | None = None
    id: str | None = None
    source: _Source | None = None


class _Answer(msgspec.Struct):
    """`data` of an `assistant/message` without `stream`, which repeats the text."""

    message: _Message
    turn: _Int63 | None = None
    step: _Int63 | None = None
    usage: dict[str, _Value] | None = None
    interrupted: bool | None = None


def _record(kind: str, data: Any) -> type[Record]:
    name = kind.title().replace("/", "").replace("-", "")
    made = msgspec.defstruct(name, [("data", data)], bases=(Record,), tag=kind, kw_only=True)
    return cast("type[Record]", made)


_ANSWER: Final = _record("assistant/message", _Answer)
_KINDS: Final[dict[type[Record], str]] = {
    _ANSWER: "assistant/message",
    **{_record(kind, dict[str, _Value]): kind for kind in _KEPT},
    **{_record(kind, _Skipped): kind for kind in _SKIPPED},
}
_SKIPPED_KINDS: Final = frozenset(_SKIPPED)
_RESHAPED: Final = frozenset({"user/message", "system/message", "tool/result", *PACKED})  # by `build`


@cache
def _decoder() -> msgspec.json.Decoder[Any]:
    """Return the decoder of all records. Making it takes longer than all else that a command imports."""
    return msgspec.json.Decoder(reduce(or_, _KINDS))


def decode_lines(lines: list[bytes]) -> list[Record] | None:
    """Return the record of each line, or None if any is not plainly one."""
    decode = _decoder().decode
    try:
        return [decode(line) for line in lines]
    except (msgspec.DecodeError, RecursionError):
        return None


def decode_line(line: bytes) -> Record | None:
    """Return the record of a line, or None if it is not plainly one."""
    try:
        record: Record = _decoder().decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return record


def to_event(record: Record, ordinal: int) -> Event:
    """Return the event of a record."""
    kind = _KINDS[type(record)]
    seq, time, data = record.seq, record.time, record.data  # type: ignore[attr-defined]
    if kind in _SKIPPED_KINDS:
        data = {}
    elif kind == "assistant/message":
        data = _answer(data)
    if seq is not None and time is not None and 0 <= seq <= MAX_SAFE and 0 <= time <= MAX_SAFE:
        operation = record.surfaceOp
        ignorable = record.ignorable is True
        if record.sourceEventSeqs is msgspec.UNSET and kind not in _RESHAPED:
            if operation is msgspec.UNSET:
                return Event(ordinal, seq, kind, time, data, None, None, 1, ignorable)
            if operation == "append" and kind in SURFACE_TYPES:
                return Event(ordinal, seq, kind, time, data, "append", None, 1, ignorable)
    return build(
        kind,
        ordinal,
        data,
        seq=record.seq0 if seq is None else seq,
        time=record.time0 if time is None else time,
        operation=record.surfaceOp,
        sources=record.sourceEventSeqs,
        ignorable=record.ignorable is True,
    )


def _answer(answer: _Answer) -> dict[str, Any]:
    message, source = answer.message, answer.message.source
    kept: dict[str, Any] = {"content": message.content, "role": message.role, "id": message.id}
    if source is not None:
        kept["source"] = {"kind": source.kind, "provider": source.provider, "model": source.model}
    data: dict[str, Any] = {"message": kept, "turn": answer.turn, "step": answer.step}
    if answer.usage is not None:
        data["usage"] = answer.usage
    if answer.interrupted:
        data["interrupted"] = True
    return data
