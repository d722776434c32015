"""Queries that broke other products, run on the store that goes with them."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import config, generation, indexer, schema
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import SearchRequest
from sessiongraph_web.search import Source, search
from tests.shared import shared_folders
from tests.workspaces import NOTE, everything

pytestmark = pytest.mark.shared


def _queries() -> list[Any]:
    found = []
    for path in shared_folders("field-cases/search", "*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            case = json.loads(line)
            found.append(pytest.param(case, id=f"{case['n']}: {case['q'][:20]!a}"))
    return found


@pytest.fixture(scope="module")
def index(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The databases of the store that the queries are about."""
    store = shared / "field-cases/S00/sessions"
    settings = config.load({"sessions": store, "index": tmp_path_factory.mktemp("queries") / "index"})
    assert indexer.Run(settings).execute().failed == 0
    live = generation.live(settings.index)
    assert live is not None
    return live.directory


@pytest.mark.parametrize("case", _queries())
def test_query_finds_what_it_should(case: dict[str, Any], index: Path) -> None:
    """As many exact hits as the case says, in the workspace it names; a blank query asks nothing."""
    if case["hits"] == "empty form":
        with pytest.raises(SessionGraphError, match="SESSION_QUERY_INVALID_QUERY"):
            _hits(case, index)
    elif "400" in str(case["hits"]):
        with pytest.raises(SessionGraphError, match="longer than 4,096 characters"):
            _hits(case, index)
    else:
        told = str(case["hits"])
        number = int(re.sub(r"\D.*", "", told.removeprefix(">=")))
        hits = _hits(case, index)
        assert hits >= number if told.startswith(">=") else hits == number


def _hits(case: dict[str, Any], index: Path) -> int:
    with closing(schema.open_reader(index / f"{schema.database_name(case['cwd'])}.db")) as connection:
        schema.check_seal(connection, case["cwd"])
        page, _ = search(
            [Source(case["cwd"], connection, 1)],
            SearchRequest(query=case["q"]),
            settings=config.load(),
            offset=0,
            deadline=time.monotonic() + 30,
            index=NOTE,
            visible=everything,
        )
    return page.hits
