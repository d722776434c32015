"""Getting about inside a session: the rail of all turns, finding with hits before and behind, what is hidden."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from datasette.app import Datasette

from sessiongraph_web import access
from tests.asgi import Answer, Pairs, ask
from tests.builders import Log
from tests.world import HOME, World

pytestmark = pytest.mark.asyncio

TURNS: Final = 60
WORD: Final = "amberfish"
HITS: Final = (7, 31, 55)  # the turns that hold the word
FAILED: Final = (3, 30, 58)  # the turns whose call failed
RAIL: Final = re.compile(
    r'<li(?P<here> class="here")?><a href="(?P<url>[^"]+)"[^>]*><span class="turn-number">(?P<n>[^<]+)'
)


class Site:
    """A served world, asked as its owner."""

    def __init__(self, world: World, datasette: Datasette) -> None:
        self.world, self.datasette = world, datasette
        self.owner: Pairs = [("authorization", f"Bearer {world.token(access.OWNER)}")]

    async def get(self, path: str) -> Answer:
        return await ask(self.datasette, path, headers=self.owner)

    async def page(self, **given: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in given.items())
        answer = await self.get(f"/sessions/{self.world.ids['long']}?{query}")
        assert answer.status == 200
        return answer.text


def _long() -> Log:
    log = Log(HOME)
    for number in range(1, TURNS + 1):
        word = WORD if number in HITS else "plain"
        output = "no\n[exit code: 2]" if number in FAILED else "ok"
        log.turn(f"prompt {number} {word}", f"answer {number}", [("bash", '{"command":"ls"}', output)])
    log.start_turn("and then it broke")
    log.end_turn(kind="error", error={"message": "no"})
    return log


def _unasked() -> Log:
    """Return a session that went on by itself: with words, with calls, and with nothing at all."""
    log = Log(HOME).turn("asked", "answered")
    calls = (
        ("bash", '{"command":"make \\"all\\" now","timeout":5}'),
        ("read", '{"limit":3}'),
        ("grep", '{"pattern":"' + "x" * 36 + '\\ud83d\\ude00"}'),  # cut between the halves of a character
    )
    for number in range(5):
        log.turns += 1
        log.event("turn/start", {"turn": log.turns})
        log.user("go on", kind="goal")
        if number == 0:
            log.assistant("I <go> on.")
        elif number < 4:
            log.call(f"call_{number}", *calls[number - 1])
            log.result(f"call_{number}", "ok")
        log.end_turn(kind="error", error={"message": "no"})
    return log


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    world = World(tmp_path / "sessions", tmp_path / "index")
    parent = world.write("long", _long())
    many = Log(HOME)
    for number in range(1000):
        many.turn(f"p{number}", "a")
    world.write("many", many)
    child = Log(HOME, parent=parent.id, origin="subagent").turn("count", f"There are **{WORD}** three.")
    world.write("child", child)
    boss = Log(HOME)
    boss.start_turn("delegate")
    boss.event("subagent/catalog", {"childId": child.id, "mode": "one-shot", "label": "Counter"})
    boss.end_turn()
    world.write("boss", boss)
    world.write("unasked", _unasked())
    datasette = world.build().serve()
    await datasette.invoke_startup()
    yield Site(world, datasette)
    await datasette.invoke_shutdown()


async def test_the_rail_has_every_turn_on_every_page(site: Site) -> None:
    """Whichever page is read, all turns are marks, those of the page are marked, and every failure is told."""
    for given in ({}, {"last": "1"}, {"at": "200"}):
        page = await site.page(**given)
        assert [found["n"] for found in RAIL.finditer(page)] == [str(n) for n in range(1, TURNS + 2)]
        shown = set(re.findall(r'aria-label="Turn (\d+)"', page))
        assert {found["n"] for found in RAIL.finditer(page) if found["here"]} == shown
        marks = re.findall(r'<span class="turn-number">(\d+)(?:(?!</li>).)*title="1 failure"', page, re.DOTALL)
        assert marks == [str(number) for number in (*FAILED, TURNS + 1)]


async def test_a_mark_leads_to_its_turn(site: Site) -> None:
    """Its link opens the page that holds the turn's prompt, and names it."""
    page = await site.page()
    for found in list(RAIL.finditer(page))[::13]:
        url = unescape(found["url"])
        target = await site.get(url.partition("#")[0])
        anchor = url.partition("#")[2]
        assert re.search(rf'<article class="card prompt[^"]*" id="{anchor}"', target.text), url
        assert f"prompt {found['n']} " in target.text


async def test_very_many_turns_are_put_together(site: Site) -> None:
    """A thousand turns are a bounded number of marks that leave none out."""
    page = (await site.get(f"/sessions/{site.world.ids['many']}")).text
    labels = [found["n"] for found in RAIL.finditer(page)]
    ranges = [tuple(map(int, label.split("–"))) for label in labels]
    assert 100 <= len(labels) <= 400
    assert (ranges[0][0], ranges[-1][-1]) == (1, 1000)
    assert all(after[0] == before[-1] + 1 for before, after in itertools.pairwise(ranges))


@pytest.mark.parametrize(("language", "nothing"), [("en", "no prompt"), ("zh-CN", "无提示")])
async def test_a_turn_that_nobody_asked_for_says_what_it_begins_with(
    site: Site, language: str, nothing: str
) -> None:
    """Its mark tells the first words, or the first call with its main argument; else that there is no prompt."""
    path = f"/sessions/{site.world.ids['unasked']}"
    page = (await ask(site.datasette, path, headers=[*site.owner, ("accept-language", language)])).text
    marks = re.findall(
        r'<span class="turn-prompt.*?</span>(?=</a>|<span class="bad"|<svg class="turn-bar")', page
    )
    said = [unescape(re.sub(r"<[^>]+>", "", mark)) for mark in marks]
    colon = "：" if language == "zh-CN" else ": "
    assert said == [
        "asked",
        f"{nothing}{colon}I <go> on.",
        f'{nothing}{colon}bash make "all" now',
        f"{nothing}{colon}read",
        f"{nothing}{colon}grep {'x' * 36}\\ud83d",
        nothing,
    ]


async def test_finding_goes_from_hit_to_hit_over_all_pages(site: Site) -> None:
    """A search inside a session opens its first hit; each hit leads to the next, and back."""
    first = await site.get(f"/sessions/{site.world.ids['long']}?find={WORD}")
    assert first.status == 302
    url: str | None = first.header("location")
    seen, back = [], None
    while url:
        page = (await site.get(url.partition("#")[0])).text
        anchor = url.partition("#")[2]
        card = re.search(rf'<article class="card prompt found" id="{anchor}".*?</article>', page, re.DOTALL)
        assert card, url
        seen.append(int(re.search(r"prompt (\d+)", card[0])[1]))  # type: ignore[index]
        assert f"{len(seen)} of {len(HITS)} matches" in page
        ways = {
            label: unescape(href) for href, label in re.findall(r'href="([^"]+)" data-hit="[^"]+">(\w+)', page)
        }
        assert ways.get("Previous") == back
        back, url = url, ways.get("Next")
    assert seen == list(HITS)


async def test_of_two_logs_with_one_id_each_is_searched_alone(tmp_path: Path) -> None:
    """Finding inside one of them opens its own first hit, counts its own, and stays with it."""
    world = World(tmp_path / "sessions", tmp_path / "index")
    for number, cwd in enumerate((HOME, "/w/b")):
        log = Log(cwd, id="session-twin").turn("plain", "answer")
        for _ in range(number + 1):
            log.turn(WORD, "answer")
        world.write(cwd, log)
    datasette = world.build().serve()
    await datasette.invoke_startup()
    site = Site(world, datasette)
    for number, log_id in enumerate(world.log_ids.values()):
        first = await site.get(f"/sessions/session-twin?log={log_id}&find={WORD}")
        assert first.status == 302
        url = first.header("location") or ""
        assert f"log={log_id}" in url
        total = "1 match" if number == 0 else "2 matches"
        assert f"1 of {total} for" in (await site.get(url.partition("#")[0])).text
    await datasette.invoke_shutdown()


async def test_what_is_not_there_is_said(site: Site) -> None:
    """A search without a hit stays where the reader is and says so."""
    page = await site.page(find="greyheron")
    assert "0 matches" in page


async def test_the_address_says_what_is_hidden(site: Site) -> None:
    """Kinds that are hidden are so after a reload, and on the pages that this one leads to."""
    page = await site.page(hide="tools,notes", view="focus")
    boxes = dict(re.findall(r'id="show-(\w+)" value="\w+"( checked)?', page))
    assert boxes == {"tools": "", "reasoning": " checked", "context": " checked", "notes": ""}
    following = unescape(re.search(r'rel="next" href="([^"]+)"', page)[1])  # type: ignore[index]
    assert "hide=tools%2Cnotes" in following
    assert "view=focus" in following


async def test_a_subagent_unfolds_what_it_said_last(site: Site) -> None:
    """The card of a child holds its last answer as Markdown, folded."""
    page = (await site.get(f"/sessions/{site.world.ids['boss']}")).text
    card = re.search(r'<article class="card subagent.*?</article>', page, re.DOTALL)
    assert card
    assert "<details" in card[0]
    assert f"There are <strong>{WORD}</strong> three." in card[0]


async def test_every_hit_of_a_search_opens_at_its_event(site: Site) -> None:
    """The page that a hit leads to holds the event, marked, with neighbours before and behind it."""
    results = await site.get(f"/search?q={WORD}&group=none&kinds=user")
    urls = [unescape(url) for url in re.findall(r'<a class="row-title" href="([^"]+)"', results.text)]
    assert len(urls) == len(HITS)
    for url in urls:
        path, _, anchor = url.partition("#")
        page = (await site.get(path)).text
        places = [int(place) for place in re.findall(r' id="e(\d+)"', page)]
        at = int(anchor.removeprefix("e"))
        assert f'found" id="{anchor}"' in page
        assert min(places) <= at - 3
        assert max(places) >= at + 3


async def test_a_search_says_how_to_go_on_where_nothing_is_found(site: Site) -> None:
    """Without a hit the page offers other ways to ask; more filters are folded, with what was chosen in them."""
    page = (await site.get("/search?q=greyheron&after=2026-01-01&tool=bash")).text
    assert "Nothing found" in page
    assert '<a href="/search?q=greyheron">the same without filters</a>' in page
    assert 'name="after" aria-label="From" value="2026-01-01"' in page
    assert 'name="tool" aria-label="Tool" value="bash"' in page


async def test_the_pictures_lead_on_by_keyboard(tmp_path: Path) -> None:
    """Of two hundred relatives each box is a link to whom it stands for; two years of days lead to the first."""
    world = World(tmp_path / "sessions", tmp_path / "index")
    root = world.write("root", Log(HOME, created_at=1_700_000_000_000).turn("begin", "begun"))
    for number in range(200):
        log = Log(HOME, parent=root.id, origin="subagent", created_at=1_760_000_000_000)
        world.write(f"child {number}", log.turn(f"part {number}", "done"))
    datasette = world.build().serve()
    await datasette.invoke_startup()
    site = Site(world, datasette)
    trace = (await site.get(f"/trace/{root.id}")).text
    timeline = (await site.get("/timeline")).text
    earlier = unescape(re.search(r'href="([^"]+)">← the year before', timeline)[1])  # type: ignore[index]
    before = (await site.get(earlier)).text
    await datasette.invoke_shutdown()
    boxes = re.findall(
        r'<g class="node ([a-z]+)">\s*<a href="(?:/sessions/[^"]+"><title>[^<]+</title>|#line-11")', trace
    )
    assert boxes == ["self", *["subagent"] * 10, "gap"] * 2
    assert trace.count('<li id="line-') == 201
    assert "190 sessions more are in the list below" in trace
    assert '<a href="/timeline?day=2023-11-14"><title>2023-11-14: 1 session' in before
    assert "the year after →" in before
