"""The recorded answers of the original family for reading: texts, surface, traces, lineage, closers, validation.

The events of the cases have the shape of generation 0; they are read as lines of a log, so that one decoder and
one fold are tested for all. Where the design differs, the case asserts the difference (`DIFFERENCES`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from sessiongraph_web import documents, lines, logs, tracing
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.models import Event, Fault, Header, Replace
from sessiongraph_web.repair import OpenTurn
from sessiongraph_web.surface import Fold, classify
from tests.builders import Log
from tests.shared import recorded_cases

pytestmark = pytest.mark.shared

FILES: Final = (
    "extraction",
    "surface_fold",
    "event_trace",
    "session_lineage",
    "interrupted_closers",
    "session_validation",
)
DIFFERENCES: Final = {
    "extract": "an assistant entry is its text blocks only, since calls are entries of their own; "
    "injected user messages are no entries; titles are",
    "read_session_validation": "the original refuses a whole log for one odd event; here every unit that can be "
    "read is, and what cannot is a reported fault",
}
# Cases that cannot hold here, by name, with the reason.
SKIPPED: Final[dict[str, str]] = {}


@pytest.mark.parametrize("case", recorded_cases(FILES))
def test_recorded_case(case: dict[str, Any], store: Path) -> None:
    """The product answers a recorded case as the original did, or differs as the design says."""
    if case["name"] in SKIPPED:
        pytest.skip(SKIPPED[case["name"]])
    given, expected = _plain(case["input"]), _plain(case["expected"])
    answer = OPERATIONS[given["op"]]
    if given["op"] in ("read_session_validation", "extract", "search_documents"):
        answer(given, expected, store)
    elif "error" in expected:
        with pytest.raises(SessionGraphError) as raised:
            answer(given)
        error = expected["error"]
        if "code" in error:
            assert raised.value.code == error["code"]
            assert raised.value.detail == error["message"].replace("NaN", "nan")
        else:  # the fold's own sentence, which the original throws bare
            assert raised.value.detail == f"invalid session surface: {error['message']}"
    else:
        assert answer(given) == expected["ok"]


def test_every_file_of_cases_is_driven(shared: Path) -> None:
    """Each file this adapter names exists and holds only operations that it knows."""
    for name in FILES:
        cases = json.loads((shared / "vectors/cases" / f"{name}.json").read_text("utf-8"))
        assert {case["input"]["op"] for case in cases} <= set(OPERATIONS)


def _plain(value: Any) -> Any:
    """Return a case's value as JSON can hold it: no undefined keys, null for what JSON lacks."""
    if isinstance(value, dict):
        if "$special" in value:
            return -0.0 if value["$special"] == "-0" else float("nan") if value["$special"] == "NaN" else None
        if "$fill" in value:
            return [_plain(value["$fill"][0])] * value["$fill"][1]
        if "$repeat" in value:
            text, count, *tail = value["$repeat"]
            return text * count + "".join(tail)
        return {key: _plain(item) for key, item in value.items() if item != {"$special": "undefined"}}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _events(given: list[dict[str, Any]]) -> list[Event]:
    return [lines.decode_event(_line(event), ordinal, narrow=False) for ordinal, event in enumerate(given)]


def _line(event: dict[str, Any]) -> bytes:
    return json.dumps(event).replace("NaN", "null").encode()


def _fold(given: dict[str, Any]) -> tuple[Fold, list[dict[str, Any]], set[int]]:
    fold, replacements, shadowed = Fold(), [], set()
    for event in _events(given["events"]):
        change = fold.push(event)
        if isinstance(event.surface_op, Replace) and change.added:
            seqs = [node.seq for node in change.shadowed]
            bounds = {"start": event.surface_op.start, "end": event.surface_op.end}
            replacements.append({"seq": event.seq, **bounds, "shadowedSeqs": seqs})
            shadowed |= {node.ordinal for node in change.shadowed}
    if fold.fault is not None:
        raise SessionGraphError("SESSION_QUERY_INVALID_SURFACE", f"invalid session surface: {fold.fault}")
    return fold, replacements, shadowed


def _fold_surface(given: dict[str, Any]) -> dict[str, Any]:
    fold, replacements, _ = _fold(given)
    return {"nodes": [node.seq for node in fold.nodes], "replacements": replacements}


def _event_records(given: dict[str, Any]) -> list[dict[str, Any]]:
    _, _, shadowed = _fold(given)
    return [_record(event, given["sessionId"], shadowed) for event in _events(given["events"])]


def _record(event: Event, session_id: str, shadowed: set[int]) -> dict[str, Any]:
    surface = classify(event.type, event.ordinal, shadowed=shadowed, fault_ordinal=None)
    return {"sessionId": session_id, "seq": event.seq, "type": event.type, "time": event.time, "surface": surface}


def _extract(given: dict[str, Any], expected: dict[str, Any], _: Path) -> None:
    event = lines.decode_event(_line(given["event"]), 0, narrow=False)
    text = _original_text(event)
    clipped = any(text.clipped for text in documents.extract(event, tool_result_chars=-1))
    assert expected["ok"].startswith(text) if clipped else text == expected["ok"]


def _search_documents(given: dict[str, Any], expected: dict[str, Any], _: Path) -> None:
    _, _, shadowed = _fold(given)
    found = []
    for event in _events(given["events"]):
        text = _original_text(event)
        if text:
            found.append({**_record(event, given["sessionId"], shadowed), "text": text})
    assert found == expected["ok"]


def _original_text(event: Event) -> str:
    """Return the text the original indexes, and assert how ours differs from it."""
    texts = documents.extract(event, tool_result_chars=-1)
    if event.type == "user/message":
        whole = documents.blocks_text(event.data.get("content"))
        human = documents.is_human(event)
        assert [text.text for text in texts] == ([whole] if human and whole else [])
        return whole
    if event.type == "assistant/message":
        content = event.data["message"]["content"]
        said = documents.blocks_text([block for block in content if block["type"] == "text"])
        assert [text.text for text in texts] == ([said] if said else [])
        return documents.blocks_text(content)
    if event.type == "session/title":
        assert [text.kind for text in texts] == ["title"]
        return ""
    assert len(texts) <= 1
    return texts[0].text if texts else ""


def _trace_event(given: dict[str, Any]) -> dict[str, Any]:
    found = tracing.event_trace(_events(given["events"]), given["seq"], session_id=given["sessionId"])
    target = _record(found.target, given["sessionId"], set()) | {"surface": found.surface}
    replaced = {} if found.replaced_by is None else {"replacedBy": found.replaced_by}
    return {
        "target": target,
        **replaced,
        "replacementChain": found.replacement_chain,
        "replacedEventSeqs": found.replaced_event_seqs,
        "sourceEventSeqs": found.source_event_seqs,
        "derivedEventSeqs": found.derived_event_seqs,
    }


def _trace_session(given: dict[str, Any]) -> dict[str, Any]:
    records = [
        tracing.Record(r["header"]["id"], r["header"].get("parentSession"), r["header"]["createdAt"], r)
        for r in given["records"]
    ]
    found = tracing.lineage(records, given["sessionId"])
    answer = {
        "target": found.target,
        "ancestors": found.ancestors,
        "descendants": [_branch(branch) for branch in found.descendants],
        "complete": found.complete,
    }
    if found.complete:
        return answer | {"root": found.root}
    return answer | {"unresolvedParentId": found.unresolved_parent}


def _branch(branch: tracing.Branch[Any]) -> dict[str, Any]:
    return {"session": branch.value, "descendants": [_branch(below) for below in branch.descendants]}


def _interrupted_closers(given: dict[str, Any]) -> list[dict[str, Any]]:
    open_turn, events = OpenTurn(), _events(given["events"])
    for event in events:
        open_turn.push(event)
    last = events[-1] if events else None
    seq, time = ((last.seq or 0) + 1, last.time) if last else (0, None)
    return [_as_generation_0(made) for made in open_turn.closers(ordinal=len(events), seq=seq, time=time)]


def _as_generation_0(event: Event) -> dict[str, Any]:
    assert event.synthetic
    data = dict(event.data)
    if event.type == "tool/result":
        message = dict(data["message"])
        block = {"type": "tool-result"} | {key: message.pop(key) for key in ("toolCallId", "isError", "content")}
        data["message"] = message | {"role": "user", "content": [block]}
    made = {"type": event.type, "seq": event.seq, "time": event.time, "data": data}
    if event.surface_op:
        made["surfaceOp"] = event.surface_op
    if event.source_event_seqs is not None:
        made["sourceEventSeqs"] = event.source_event_seqs
    return made


def _validation(given: dict[str, Any], expected: dict[str, Any], store: Path) -> None:
    """A log that the original accepts has no fault; of one it refuses, each line is an event or a fault."""
    path = Log.verbatim({"type": "session", **given["header"]}, given["events"]).write(store)
    units = list(logs.read(path))
    faults = [unit.code for unit in units if isinstance(unit, Fault)]
    events = [unit for unit in units if isinstance(unit, Event)]
    assert sum(isinstance(unit, Header) for unit in units) + faults.count("bad_header") == 1
    if "ok" in expected:
        assert faults == []
        assert len(events) == len(given["events"])
        return
    assert len(events) + faults.count("bad_line") == len(given["events"])
    if "must be contiguous" in expected["error"]["message"]:
        assert set(faults) & {"seq_gap", "seq_repeated"}


OPERATIONS: Final[dict[str, Any]] = {
    "extract": _extract,
    "search_documents": _search_documents,
    "fold_surface": _fold_surface,
    "event_records": _event_records,
    "trace_event": _trace_event,
    "trace_session": _trace_session,
    "interrupted_closers": _interrupted_closers,
    "read_session_validation": _validation,
}
