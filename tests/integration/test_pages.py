"""Pages and their JSON twins as a client meets them: content, addresses, errors, bounds."""

from __future__ import annotations

import io
import json
import re
import shlex
import zipfile
from collections.abc import AsyncIterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from datasette.app import Datasette

from sessiongraph_web import access, config, schema
from sessiongraph_web.access import Caller
from sessiongraph_web.web import render, routes
from sessiongraph_web.web.links import canonical
from tests.asgi import Answer, Pairs, ask
from tests.builders import Log
from tests.shared import shared_folders
from tests.world import FOREIGN, HOME, HOME_WORD, World, two_workspaces

pytestmark = pytest.mark.asyncio
PAGE_BYTES = 300_000
ODD_ID = "weird id/../with~特殊.json"


class Rich:
    """A world whose sessions hold one of everything, and who asks it."""

    def __init__(self, directory: Path) -> None:
        self.world = two_workspaces(directory)
        odd = Log(HOME, id=ODD_ID)
        odd.turn("what is odd?", "An **id**.")
        self.world.write("odd", odd)
        giant = Log(HOME)
        for number in range(120):
            giant.turn("<b>" * 2000, "广告 `x` " * 2000, [("bash", '{"command":"x"}', "\x1b[31mred\n" * 3000)])
            giant.title(f"giant {number} " + "长" * 500)
        self.world.write("giant", giant)
        hostile = Log(HOME)
        for number in range(40):
            hostile.todo(*[("<" * 500, "pending")] * 200)
            hostile.call(f"c{number}", "<" * 500, json.dumps({"command": "<" * 5000}))
            hostile.result(f"c{number}", "<" * 9000, error="<" * 500)
            hostile.event("unknown/" + "<" * 500, {"x": ["<" * 100] * 500})
        self.world.write("hostile", hostile)
        self.world.build()
        self.owner: Pairs = [("authorization", f"Bearer {self.world.token(access.OWNER)}")]
        self.scoped: Pairs = self.bearer(access.workspaces(HOME))

    def bearer(self, caller: Caller) -> Pairs:
        return [("authorization", f"Bearer {self.world.token(caller)}")]

    def pages(self) -> list[str]:
        """Return an address of every page."""
        found = ["/", f"/search?q={HOME_WORD}", f"/search?q={HOME_WORD}&group=none", "/timeline", "/workspaces"]
        found += ["/status", "/status?ledger=1"]
        for role in ("home", "fork", "odd", "giant", "hostile"):
            spelled = canonical(self.world.ids[role])
            found += [f"/sessions/{spelled}", f"/sessions/{spelled}/events", f"/sessions/{spelled}/events/3"]
            found += [f"/sessions/{spelled}?view=focus", f"/sessions/{spelled}?last=1", f"/trace/{spelled}"]
            found += [f"/sessions/{spelled}/events/-?ordinal=2"]
        return found


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Rich:
    return Rich(tmp_path_factory.mktemp("pages"))


@pytest_asyncio.fixture
async def served(rich: Rich) -> AsyncIterator[Datasette]:
    datasette = rich.world.serve()
    await datasette.invoke_startup()
    yield datasette
    await datasette.invoke_shutdown()


class Page(HTMLParser):
    """A page as a browser has it: elements, links, ids, and the text that is seen."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(answer.text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]


def twin(path: str) -> str:
    """Return the address of a page's JSON."""
    head, _, query = path.partition("?")
    return f"{head}.json" + (f"?{query}" if query else "")


async def test_every_page_and_its_twin_answer(rich: Rich, served: Datasette) -> None:
    """Each page is HTML of bounded weight, and its twin the same answer as data; neither is cached."""
    for path in rich.pages():
        page, data = (
            await ask(served, path, headers=rich.owner),
            await ask(served, twin(path), headers=rich.owner),
        )
        assert (path, page.status, data.status) == (path, 200, 200)
        assert len(page.body) < PAGE_BYTES, path
        assert json.loads(data.body)["ok"] is True
        assert page.header("cache-control") == data.header("cache-control") == "private, no-store"
        assert twin(path) in [unescape(value) for value in Page(page).values("href")]


async def test_only_the_owner_is_told_how_to_resume(tmp_path: Path) -> None:
    """Whoever has the machine gets the command and its words to copy; visitors of any kind do not."""
    world = two_workspaces(tmp_path)
    quoted = world.write("quoted", Log("/w/it's \n", id="session-odd").turn("hello", "hi"))
    spaced = world.write("spaced", Log("/w/it's", id="session-odd'too").turn("hello", "hi"))
    datasette = world.build().serve()
    callers = {
        "owner": access.OWNER,
        "workspace": access.workspaces(HOME),
        "session": access.Caller("session", frozenset({HOME}), world.log_ids["home"], with_descendants=True),
    }
    told: dict[tuple[str, str], str | None] = {}
    for name, caller in callers.items():
        headers = [("authorization", f"Bearer {world.token(caller)}")]
        for role in ("home", "nowhere", "spaced", "quoted"):
            path = f"/sessions/{canonical(world.ids[role])}"
            page, data = (
                await ask(datasette, path, headers=headers),
                await ask(datasette, twin(path), headers=headers),
            )
            if page.status != 200:
                continue
            told[name, role] = json.loads(data.body)["resume_command"]
            copied = [value for value in Page(page).values("data-text") if "--resume" in value]
            assert copied == ([told[name, role]] if told[name, role] else [])
    home = f"cd {HOME} && dsh --profile tui --resume {world.ids['home']}"
    assert told == {
        ("owner", "home"): home,
        ("owner", "nowhere"): None,
        (
            "owner",
            "spaced",
        ): f"cd {shlex.quote(spaced.cwd or '')} && dsh --profile tui --resume {shlex.quote(spaced.id)}",
        ("owner", "quoted"): None,
        ("workspace", "home"): None,
        ("session", "home"): None,
    }
    assert quoted.cwd != spaced.cwd


async def test_datasette_is_offered_where_it_may_be_opened(tmp_path: Path) -> None:
    """Who sees a whole workspace is led to its tables, which answer; who sees one session is not."""
    world = two_workspaces(tmp_path)
    datasette = world.build().serve()
    session = access.Caller("session", frozenset({HOME}), world.log_ids["home"], with_descendants=True)
    paths = [f"/sessions/{world.ids['home']}", f"/trace/{world.ids['home']}", "/workspaces"]
    for caller, cwds in (
        (access.OWNER, {HOME, FOREIGN, None}),
        (access.workspaces(HOME), {HOME}),
        (session, set()),
    ):
        headers = [("authorization", f"Bearer {world.token(caller)}")]
        offered = {
            path: {
                link
                for link in Page(await ask(datasette, path, headers=headers)).values("href")
                if "/ws_" in link
            }
            for path in paths
        }
        home = {f"/{schema.database_name(HOME)}"} if HOME in cwds else set()
        assert offered == {
            paths[0]: home,
            paths[1]: home,
            paths[2]: {f"/{schema.database_name(cwd)}" for cwd in cwds},
        }
        for link in offered["/workspaces"]:
            assert (await ask(datasette, link, headers=headers)).status == 200
        assert (
            offered["/workspaces"]
            or (await ask(datasette, f"/{schema.database_name(HOME)}", headers=headers)).status == 404
        )


async def test_pages_hold_nothing_inline_and_name_all_they_hold(rich: Rich, served: Datasette) -> None:
    """No script or style is inline, ids are unique, one h1 and one main, every image and input has a name."""
    for path in rich.pages():
        page = Page(await ask(served, path, headers=rich.owner))
        tags = [tag for tag, _ in page.elements]
        ids = page.values("id")
        assert (path, tags.count("h1"), tags.count("main"), len(ids)) == (path, 1, 1, len(set(ids)))
        assert "style" not in tags
        assert all("src" in attributes for tag, attributes in page.elements if tag == "script")
        for tag, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on") or name == "style"], (path, tag)
            if tag in ("input", "img") and attributes.get("type") not in ("hidden", "checkbox"):
                assert {"aria-label", "alt"} & set(attributes), (path, attributes)


async def test_a_transcript_and_its_twin_show_the_same_events(rich: Rich, served: Datasette) -> None:
    """Every event of the twin has its place on the page: as a card, inside one, or as bookkeeping."""
    path = f"/sessions/{rich.world.ids['home']}"
    page = Page(await ask(served, path, headers=rich.owner))
    events = json.loads((await ask(served, twin(path), headers=rich.owner)).body)["events"]
    shown = {int(found[1]) for value in page.values("id") if (found := re.fullmatch(r"e(\d+)", value))}
    assert {event["ordinal"] for event in events} == shown
    assert f"The {HOME_WORD} is here." in page.text


async def test_search_results_and_their_twin_agree(rich: Rich, served: Datasette) -> None:
    """The same sessions in the same order, with the matches marked."""
    path = f"/search?q={HOME_WORD}"
    page = await ask(served, path, headers=rich.owner)
    sessions = json.loads((await ask(served, twin(path), headers=rich.owner)).body)["sessions"]
    linked = re.findall(r'<a class="row-title" href="/sessions/([^?"]+)', page.text)
    assert linked == [canonical(found["session"]["id"]) for found in sessions]
    assert page.text.count(f"<mark>{HOME_WORD}</mark>") >= len(sessions) > 0


async def test_a_twin_is_not_sent_again_unchanged(rich: Rich, served: Datasette) -> None:
    """A twin carries the hash of its body; who has it gets 304 and no body."""
    path = f"/sessions/{rich.world.ids['home']}.json"
    first = await ask(served, path, headers=rich.owner)
    tag = first.header("etag") or ""
    again = await ask(served, path, headers=[*rich.owner, ("if-none-match", tag)])
    other = await ask(served, path, headers=[*rich.owner, ("if-none-match", '"other"')])
    assert (again.status, again.body, again.header("etag")) == (304, b"", tag)
    assert (other.status, other.body) == (200, first.body)


@pytest.mark.parametrize("tail", ["", ".json", "/events", "/events.json", "/events/1", "/events/1.json"])
async def test_foreign_and_missing_are_the_same_404(rich: Rich, served: Datasette, tail: str) -> None:
    """Whoever asks for what he may not see gets, byte for byte, what he gets for what is not there."""
    foreign = await ask(served, f"/sessions/{rich.world.ids['foreign']}{tail}", headers=rich.scoped)
    missing = await ask(served, f"/sessions/session-{'0' * 32}{tail}", headers=rich.scoped)
    assert (foreign.status, foreign.headers, foreign.body) == (404, missing.headers, missing.body)


@pytest.mark.parametrize(
    "noun", ["trace/{}", "trace/{}.json", "export/{}.zip", "sessions/{}/attachments/" + "0" * 64]
)
async def test_every_route_of_a_foreign_session_is_a_404(rich: Rich, served: Datasette, noun: str) -> None:
    """No route tells foreign from missing."""
    foreign = await ask(served, "/" + noun.format(rich.world.ids["foreign"]), headers=rich.scoped)
    missing = await ask(served, "/" + noun.format(f"session-{'0' * 32}"), headers=rich.scoped)
    assert (foreign.status, foreign.body) == (404, missing.body)


async def test_a_404_repeats_nothing_of_its_address(rich: Rich, served: Datasette) -> None:
    """An address carries no message to the reader."""
    page = await ask(served, "/sessions/call-0800-now", headers=rich.owner)
    assert page.status == 404
    assert "0800" not in page.text


@pytest.mark.parametrize(
    ("spelled", "means"),
    [
        ("weird%20id%2F..%2Fwith~%E7%89%B9%E6%AE%8A.json", ODD_ID.removesuffix(".json") + ".json"),
        ("weird%20id%2F..%2Fwith~%E7%89%B9%E6%AE%8A%2Ejson", ODD_ID),
    ],
)
async def test_another_spelling_leads_to_the_canonical_one(
    rich: Rich, served: Datasette, spelled: str, means: str
) -> None:
    """A percent-encoded id is decoded once and redirected, with its query; a suffix stays a suffix."""
    answer = await ask(served, f"/sessions/{spelled}?last=1", headers=rich.owner)
    expected = canonical(means) if "%2Ejson" in spelled else canonical(means.removesuffix(".json")) + ".json"
    assert (answer.status, answer.header("location")) == (302, f"/sessions/{expected}?last=1")


async def test_an_odd_id_has_a_page(rich: Rich, served: Datasette) -> None:
    """An id with slashes, dots and a suffix is one segment of a path and no file."""
    page = await ask(served, f"/sessions/{canonical(ODD_ID)}", headers=rich.owner)
    assert page.status == 200
    assert "what is odd?" in page.text


@pytest.mark.parametrize("path", ["/sessions/%ff", "/sessions/%00", "/sessions/..%2f..%2fetc%2fpasswd"])
async def test_paths_that_mean_no_session_are_not_found(rich: Rich, served: Datasette, path: str) -> None:
    """Bytes that are no id, and ids that look like paths, find nothing."""
    answer = await ask(served, path, headers=rich.owner)
    while answer.status == 302:
        answer = await ask(served, answer.header("location") or "", headers=rich.owner)
    assert answer.status == 404


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/search.json?q=a&colour=red", "colour"),
        ("/timeline.json?limit=x", "limit"),
        ("/workspaces.json?q=a", "q"),
        ("/trace/{}.json?ordinal=1", "ordinal"),
        ("/.json?day=2026-01-01", "day"),
    ],
)
async def test_a_wrong_parameter_is_named(rich: Rich, served: Datasette, path: str, name: str) -> None:
    """The error has Datasette's shape, a code, and the name of what is wrong."""
    answer = await ask(served, path.format(rich.world.ids["home"]), headers=rich.owner)
    body = json.loads(answer.body)
    assert (answer.status, body["ok"], body["status"], body["errors"]) == (400, False, 400, [body["error"]])
    assert f"`{name}`" in body["error"]
    assert body["code"].startswith("SESSION_QUERY_INVALID_")


async def test_a_configuration_may_close_what_a_caller_was_given(rich: Rich) -> None:
    """Datasette's own `allow` blocks hold on our pages too: they can narrow, for the owner as well."""
    plugins = {config.PLUGIN_NAME: rich.world.options}
    datasette = Datasette(config={"plugins": plugins, "allow": {"id": "somebody-else"}})
    await datasette.invoke_startup()
    answers = [await ask(datasette, path, headers=rich.owner) for path in ("/", "/search.json?q=x", "/status")]
    await datasette.invoke_shutdown()
    assert [answer.status for answer in answers] == [404, 404, 404]


async def test_an_empty_search_teaches_people_and_refuses_programs(rich: Rich, served: Datasette) -> None:
    """Without a query the page says how to write one; the twin is an error."""
    page, data = (
        await ask(served, "/search", headers=rich.owner),
        await ask(served, "/search.json", headers=rich.owner),
    )
    assert (page.status, data.status) == (200, 400)
    assert "connection reset" in page.text
    assert json.loads(data.body)["code"] == "SESSION_QUERY_INVALID_QUERY"


async def test_methods_that_a_page_does_not_take_are_named(rich: Rich, served: Datasette) -> None:
    """A route says which methods it takes; HEAD has no body."""
    home = f"/sessions/{rich.world.ids['home']}"
    refused = await ask(served, "/status/refresh", headers=rich.owner)
    assert (refused.status, refused.header("allow")) == (405, "POST")
    for path in (home, f"{home}.json", "/"):
        answer = await ask(served, path, method="HEAD", headers=rich.owner)
        assert (answer.status, answer.body) == (200, b"")


async def test_the_readers_zone_comes_with_a_cookie(rich: Rich, served: Datasette) -> None:
    """Days are those of the zone that the browser told; a request that names one wins; nonsense is ignored."""
    for cookie, query, zone in (
        ("Asia/Shanghai", "", "Asia/Shanghai"),
        ("Asia/Shanghai", "?tz=Europe/Paris", "Europe/Paris"),
        ("../../etc/passwd", "", "UTC"),
        ("No/Where", "", "UTC"),
    ):
        headers = [*rich.owner, ("cookie", f"sg_zone={cookie}")]
        answer = await ask(served, f"/timeline.json{query}", headers=headers)
        assert json.loads(answer.body)["zone"] == zone


async def test_one_id_with_two_logs_offers_both(tmp_path: Path) -> None:
    """Two logs that carry one id are 300 with a link each, for people and for programs."""
    world = World(tmp_path / "sessions", tmp_path / "index")
    for cwd in (HOME, FOREIGN):
        world.write(cwd, Log(cwd, id="session-twice").turn(f"asked in {cwd}", "answered"))
    datasette = world.build().serve()
    await datasette.invoke_startup()
    owner = [("authorization", f"Bearer {world.token(access.OWNER)}")]
    page = await ask(datasette, "/sessions/session-twice", headers=owner)
    data = await ask(datasette, "/sessions/session-twice.json", headers=owner)
    links = [value for value in Page(page).values("href") if value.startswith("/sessions/session-twice?log=")]
    opened = [(await ask(datasette, link, headers=owner)).text for link in links]
    await datasette.invoke_shutdown()
    assert (page.status, data.status) == (300, 300)
    assert json.loads(data.body)["logs"] == sorted(world.log_ids.values())
    assert [[f"asked in {cwd}" in text for cwd in (HOME, FOREIGN)].count(True) for text in opened] == [1, 1]


async def test_an_outdated_cursor_leads_people_to_the_same_place(tmp_path: Path) -> None:
    """When the history changed, a page goes on at the same place and says so; the twin is an error."""
    world = World(tmp_path / "sessions", tmp_path / "index")
    for number in range(3):
        world.write(str(number), Log(HOME).turn(f"prompt {number}", "answer"))
    datasette = world.build().serve()
    await datasette.invoke_startup()
    owner = [("authorization", f"Bearer {world.token(access.OWNER)}")]
    cursor = json.loads((await ask(datasette, "/timeline.json?limit=1", headers=owner)).body)["next_cursor"]
    world.write("new", Log(HOME).turn("a new prompt", "answer"))
    world.build()
    page = await ask(datasette, f"/timeline?limit=1&cursor={cursor}", headers=owner)
    data = await ask(datasette, f"/timeline.json?limit=1&cursor={cursor}", headers=owner)
    again = await ask(datasette, page.header("location") or "", headers=owner)
    await datasette.invoke_shutdown()
    led = f"/timeline?limit=1&cursor={json.loads(data.body)['cursor']}&view=changed"
    assert (page.status, page.header("location")) == (302, led)
    assert (data.status, json.loads(data.body)["code"]) == (409, "SESSION_QUERY_STALE_CURSOR")
    assert "The history changed meanwhile" in again.text


async def test_only_the_owner_runs_the_index(rich: Rich, served: Datasette) -> None:
    """Refresh brings the owner back to the status page; to others there is no such page."""
    mine = await ask(served, "/status/refresh", method="POST", headers=rich.owner)
    theirs = await ask(served, "/status/refresh", method="POST", headers=rich.scoped)
    assert (mine.status, mine.header("location"), theirs.status) == (303, "/status", 404)


@pytest.mark.parametrize("with_descendants", [False, True])
async def test_a_one_session_caller_has_every_page_of_it(
    rich: Rich, served: Datasette, with_descendants: bool
) -> None:
    """Who was given one session reads it on every page, and learns nothing of what stands beside it."""
    log_id = rich.world.log_ids["home"]
    caller = Caller("session", frozenset({HOME}), log_id, with_descendants, "reader")
    headers = rich.bearer(caller)
    spelled = rich.world.ids["home"]
    paths = ["/", "/timeline", "/workspaces", "/status", f"/search?q={HOME_WORD}", f"/sessions/{spelled}"]
    for path in [*paths, f"/sessions/{spelled}/events/1", f"/trace/{spelled}"]:
        page, data = await ask(served, path, headers=headers), await ask(served, twin(path), headers=headers)
        assert (path, page.status, data.status) == (path, 200, 200)
        for role, other in rich.world.ids.items():
            if role not in ("home", "fork", "subagent"):
                assert canonical(other) not in page.text, (path, role)
        assert FOREIGN not in page.text
    fork = await ask(served, f"/sessions/{rich.world.ids['fork']}", headers=headers)
    assert fork.status == (200 if with_descendants else 404)


async def test_a_scoped_page_says_what_it_is_scoped_to(rich: Rich, served: Datasette) -> None:
    """A caller with one workspace is told so on every page, and sees nothing of others."""
    page = Page(await ask(served, "/", headers=rich.scoped))
    assert f"You see {HOME} and nothing else." in " ".join(page.text.split())
    assert FOREIGN not in page.text


async def test_static_files_are_for_ever(rich: Rich, served: Datasette) -> None:
    """A static file under its own hash never changes; under another hash it is not kept."""
    for name in sorted(render.asset_names()):
        answer = await ask(served, render.asset(name))
        assert (answer.status, answer.body) == (200, (render.STATIC / name).read_bytes())
        assert answer.header("cache-control") == "public, max-age=31536000, immutable"
    stale = await ask(served, f"/static/{'0' * 12}/style.css")
    assert stale.header("cache-control") == "private, no-store"
    assert (await ask(served, "/static/000000000000/no-such.css", headers=rich.owner)).status == 404


async def test_openapi_describes_every_route(rich: Rich, served: Datasette) -> None:
    """The description is generated from the registry: each path with its parameters."""
    described = json.loads((await ask(served, "/openapi.json", headers=rich.owner)).body)["paths"]
    for route in routes.ROUTES:
        if route.access == "public":
            continue
        methods: dict[str, Any] = described[route.template + (".json" if route.twin else "")]
        for operation in methods.values():
            names = {found["name"] for found in operation["parameters"] if found["in"] == "query"}
            assert names == {parameter.name for parameter in route.parameters}


async def test_no_route_belongs_to_no_plugin(rich: Rich, served: Datasette) -> None:
    """Every route of the registry is served, by exactly one plugin."""
    served_patterns = [pattern.pattern for pattern, _ in served._routes()]
    assert [served_patterns.count(route.pattern) for route in routes.ROUTES] == [1] * len(routes.ROUTES)


async def test_a_session_downloads_as_a_zip(rich: Rich, served: Datasette) -> None:
    """The ZIP holds the log as stored; HEAD has the same headers and no body."""
    path = f"/export/{canonical(ODD_ID)}.zip"
    whole = await served.client.get(path, headers=dict(rich.owner))
    head = await served.client.head(path, headers=dict(rich.owner))
    assert (whole.status_code, head.status_code, head.content) == (200, 200, b"")
    assert whole.headers["content-disposition"] == head.headers["content-disposition"]
    assert whole.headers["content-disposition"].startswith("attachment; filename=")
    names = zipfile.ZipFile(io.BytesIO(whole.content)).namelist()
    assert names[0] == "session.v4.jsonl"


@pytest.mark.shared
async def test_an_image_is_served_to_those_who_see_a_session_that_cites_it(shared: Path, tmp_path: Path) -> None:
    """An attachment comes with the type of its bytes, in place, and its hash alone opens nothing."""
    options = World(shared / "genuine" / "sessions", tmp_path / "index")
    owner = {"authorization": f"Bearer {options.build().token(access.OWNER)}"}
    datasette = options.serve()
    await datasette.invoke_startup()
    found = await datasette.client.get("/search.json?q=red.png&kinds=tool_call", headers=owner)
    session = found.json()["sessions"][0]["session"]
    events = (await datasette.client.get(f"/sessions/{session['id']}.json", headers=owner)).json()["events"]
    (sha256,) = set(re.findall(r"sha256:([0-9a-f]{64})", json.dumps(events)))
    image = await datasette.client.get(f"/sessions/{session['id']}/attachments/{sha256}", headers=owner)
    page = await datasette.client.get(f"/sessions/{session['id']}", headers=owner)
    other = await datasette.client.get(f"/sessions/{session['id']}/attachments/{'0' * 64}", headers=owner)
    await datasette.invoke_shutdown()
    assert (image.status_code, image.headers["content-type"]) == (200, "image/png")
    assert image.content.startswith(b"\x89PNG")
    assert image.headers["x-content-type-options"] == "nosniff"
    assert f'<img src="/sessions/{session["id"]}/attachments/{sha256}"' in page.text
    assert other.status_code == 404


@pytest.mark.shared
@pytest.mark.parametrize("case", [*shared_folders("field-cases", "W06"), *shared_folders("field-cases", "W08")])
async def test_hostile_logs_are_text_on_every_page(case: Path, tmp_path: Path) -> None:
    """Whatever a log holds in any field, pages run no script of it, load nothing of it, and hide nothing."""
    world = World(case / "sessions", tmp_path / "index").build()
    owner = [("authorization", f"Bearer {world.token(access.OWNER)}")]
    datasette = world.serve()
    await datasette.invoke_startup()
    listed = json.loads((await ask(datasette, "/timeline.json", headers=owner)).body)["sessions"]
    paths = ["/", "/timeline", "/workspaces", "/status?ledger=1", "/search?q=alert", "/search?q=question"]
    for session in listed:
        spelled = canonical(session["id"])
        paths += [f"/sessions/{spelled}", f"/sessions/{spelled}/events", f"/trace/{spelled}"]
        paths += [f"/sessions/{spelled}/events/{number}" for number in range(session["events"])]
    for path in paths:
        answer = await ask(datasette, path, headers=owner)
        page = Page(answer)
        assert (path, answer.status) == (path, 200)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", answer.text), path
        assert not {"iframe", "base", "object", "embed"} & {tag for tag, _ in page.elements}
        for tag, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on")], (path, tag, attributes)
            for name in {"href", "src", "action"} & set(attributes):
                assert attributes[name].startswith(("/", "#")), (path, tag, attributes)
                assert not attributes[name].startswith("//"), (path, tag, attributes)
    await datasette.invoke_shutdown()


async def test_an_event_is_also_shown_as_it_was_written(tmp_path: Path) -> None:
    """Beside what it means there is the record in its own spelling, masked for everyone but the owner."""
    secret = "gh" + "p_" + "a1B2c3D4" * 5
    world = World(tmp_path / "sessions", tmp_path / "index")
    log = world.write("old", Log(HOME, version=3).turn("go", "done", [("bash", "{}", f"the key is {secret}")]))
    written = next(one for one in log.events if one["type"] == "tool/result")
    datasette = world.build().serve()
    path = f"/sessions/{log.id}/events/{written['seq']}"
    for caller, is_masked in ((access.OWNER, False), (access.workspaces(HOME), True)):
        headers = [("authorization", f"Bearer {world.token(caller)}")]
        page, data = (
            await ask(datasette, path, headers=headers),
            await ask(datasette, twin(path), headers=headers),
        )
        raw = json.loads(data.body)["raw"]
        assert (secret in data.text, secret in page.text) == (not is_masked, not is_masked)
        assert (
            raw["data"]["message"]["role"] == "user"
        )  # generation 4 says `tool`, which is what the page shows first
        assert (raw == written) is not is_masked
        records = re.findall(r"<pre class=.code record.*?</pre>", page.text, re.DOTALL)
        roles = [re.search(r'"role": "(\w+)"', unescape(re.sub("<[^>]+>", "", record))) for record in records]
        assert [role and role[1] for role in roles] == ["tool", "user"]
