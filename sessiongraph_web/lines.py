"""The one decoder of a log's lines: it judges bytes and makes headers and events in the shape of generation 4."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

import msgspec

from sessiongraph_web import narrow as narrow_lines
from sessiongraph_web.generations import build, moment, whole
from sessiongraph_web.models import Event, FaultCode, Header

BOM: Final = b"\xef\xbb\xbf"
MAX_DEPTH: Final = 256
_MAX_INT: Final = 2**63 - 1
_ANYTHING: Final = msgspec.json.Decoder()
_DIGITS: Final = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))
_LONG_NUMBER: Final = b"0" * len(str(_MAX_INT))  # of digits at least, of an integer that is out of bounds
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"{[]}")
_UNSAFE: Final = re.compile("[\ud800-\udfff\0]")


class BadLine(Exception):  # noqa: N818 - a finding that readers turn into a `Fault`
    """A line that is no record; the message says why."""

    def __init__(self, message: str, code: FaultCode = "bad_line") -> None:
        self.code: FaultCode = code
        super().__init__(message)


def decode_text(text: bytes) -> list[narrow_lines.Record] | None:
    """Return the records of a text of whole lines, narrowly; None if any line needs a closer look."""
    if not (text.isascii() or _is_utf8(text)) or b"\\u0000" in text:
        return None
    lines = text.split(b"\n")
    if lines.pop() or (_openers(text) > MAX_DEPTH and any(map(_is_deep, lines))):
        return None
    return narrow_lines.decode_lines(lines)


def _openers(text: bytes) -> int:
    """Return how many brackets open, inside strings too: deeper than this many nothing nests.

    Measured: to replace a byte and compare lengths takes a third of the time of counting it.
    """
    return 2 * len(text) - len(text.replace(b"{", b"")) - len(text.replace(b"[", b""))


def decode_event(line: bytes, ordinal: int, *, narrow: bool) -> Event:
    """Return the event that a line holds; raise `BadLine` if it holds none.

    `narrow` leaves out what is never indexed and changes nothing else.
    """
    _refuse_broken_text(line)
    if narrow and b"\\u0000" not in line:
        record = narrow_lines.decode_line(line)
        if record is not None:
            return narrow_lines.to_event(record, ordinal)
    value = _decode_object(line)  # the full decoder has the last word on every line
    if value.get("type") == "session":
        raise BadLine("a second header", "second_header")
    return _event(value, ordinal)


def decode_record(line: bytes) -> dict[str, Any]:
    """Return a record as it is spelled, its texts and numbers made safe; raise `BadLine` if it is none."""
    _refuse_broken_text(line)
    return _decode_object(line)


def decode_header(line: bytes, named_version: int | None = None) -> Header:
    """Return the header that a line holds; raise `BadLine` if it holds none.

    `named_version` is the generation in the file's name, taken where the header has no usable version.
    """
    line = line.removeprefix(BOM)
    _refuse_broken_text(line)
    value = _decode_object(line)
    if value.get("type") != "session":
        raise BadLine("the first line is not a header", "bad_header")
    identity = value.get("id")
    if not isinstance(identity, str) or not identity:
        raise BadLine("the header has no id", "bad_header")
    version, seed_length = whole(value.get("version")), whole(value.get("seedLength"))
    cwd, problem = _cwd(line)
    return Header(
        id=identity,
        version=version if version is not None else named_version or 0,
        created_at=moment(value.get("createdAt")),
        cwd=cwd,
        cwd_problem=problem,
        parent_session=_text(value.get("parentSession")),
        is_seeded=value.get("isSeeded") is True or bool(seed_length),
        seed_length=seed_length,
        origin=_text(value.get("origin")),
        delegation_depth=whole(value.get("delegationDepth")) or 0,
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


def _event(value: dict[str, Any], ordinal: int) -> Event:
    kind, data = value.get("type"), value.get("data")
    if not isinstance(kind, str) or not kind:
        raise BadLine("an event without a type")
    if not isinstance(data, dict):
        raise BadLine("an event whose data is not an object")
    seq, time = value.get("seq"), value.get("time")
    return build(
        kind,
        ordinal,
        data,
        seq=value.get("seq0") if seq is None else seq,
        time=value.get("time0") if time is None else time,
        operation=value.get("surfaceOp", msgspec.UNSET),
        sources=value.get("sourceEventSeqs", msgspec.UNSET),
        ignorable=value.get("ignorable") is True,
    )


def _decode_object(line: bytes) -> dict[str, Any]:
    """Decode a line of good text to an object with safe strings and numbers, or raise `BadLine`."""
    try:
        value = _ANYTHING.decode(line)
        safe = b"\\u0000" not in line
    except msgspec.DecodeError:
        value, safe = _decode_leniently(line), False
    if not isinstance(value, dict):
        raise BadLine("not a JSON object")
    if safe:
        if _LONG_NUMBER in line.translate(_DIGITS):  # hardly ever, and looking costs a twelfth of the walk
            _bound_numbers(value)
        return value
    return _made_safe(value)  # type: ignore[no-any-return]


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


def _refuse_broken_text(line: bytes) -> None:
    if not line.isascii() and not _is_utf8(line):
        raise BadLine("not UTF-8")
    if _is_deep(line):
        raise BadLine(f"nested deeper than {MAX_DEPTH} levels")


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_deep(line: bytes) -> bool:
    """Say whether brackets outside strings nest too deep; `RecursionError` would depend on the caller's stack."""
    if _openers(line) <= MAX_DEPTH:
        return False
    depth = 0
    for byte in _STRING.sub(b"", line).translate(None, _NO_BRACKETS):
        depth += 1 if byte in b"{[" else -1
        if depth > MAX_DEPTH:
            return True
    return False


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


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _cwd(line: bytes) -> tuple[str | None, str | None]:
    """Return the header's cwd as the exact string, or None with the reason: safe text never feeds a seal."""
    value = json.loads(line.decode(), parse_int=float, parse_constant=float).get("cwd")
    if value is None:
        return None, "the header has no cwd"
    if not isinstance(value, str):
        return None, "the header's cwd is not text"
    if not value:
        return None, "the header's cwd is empty"
    if _UNSAFE.search(value):
        return None, "the header's cwd holds a lone surrogate or NUL"
    return value, None
