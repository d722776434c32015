"""The recorded answers of the original family for its model tools: argument checks, layouts, refusals.

Fixtures become a store that is indexed; what a case makes the original's services answer is put in place of the
operation that does their work here. Expected texts differ in two ways that hold for every case: a session without
a title goes by its first prompt, and one that runs is stored as well.
"""

from __future__ import annotations

import fcntl
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from sessiongraph_web import access, agents, config, indexer, toolargs, tooltext
from sessiongraph_web.access import Caller
from sessiongraph_web.agents import Agent
from sessiongraph_web.answers import (
    Branch,
    EventView,
    Hit,
    IndexNote,
    Lineage,
    SearchPage,
    SessionHit,
    SessionSummary,
    Snippet,
    instant,
)
from sessiongraph_web.errors import CODES, SessionGraphError, not_found
from sessiongraph_web.filters import TimelineRequest
from sessiongraph_web.lines import decode_event
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.tools import Toolbox
from sessiongraph_web.toolschemas import SESSION_TOOLS
from tests import answered
from tests.builders import Log
from tests.shared import recorded_cases

pytestmark = pytest.mark.shared

FILES: Final = ("tools", "tools_overrides", "tool_input")
SKIPPED_OPERATIONS: Final = {
    "present_call": "call cards are drawn by the harness; a client of MCP draws its own",
    "title_fold": "a title is text here, without its source; documents are tested for which one counts",
}
SKIPPED_OVERRIDES: Final = {
    "readTitleSnapshots": "titles come with the session: there is no second read that could fail",
}
SKIPPED: Final = {
    "session_event_search: time outside Date range": "any integer is a moment here",
}
_TYPED: Final = "the schema refuses a value of another type before it is read"


@pytest.mark.parametrize("case", recorded_cases(FILES))
def test_recorded_case(case: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, shared: Path) -> None:
    """The product answers a recorded case as the original did."""
    given = case["input"]
    reasons = [SKIPPED.get(case["name"]), SKIPPED_OPERATIONS.get(given["op"])]
    reasons += [SKIPPED_OVERRIDES.get(method) for method in given.get("overrides", ())]
    for reason in filter(None, reasons):
        pytest.skip(reason)
    OPERATIONS[given["op"]](given, case["expected"], shared, tmp_path_factory)


def test_every_file_of_cases_is_driven(shared: Path) -> None:
    """Each file this adapter names exists and holds only operations that it knows."""
    operations = set()
    for name in FILES:
        cases = json.loads((shared / "vectors/cases" / f"{name}.json").read_text("utf-8"))
        operations |= {case["input"]["op"] for case in cases}
    assert operations <= OPERATIONS.keys() | SKIPPED_OPERATIONS.keys()


def _plain(value: Any) -> Any:
    """Return a recorded value as Python has it: no undefined keys, numbers that JSON lacks as such."""
    if isinstance(value, dict):
        if "$special" in value:
            return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "-0": -0.0}[value["$special"]]
        if "$fill" in value:
            return [_plain(value["$fill"][0])] * value["$fill"][1]
        if "$repeat" in value:
            text, count, *tail = value["$repeat"]
            return text * count + "".join(tail)
        return {key: _plain(item) for key, item in value.items() if item != {"$special": "undefined"}}
    return [_plain(item) for item in value] if isinstance(value, list) else value


class Stage:
    """A fixture as a store that is indexed, its live sessions locked."""

    def __init__(self, fixture: Mapping[str, Any], folder: Path) -> None:
        self.folder = folder
        self.titles: dict[str, tuple[str, str]] = {}  # the original's, and ours
        self.live: list[Path] = []
        running = {one["id"]: {"version": 0, "id": one["id"], **one["meta"]} for one in fixture.get("live", [])}
        for one in fixture.get("persisted", []):
            if one["meta"]["id"] not in running:
                self._write(one["meta"], one["events"])
        for one in fixture.get("live", []):
            self.live.append(self._write(running[one["id"]], one["events"]))

    def _write(self, meta: Mapping[str, Any], events: list[Any]) -> Path:
        titles = [event["data"]["title"] for event in events if event["type"] == "session/title"]
        prompts = [event for event in events if event["type"] == "user/message"]
        spoken = [prompt["data"]["content"][0]["text"] for prompt in prompts]
        shown = (titles[-1:] or spoken[:1] or ["untitled"])[0]
        self.titles[meta["id"]] = ((titles or ["untitled"])[-1], " ".join(shown.split()))
        return Log.verbatim({"type": "session", **meta}, events).write(self.folder / "sessions")

    @contextmanager
    def open(self, tool_config: Mapping[str, Any]) -> Iterator[SessionGraph]:
        """Yield the product on this store."""
        values = {"sessions": self.folder / "sessions", "index": self.folder / "index", "auto_refresh": False}
        values |= {"max_search_results": tool_config.get("maxSearchResults")}
        settings = config.load(values)
        indexer.Run(settings).execute()
        with ExitStack() as stack:
            for path in self.live:
                lock = stack.enter_context((path.parent / "session.lock").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            product = SessionGraph(settings)
            stack.callback(product.close)
            yield product

    def expected(self, text: str) -> str:
        """Return a recorded text with the titles and the availability that hold here."""
        for session_id, (original, title) in self.titles.items():
            named = f"{re.escape(session_id)} — "
            place = rf"^((?:\d+\. Session|Session| *-) {named}){re.escape(original)}(?= \||$)"
            text = re.sub(place, lambda found, title=title: found[1] + title, text, flags=re.M)
        return re.sub(r"^( *Availability: |.* \| )live$", r"\1live, persisted", text, flags=re.M)


_STAGES: dict[str, Stage] = {}


def _stage(name: str, shared: Path, factory: pytest.TempPathFactory) -> Stage:
    if name not in _STAGES:
        fixture = _plain(json.loads((shared / "vectors/fixtures" / name).read_text("utf-8")))
        _STAGES[name] = Stage(fixture, factory.mktemp("stage"))
    return _STAGES[name]


class Overridden:
    """The product with recorded answers in place of its own, each taken once, in order."""

    def __init__(self, product: SessionGraph, stage: Stage, overrides: Mapping[str, list[Any]]) -> None:
        self._product, self._stage = product, stage
        self._queues = {method: list(queue) for method, queue in overrides.items()}
        unknown = self._queues.keys() - self._ACTS.keys()
        if unknown:
            pytest.skip(f"no operation here does what {', '.join(sorted(unknown))} did")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._product, name)

    def search(self, caller: Caller, request: Any, **options: Any) -> Any:
        method = "searchSessions" if request.group == "session" else "searchEvents"
        return self._next(method, lambda: self._product.search(caller, request, **options))

    def session(self, caller: Caller, request: Any) -> Any:
        return self._next("filterSessions", lambda: self._product.session(caller, request))

    def trace(self, caller: Caller, request: Any) -> Any:
        return self._next("traceSession", lambda: self._product.trace(caller, request))

    def event(self, caller: Caller, request: Any) -> Any:
        return self._next("readEvent", lambda: self._product.event(caller, request))

    def event_trace(self, caller: Caller, request: Any) -> Any:
        return self._next("traceEvent", lambda: self._product.event_trace(caller, request))

    def _next(self, method: str, real: Callable[[], Any]) -> Any:
        queue = self._queues.get(method)
        if not queue:
            return real()
        act = queue.pop(0)
        if "error" in act:
            raise _failure(act["error"])
        return self._ACTS[method](self, act, real)

    def _sessions(self, act: Mapping[str, Any], _real: Callable[[], Any]) -> SearchPage:
        value = act["value"]
        hits = [
            SessionHit(session=self._summary(item), matches=1, best=_hit(item["bestMatch"]), more=[])
            for item in value["items"]
        ]
        return _page(sessions=hits, next_cursor=value.get("nextCursor"))

    def _events(self, act: Mapping[str, Any], _real: Callable[[], Any]) -> SearchPage:
        value = act["value"]
        if not value["items"]:
            pytest.skip("hits come from a database that is sealed for one workspace: there is no header to check")
        known = self._known()
        hits = [
            msgspec.structs.replace(_hit(item), log_id=known[item["sessionId"]].log_id) for item in value["items"]
        ]
        return _page(entries=hits, next_cursor=value.get("nextCursor"))

    def _lineage(self, act: Mapping[str, Any], real: Callable[[], Any]) -> Lineage:
        answer = real()
        if "patch" in act:
            header = act["patch"].get("target", {}).get("header", {})
            if header.keys() - {"cwd", "id"}:
                pytest.skip("this part of a lineage is no part of the answer here")
            return msgspec.structs.replace(answer, session=msgspec.structs.replace(answer.session, **header))
        value = act["value"]
        return Lineage(
            session=self._summary(value["target"]),
            ancestors=[self._summary(ancestor) for ancestor in value["ancestors"]],
            complete=value["complete"],
            descendants=[self._branch(one) for one in value["descendants"]],
        )

    def _moved(self, act: Mapping[str, Any], _real: Callable[[], Any]) -> Any:
        """A session whose header changed under way is refused by the operation that reads it."""
        if act.get("patch", {}).get("session", {}).keys() & {"cwd", "id"}:
            raise not_found()
        pytest.skip("exact reads come from the store")

    def _unchanged(self, _act: Mapping[str, Any], _real: Callable[[], Any]) -> Any:
        pytest.skip("whom a caller sees is decided inside the operations")

    def _known(self) -> dict[str, SessionSummary]:
        page = self._product.timeline(access.OWNER, TimelineRequest(limit=100))
        return {found.id: found for found in page.sessions}

    def _branch(self, value: Mapping[str, Any]) -> Branch:
        below = [self._branch(one) for one in value["descendants"]]
        return Branch(session=self._summary(value["session"]), link="fork", descendants=below)

    def _summary(self, record: Mapping[str, Any]) -> SessionSummary:
        header = record["header"]
        titles = self._stage.titles
        known = {
            found.id: found for found in self._product.timeline(access.OWNER, TimelineRequest(limit=100)).sessions
        }
        own = known.get(header["id"])
        parent = header.get("parentSession")
        seen = parent in known and known[parent].cwd == header.get("cwd")
        return SessionSummary(
            log_id=own.log_id if own else 0,
            id=header["id"],
            title=own.title if own else titles.get(header["id"], ("", "untitled"))[1],
            cwd=header.get("cwd"),
            created_at=instant(header["createdAt"]),
            last_at=None,
            version=0,
            parent_session=parent if seen else None,
            parent_elsewhere=parent is not None and not seen,
            live=record["live"],
        )

    _ACTS: Final = {
        "searchSessions": _sessions,
        "searchEvents": _events,
        "traceSession": _lineage,
        "readEvent": _moved,
        "traceEvent": _moved,
        "filterSessions": _unchanged,
    }


def _failure(error: Mapping[str, Any]) -> Exception:
    code = error.get("queryCode") or error.get("harnessCode")
    return SessionGraphError(code, error["message"]) if code in CODES else RuntimeError(error["message"])


def _hit(match: Mapping[str, Any]) -> Hit:
    return Hit(
        log_id=0,
        session_id=match["sessionId"],
        ordinal=match["seq"],
        seq=match["seq"],
        time=instant(math.trunc(match["time"])),
        turn=None,
        kind="user",
        type=match["type"],
        surface=match["surface"],
        tool=None,
        inherited=False,
        clipped=False,
        spans=1,
        snippet=Snippet(text=match["snippet"], matches=[]),
    )


def _page(**changes: Any) -> SearchPage:
    page = SearchPage(
        query="q",
        match="phrase",
        sort="relevance",
        group="session",
        kinds=[],
        widened=False,
        loose=False,
        sessions=[],
        entries=[],
        hits=0,
        hits_exact=True,
        session_count=0,
        ranked_exactly=True,
        kind_counts={},
        facets={},
        counts_exact=True,
        partial=False,
        took_ms=0,
        next_cursor=None,
        index=IndexNote(epoch=1, refreshed_at=None, indexing=False),
    )
    return msgspec.structs.replace(page, **changes)


def _tool(given: Any, expected: Any, shared: Path, factory: pytest.TempPathFactory) -> None:
    given = _plain(given)
    own = {key: given[key] for key in ("persisted", "live") if key in given}
    if own:
        fixture = _plain(json.loads((shared / "vectors/fixtures" / given["fixture"]).read_text("utf-8")))
        stage = Stage(fixture | own, factory.mktemp("stage"))
    else:
        stage = _stage(given["fixture"], shared, factory)
    with stage.open(given.get("toolConfig", {})) as product:
        faced: Any = Overridden(product, stage, given.get("overrides", {}))
        agent = agents.agent_of(product, given["callerId"])
        for call, wanted in zip(given["calls"], expected["calls"], strict=True):
            _skip_what_differs(call, wanted)
            toolbox = Toolbox(faced, Agent() if call.get("noAgent") else agent)
            aborted = bool(call.get("aborted"))
            result = toolbox.call(call["name"], call.get("args", {}), stop=lambda aborted=aborted: aborted)
            assert result.text == stage.expected(wanted["text"])
            assert result.code == (wanted["error"]["code"] if wanted["isError"] else None)


def _skip_what_differs(call: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    if call.get("args", {}).get("availability") == ["persisted"]:
        pytest.skip("there is one source, the store: every session here is a stored one")
    if call["name"].endswith("search") and '{"query":' in wanted["text"]:
        pytest.skip("an assistant entry is its text blocks only, since calls are entries of their own")
    if wanted["isError"] and "code" not in wanted["error"]:
        pytest.skip("every error here has a code")


def _schemas(_given: Any, expected: Any, *_: Any) -> None:
    shown = [
        {"name": tool.name, "description": tool.description, "parameters": tool.schema} for tool in SESSION_TOOLS
    ]
    assert shown == expected["ok"]["schemas"]


def _compare(act: Callable[[], Any], expected: Any) -> None:
    if "error" not in expected:
        assert act() == expected["ok"]
        return
    if "code" not in expected["error"]:
        pytest.skip(_TYPED)
    with pytest.raises(SessionGraphError) as raised:
        act()
    assert (raised.value.code, raised.value.detail) == (expected["error"]["code"], expected["error"]["message"])


def _session_filters(given: Any, expected: Any, *_: Any) -> None:
    _compare(lambda: _asked(toolargs.session_filters(_plain(given["args"]))), _fields(expected))


def _event_filters(given: Any, expected: Any, *_: Any) -> None:
    spelled = {
        re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), key): v for key, v in given["args"].items()
    }
    _compare(lambda: _asked(toolargs.event_filters(_plain(spelled), "", "surfaces")), _fields(expected))


def _asked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that ask anything."""
    return {name: value for name, value in fields.items() if value is not None and value != ()}


def _fields(expected: Any) -> Any:
    """Say the clauses that the original made as the fields of a request here."""
    if "error" in expected:
        return expected
    fields: dict[str, Any] = {}
    for clause in expected["ok"]:
        fields |= _CLAUSES[clause["kind"]](clause)
    return {"ok": _asked(fields)}


def _range(first: str, last: str) -> Callable[[Any], dict[str, Any]]:
    """A bound between two milliseconds is the next whole one inside the range: times are whole here."""
    return lambda clause: {
        first: None if clause.get("from") is None else math.ceil(clause["from"]),
        last: None if clause.get("to") is None else math.floor(clause["to"]),
    }


_CLAUSES: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "id": lambda clause: {"sessions": tuple(dict.fromkeys(clause["values"]))},
    "availability": lambda clause: {"live": True if set(clause["values"]) == {"live"} else None},
    "created-at": _range("created_after", "created_before"),
    "seq": _range("seq_from", "seq_to"),
    "time": _range("after", "before"),
    "type": lambda clause: {"types": tuple(dict.fromkeys(clause["values"]))},
    "surface": lambda clause: {"surfaces": tuple(dict.fromkeys(clause["values"]))},
}


def _query(given: Any, expected: Any, *_: Any) -> None:
    query = _plain(given).get("query")
    if not isinstance(query, str):
        pytest.skip(_TYPED)
    _compare(lambda: toolargs.query({"query": query}), expected)


def _parents(given: Any, expected: Any, *_: Any) -> None:
    values = _plain(given).get("values")
    if not isinstance(values, list):
        pytest.skip(_TYPED)
    _compare(lambda: list(toolargs.chosen({"parent_session_ids": values}, "parent_session_ids")), expected)


def _event_text(given: Any, expected: Any, *_: Any) -> None:
    window = _plain(given["window"]) if "window" in given else json.loads(given["windowJson"])
    target = window["target"]
    shown = [_view(event) for event in window["events"]]
    title = f"Session {given['sessionId']} — {given['title']['text']}"
    told = tooltext.event(
        title,
        target["seq"],
        target,
        [one for one in shown if (one.seq or 0) < target["seq"]],
        [one for one in shown if (one.seq or 0) > target["seq"]],
    )
    assert "\n".join(told) == expected["ok"]


def _view(event: Any) -> EventView:
    read = decode_event(json.dumps(event).encode(), event["seq"], narrow=False)
    return answered.event(read.type, read.data, read.seq or 0, time=instant(read.time))


OPERATIONS: Final[Mapping[str, Callable[[Any, Any, Path, pytest.TempPathFactory], None]]] = {
    "tool": _tool,
    "tool_schemas": _schemas,
    "tool_session_filters": _session_filters,
    "tool_event_filters": _event_filters,
    "tool_query": _query,
    "tool_parents": _parents,
    "format_event_read": _event_text,
    "format_event_read_json": _event_text,
}
