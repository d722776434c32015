"""The arguments of the model tools: the check against their schemas, and the filters they spell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any, Final

from sessiongraph_web import literal
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.parameters import MAX_VALUES
from sessiongraph_web.toolschemas import Schema, Tool

MAX_SAFE: Final = 2**53 - 1
DAYS_BEFORE_1970: Final = date(1970, 1, 1).toordinal()
DAYS_IN_400_YEARS: Final = 146_097
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)

Arguments = Mapping[str, Any]


def check(tool: Tool, given: object) -> Arguments:
    """Return the arguments if the tool's schema allows them, else raise INVALID_ARGS with all that is wrong."""
    if not isinstance(given, Mapping):
        raise _bad(["arguments must be an object"])
    missing = [f'missing required property "{name}"' for name in tool.required if name not in given]
    wrong = [problem for name in tool.properties if name in given for problem in _wrong(tool, name, given[name])]
    if missing or wrong:
        raise _bad(missing + wrong)
    return given


def _bad(problems: list[str]) -> SessionGraphError:
    detail = f"invalid arguments: {'; '.join(problems)}"
    return SessionGraphError("INVALID_ARGS", detail)


def _wrong(tool: Tool, name: str, value: object) -> Iterator[str]:
    schema = tool.properties[name]
    if schema["type"] != "array":
        yield from _wrong_value(name, schema, value)
    elif not isinstance(value, list):
        yield f'"{name}" must be an array'
    else:
        for position, item in enumerate(value):
            yield from _wrong_value(f"{name}[{position}]", schema["items"], item)


def _wrong_value(name: str, schema: Schema, value: object) -> Iterator[str]:
    article, is_right = _TYPES[schema["type"]]
    if not is_right(value):
        yield f'"{name}" must be {article} {schema["type"]}'
    elif "enum" in schema and value not in schema["enum"]:
        yield f'"{name}" must be one of {json.dumps(schema["enum"], separators=(",", ":"))}'


def _is_integer(value: object) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


_TYPES: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "string": ("a", lambda value: isinstance(value, str)),
    "boolean": ("a", lambda value: isinstance(value, bool)),
    "integer": ("an", _is_integer),
}


def session_filters(given: Arguments) -> dict[str, Any]:
    """Return what a search asks of sessions, as fields of its request; the first that is wrong is refused."""
    sessions = chosen(given, "session_ids")
    created_after, created_before = times(given, "created_at")
    availability = chosen(given, "availability")
    return {
        "sessions": sessions,
        "created_after": created_after,
        "created_before": created_before,
        "live": True if availability == ("live",) else None,  # every session here is stored
    }


def event_filters(given: Arguments, prefix: str, surfaces: str) -> dict[str, Any]:
    """Return what a search asks of events, as fields of its request; the first that is wrong is refused."""
    seq_from, seq_to = sequence(given, prefix)
    after, before = times(given, "time", prefix)
    types = chosen(given, "event_types")
    return {
        "seq_from": seq_from,
        "seq_to": seq_to,
        "after": after,
        "before": before,
        "types": types,
        "surfaces": chosen(given, surfaces, "surfaces"),
    }


def query(given: Arguments) -> str:
    """Return the query with its white space collapsed."""
    text = literal.collapse(given["query"].strip(literal.SPACE))
    if not text:
        raise SessionGraphError(
            "SESSION_QUERY_INVALID_QUERY", "session-search query must contain non-whitespace text"
        )
    if "\0" in text:
        raise SessionGraphError("SESSION_QUERY_INVALID_QUERY", "session-search query must not contain NUL")
    return text


def chosen(given: Arguments, name: str, shown: str | None = None) -> tuple[str, ...]:
    """Return the distinct values of a list in their order; an empty list that was given is refused."""
    values = given.get(name)
    if values == []:
        raise rejected(f"{shown or name} must contain at least one value when supplied")
    if values and len(values) > MAX_VALUES:
        raise rejected(f"{shown or name} must contain at most {MAX_VALUES} values")
    return tuple(dict.fromkeys(values or ()))


def whole(given: Arguments, name: str, shown: str | None = None) -> int | None:
    """Return a number that may be the seq of an event, or a count of them."""
    value = given.get(name)
    if value is None:
        return None
    if not 0 <= value <= MAX_SAFE or value != int(value):
        raise rejected(f"{shown or name} must be a non-negative safe integer")
    return int(value)


def sequence(given: Arguments, prefix: str = "") -> tuple[int | None, int | None]:
    """Return the inclusive range of seqs."""
    first = whole(given, f"{prefix}seq_from", "sequence lower bound")
    last = whole(given, f"{prefix}seq_to", "sequence upper bound")
    if first is not None and last is not None and first > last:
        raise rejected("session sequence range from must be less than or equal to to")
    return first, last


def times(given: Arguments, name: str, prefix: str = "") -> tuple[int | None, int | None]:
    """Return the inclusive range of Unix milliseconds that two timestamps bound, however fine they are."""
    first, last = (
        _timestamp(text, f"{name}_{end}") if (text := given.get(f"{prefix}{name}_{end}")) is not None else None
        for end in ("from", "to")
    )
    if first and last and first > last:
        raise rejected(f"session {name} range from must be less than or equal to to")
    return first and first[0] + bool(first[1]), last and last[0]


def _timestamp(text: str, name: str) -> tuple[int, str]:
    """Read a timestamp as whole milliseconds and the digits behind them, which order as the fractions do."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        raise rejected(f"session {name} range must be an ISO 8601 timestamp with Z or a numeric offset")
    year, month, day, hour, minute, second = (int(digits or 0) for digits in found.groups()[:6])
    sign, hours, minutes = found[8], int(found[9] or 0), int(found[10] or 0)
    try:
        # No calendar here has a year 0; it is as long as the year 400.
        days = date(year or 400, month, day).toordinal() - (0 if year else DAYS_IN_400_YEARS) - DAYS_BEFORE_1970
        in_range = hour < 24 and minute < 60 and second < 60 and hours < 24 and minutes < 60
    except ValueError:
        in_range = False
    if not in_range:
        raise rejected(f"session {name} range must be a valid ISO 8601 timestamp")
    offset = (hours * 60 + minutes) * (-1 if sign == "-" else 1)
    digits = (found[7] or "").ljust(3, "0")
    seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second
    return seconds * 1000 + int(digits[:3]), digits[3:].rstrip("0")


def rejected(problem: str) -> SessionGraphError:
    """Return the refusal of an argument that has the right type and a wrong value."""
    return SessionGraphError("SESSION_QUERY_INVALID_FILTER", problem)
