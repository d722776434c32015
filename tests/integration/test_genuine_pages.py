"""Logs that dsh itself wrote, read through their pages: nothing missing, nothing twice, everything what it is."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import zstandard
from datasette.app import Datasette

from sessiongraph_web import access, presentation
from sessiongraph_web.cards import Border, Card, Folded, Prompt, Queued, Subagent, Tool
from sessiongraph_web.web.links import canonical
from tests import products
from tests.asgi import Pairs, ask
from tests.shared import shared_folders
from tests.world import World

pytestmark = [pytest.mark.shared, pytest.mark.asyncio]

LIMIT: Final = 20  # records on a page, so that calls, turns and queues cross its borders
STORES: Final = [path for path in shared_folders("genuine") if path.name != "attachments"]
_CARD: Final = re.compile(r' id="e(\d+)"')
_NEXT: Final = re.compile(r'rel="next" href="([^"]+)"')


def _raw(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a log's header and records by the shortest way: one decompression, `json` on every line."""
    stored = path.read_bytes()
    if path.suffix == ".zstd":
        reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(stored), read_across_frames=True)
        stored = reader.read()
    header, *records = [json.loads(line) for line in stored.split(b"\n") if line]
    return header, records


@dataclass
class Served:
    """A genuine store, indexed."""

    world: World
    logs: list[tuple[dict[str, Any], list[dict[str, Any]]]]


@pytest.fixture(scope="module", params=STORES, ids=lambda path: str(path.name))
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Served:
    store: Path = request.param
    world = World(store, tmp_path_factory.mktemp("genuine") / "index").build()
    logs = [_raw(path) for path in sorted(store.rglob("session*.jsonl*"))]
    assert logs
    return Served(world, logs)


@pytest_asyncio.fixture
async def site(served: Served) -> AsyncIterator[tuple[Datasette, Pairs]]:
    datasette = served.world.serve()
    await datasette.invoke_startup()
    yield datasette, [("authorization", f"Bearer {served.world.token(access.OWNER)}")]
    await datasette.invoke_shutdown()


async def test_every_record_is_shown_once(served: Served, site: tuple[Datasette, Pairs]) -> None:
    """Walking a session by its own links, every record has its place on exactly one page."""
    datasette, owner = site
    for header, records in served.logs:
        shown: Counter[int] = Counter()
        path: str | None = f"/sessions/{canonical(header['id'])}?ordinal=0&limit={LIMIT}"
        while path:
            page = await ask(datasette, path, headers=owner)
            assert page.status == 200, path
            shown.update(int(found) for found in _CARD.findall(page.text))
            following = _NEXT.search(page.text)
            path = unescape(following[1]) if following else None
        stored = {ordinal: count for ordinal, count in shown.items() if ordinal < len(records)}
        assert stored == dict.fromkeys(range(len(records)), 1), header["id"]


def _told(served: Served, session_id: str) -> Iterator[Card]:
    """Yield the cards of a session, page by page, closers left out."""
    with products.opened(served.world.store, served.world.index) as product:
        start: int | None = 0
        while start is not None:
            page = products.read(product, session_id, ordinal=start, limit=LIMIT)
            for turn in presentation.transcript(page):
                yield from (card for card in turn.cards if card.place is None or not card.place.synthetic)
            start = page.next_ordinal


async def test_prompts_are_those_of_people(served: Served) -> None:
    """What a person wrote is a prompt, in order; what the harness wrote in his name is folded context."""
    for header, records in served.logs:
        cards = list(_told(served, header["id"]))
        messages = [(n, r["data"]) for n, r in enumerate(records) if r["type"] == "user/message"]
        human = [n for n, data in messages if data["source"]["kind"] == "user"]
        assert [card.place.ordinal for card in cards if isinstance(card, Prompt)] == human
        context = {card.place.ordinal for card in cards if isinstance(card, Folded) and card.kind == "context"}
        assert {n for n, _ in messages} - set(human) <= context


def _calls(records: list[dict[str, Any]]) -> dict[int, int | None]:
    """Return {ordinal of a recorded call: ordinal of its first result}."""
    found: dict[int, int | None] = {}
    waiting: dict[str, int] = {}
    for ordinal, record in enumerate(records):
        data = record["data"]
        if record["type"] == "tool/call":
            found[ordinal] = None
            waiting[data["callId"]] = ordinal
        if record["type"] == "tool/result" and record.get("surfaceOp") == "append":
            call = waiting.pop(data["message"]["source"].get("callId"), None)
            if call is not None:
                found[call] = ordinal
    return found


async def test_calls_have_their_results(served: Served) -> None:
    """A call and its result are one card, or two that name each other where a page ends between them."""
    for header, records in served.logs:
        tools = [card for card in _told(served, header["id"]) if isinstance(card, Tool) and card.recorded]
        by_place = {card.place.ordinal: card for card in tools}
        for call, result in _calls(records).items():
            card = by_place[call]
            if result is None:  # nothing, or what was added to close a turn that was cut off
                assert card.outcome in ("missing", "failed", "waiting")
                assert card.partner is None or card.partner >= len(records)
            elif card.has_both:
                assert card.partner == result
                assert result not in by_place
            else:
                assert (card.outcome_text, card.partner) == ("result on a later page", result)
                assert by_place[result].partner == call


_SEEDS: Final = {True: "fork", False: "resume"}


def _borders(header: dict[str, Any], records: list[dict[str, Any]]) -> list[tuple[int, str]]:
    found = []
    for ordinal, record in enumerate(records):
        data, kind = record["data"], None
        match record["type"]:
            case "session/end-seed":
                seeded = data.get("inherited") is True or ordinal <= _packed(records, header.get("seedLength"))
                kind = _SEEDS[seeded]
            case "compaction/summary":
                kind = "compaction"
            case "working-directory/change":
                kind = "directory"
            case "subagent/descriptor":
                kind = "subagent"
            case "turn/end" if data["reason"]["kind"] != "completed":
                kind = "end"
        if kind:
            found.append((ordinal, kind))
    return found


def _packed(records: list[dict[str, Any]], length: int | None) -> int:
    """Return the record before which so many events of generation 0 lie; -1 for none."""
    if length is None:
        return -1
    return next((n for n, r in enumerate(records) if r.get("seq", r.get("seq0", 0)) >= length), len(records))


async def test_borders_are_where_the_log_has_them(served: Served) -> None:
    """Forks, resumes, compactions, moves, heads of subagents and bad ends stand at their own records."""
    for header, records in served.logs:
        borders = [card for card in _told(served, header["id"]) if isinstance(card, Border)]
        placed = [(card.place.ordinal, card.kind) for card in borders if card.place]
        assert placed == _borders(header, records), header["id"]
        homeless = {card.kind for card in borders if card.place is None}
        assert homeless <= {"damage"}


async def test_prompts_that_never_ran_are_shown(served: Served) -> None:
    """A queued prompt that no message consumed is shown where it was queued, whichever page that is."""
    for header, records in served.logs:
        ran = {record["data"].get("id") for record in records if record["type"] == "user/message"}
        lost = [
            ordinal
            for ordinal, record in enumerate(records)
            if record["type"] == "agent/inbox/spliced"
            for message in record["data"].get("inserted") or []
            if message["source"]["kind"] == "user" and message["id"] not in ran
        ]
        shown = [card.place.ordinal for card in _told(served, header["id"]) if isinstance(card, Queued)]
        assert shown == lost, header["id"]


async def test_children_are_linked(served: Served) -> None:
    """A subagent that the log names and the store holds is a card that leads to it."""
    ids = {header["id"] for header, _ in served.logs}
    for header, records in served.logs:
        named = [
            record["data"]["childId"]
            for record in records
            if record["type"] in ("subagent/catalog", "tool-workflow/agent-start")
        ]
        cards = [card for card in _told(served, header["id"]) if isinstance(card, Subagent)]
        assert [card.child_id for card in cards] == [name if name in ids else None for name in named]
