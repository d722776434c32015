"""The recorded scenarios of the original's search: what cursors are worth while requests and the store change.

Each runs over a store on disk. A scenario that asks something of sources that are not here is skipped, with the
reason.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from sessiongraph_web.answers import Hit, SearchPage
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.operations import SessionGraph
from tests import products
from tests.builders import Log
from tests.shared import recorded_cases

pytestmark = pytest.mark.shared

KINDS: Final = "user,assistant,tool_call,tool_result,todo,turn_end"
CLAUSES: Final = {"id": "session", "cwd": "workspace", "parentSession": "parent", "type": "types"}
ON_DEMAND: Final = "a storage that fails on demand: files that cannot be read are tested with files"
ELSEWHERE: Final = {
    "setState": ON_DEMAND,
    "close": "nobody can ask an index that its process has closed",
    "unmountPersistence": "a store that is away keeps its sessions in the index, as its state says",
}
"""Steps by what they do."""
SKIPPED: Final = {
    "header conflict live versus persisted": "one source has one header",
}
"""Cases by name."""
UNASKED: Final = {"inspections", "listSessions"}  # how the original looked, and an order by locale


@pytest.mark.parametrize("case", recorded_cases(("search_scenarios",)))
def test_recorded_scenario(case: dict[str, Any], store: Path, tmp_path: Path) -> None:
    """Every step is answered as the original did, with cursors that hold as long as its own."""
    given = case["input"]
    reasons = [ELSEWHERE[step["do"]] for step in given["steps"] if step["do"] in ELSEWHERE]
    if case["name"] in SKIPPED or reasons:
        pytest.skip(SKIPPED.get(case["name"]) or reasons[0])
    search = given.get("config", {}).get("openAt") != "never"
    with products.opened(store, tmp_path / "index", search=search) as product:
        scenario = Scenario(store, product)
        for session in [*given.get("persisted", ()), *given.get("live", ())]:
            scenario.put(session)
        products.refresh(product)
        for step, expected in zip(given["steps"], case["expected"]["steps"], strict=True):
            scenario.take(step, expected)


def test_every_skipped_scenario_exists(shared: Path) -> None:
    """No case and no step is skipped that is not recorded."""
    cases = json.loads((shared / "vectors/cases/search_scenarios.json").read_text("utf-8"))
    assert SKIPPED.keys() <= {case["name"] for case in cases}
    done = {step["do"] for case in cases for step in case["input"]["steps"]}
    assert ELSEWHERE.keys() | UNASKED <= done


class Scenario:
    """A store that changes, and the cursors that its searches gave."""

    def __init__(self, store: Path, product: SessionGraph) -> None:
        self.store, self.product = store, product
        self.logs: dict[str, tuple[Log, Path]] = {}
        self.cursors: dict[str, str] = {}

    def put(self, session: dict[str, Any]) -> None:
        """Write a session, in the place of what it was."""
        meta = {"id": session["id"], **session["meta"]} if "id" in session else session["meta"]
        log = Log.verbatim({"type": "session", "version": 0, **meta}, session["events"])
        self.logs[log.id] = log, log.write(self.store, compressed=False)

    def take(self, step: dict[str, Any], expected: dict[str, Any]) -> None:
        if step["do"] in UNASKED:
            return
        change = CHANGES.get(step["do"])
        if change:
            change(self, step)
            products.refresh(self.product)
        elif step["do"] == "readEvent":
            (asked,) = step["args"]
            page = products.event(self.product, asked["sessionId"], seq=asked["seq"])
            assert page.target.type == expected["ok"]["target"]["type"]
        else:
            self._search(step, expected)

    def _search(self, step: dict[str, Any], expected: dict[str, Any]) -> None:
        code = expected.get("error", {}).get("code")
        if "patch" in step.get("cursor", {}):
            code = "SESSION_QUERY_INVALID_CURSOR"  # ours are signed: whatever was changed in one is refused
        if code is None:
            page = self._page(step)
            assert _shown(page) == [_recorded(item) for item in expected["ok"]["items"]]
            assert (page.next_cursor is None) == ("nextCursor" not in expected["ok"])
            self.cursors[step.get("as", "")] = page.next_cursor or ""
            return
        with pytest.raises(SessionGraphError) as refused:
            self._page(step)
        assert refused.value.code == code

    def _page(self, step: dict[str, Any]) -> SearchPage:
        request = step["request"]
        given: dict[str, Any] = {"match": "phrase", "kinds": KINDS}
        given |= {"group": "none"} if step["do"] == "searchEvents" else {}
        given |= {"session": request["sessionId"]} if "sessionId" in request else {}
        given |= {"limit": request["limit"]} if "limit" in request else {}
        for clause in [*request.get("sessionFilters", ()), *request.get("filters", ())]:
            given[CLAUSES[clause["kind"]]] = clause["values"]
        if "cursor" in step:
            given["cursor"] = _patched(self.cursors[step["cursor"]["from"]], step["cursor"].get("patch"))
        if "sessionId" in request:
            products.read(
                self.product, request["sessionId"]
            )  # a search in a session that is not there is refused
        return products.find(self.product, request["query"], **given)


def _patched(cursor: str, patch: dict[str, Any] | None) -> str:
    """Return a cursor, altered where something in it was: which character stands for what is nobody's to know."""
    if patch is None:
        return cursor
    place = len(json.dumps(patch)) % len(cursor)
    return cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]


def _append(scenario: Scenario, step: dict[str, Any]) -> None:
    log, path = scenario.logs[step["id"]]
    log.event(step["type"], step["data"])
    log.write(scenario.store, compressed=path.suffix == ".zstd")


def _delete(scenario: Scenario, step: dict[str, Any]) -> None:
    shutil.rmtree(scenario.logs.pop(step["id"])[1].parent)


CHANGES: Final[dict[str, Callable[[Scenario, dict[str, Any]], None]]] = {
    "append": _append,
    "setPersisted": lambda scenario, step: scenario.put(step["entry"]),
    "deletePersisted": _delete,
}


def _shown(page: SearchPage) -> list[Any]:
    """Return hits as the original answers them."""
    hits: list[tuple[str | None, Hit]] = [(found.session.id, found.best) for found in page.sessions]
    hits += [(None, hit) for hit in page.entries]
    return [
        (session, hit.session_id, hit.seq, hit.type, hit.time and hit.time.ms, hit.surface, hit.snippet.text)
        for session, hit in hits
    ]


def _recorded(item: dict[str, Any]) -> Any:
    hit = item.get("bestMatch", item)
    names = ("sessionId", "seq", "type", "time", "surface", "snippet")
    return (item["header"]["id"] if "header" in item else None, *(hit[name] for name in names))
