"""The recorded answers of the original family for queries: filters, normalization, snippets, ranked search.

Fixtures and documents become workspace databases, filled with the texts that `documents` extracts. A query of the
original is one phrase, and it searched every kind that it knew. What cannot hold here is skipped by name or by
operation, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from sessiongraph_web import config, cursors, documents, excerpts, filters, lines, literal, tokenizer
from sessiongraph_web.answers import Hit, SearchPage, SessionSummary
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.models import KINDS, Event
from sessiongraph_web.surface import Fold, classify
from tests.shared import recorded_cases
from tests.workspaces import SETTINGS, Workspace, find

pytestmark = pytest.mark.shared

FILES: Final = ("query", "snippet", "search", "filters")
SEARCHED: Final = tuple(kind for kind in KINDS if kind != "title")

SKIPPED_OPERATIONS: Final = {
    "quote_fts": "the expression holds tokens, not the query: quotes never reach FTS5",
    "sanitize_fts": "matches are offsets beside the text, so no characters are taken for markers",
    "session_fingerprint": "cursors are signed and bound to the request by the operations",
    "event_fingerprint": "cursors are signed and bound to the request by the operations",
    "session_where": "filters are bound as JSON lists, so SQLite's limits of variables and terms are not met",
    "event_where": "filters are bound as JSON lists, so SQLite's limits of variables and terms are not met",
    "headers_compatible": "there is one source, the store: headers in memory cannot differ from it",
}
"""Operations of the original's inner parts that have no counterpart."""

_TYPED = "parameters are text: there is no value of another type"
_CWD = "sessions without a cwd are the owner's, and no filter names them"
_CALLS = "an assistant entry is its text blocks only, since calls are entries of their own"
SKIPPED: Final = {
    "session request: null": _TYPED,
    "session request: limit string": _TYPED,
    "session request: cursor not text": _TYPED,
    "session request: cursor null": _TYPED,
    "session request: order: cursor error beats query error": _TYPED,
    "session request: order: query error beats limit error": "parameters are checked before the query is read",
    "session request: highlight markers replaced": SKIPPED_OPERATIONS["sanitize_fts"],
    "session request: text event filter rejected": "a literal text is a mode of its own, not a filter",
    "session request: unknown event filter": _TYPED,
    "session request: bad session filter": _TYPED,
    "sessions: NUL query": "NUL is read as U+FFFD, and separates words",
    "text filter: blank": "a blank text is a blank query: SESSION_QUERY_INVALID_QUERY",
    "events: text blank": "a blank text is a blank query: SESSION_QUERY_INVALID_QUERY",
    "events: text filter rejected": "a literal text is a mode of its own, not a filter",
    'sessions: query "login"': _CALLS,
    "events: p-01 login": _CALLS,
    "events: p-04 登录": "pairs find a word inside a longer run, which the original did not",
    "events: unknown kind": _TYPED,
    "sessions: missing kind": _TYPED,
}
"""Cases by name."""


class Inexpressible(Exception):  # noqa: N818 - a finding of the adapter, which skips the case
    """Something of a case that no request here can say; the text is the reason."""


@pytest.mark.parametrize("case", recorded_cases(FILES))
def test_recorded_case(case: dict[str, Any], tmp_path: Path, shared: Path) -> None:
    """The product answers a recorded case as the original did."""
    given, expected = _plain(case["input"]), _plain(case["expected"])
    reason = SKIPPED.get(case["name"]) or SKIPPED_OPERATIONS.get(given["op"])
    if reason:
        pytest.skip(reason)
    try:
        OPERATIONS[given["op"]](given, expected, Place(tmp_path, shared))
    except Inexpressible as found:
        pytest.skip(str(found))


def test_every_file_of_cases_is_driven(shared: Path) -> None:
    """Each file this adapter names exists, holds only operations that it knows, and only skips what is there."""
    names, operations = set(), set()
    for name in FILES:
        for case in json.loads((shared / "vectors/cases" / f"{name}.json").read_text("utf-8")):
            names.add(case["name"])
            operations.add(case["input"]["op"])
    assert operations == OPERATIONS.keys() | SKIPPED_OPERATIONS.keys()
    assert SKIPPED.keys() <= names


class Place:
    """Where a case's databases are made, and where its fixture lies."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder = folder
        self.shared = shared
        self.workspaces: dict[str | None, Workspace] = {}
        self.running: set[int] = set()

    def session(self, header: Mapping[str, Any], *, live: bool) -> Workspace:
        """Add a session to the workspace of its cwd."""
        cwd = header.get("cwd")
        if cwd not in self.workspaces:
            self.workspaces[cwd] = Workspace(self.folder, cwd)
        workspace = self.workspaces[cwd]
        workspace.session(
            header["id"], created_at=header["createdAt"], parent_session=header.get("parentSession"), version=0
        )
        if live:
            self.running.add(workspace.log_ids[header["id"]])
        return workspace

    def find(self, **request: Any) -> tuple[SearchPage, int | None]:
        """Search everything that was added."""
        return find(*self.workspaces.values(), running=lambda _cwd, log: log in self.running, **request)


def _fill(given: Mapping[str, Any], place: Place) -> None:
    """Index stored and live sessions; a live one hides the stored copy, as it did in the original."""
    live = {one["id"]: {"id": one["id"], **one["meta"]} for one in given.get("live", [])}
    for one in given.get("persisted", []):
        if one["meta"]["id"] not in live:
            _index(one["meta"], one["events"], place.session(one["meta"], live=False))
    for one in given.get("live", []):
        _index(live[one["id"]], one["events"], place.session(live[one["id"]], live=True))


def _index(header: Mapping[str, Any], given: list[Any], workspace: Workspace) -> None:
    fold, shadowed = Fold(), set()
    events = [lines.decode_event(json.dumps(event).encode(), n, narrow=False) for n, event in enumerate(given)]
    for event in events:
        shadowed |= {node.ordinal for node in fold.push(event).shadowed}
    for event in events:
        text = _searchable(event)
        if text:
            surface = classify(event.type, event.ordinal, shadowed=shadowed, fault_ordinal=fold.fault_ordinal)
            workspace.entry(
                header["id"],
                text,
                event.ordinal,
                seq=event.seq,
                time=event.time,
                type=event.type,
                surface=surface,
            )


def _searchable(event: Event) -> str:
    """Return what the original searched: one text an event, messages of the harness included, no titles, and
    none of the characters that it took for markers."""
    if event.type == "user/message":
        text = documents.blocks_text(event.data.get("content"))
    else:
        found = documents.extract(event, tool_result_chars=-1)
        text = "\n".join(one.text for one in found if one.kind != "title")
    return text.replace("\ufdd0", "\ufffd").replace("\ufdd1", "\ufffd")


def _request(clauses: list[Any] | None) -> dict[str, Any]:
    """Say a list of clauses, which are ANDed, as the fields of one request."""
    request: dict[str, Any] = {}
    for clause in clauses or []:
        if clause.get("kind") not in CLAUSES:
            raise Inexpressible(_TYPED)
        for name, value in CLAUSES[clause["kind"]](clause).items():
            if request.setdefault(name, value) != value:
                raise Inexpressible("a request says each filter once")
    return request


def _values(name: str) -> Callable[[Any], dict[str, Any]]:
    def read(clause: Any) -> dict[str, Any]:
        values = clause.get("values")
        if not isinstance(values, list) or not all(isinstance(value, str | None) for value in values):
            raise Inexpressible(_TYPED)
        if not values:
            raise Inexpressible("a filter without values is no filter")
        if None in values:
            if name == "parents" and set(values) == {None}:
                return {"roots": True}
            raise Inexpressible(
                _CWD if name == "workspaces" else "roots and children of one cannot be asked at once"
            )
        return {name: tuple(dict.fromkeys(values))}

    return read


def _range(first: str, last: str) -> Callable[[Any], dict[str, Any]]:
    def read(clause: Any) -> dict[str, Any]:
        ends = {first: clause.get("from"), last: clause.get("to")}
        if any(name in clause and not _is_number(clause[name]) for name in ("from", "to")):
            raise Inexpressible(_TYPED)
        return {name: _whole(end, up=name == first) for name, end in ends.items() if end is not None}

    return read


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and value == value


def _whole(value: float, *, up: bool) -> int:
    return -int(-value // 1) if up else int(value // 1)


def _availability(clause: Any) -> dict[str, Any]:
    if clause.get("values") != ["live"]:
        raise Inexpressible("there is one source, the store: every session here is a stored one")
    return {"live": True}


CLAUSES: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "id": _values("sessions"),
    "cwd": _values("workspaces"),
    "parent": _values("parents"),
    "availability": _availability,
    "created-at": _range("created_after", "created_before"),
    "seq": _range("seq_from", "seq_to"),
    "time": _range("after", "before"),
    "type": _values("types"),
    "surface": _values("surfaces"),
    "text": lambda clause: {"query": clause["text"], "match": "text"},
}


def _service(given: dict[str, Any], expected: dict[str, Any], place: Place) -> None:
    fixture = _plain(json.loads((place.shared / "vectors/fixtures" / given["fixture"]).read_text("utf-8")))
    _fill(fixture | given, place)
    snippet_chars = given.get("config", {}).get("snippetChars")
    settings = config.load({"snippet_chars": snippet_chars}, environ={}, home=Path("/nowhere"))
    _step(given["step"], expected, place, settings)


def _step(step: dict[str, Any], expected: dict[str, Any], place: Place, settings: config.Settings) -> None:
    if step.get("aborted"):
        raise Inexpressible("a search is aborted by interrupting its connection")
    method = step.get("method", step["do"])
    request = step["request"]
    if "error" in expected:
        _refused(request, expected["error"]["code"])
        return
    filters_asked = [
        *request.get("sessionFilters", []),
        *request.get("eventFilters", []),
        *request.get("filters", []),
    ]
    asked = {"match": "phrase", "query": request["query"], "kinds": SEARCHED, "limit": request.get("limit", 20)}
    asked |= {"group": "session" if method == "searchSessions" else "none", **_request(filters_asked)}
    if "sessionId" in request:
        asked["sessions"] = (request["sessionId"],)
    pages = expected["ok"] if step["do"] == "drain" else [expected["ok"]]
    offset: int | None = 0
    for wanted in pages:
        assert offset is not None
        page, offset = place.find(settings=settings, offset=offset, **asked)
        assert _shown(page) == [_recorded(item) for item in wanted["items"]]
        assert (offset is not None) == ("nextCursor" in wanted)


def _shown(page: SearchPage) -> list[Any]:
    """Return hits as the original answers them."""
    hits: list[tuple[SessionSummary | None, Hit]] = [(session.session, session.best) for session in page.sessions]
    hits += [(None, hit) for hit in page.entries]
    return [
        {
            "header": summary
            and {"id": summary.id, "cwd": summary.cwd, "createdAt": summary.created_at and summary.created_at.ms},
            "live": summary and summary.live,
            "match": {
                "sessionId": hit.session_id,
                "seq": hit.seq,
                "type": hit.type,
                "time": hit.time and hit.time.ms,
                "surface": hit.surface,
                "snippet": hit.snippet.text,
            },
        }
        for summary, hit in hits
    ]


def _recorded(item: dict[str, Any]) -> dict[str, Any]:
    header = item.get("header")
    return {
        "header": header and {name: header.get(name) for name in ("id", "cwd", "createdAt")},
        "live": item.get("live"),
        "match": item.get("bestMatch", item),
    }


def _refused(request: dict[str, Any], code: str) -> None:
    """Find the same code where the part of a request that was wrong is read here."""
    if code == "SESSION_QUERY_INVALID_CURSOR":
        if not request["cursor"]:
            raise Inexpressible("a blank parameter counts as none")
        _raises(code, lambda: cursors.open_cursor(request["cursor"], b"key"))
    elif code == "SESSION_QUERY_INVALID_LIMIT":
        _raises(code, lambda: filters.parse_search({"limit": [str(request["limit"])]}, SETTINGS))
    elif code == "SESSION_QUERY_SESSION_NOT_FOUND":
        raise Inexpressible("which session is meant is looked up by the operations")
    else:
        raise Inexpressible(SKIPPED_OPERATIONS["session_where"])


def _raises(code: str, act: Callable[[], object]) -> None:
    with pytest.raises(SessionGraphError) as raised:
        act()
    assert raised.value.code == code


def _normalize(given: dict[str, Any], expected: dict[str, Any], _place: Place) -> None:
    request = given["request"]
    _request(request.get("sessionFilters"))
    text = {"query": "q", "limit": "limit", "cursor": "cursor"}
    parameters = {name: [str(request[key])] for key, name in text.items() if request.get(key) is not None}

    def normalized() -> dict[str, Any]:
        read = filters.parse_search(parameters, SETTINGS)
        answer = {"query": tokenizer.parse(read.query, "phrase").text, "limit": read.limit, "cursor": read.cursor}
        return {name: value for name, value in answer.items() if value is not None}

    if "error" in expected:
        _raises(expected["error"]["code"], normalized)
    else:
        wanted = {name: expected["ok"][name] for name in ("query", "limit", "cursor") if name in expected["ok"]}
        assert normalized() == wanted


def _config(given: dict[str, Any], expected: dict[str, Any], _place: Place) -> None:
    names = {
        "defaultLimit": "default_limit",
        "maxLimit": "max_limit",
        "snippetChars": "snippet_chars",
        "readWindowMax": "read_window_max",
    }
    values = {name: value for name, value in given["config"].items() if name in names}
    if "error" not in expected:
        loaded = config.load({names[name]: value for name, value in values.items()})
        assert {name: getattr(loaded, ours) for name, ours in names.items()} == {
            name: expected["ok"][name] for name in names
        }
    elif values:
        _raises(expected["error"]["code"], lambda: config.load({names[name]: v for name, v in values.items()}))
    else:
        raise Inexpressible("there is no such setting")


def _snippet(given: dict[str, Any], expected: dict[str, Any], _place: Place) -> None:
    text, spans = _unmarked(given["marked"])
    excerpt = excerpts.snippet(text, spans, given["maxChars"])
    assert {"snippet": excerpt.text, "codePoints": len(excerpt.text)} == expected["ok"]


def _unmarked(marked: str) -> tuple[str, list[tuple[int, int]]]:
    text, spans, start = "", [], None
    for character in marked:
        if character == "\ufdd0":
            start = len(text) if start is None else start
        elif character == "\ufdd1":
            spans += [(start, len(text))] if start is not None else []
            start = None
        else:
            text += character
    return text, spans


def _filter_sessions(given: dict[str, Any], expected: dict[str, Any], place: Place) -> None:
    if "error" in expected:
        _reversed(given, expected)
        return
    for record in given["records"]:
        place.session(record["header"], live=record["live"]).entry(record["header"]["id"], "needle")
    page, _ = place.find(query="needle", **_request(given.get("filters")))
    found = {hit.session.id for hit in page.sessions}
    assert [record["header"]["id"] for record in given["records"] if record["header"]["id"] in found] == expected[
        "ok"
    ]


def _materialize(given: dict[str, Any], expected: dict[str, Any], _place: Place) -> None:
    if "error" not in expected:
        raise Inexpressible("a request has no clauses to give back")
    _reversed(given, expected)


def _reversed(given: dict[str, Any], expected: dict[str, Any]) -> None:
    """The one malformed clause that text parameters can say is a range whose end comes first."""
    if "must be less than" not in expected["error"]["message"]:
        raise Inexpressible(_TYPED)
    parameters = {"created_after": ["2026-01-02"], "created_before": ["2026-01-01"]}
    assert given["filters"][0]["kind"] == "created-at"
    _raises(expected["error"]["code"], lambda: filters.parse_search(parameters, SETTINGS))


def _filter_documents(given: dict[str, Any], expected: dict[str, Any], place: Place) -> None:
    if "error" in expected:
        raise Inexpressible(_TYPED)
    workspace = place.session({"id": "s", "createdAt": 0}, live=False)
    for document in given["documents"]:
        named = {name: document[name] for name in ("seq", "time", "type", "surface")}
        workspace.entry("s", f"needle {document['text']}", document["seq"], **named)
    page, _ = place.find(**{"query": "needle", "group": "none", **_request(given["filters"])})
    assert sorted(hit.ordinal for hit in page.entries) == expected["ok"]


def _text_filter(given: dict[str, Any], expected: dict[str, Any], _place: Place) -> None:
    pattern = literal.pattern(given["text"])
    assert [bool(pattern.search(text)) for text in given["candidates"]] == expected["ok"]["matches"]


def _plain(value: Any) -> Any:
    """Return a case's value as JSON can hold it: no undefined keys, NaN as such, repetitions written out."""
    if isinstance(value, dict):
        if "$special" in value:
            return {"NaN": float("nan"), "-0": -0.0}.get(value["$special"])
        if "$fill" in value:
            return [_plain(value["$fill"][0])] * value["$fill"][1]
        if "$repeat" in value:
            text, count, *tail = value["$repeat"]
            return text * count + "".join(tail)
        return {key: _plain(item) for key, item in value.items() if item != {"$special": "undefined"}}
    return [_plain(item) for item in value] if isinstance(value, list) else value


OPERATIONS: Final[Mapping[str, Callable[[dict[str, Any], dict[str, Any], Place], None]]] = {
    "normalize_session_request": _normalize,
    "normalize_event_request": _normalize,
    "engine_config": _config,
    "snippet": _snippet,
    "service": _service,
    "filter_sessions": _filter_sessions,
    "filter_documents": _filter_documents,
    "materialize_session_filters": _materialize,
    "materialize_event_filters": _materialize,
    "text_filter": _text_filter,
}
