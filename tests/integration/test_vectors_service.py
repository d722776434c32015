"""The recorded answers of the original service for exact reads, asked of the operations over a store on disk.

Sources that the product does not have (sessions in another process's memory, a storage that fails on demand) are
skipped by name; sessions recorded as live are written to the store like any others.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from sessiongraph_web import filters, lines
from sessiongraph_web.access import OWNER
from sessiongraph_web.answers import EventView, SessionSummary
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.models import Instant
from sessiongraph_web.operations import SessionGraph
from tests import products
from tests.builders import Log
from tests.shared import shared_folders

pytestmark = pytest.mark.shared

FILES: Final = ("read_event", "service_reads", "jsonl_reads")
ON_DEMAND: Final = "a storage that fails on demand: files that cannot be read are tested with files"
IN_MEMORY: Final = "a session in another process's memory: only what dsh has written can be seen"
SKIPPED: Final = {
    "corrupt persisted session": ON_DEMAND,
    "list failure leaves live reads working": ON_DEMAND,
    "no persistence mounted": ON_DEMAND,
    "listed header differs from loaded header": "one source has one header",
    "live seed without end marker gains one": IN_MEMORY,
    "listSessions order: newest first then locale id": "ids of one moment are in plain order here",
    "string seq": "a seq is a number in a path or an option, and text that spells one means it",
    "before string": "so is a number of neighbours",
}
# One odd line costs the original the whole session; here it costs itself and is reported.
READ_ALL_THE_SAME: Final = {
    "persisted invalid surface across reads",
    "corrupt committed line",
    "unknown required event type",
    "invalid surface in the stored log",
}
LISTED_ALL_THE_SAME: Final = {"created but never appended session is absent"}  # a header alone is a session too


def _cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}")
        for path in shared_folders("vectors/cases", "*.json")
        if path.stem in FILES
        for case in json.loads(path.read_text("utf-8"))
    ]


@pytest.mark.parametrize("case", _cases())
def test_recorded_case(case: dict[str, Any], shared: Path, store: Path, tmp_path: Path) -> None:
    """The product answers as the original did, or reads on where the original gave up."""
    if case["name"] in SKIPPED:
        pytest.skip(SKIPPED[case["name"]])
    given, expected = case["input"], case["expected"]
    _write(given, shared, store)
    steps = given.get("steps") or [given["step"]]
    answers = expected.get("steps", [expected])
    window = given.get("config", {}).get("readWindowMax", 50)
    with products.indexed(store, tmp_path / "index", read_window_max=window) as product:
        for step, answer in zip(steps, answers, strict=True):
            _check(product, case["name"], step, answer)


def test_every_skipped_case_exists(shared: Path) -> None:
    """No name is skipped or excused that is not recorded."""
    names = {
        case["name"]
        for name in FILES
        for case in json.loads((shared / "vectors/cases" / f"{name}.json").read_text("utf-8"))
    }
    assert {*SKIPPED, *READ_ALL_THE_SAME, *LISTED_ALL_THE_SAME} <= names


def _write(given: dict[str, Any], shared: Path, store: Path) -> None:
    if "fixture" in given:
        given = json.loads((shared / "vectors/fixtures" / given["fixture"]).read_text("utf-8")) | given
    sessions = [*given.get("sessions", ()), *given.get("persisted", ())]
    sessions += [
        {**session, "meta": {"id": session["id"], **session["meta"]}} for session in given.get("live", ())
    ]
    for session in {session["meta"]["id"]: session for session in sessions}.values():
        log = Log.verbatim({"type": "session", "version": 0, **session["meta"]}, session["events"])
        if given.get("appendRaw", {}).get("id") == log.id:
            log.raw(given["appendRaw"]["text"].encode())
        log.write(store, compressed=False)


def _check(product: SessionGraph, name: str, step: dict[str, Any], expected: dict[str, Any]) -> None:
    ask = STEPS[step["do"]]
    arguments = step["args"] if "args" in step else [step["request"]] if "request" in step else []
    if "error" not in expected:
        ask(product, expected["ok"], *arguments)
        return
    code = expected["error"].get("code")
    if name in READ_ALL_THE_SAME and not (step["do"] == "traceEvent" and code == "SESSION_QUERY_INVALID_SURFACE"):
        _check_readable(product, step)
        return
    with pytest.raises(SessionGraphError) as raised:
        ask(product, None, *arguments)
    assert raised.value.code == ("SESSION_QUERY_EVENT_NOT_FOUND" if name in LISTED_ALL_THE_SAME else code)


def _check_readable(product: SessionGraph, step: dict[str, Any]) -> None:
    """Where the original refuses a session, its other events are read and the fault is told."""
    (asked, *_) = step.get("args", ["s2"])
    session_id = asked["sessionId"] if isinstance(asked, dict) else asked
    page = products.read(product, session_id if isinstance(session_id, str) else session_id[0])
    unknown = [event for event in page.events if event.surface == "unknown"]
    foreign = [event for event in page.events if event.type == "zzz/new"]
    assert page.events
    assert page.damage or page.session.surface_fault or unknown or foreign


def _list_events(product: SessionGraph, expected: Any, session_id: str) -> None:
    shown = _events(product, session_id)
    found = [
        {"sessionId": session_id, "seq": e.seq, "type": e.type, "time": _ms(e.time), "surface": e.surface}
        for e in shown
    ]
    assert found == expected


def _read_surface(product: SessionGraph, expected: Any, session_id: str) -> None:
    shown = _events(product, session_id)
    current = {event.seq for event in shown if event.surface == "current"}
    assert current == {event["seq"] for event in expected["events"]}
    assert (shown[-1].seq if shown else None) == expected["capturedThroughSeq"]


def _read_session(product: SessionGraph, expected: Any, session_id: str) -> None:
    page = products.read(product, session_id)
    _same_header(page.session, expected["session"])
    assert list(map(_plain, page.events)) == list(map(_decoded, expected["events"]))


def _read_event(product: SessionGraph, expected: Any, request: dict[str, Any]) -> None:
    given = {name: "null" if value is None else value for name, value in request.items()}
    session_id, seq = given.pop("sessionId"), given.pop("seq")
    if isinstance(seq, float):
        given["ordinal"], seq = 10**9, 0  # a fraction is the number of no event
    page = products.event(product, session_id, seq=seq, **given)
    shown = [*page.before, page.target, *page.after]
    _same_header(page.session, expected["session"])
    assert _plain(page.target) == _decoded(expected["target"])
    assert list(map(_plain, shown)) == list(map(_decoded, expected["events"]))
    assert (shown[0].seq, shown[-1].seq) == (expected["startSeq"], expected["endSeq"])


def _trace_event(product: SessionGraph, expected: Any, request: dict[str, Any]) -> None:
    found = product.event_trace(OWNER, filters.EventRequest(id=request["sessionId"], seq=request["seq"]))
    assert found.replaced_by == expected.get("replacedBy")
    assert found.replacement_chain == expected["replacementChain"]
    assert found.replaced_event_seqs == expected["replacedEventSeqs"]
    assert found.source_event_seqs == expected["sourceEventSeqs"]
    assert found.derived_event_seqs == expected["derivedEventSeqs"]
    assert (found.type, found.surface) == (expected["target"]["type"], expected["target"]["surface"])


def _trace_session(product: SessionGraph, expected: Any, session_id: str) -> None:
    found = product.trace(OWNER, filters.SessionRequest(id=session_id))
    _same_header(found.session, expected["target"]["header"])
    assert [a.id for a in found.ancestors] == [a["header"]["id"] for a in expected["ancestors"]]
    assert found.complete == expected["complete"]
    assert [_tree(b.session.id if b.session else None, b.descendants) for b in found.descendants] == [
        _recorded_tree(branch) for branch in expected["descendants"]
    ]


def _tree(session_id: str | None, branches: Any) -> Any:
    return [session_id, [_tree(branch.session.id, branch.descendants) for branch in branches]]


def _recorded_tree(branch: Any) -> Any:
    return [branch["session"]["header"]["id"], [_recorded_tree(below) for below in branch["descendants"]]]


def _read_title(product: SessionGraph, expected: Any, session_id: str) -> None:
    title = products.read(product, session_id).session.title
    if expected is not None and "title" in expected:
        assert title == expected["title"]
    else:  # the original says nothing; here the first prompt stands in
        assert title


def _read_title_snapshot(product: SessionGraph, expected: Any, session_id: str) -> None:
    _same_header(products.read(product, session_id).session, expected["session"])
    _read_title(product, expected.get("title"), session_id)


def _read_title_snapshots(product: SessionGraph, expected: Any, session_ids: list[str]) -> None:
    assert [each["sessionId"] for each in expected] == list(dict.fromkeys(session_ids))
    for each in expected:
        if each["status"] == "fulfilled":
            _read_title_snapshot(product, each["value"], each["sessionId"])
        elif each["reason"]["error"]["code"] == "SESSION_QUERY_SESSION_NOT_FOUND":
            with pytest.raises(SessionGraphError) as raised:
                products.read(product, each["sessionId"])
            assert raised.value.code == "SESSION_QUERY_SESSION_NOT_FOUND"
        else:
            _check_readable(product, {"args": [each["sessionId"]]})


def _filter_events(product: SessionGraph, expected: Any, session_id: str, clauses: list[dict[str, Any]]) -> None:
    summary = products.read(product, session_id).session
    texts = [clause["text"] for clause in clauses if clause["kind"] == "text"]
    kinds = "user,assistant,tool_call,tool_result,todo,turn_end"
    page = products.find(product, texts[0], match="text", group="none", kinds=kinds, session=summary.id)
    assert {hit.seq for hit in page.entries} == {event["seq"] for event in expected}


def _search_sessions(product: SessionGraph, expected: Any, request: dict[str, Any]) -> None:
    kinds = "user,assistant,tool_call,tool_result,todo,turn_end"
    page = products.find(product, request["query"], match="phrase", kinds=kinds)
    assert [hit.session.id for hit in page.sessions] == [item["header"]["id"] for item in expected["items"]]


def _search_events(product: SessionGraph, expected: Any, request: dict[str, Any]) -> None:
    kinds = "user,assistant,tool_call,tool_result,todo,turn_end"
    given = {"match": "phrase", "kinds": kinds, "group": "none", "session": request["sessionId"]}
    page = products.find(product, request["query"], **given)
    shown = [{"seq": hit.seq, "type": hit.type, "surface": hit.surface} for hit in page.entries]
    assert shown == [{name: item[name] for name in ("seq", "type", "surface")} for item in expected["items"]]


def _list_sessions(product: SessionGraph, expected: Any) -> None:
    listed = [session.id for session in products.timeline(product).sessions if session.events]
    assert listed == [record["header"]["id"] for record in expected]


STEPS: Final[dict[str, Callable[..., None]]] = {
    "listEvents": _list_events,
    "readSurface": _read_surface,
    "readSession": _read_session,
    "readEvent": _read_event,
    "traceEvent": _trace_event,
    "traceSession": _trace_session,
    "readTitle": _read_title,
    "readTitleSnapshot": _read_title_snapshot,
    "readTitleSnapshots": _read_title_snapshots,
    "filterEvents": _filter_events,
    "searchSessions": _search_sessions,
    "searchEvents": _search_events,
    "listSessions": _list_sessions,
}


def _events(product: SessionGraph, session_id: str) -> list[EventView]:
    return products.read(product, session_id, limit=100).events


def _plain(event: EventView) -> dict[str, Any]:
    return {"type": event.type, "seq": event.seq, "time": _ms(event.time), "data": event.data}


def _decoded(event: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded event in the shape of the newest generation, as every reading gives it."""
    made = lines.decode_event(json.dumps(event).encode(), 0, narrow=False)
    return {"type": made.type, "seq": made.seq, "time": made.time, "data": made.data}


def _ms(moment: Instant | None) -> int | None:
    return moment.ms if moment else None


def _same_header(summary: SessionSummary, header: dict[str, Any]) -> None:
    names = {"version": "version", "id": "id", "createdAt": "created_at", "cwd": "cwd"}
    names |= {"parentSession": "parent_session", "delegationDepth": "delegation_depth"}
    for recorded, ours in names.items():
        value = getattr(summary, ours)
        plain = value.ms if isinstance(value, Instant) else value
        assert (plain or None) == (header.get(recorded) or None), recorded
