"""Text parameters of a request, read as values of a type; what cannot be read is an error that names it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from sessiongraph_web.errors import SessionGraphError, invalid_parameter
from sessiongraph_web.language import sentence

MAX_VALUES: Final = 500  # of one parameter
MAX_SHOWN_NAME: Final = 64  # of an unknown parameter, in characters

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})
_MOMENT: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.(\d{1,9}))?(Z|[+\- ]\d{2}:?\d{2})", re.ASCII
)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_WHOLE: Final = re.compile(r"-?\d{1,19}", re.ASCII)
_MAX_WHOLE: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a request was given, by name. A blank value counts as none, as forms send it for an empty field."""

    values: Mapping[str, Sequence[str]]

    def only(self, known: Collection[str]) -> None:
        """Refuse any name that is not known."""
        for name in self.values:
            if name not in known:
                shown = name[:MAX_SHOWN_NAME].encode(errors="replace").decode()
                raise invalid_parameter(
                    shown, "`%(parameter)s` is unknown here; known are %(known)s", known=", ".join(known)
                )

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the different values, in the order given, exactly as written."""
        values = tuple(dict.fromkeys(value for value in self.values.get(name, ()) if value))
        if len(values) > MAX_VALUES:
            raise invalid_parameter(name, "`%(parameter)s` has more than %(maximum)s values", maximum=MAX_VALUES)
        if not all(map(is_unicode, values)):
            raise invalid_parameter(name, "`%(parameter)s` is not valid Unicode")
        return values

    def words(self, name: str, allowed: Collection[str] | None = None) -> tuple[str, ...]:
        """Return values that may also be separated by commas."""
        split = [word.strip() for value in self.values.get(name, ()) for word in value.split(",")]
        words = Parameters({name: split}).texts(name)
        for word in words:
            if allowed is not None and word not in allowed:
                raise invalid_parameter(
                    name, "`%(parameter)s` must be among %(allowed)s", allowed=", ".join(allowed)
                )
        return words

    def text(self, name: str) -> str | None:
        """Return the one value; several that differ are an error."""
        values = tuple(dict.fromkeys(value for value in self.values.get(name, ()) if value))
        if len(values) > 1:
            raise invalid_parameter(name, "`%(parameter)s` is given more than once, with different values")
        return values[0] if values else None

    def choice(self, name: str, allowed: Sequence[str]) -> Any:
        """Return one of the allowed values, the first where none is given."""
        value = self.text(name)
        if value is None:
            return allowed[0]
        if value not in allowed:
            raise invalid_parameter(
                name, "`%(parameter)s` must be one of %(allowed)s", allowed=", ".join(allowed)
            )
        return value

    def flag(self, name: str) -> bool | None:
        """Return true, false, or None where it is not given."""
        value = self.text(name)
        if value is None:
            return None
        if value.lower() not in _TRUE | _FALSE:
            raise invalid_parameter(name, "`%(parameter)s` must be 1 or 0")
        return value.lower() in _TRUE

    def whole(self, name: str) -> int | None:
        """Return a whole number from 0 to 2^63 - 1."""
        value = self.text(name)
        if value is None:
            return None
        number = _whole(value)
        if number is None or not 0 <= number <= _MAX_WHOLE:
            raise invalid_parameter(name, "`%(parameter)s` must be a whole number, not negative")
        return number

    def limit(self, default: int, maximum: int) -> int:
        """Return `limit`; what is not from 1 to `maximum` is SESSION_QUERY_INVALID_LIMIT."""
        value = self.text("limit")
        number = default if value is None else _whole(value)
        if number is None or not 1 <= number <= maximum:
            raise SessionGraphError(
                "SESSION_QUERY_INVALID_LIMIT",
                sentence("`limit` must be a whole number from 1 to %(maximum)s", maximum=maximum),
                parameter="limit",
                maximum=maximum,
            )
        return number

    def window(self, name: str, maximum: int) -> int:
        """Return a number of neighbours; what is not from 0 to `maximum` is SESSION_QUERY_INVALID_WINDOW."""
        value = self.text(name)
        number = 0 if value is None else _whole(value)
        if number is None or not 0 <= number <= maximum:
            raise SessionGraphError(
                "SESSION_QUERY_INVALID_WINDOW",
                sentence(
                    "`%(parameter)s` must be a whole number from 0 to %(maximum)s",
                    parameter=name,
                    maximum=maximum,
                ),
                parameter=name,
                maximum=maximum,
            )
        return number

    def zone(self) -> str:
        """Return the name of the time zone in `tz`, UTC where none is given."""
        name = self.text("tz")
        if name is None:
            return "UTC"
        try:
            return ZoneInfo(name).key
        except (ValueError, OSError, KeyError) as error:
            raise invalid_parameter(
                "tz", "`%(parameter)s` must be the name of a time zone, such as Asia/Shanghai"
            ) from error

    def day(self, name: str) -> str | None:
        """Return a day as `YYYY-MM-DD`."""
        value = self.text(name)
        if value is not None and _date(value) is None:
            raise invalid_parameter(name, "`%(parameter)s` must be a day, as in 2026-11-30")
        return value

    def moment(self, name: str, zone: str, *, is_end: bool = False) -> int | None:
        """Return a time in Unix milliseconds; a day means its first millisecond in the zone, or its last."""
        value = self.text(name)
        if value is None:
            return None
        try:
            day = _date(value)
            if day is not None:
                return _end_of_day(day, ZoneInfo(zone)) if is_end else _start_of_day(day, ZoneInfo(zone))
            return _moment(value, is_end=is_end)
        except (ValueError, OverflowError) as error:
            raise invalid_parameter(
                name,
                "`%(parameter)s` must be a time with its offset, as in 2026-11-30T08:00:00Z,"
                " or a day, as in 2026-11-30",
            ) from error


def is_unicode(text: str) -> bool:
    """Say whether a text has no lone surrogate: those arrive by URL decoding and can be stored nowhere."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def in_order(first_name: str, first: int | None, last_name: str, last: int | None) -> None:
    """Refuse a range whose beginning lies after its end."""
    if first is not None and last is not None and first > last:
        raise invalid_parameter(first_name, "`%(parameter)s` must not be after `%(last)s`", last=last_name)


def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def _moment(text: str, *, is_end: bool) -> int:
    """Read a time with an offset; what is finer than a millisecond is rounded into the range it bounds."""
    found = _MOMENT.fullmatch(text)
    if not found:
        raise ValueError(text)
    day, clock, fraction, offset = found.groups()
    offset = offset.replace(" ", "+")  # a plus sign that was not escaped in the URL
    seconds = datetime.fromisoformat(f"{day}T{clock}{offset}") - _EPOCH
    digits = (fraction or "").ljust(9, "0")
    up = 0 if is_end or not digits[3:].strip("0") else 1
    return seconds // _MILLISECOND + int(digits[:3]) + up


def _start_of_day(day: date, zone: tzinfo) -> int:
    return (datetime(day.year, day.month, day.day, tzinfo=zone) - _EPOCH) // _MILLISECOND


def _end_of_day(day: date, zone: tzinfo) -> int:
    if day == date.max:
        return _start_of_day(day, zone) + _DAY_MS - 1
    return _start_of_day(day + timedelta(days=1), zone) - 1
