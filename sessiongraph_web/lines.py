"""The one decoder of a log's lines: it judges bytes and makes headers and events in the shape of generation 4."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

import msgspec

from sessiongraph_web.models import SURFACE_TYPES, Event, FaultCode, Header, InvalidSurface, Replace

MAX_DEPTH: Final = 256
MAX_SAFE: Final = 2**53 - 1
_MAX_INT: Final = 2**63 - 1
_MAX_CITED: Final = 1_000_000  # numbers that one source list may name; ranges make long ones cheap to write
_PACKED: Final = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
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
    *_PACKED,
)
_SYSTEM_PLUGIN: Final = "@deepseek-ai/dsh-system-prompt"
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_UNSAFE: Final = re.compile("[\ud800-\udfff\0]")


class BadLine(Exception):  # noqa: N818 - a finding that readers turn into a `Fault`
    """A line that is no record; the message says why."""

    def __init__(self, message: str, code: FaultCode = "bad_line") -> None:
        self.code: FaultCode = code
        super().__init__(message)


class _Skipped(msgspec.Struct, gc=False):
    """Any object; its fields are checked for syntax and skipped."""


class _Source(msgspec.Struct, omit_defaults=True, gc=False):
    kind: str | None = None
    provider: str | None = None
    model: str | None = None


class _Message(msgspec.Struct):
    content: list[dict[str, Any]]
    role: str | None = None
    id: str | None = None
    source: _Source | None = None


class _Answer(msgspec.Struct):
    """`data` of an `assistant/message` without `stream`, which repeats the text."""

    message: _Message
    turn: int | None = None
    step: int | None = None
    usage: dict[str, Any] | None = None
    interrupted: bool | None = None


class _Line(msgspec.Struct):
    """The envelope of an event."""

    type: str
    seq: int | None = None
    seq0: int | None = None
    time: int | None = None
    time0: int | None = None
    surfaceOp: Any = msgspec.UNSET  # noqa: N815 - the log's own spelling
    sourceEventSeqs: Any = msgspec.UNSET  # noqa: N815
    ignorable: Any = None


class _SkippedLine(_Line, kw_only=True):
    data: _Skipped


class _AnswerLine(_Line, kw_only=True):
    data: _Answer


class _KeptLine(_Line, kw_only=True):
    data: dict[str, Any]


BOM: Final = b"\xef\xbb\xbf"
_ANYTHING: Final = msgspec.json.Decoder()
_SKIP: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(_SkippedLine)
_NARROW: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    **dict.fromkeys(_KEPT, msgspec.json.Decoder(_KeptLine)),
    "assistant/message": msgspec.json.Decoder(_AnswerLine),
}
_NARROW_BYTES: Final = {name.encode(): decoder for name, decoder in _NARROW.items()}
_TYPE_FIRST: Final = b'{"type":"'


def is_harmless(text: bytes) -> bool:
    """Say whether no line of this text can need more care than its JSON decoder takes.

    That is: valid UTF-8 (the narrow decoders look into no skipped string), too few brackets for deep nesting, and
    no escaped NUL.
    """
    if text.count(b"{") + text.count(b"[") > MAX_DEPTH or b"\\u0000" in text:
        return False
    return text.isascii() or _is_utf8(text)


def decode_event(line: bytes, ordinal: int, *, narrow: bool, harmless: bool = False) -> Event:
    """Return the event that a line holds; raise `BadLine` if it holds none.

    `narrow` leaves out what is never indexed and changes nothing else. `harmless` says that `is_harmless` is
    true of a text around the line.
    """
    if narrow and (harmless or not _needs_care(line)):
        try:
            return _decode_narrow(line, ordinal)
        except msgspec.DecodeError:
            pass  # the full decoder has the last word on every line
    value = _decode_object(line, harmless)
    if value.get("type") == "session":
        raise BadLine("a second header", "second_header")
    return _event(value, ordinal)


def decode_header(line: bytes, named_version: int | None = None) -> Header:
    """Return the header that a line holds; raise `BadLine` if it holds none.

    `named_version` is the generation in the file's name, taken where the header has no usable version.
    """
    value = _decode_object(line.removeprefix(BOM))
    if value.get("type") != "session":
        raise BadLine("the first line is not a header", "bad_header")
    identity = value.get("id")
    if not isinstance(identity, str) or not identity:
        raise BadLine("the header has no id", "bad_header")
    version, seed_length = _whole(value.get("version")), _whole(value.get("seedLength"))
    cwd, problem = _cwd(line)
    return Header(
        id=identity,
        version=version if version is not None else named_version or 0,
        created_at=_time(value.get("createdAt")),
        cwd=cwd,
        cwd_problem=problem,
        parent_session=_text(value.get("parentSession")),
        is_seeded=value.get("isSeeded") is True or bool(seed_length),
        seed_length=seed_length,
        origin=_text(value.get("origin")),
        delegation_depth=_whole(value.get("delegationDepth")) or 0,
        agent_preset=_text(value.get("agentPreset")),
    )


def is_event(line: bytes) -> bool:
    """Say whether a line that is no header holds an event, so that a log without a header keeps its first one."""
    try:
        decode_event(line, 0, narrow=False)
    except BadLine:
        return False
    return True


def stated_version(line: bytes) -> object:
    """Return the version that a header line states, of whatever type."""
    return _decode_object(line.removeprefix(BOM)).get("version")


def _decode_narrow(line: bytes, ordinal: int) -> Event:
    decoder: msgspec.json.Decoder[Any] = _SKIP
    if line.startswith(_TYPE_FIRST):
        decoder = _NARROW_BYTES.get(line[9 : line.find(b'"', 9)], _SKIP)
    record = decoder.decode(line)
    kind = record.type
    if _NARROW.get(kind, _SKIP) is not decoder or kind == "session" or not kind:
        raise msgspec.DecodeError
    if decoder is _SKIP:
        data: dict[str, Any] = {}
    elif kind == "assistant/message":
        data = _answer(record.data)
    else:
        data = record.data
        _bound_numbers(data)
    return _build(
        kind,
        ordinal,
        data,
        seq=record.seq if record.seq is not None else record.seq0,
        time=record.time if record.time is not None else record.time0,
        operation=record.surfaceOp,
        sources=record.sourceEventSeqs,
        ignorable=record.ignorable is True,
    )


def _answer(answer: _Answer) -> dict[str, Any]:
    message = answer.message
    for block in message.content:
        _bound_numbers(block)
    source = message.source
    kept: dict[str, Any] = {"content": message.content, "role": message.role, "id": message.id}
    if source is not None:
        kept["source"] = {"kind": source.kind, "provider": source.provider, "model": source.model}
    data: dict[str, Any] = {"message": kept, "turn": answer.turn, "step": answer.step}
    if answer.usage is not None:
        data["usage"] = answer.usage
        _bound_numbers(answer.usage)
    if answer.interrupted:
        data["interrupted"] = True
    return data


def _event(value: dict[str, Any], ordinal: int) -> Event:
    kind, data = value.get("type"), value.get("data")
    if not isinstance(kind, str) or not kind:
        raise BadLine("an event without a type")
    if not isinstance(data, dict):
        raise BadLine("an event whose data is not an object")
    seq, time = value.get("seq"), value.get("time")
    return _build(
        kind,
        ordinal,
        data,
        seq=value.get("seq0") if seq is None else seq,
        time=value.get("time0") if time is None else time,
        operation=value.get("surfaceOp", msgspec.UNSET),
        sources=value.get("sourceEventSeqs", msgspec.UNSET),
        ignorable=value.get("ignorable") is True,
    )


def _build(
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
    number = _whole(seq)
    count = 1
    if kind in SURFACE_TYPES:
        _to_newest(kind, data)
        surface = None if operation is msgspec.UNSET else _surface_op(kind, operation)
        cited = None if sources is msgspec.UNSET else _sources(kind, number, sources)
    else:
        surface = None if operation is msgspec.UNSET else _ineligible(kind, "surfaceOp")
        cited = None if sources is msgspec.UNSET else _ineligible(kind, "sourceEventSeqs")
        if kind in _PACKED:
            packed = data.get(_PACKED[kind])
            count = max(1, len(packed)) if isinstance(packed, list) else 1
    return Event(ordinal, number, kind, _time(time), data, surface, cited, count, ignorable)


def _surface_op(kind: str, value: object) -> Any:
    """Read a surface operation; the sentences are those of the fold, which raises them in its own order."""
    if value == "append":
        return "append"
    if not isinstance(value, dict):
        return InvalidSurface(f'session event "{kind}" carries an invalid surfaceOp')
    keys = ("start", "end") if "start" in value else ("startSeq", "endSeq")
    start, end = _whole(value.get(keys[0])), _whole(value.get(keys[1]))
    if len(value) != 3 or value.get("op") != "replace" or start is None or end is None:
        return InvalidSurface(f'session event "{kind}" carries an invalid replace surfaceOp')
    return Replace(start, end)


def _sources(kind: str, seq: int | None, value: object) -> list[int] | InvalidSurface:
    if not isinstance(value, list):
        return InvalidSurface(f"sourceEventSeqs on event at seq {seq} must be an array when present")
    cited: list[int] = []
    for member in value:
        first, last = member if isinstance(member, list) and len(member) == 2 else (member, member)
        low, high = _whole(first), _whole(last)
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
    if isinstance(source, dict) and source.get("kind") == "plugin" and source.get("plugin") == _SYSTEM_PLUGIN:
        source["kind"] = "system-prompt" if kind == "system/message" else "runtime-context"
    content = message.get("content")
    if kind != "tool/result" or not isinstance(content, list) or len(content) != 1:
        return
    block = content[0]
    if isinstance(block, dict) and block.get("type") == "tool-result" and isinstance(block.get("content"), list):
        message |= {key: item for key, item in block.items() if key != "type"} | {"role": "tool"}


def _decode_object(line: bytes, harmless: bool = False) -> dict[str, Any]:
    """Decode a line to an object with safe text and numbers, or raise `BadLine`."""
    if not harmless:
        _refuse_broken_text(line)
    try:
        value = _ANYTHING.decode(line)
        unsafe = not harmless and b"\\u0000" in line
    except msgspec.DecodeError:
        value, unsafe = _decode_leniently(line), True
    if not isinstance(value, dict):
        raise BadLine("not a JSON object")
    if unsafe:
        return _made_safe(value)  # type: ignore[no-any-return]
    _bound_numbers(value)
    return value


def _decode_leniently(line: bytes) -> Any:
    """Decode what msgspec refuses though it is JSON: escapes of lone surrogates, numbers beyond a double."""
    try:
        return json.loads(line.decode(), parse_constant=_refuse, parse_int=_number, parse_float=_number)
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise BadLine(f"not JSON: {reason}") from None


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"{token} is no number")


def _number(digits: str) -> int | float | None:
    """Read a number as JavaScript would, with null for one that it could not write back."""
    if len(digits) < 19 and digits.lstrip("-").isdigit():
        return int(digits)
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        return None
    whole = digits.lstrip("-").isdigit() and abs(value) < _MAX_INT
    return int(digits) if whole else value


def _needs_care(line: bytes) -> bool:
    """Say whether a line has an escaped NUL; raise `BadLine` for what no decoder may see."""
    _refuse_broken_text(line)
    return b"\\u0000" in line


def _refuse_broken_text(line: bytes) -> None:
    if not line.isascii() and not _is_utf8(line):
        raise BadLine("not UTF-8")
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH and _depth(line) > MAX_DEPTH:
        raise BadLine(f"nested deeper than {MAX_DEPTH} levels")


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _depth(line: bytes) -> int:
    """Count how deep brackets nest outside strings; `RecursionError` would depend on the caller's stack."""
    deepest = depth = 0
    for byte in _STRING.sub(b"", line):
        if byte in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"}]":
            depth -= 1
    return deepest


def _bound_numbers(value: Any) -> None:
    """Turn integers beyond 63 bits into doubles, in place, everywhere inside a decoded value."""
    stack = [value]
    while stack:
        container = stack.pop()
        for key, item in container.items() if type(container) is dict else enumerate(container):
            kind = type(item)
            if kind is str:
                continue
            if kind is dict or kind is list:
                stack.append(item)
            elif kind is int and not -_MAX_INT <= item <= _MAX_INT:
                container[key] = _number(str(item))


def _made_safe(value: Any) -> Any:
    """Return a decoded value without lone surrogates and NULs (they become U+FFFD) and without wild numbers."""
    if isinstance(value, str):
        return _UNSAFE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_made_safe(key): _made_safe(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_made_safe(item) for item in value]
    if type(value) is int and not -_MAX_INT <= value <= _MAX_INT:
        return _number(str(value))
    return value


def _whole(value: object) -> int | None:
    """Return a non-negative safe integer, or None for anything else."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_SAFE else None


def _time(value: object) -> int | None:
    if type(value) is float:
        value = int(value)
    return value if type(value) is int and -MAX_SAFE <= value <= MAX_SAFE else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _cwd(line: bytes) -> tuple[str | None, str | None]:
    """Return the header's cwd as the exact string, or None with the reason: safe text never feeds a seal."""
    value = json.loads(line.removeprefix(BOM), parse_int=str, parse_constant=str).get("cwd")
    if value is None:
        return None, "the header has no cwd"
    if not isinstance(value, str):
        return None, "the header's cwd is not text"
    if not value:
        return None, "the header's cwd is empty"
    if _UNSAFE.search(value):
        return None, "the header's cwd holds a lone surrogate or NUL"
    return value, None
