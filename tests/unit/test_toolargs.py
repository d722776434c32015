"""The arguments of the tools: what the schemas refuse, and which instants a timestamp bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiongraph_web import toolargs
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.toolschemas import SESSION_TOOLS, TOOLS, in_workspace


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("session_search", {}, 'missing required property "query"'),
        ("session_search", {"query": 1}, '"query" must be a string'),
        ("session_search", {"query": None}, '"query" must be a string'),
        (
            "session_search",
            {"query": "q", "include_root_sessions": 1},
            '"include_root_sessions" must be a boolean',
        ),
        ("session_search", {"query": "q", "session_ids": "s"}, '"session_ids" must be an array'),
        ("session_search", {"query": "q", "session_ids": ["s", 2]}, '"session_ids[1]" must be a string'),
        ("session_event_read", {"seq": True}, '"seq" must be an integer'),
        ("session_event_read", {"seq": 1.5}, '"seq" must be an integer'),
        ("session_event_read", {"before": "1"}, 'missing required property "seq"; "before" must be an integer'),
        (
            "sessiongraph",
            {"operation": "drop"},
            '"operation" must be one of ["search","session","timeline","workspaces","status"]',
        ),
        ("session_trace", ["session_id"], "arguments must be an object"),
        ("session_trace", None, "arguments must be an object"),
    ],
)
def test_the_schema_comes_first(name: str, arguments: Any, problem: str) -> None:
    """Every breach of the schema is named at once, in one sentence."""
    with pytest.raises(SessionGraphError) as raised:
        toolargs.check(TOOLS[name], arguments)
    assert (raised.value.code, raised.value.detail) == ("INVALID_ARGS", f"invalid arguments: {problem}")


def test_whole_floats_are_integers_and_unknown_arguments_are_ignored() -> None:
    """As in JavaScript, 2.0 is 2; what the schema does not name is not looked at."""
    given_ = toolargs.check(TOOLS["session_event_read"], {"seq": 2.0, "cwd": "/w/b"})
    assert toolargs.whole(given_, "seq") == 2


@pytest.mark.parametrize("value", [-1, 2**53, 1e300, float("nan"), float("inf")])
def test_a_seq_is_a_non_negative_safe_integer(value: Any) -> None:
    """Anything else is refused by name."""
    with pytest.raises(SessionGraphError, match="seq must be a non-negative safe integer"):
        toolargs.whole({"seq": value}, "seq")


_MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))


@settings(max_examples=200)
@given(_MOMENTS, st.integers(-23 * 60 - 59, 23 * 60 + 59), st.booleans())
def test_timestamps_agree_with_the_calendar(moment: datetime, minutes: int, with_fraction: bool) -> None:
    """A lower bound is the first whole millisecond not before the moment, an upper one the last not behind it."""
    zone = timezone(timedelta(minutes=minutes))
    text = moment.replace(tzinfo=zone).isoformat(timespec="microseconds" if with_fraction else "seconds")
    exact = moment if with_fraction else moment.replace(microsecond=0)
    microseconds = (exact.replace(tzinfo=zone) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    first, last = toolargs.times({"time_from": text, "time_to": text}, "time")
    assert (first, last) == (-(-microseconds // 1000), microseconds // 1000)


@pytest.mark.parametrize(
    ("text", "millis"),
    [("0000-01-01T00:00Z", -62_167_219_200_000), ("0000-02-29T00:00:00Z", -62_162_121_600_000)],
)
def test_the_year_zero_exists(text: str, millis: int) -> None:
    """Years from 0000 on are read, though no calendar here has that one."""
    assert toolargs.times({"time_from": text}, "time") == (millis, None)


def test_a_range_finer_than_a_millisecond_is_compared_exactly() -> None:
    """`.1239` comes after `.1231`, whatever both round to."""
    early, late = "2026-01-01T00:00:00.1231Z", "2026-01-01T00:00:00.1239Z"
    toolargs.times({"time_from": early, "time_to": late}, "time")
    with pytest.raises(SessionGraphError, match="session time range from must be less than or equal to to"):
        toolargs.times({"time_from": late, "time_to": early}, "time")


def test_a_client_of_one_workspace_names_its_sessions() -> None:
    """Bound to a workspace, a tool asks which session is meant, names no workspace, and indexes nothing."""
    tools = {tool.name: tool for tool in in_workspace()}
    assert tools.keys() == {tool.name for tool in SESSION_TOOLS} | {"sessiongraph"}
    assert [name for name, tool in tools.items() if "session_id" in tool.required] == [
        "session_event_search",
        "session_trace",
        "session_event_trace",
        "session_event_read",
    ]
    assert not any("workspace" in tool.properties for tool in tools.values())
    assert all(tool.is_reader for tool in tools.values())
