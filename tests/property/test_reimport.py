"""Archives taken back: unpacked as a store, a session's archive indexes to what the original indexes to."""

from __future__ import annotations

import io
import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiongraph_web import filters, generation, logs
from sessiongraph_web.access import OWNER
from sessiongraph_web.models import Header
from sessiongraph_web.operations import SessionGraph
from tests import products
from tests.builders import Log
from tests.shared import shared_folders

QUERIES = ("the", "中", "error", "session", "files", "写", "echo", '"a b"', "lorem -ipsum")
KINDS = "user,assistant,tool_call,tool_result,title,todo,turn_end"
STORES = [path for path in shared_folders("genuine", "*") if logs.discover(path).logs]


def archives(product: SessionGraph) -> Iterable[zipfile.ZipFile]:
    """Yield the archive of every session that is nobody's child here, with its descendants."""
    found = [(log, logs.peek_header(log.path)) for log in logs.discover(product.settings.sessions).logs]
    headers = [(log, header) for log, header in found if isinstance(header, Header)]
    places = {(header.id, header.cwd) for _, header in headers}
    for log, header in headers:
        if (header.parent_session, header.cwd) not in places:
            request = filters.ExportRequest(id=header.id, log_id=log.log_id, descendants=True)
            yield zipfile.ZipFile(io.BytesIO(b"".join(product.export(OWNER, request).chunks)))


def unpack(archive: zipfile.ZipFile, store: Path) -> None:
    """Put each log of an archive where dsh would, by what its own header says."""
    for name in archive.namelist():
        if name.endswith(".jsonl"):
            text = archive.read(name)
            header = json.loads(text.partition(b"\n")[0])
            project = logs.project_key(header["cwd"]) if header.get("cwd") else "_no-cwd"
            folder = store / project / logs.folder_name(header["id"])
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name.rpartition("/")[2]).write_bytes(text)


def entries(index: Path) -> list[tuple[Any, ...]]:
    """Return every entry and session of an index, by session id: log ids follow from paths, which differ."""
    live = generation.live(index)
    assert live is not None
    with sqlite3.connect(live.catalog) as catalog:
        files = [live.file(row[0]) for row in catalog.execute("SELECT file FROM workspace")]
    catalog.close()
    found: list[tuple[Any, ...]] = []
    for file in files:
        connection = sqlite3.connect(file)
        found += connection.execute(
            """
            SELECT session.id, title, created_at, session.last_at, events, turns, tool_calls, inherited_count,
                   entry.ordinal, entry.seq, time, turn, kind, type, surface, tool, inherited, synthetic, text
            FROM session LEFT JOIN entry USING (log_id)
            """
        )
        connection.close()
    return sorted(found, key=repr)


def hits(product: SessionGraph) -> list[Any]:
    """Return what every query finds."""
    pages = [products.find(product, q, kinds=KINDS, group="none", sort="oldest", limit=100) for q in QUERIES]
    return [
        (page.hits, sorted((hit.session_id, hit.ordinal, hit.kind, hit.snippet.text) for hit in page.entries))
        for page in pages
    ]


def check(store: Path, scratch: Path) -> int:
    """Export everything, take it back, and compare; return how many entries there were."""
    again = scratch / "again" / "sessions"
    again.mkdir(parents=True)
    with products.indexed(store, scratch / "index") as product:
        for archive in archives(product):
            unpack(archive, again)
        with products.indexed(again, scratch / "again" / "index") as taken:
            kept = entries(scratch / "index")
            assert entries(scratch / "again" / "index") == kept
            assert hits(taken) == hits(product)
    return len(kept)


TEXTS = st.lists(
    st.sampled_from(["the", "中文", "error", "写 files", "a b", "\u2028", "lorem", "\\u0000", "🇨🇳"])
).map(" ".join)
TURNS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=3)


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from([0, 3, 4]),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(["/w/a", "/w/中", None]), TURNS, st.booleans()), min_size=1, max_size=4),
)
def test_generated_sessions_come_back(version: int, compressed: bool, made: list[Any]) -> None:
    """Any session, with forks and subagents, in any generation."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "sessions"
        store.mkdir()
        for cwd, turns, ends in made:
            log = Log(cwd, version=version)
            for prompt, answer, output in turns:
                log.turn(prompt, answer, [("bash", json.dumps({"command": prompt}), output)])
            if not ends:
                log.start_turn("cut off here")
            log.write(store, compressed)
            Log(cwd, version=version, parent=log.id, origin="subagent").turn("look", "found").write(
                store, compressed
            )
            if ends:
                Log(cwd, version=version, seeded_from=log).turn("go on", "the fork").write(store, compressed)
        assert check(store, Path(folder)) > 0


@pytest.mark.shared
@pytest.mark.parametrize("store", STORES, ids=lambda path: path.name)
def test_genuine_sessions_come_back(store: Path, tmp_path: Path) -> None:
    """Every genuine store, exported session by session, is found again entry by entry."""
    assert check(store, tmp_path) > 0
