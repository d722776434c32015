"""Requests: what text parameters become, and which parameter an error names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import config, filters
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import (
    EventRequest,
    ExportRequest,
    SearchRequest,
    SessionRequest,
    StatusRequest,
    TimelineRequest,
)
from sessiongraph_web.parameters import MAX_VALUES

SETTINGS = config.load({}, environ={}, home=Path("/nowhere"))
Given = Mapping[str, Sequence[str]]


def search(given: Given) -> SearchRequest:
    return filters.parse_search(given, SETTINGS)


def timeline(given: Given) -> TimelineRequest:
    return filters.parse_timeline(given, SETTINGS)


def status(given: Given) -> StatusRequest:
    return filters.parse_status(given, SETTINGS)


def session(given: Given) -> SessionRequest:
    return filters.parse_session("session-1", given, SETTINGS)


def event(given: Given) -> EventRequest:
    return filters.parse_event("session-1", given, SETTINGS)


def export(given: Given) -> ExportRequest:
    return filters.parse_export("session-1", given, SETTINGS)


PARSERS: list[Callable[[Given], Any]] = [search, timeline, status, session, event, export]


def refused(parse: Callable[[Given], Any], given: Given) -> tuple[str, object]:
    """Return the code of the error, and the parameter that it names."""
    with pytest.raises(SessionGraphError) as caught:
        parse(given)
    named = caught.value.fields.get("parameter")
    assert f"`{named}`" in caught.value.detail
    assert caught.value.meaning.status == 400
    return caught.value.code, named


def test_a_search_with_everything() -> None:
    """Every parameter of a search has its place in the request."""
    given = {
        "q": [" 广告 "],
        "match": ["phrase"],
        "sort": ["newest"],
        "group": ["none"],
        "limit": ["7"],
        "cursor": ["opaque"],
        "tz": ["Asia/Shanghai"],
        "kinds": ["user,tool_call", "todo"],
        "types": ["user/message, tool/call"],
        "surfaces": ["current", "shadowed,unknown"],
        "workspace": ["/w/a, b", "/w/c"],
        "tool": ["mcp,x"],
        "model": ["m1", "m2"],
        "session": ["s1", "s2", "s1"],
        "parent": ["p1"],
        "roots": ["1"],
        "live": ["0"],
        "inherited": ["true"],
        "after": ["2026-11-30"],
        "before": ["2026-11-30"],
        "created_after": ["2026-11-30T08:00:00+08:00"],
        "created_before": ["2026-11-30T00:00:00.5Z"],
        "seq_from": ["0"],
        "seq_to": ["9223372036854775807"],
    }
    assert set(given) == set(filters.SEARCH_PARAMETERS)
    assert search(given) == SearchRequest(
        query=" 广告 ",
        match="phrase",
        sort="newest",
        group="none",
        limit=7,
        cursor="opaque",
        zone="Asia/Shanghai",
        kinds=("user", "tool_call", "todo"),
        types=("user/message", "tool/call"),
        surfaces=("current", "shadowed", "unknown"),
        workspaces=("/w/a, b", "/w/c"),
        tools=("mcp,x",),
        models=("m1", "m2"),
        sessions=("s1", "s2"),
        parents=("p1",),
        roots=True,
        live=False,
        inherited=True,
        after=1795968000000,
        before=1796054399999,
        created_after=1795996800000,
        created_before=1795996800500,
        seq_from=0,
        seq_to=2**63 - 1,
    )


def test_nothing_given_is_the_default() -> None:
    """Without parameters, or with blank ones as forms send them, requests are the defaults."""
    for parse, names, default in (
        (search, filters.SEARCH_PARAMETERS, SearchRequest(query="")),
        (timeline, filters.TIMELINE_PARAMETERS, TimelineRequest()),
        (status, filters.STATUS_PARAMETERS, StatusRequest()),
        (session, filters.SESSION_PARAMETERS, SessionRequest(id="session-1")),
        (event, filters.EVENT_PARAMETERS, EventRequest(id="session-1")),
        (export, filters.EXPORT_PARAMETERS, ExportRequest(id="session-1")),
    ):
        assert parse({}) == default
        assert parse({name: ["", ""] for name in names}) == default


def test_the_other_requests_with_everything() -> None:
    """Every parameter of the other operations has its place."""
    assert session(
        {"log": ["5"], "ordinal": ["1"], "seq": ["2"], "time": ["2026-11-30"], "last": ["1"], "limit": ["50"]}
        | {"redact": ["yes"]}
    ) == SessionRequest(
        id="session-1", log_id=5, ordinal=1, seq=2, time=1795996800000, last=True, limit=50, redact=True
    )
    assert event(
        {"log": ["5"], "seq": ["2"], "ordinal": ["1"], "before": ["50"], "after": ["0"], "redact": ["1"]}
    ) == EventRequest(id="session-1", log_id=5, seq=2, ordinal=1, before=50, after=0, redact=True)
    assert timeline(
        {
            "sort": ["activity"],
            "limit": ["1"],
            "cursor": ["c"],
            "tz": ["UTC"],
            "workspace": ["/w"],
            "model": ["m"],
        }
        | {"roots": ["1"], "after": ["2026-01-01"], "before": ["2026-01-02"], "day": ["2026-01-01"]}
    ) == TimelineRequest(
        sort="activity",
        limit=1,
        cursor="c",
        workspaces=("/w",),
        models=("m",),
        roots=True,
        after=1767225600000,
        before=1767398399999,
        day="2026-01-01",
    )
    assert status(
        {"state": ["partial,newer"], "ledger": ["on"], "offset": ["100"], "limit": ["10"]}
    ) == StatusRequest(states=("partial", "newer"), ledger=True, offset=100, limit=10)
    assert export({"log": ["5"], "descendants": ["1"], "redact": ["1"], "format": ["raw"]}) == ExportRequest(
        id="session-1", log_id=5, descendants=True, redact=True, format="raw"
    )


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("name", ["_search", "Q", "q[]", "x" * 5000, "\ud800", "\0", "", "day2", "__proto__"])
def test_an_unknown_parameter_is_named(parse: Callable[[Given], Any], name: str) -> None:
    """Nothing that was asked is silently ignored: an unknown name is a 400 that says which."""
    code, named = refused(parse, {name: ["1"]})
    assert code == "SESSION_QUERY_INVALID_FILTER"
    assert named == name[:64].replace("\ud800", "?")


@pytest.mark.parametrize(
    "name", ["q", "match", "sort", "group", "limit", "cursor", "tz", "roots", "live", "after"]
)
def test_one_value_given_twice_is_named(name: str) -> None:
    """A single value that comes twice with a difference is a 400; the same twice is once."""
    assert refused(search, {name: ["1", "2"]}) == ("SESSION_QUERY_INVALID_FILTER", name)
    assert search({"q": ["x", "x"]}).query == "x"


MALFORMED = [
    ("match", "regex"),
    ("sort", "Newest"),
    ("group", "workspace"),
    ("tz", "Nowhere/City"),
    ("tz", "../../etc/passwd"),
    ("tz", "/etc/localtime"),
    ("tz", "\0"),
    ("tz", "\ud800"),
    ("tz", "x" * 9000),
    ("tz", "America"),
    ("kinds", "user,spam"),
    ("kinds", "\ud800"),
    ("surfaces", "hidden"),
    ("types", "\udfff"),
    ("workspace", "/w/\ud800"),
    ("session", "\udfff"),
    ("roots", "maybe"),
    ("live", "2"),
    ("inherited", "\ud800"),
    ("after", "yesterday"),
    ("after", "2026-02-30"),
    ("after", "2026-W01-1"),
    ("after", "20261130"),
    ("after", "2026-11-30T08:00:00"),
    ("after", "2026-11-30T25:00:00Z"),
    ("after", "2026-11-30T08:00:00+99:00"),
    ("after", "0000-01-01"),
    ("after", "２０２６-11-30"),
    ("after", "1795996800000"),
    ("after", "2026-11-30\n"),
    ("before", "2026-11-30T08:00:00.Z"),
    ("created_before", "\ud800"),
    ("seq_from", "-1"),
    ("seq_from", "1.0"),
    ("seq_from", "1_000"),
    ("seq_from", "٣"),
    ("seq_to", "9223372036854775808"),
    ("seq_to", "1" * 5000),
    ("seq_to", " 1"),
]


@pytest.mark.parametrize(("name", "value"), MALFORMED)
def test_a_malformed_value_is_named(name: str, value: str) -> None:
    """What cannot be read as the parameter's type is a 400 that names the parameter."""
    assert refused(search, {name: [value]}) == ("SESSION_QUERY_INVALID_FILTER", name)


@pytest.mark.parametrize("value", ["0", "101", "-1", "1.5", "x", "٣", "\ud800", "1e1", "9" * 400])
def test_a_wrong_limit_has_a_code_of_its_own(value: str) -> None:
    """`limit` is a whole number from 1 to the setting's maximum."""
    assert refused(search, {"limit": [value]}) == ("SESSION_QUERY_INVALID_LIMIT", "limit")
    assert search({"limit": ["100"]}).limit == 100


@pytest.mark.parametrize("name", ["before", "after"])
@pytest.mark.parametrize("value", ["-1", "51", "all", "\ud800"])
def test_a_wrong_window_has_a_code_of_its_own(name: str, value: str) -> None:
    """Neighbours of an event are counted from 0 to the setting's maximum."""
    assert refused(event, {name: [value]}) == ("SESSION_QUERY_INVALID_WINDOW", name)


@pytest.mark.parametrize(
    ("first", "last", "values"),
    [
        ("after", "before", ("2026-01-02", "2026-01-01")),
        ("created_after", "created_before", ("2026-01-02", "2026-01-01")),
        ("seq_from", "seq_to", ("2", "1")),
    ],
)
def test_a_range_that_ends_before_it_begins_is_named(first: str, last: str, values: tuple[str, str]) -> None:
    """The beginning of a range must not lie after its end; both may be the same."""
    assert refused(search, {first: [values[0]], last: [values[1]]}) == ("SESSION_QUERY_INVALID_FILTER", first)
    search({first: [values[0]], last: [values[0]]})


def test_the_number_of_values_is_bounded() -> None:
    """500 different values are taken, repeated or comma separated; one more is a 400 that names the limit."""
    many = [f"s{n}" for n in range(MAX_VALUES)]
    assert search({"session": [*many, *many]}).sessions == tuple(many)
    assert refused(search, {"session": [*many, "more"]})[1] == "session"
    assert refused(search, {"types": [",".join([*many, "more"])]})[1] == "types"
    with pytest.raises(SessionGraphError, match="more than 500 values"):
        search({"workspace": [*many, "more"]})


MOMENTS = [
    ("after", "2026-03-29", "Europe/Berlin", 1774738800000),
    ("before", "2026-03-29", "Europe/Berlin", 1774821599999),
    ("after", "2026-10-25", "Europe/Berlin", 1792879200000),
    ("before", "2026-10-25", "Europe/Berlin", 1792969199999),
    ("after", "2018-11-04", "America/Sao_Paulo", 1541300400000),
    ("after", "2026-11-30", "UTC", 1795996800000),
    ("after", "1969-12-31", "UTC", -86400000),
    ("before", "9999-12-31", "UTC", 253402300799999),
    ("after", "0001-01-01", "UTC", -62135596800000),
    ("after", "2026-11-30T08:00Z", "Asia/Tokyo", 1796025600000),
    ("after", "2026-11-30 08:00:00 08:00", "UTC", 1795996800000),
    ("after", "2026-11-30T08:00:00+0800", "UTC", 1795996800000),
    ("after", "2026-11-30T08:00:00.0001Z", "UTC", 1796025600001),
    ("before", "2026-11-30T08:00:00.0009Z", "UTC", 1796025600000),
    ("after", "2026-11-30T08:00:00.123456789Z", "UTC", 1796025600124),
]


@pytest.mark.parametrize(("name", "value", "zone", "millis"), MOMENTS)
def test_moments(name: str, value: str, zone: str, millis: int) -> None:
    """A day is from its first to its last millisecond there; parts of a millisecond round into the range."""
    assert getattr(search({name: [value], "tz": [zone]}), name) == millis


@pytest.mark.parametrize("value", ["2026-02-29", "2026-1-1", "today", "2026-11-30T00:00:00Z", "\ud800"])
def test_a_day_is_a_date(value: str) -> None:
    """`day` of a timeline is a calendar day."""
    assert refused(timeline, {"day": [value]}) == ("SESSION_QUERY_INVALID_FILTER", "day")


@pytest.mark.parametrize("id_", ["\ud800", "session-\udfff", "a\0b"])
def test_an_id_that_no_header_can_hold_is_not_found(id_: str) -> None:
    """Such ids answer as any missing session does."""
    for parse in (filters.parse_session, filters.parse_event, filters.parse_export):
        with pytest.raises(SessionGraphError) as caught:
            parse(id_, {}, SETTINGS)
        assert caught.value.code == "SESSION_QUERY_SESSION_NOT_FOUND"


def test_surrogates_in_the_query_and_cursor_pass() -> None:
    """What is only compared or replaced later is left as it came."""
    assert search({"q": ["a\ud800"], "cursor": ["\ud800"]}) == SearchRequest(query="a\ud800", cursor="\ud800")


def test_limits_of_pages_follow_the_settings() -> None:
    """A lower maximum lowers the defaults of the pages that are longer."""
    small = config.load({"max_limit": 10, "default_limit": 5}, environ={}, home=Path("/nowhere"))
    assert filters.parse_search({}, small).limit == 5
    assert filters.parse_session("s", {}, small).limit == 10
    assert filters.parse_status({}, small).limit == 10
