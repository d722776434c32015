"""The JSON API: one envelope, one shape of errors, strict JSON, validators, and a description that holds."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest
import pytest_asyncio
from datasette.app import Datasette

from sessiongraph_web import access
from sessiongraph_web.errors import CODES
from tests.asgi import Answer, ask, bearer
from tests.builders import Log
from tests.world import FOREIGN, HOME, HOME_WORD, World, two_workspaces

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Api:
    """A world, asked by somebody."""

    def __init__(self, world: World, datasette: Datasette) -> None:
        self.world, self.datasette = world, datasette
        self.owner = bearer(world.token(access.OWNER))
        self.scoped = bearer(world.token(access.workspaces(HOME)))

    async def get(self, url: str, *, headers: Any = None, method: str = "GET") -> Answer:
        return await ask(self.datasette, url, headers=self.owner if headers is None else headers, method=method)

    async def json(self, url: str, **given: Any) -> Any:
        return strictly((await self.get(url, **given)).body)


def strictly(body: bytes) -> Any:
    """Read strict JSON: UTF-8 without lone surrogates, no NaN or infinity, no name twice in an object."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        assert len(names) == len(set(names))
        return dict(pairs)

    value = json.loads(body.decode("utf-8"), parse_constant=refuse, object_pairs_hook=once)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    world = two_workspaces(tmp_path_factory.mktemp("api"))
    hostile = Log(HOME, id="session-" + "e" * 32)
    hostile.raw(
        b'{"type":"user/message","seq":0,"time":1e300,"data":{"content":[{"type":"text","text":'
        b'"lone \\ud800 and \\u0000 odd"}],"source":{"kind":"user"},"n":1e400,"big":'
        + b"9" * 40
        + b'},"surfaceOp":"append"}\n'
    )
    world.write("hostile", hostile)
    for cwd in (HOME, "/w/elsewhere"):
        world.write(f"twin {cwd}", Log(cwd, id="session-" + "f" * 32).turn("twice", "here"))
    world.write("old", Log("/w/elsewhere", version=0).turn("what is packed?", "an answer of a few pieces"))
    datasette = world.build().serve()
    await datasette.invoke_startup()
    yield Api(world, datasette)
    await datasette.invoke_shutdown()


TWINS = (
    "/.json",
    f"/search.json?q={HOME_WORD}",
    f"/search.json?q={HOME_WORD}&group=none&kinds=user,assistant,tool_result",
    "/sessions/{home}.json",
    "/sessions/{hostile}.json",
    "/sessions/{home}/events.json?limit=3",
    "/sessions/{home}/events/2.json?before=1&after=1",
    "/trace/{home}.json",
    "/timeline.json",
    "/workspaces.json",
    "/status.json",
    "/status.json?ledger=1",
)
ERRORS = (
    ("/search.json", 400, "SESSION_QUERY_INVALID_QUERY"),
    ("/search.json?q=a&limit=0", 400, "SESSION_QUERY_INVALID_LIMIT"),
    ("/search.json?q=a&colour=red", 400, "SESSION_QUERY_INVALID_FILTER"),
    ("/search.json?q=a&cursor=forged", 400, "SESSION_QUERY_INVALID_CURSOR"),
    ("/sessions/nowhere.json", 404, "SESSION_QUERY_SESSION_NOT_FOUND"),
    ("/sessions/{home}/events/99999.json", 404, "SESSION_QUERY_EVENT_NOT_FOUND"),
    ("/sessions/{home}/events/2.json?ordinal=3", 404, "SESSION_QUERY_EVENT_NOT_FOUND"),
    ("/sessions/{home}/events/1.json?before=51", 400, "SESSION_QUERY_INVALID_WINDOW"),
    ("/sessions/session.json", 404, "SESSION_QUERY_SESSION_NOT_FOUND"),
)


def _url(api: Api, url: str) -> str:
    for role, identity in api.world.ids.items():
        url = url.replace("{" + role + "}", identity)
    return url


@pytest.mark.parametrize("url", TWINS)
async def test_every_twin_answers_as_it_is_described(api: Api, url: str) -> None:
    """An answer is `ok`, strict JSON, of the described shape, and of no more than that."""
    described = await api.json("/openapi.json")
    answer = await api.json(_url(api, url))
    template = _template(described, url)
    schema = described["paths"][template]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema.validate(answer, {**schema, "components": described["components"]})
    named = described["components"]["schemas"][schema["allOf"][1]["$ref"].rpartition("/")[2]]

    assert answer["ok"] is True
    assert set(answer) == {"ok", *named["properties"]}


def _template(described: dict[str, Any], url: str) -> str:
    parts = url.partition("?")[0].removesuffix(".json").split("/")
    for template in described["paths"]:
        names = template.removesuffix(".json").split("/")
        if len(names) == len(parts) and all(
            n.startswith("{") or n == p for n, p in zip(names, parts, strict=True)
        ):
            return str(template)
    raise AssertionError(f"{url} is not described")


@pytest.mark.parametrize(("url", "status", "code"), ERRORS)
async def test_errors_have_one_shape(api: Api, url: str, status: int, code: str) -> None:
    """An error has Datasette's shape and our code, whatever went wrong."""
    answer = await api.get(_url(api, url))
    body = strictly(answer.body)

    assert (answer.status, body["status"], body["code"]) == (status, status, code)
    assert body["ok"] is False
    assert body["errors"] == [body["error"]]
    assert code in CODES


@pytest.mark.parametrize(("url", "status", "code"), ERRORS)
async def test_an_error_is_said_in_the_language_of_its_request(
    api: Api, url: str, status: int, code: str
) -> None:
    """Only the sentence follows: status, code and the facts for machines are what they are in English."""
    english, chinese = [
        await api.json(_url(api, url), headers=[*api.owner, ("accept-language", wished)])
        for wished in ("en", "zh-CN,zh;q=0.9,en;q=0.5")
    ]

    assert (chinese["status"], chinese["code"]) == (status, code)
    assert re.search(r"[\u4e00-\u9fff]", chinese["error"])
    assert not re.search(r"[\u4e00-\u9fff]", english["error"])
    assert chinese["errors"] == [chinese["error"]]
    assert (chinese | {"error": "", "errors": []}) == (english | {"error": "", "errors": []})


async def test_nobody_is_told_to_sign_in_as_json(api: Api) -> None:
    """A program without a token gets a 401 that it can read."""
    answer = await api.get("/search.json?q=a", headers=[])

    assert (answer.status, strictly(answer.body)["code"]) == (401, "SESSIONGRAPH_UNAUTHENTICATED")


@pytest.mark.parametrize("url", TWINS[2:10])
async def test_what_did_not_change_is_not_sent_again(api: Api, url: str) -> None:
    """The tag of an answer makes the same request a 304 without a body; another tag gets the body."""
    first = await api.get(_url(api, url))
    tag = first.header("etag")
    assert tag is not None
    again = await api.get(_url(api, url), headers=[*api.owner, ("if-none-match", f'"other", W/{tag}')])
    other = await api.get(_url(api, url), headers=[*api.owner, ("if-none-match", '"other"')])

    if "search" in url:  # an answer says how long it took, so two are rarely the same
        assert other.status == 200
        return
    assert (again.status, again.body) == (304, b"")
    assert (other.status, other.body) == (200, first.body)
    assert first.header("cache-control") == "private, no-store"


async def test_hostile_text_stays_json(api: Api) -> None:
    """Lone surrogates, NUL and numbers beyond all bounds come out as text and numbers that JSON has."""
    page = await api.json(_url(api, "/sessions/{hostile}.json"))

    assert page["events"][0]["data"]["content"][0]["text"] == "lone � and � odd"


async def test_every_number_of_an_old_log_has_an_address(api: Api) -> None:
    """A packed row stands for several events, each of which is found by its number, as sources name them."""
    answers = [await api.json(_url(api, f"/sessions/{{old}}/events/{seq}.json")) for seq in range(12)]
    rows = [(found["target"]["ordinal"], found["target"]["type"]) for found in answers]
    sources = next(
        found["trace"]["source_event_seqs"] for found in answers if found["trace"]["source_event_seqs"]
    )

    assert rows[4:] == [
        *((4, "assistant/chunk"), *[(5, "text-chunks")] * 4, (6, "assistant/chunk"), (7, "assistant/message")),
        (8, "step/end"),
    ]
    assert sources == [4, 5, 6, 7, 8, 9]
    again = await api.json(_url(api, "/sessions/{old}/events/7.json?ordinal=5"))
    assert again["target"] == answers[7]["target"]


async def test_several_logs_of_one_id_are_offered(api: Api) -> None:
    """One id with several visible logs is a 300 with a link to each, which then answers."""
    answer = await api.get("/sessions/session-" + "f" * 32 + "/events.json?limit=2")
    body = strictly(answer.body)
    followed = [await api.json(link) for link in body["links"]]

    assert (answer.status, body["code"]) == (300, "SESSIONGRAPH_AMBIGUOUS_ID")
    assert sorted(page["session"]["log_id"] for page in followed) == body["logs"]
    assert [len(page["events"]) for page in followed] == [2, 2]


async def test_a_twin_outside_the_view_is_not_offered(api: Api) -> None:
    """Who sees one of two logs with an id reads that one, and learns nothing of the other."""
    answer = await api.get("/sessions/session-" + "f" * 32 + ".json", headers=api.scoped)

    assert answer.status == 200
    assert FOREIGN not in answer.text


@pytest.mark.parametrize("url", ["/search.json?q=a", "/timeline.json", "/sessions/{home}.json"])
async def test_head_is_get_without_a_body(api: Api, url: str) -> None:
    """HEAD answers with the headers of GET."""
    answer = await api.get(_url(api, url), method="HEAD")

    assert (answer.status, answer.body) == (200, b"")
    assert answer.header("content-type") == "application/json; charset=utf-8"


async def test_a_page_goes_on_where_it_was_in_a_history_that_changed(api: Api) -> None:
    """An outdated cursor is a 409 with another one; a page is led to the same place, and told so."""
    url = "/timeline{}?limit=1&cursor="
    cursor = (await api.json("/timeline.json?limit=1"))["next_cursor"]
    second = (await api.json(url.format(".json") + cursor))["sessions"]
    Log(HOME, created_at=1).turn("older", "than all").write(api.world.store)
    api.world.build()
    stale = await api.get(url.format(".json") + cursor)
    page = await api.get(url.format("") + cursor)
    led = await api.get(page.header("location") or "")
    again = await api.json(url.format(".json") + strictly(stale.body)["cursor"])

    assert (stale.status, strictly(stale.body)["code"]) == (409, "SESSION_QUERY_STALE_CURSOR")
    assert (page.status, led.status) == (302, 200)
    assert again["sessions"] == second
    assert "view=changed" in (page.header("location") or "")
    assert second[0]["title"] in led.text


README = Path(__file__).resolve().parents[2] / "README.md"
EXAMPLES = re.findall(
    r"""^curl .*?(?:--data-urlencode '(.*?)' )?(['"])http://127\.0\.0\.1:8642(/.*?)\2$""",
    README.read_text("utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize(("encoded", "url"), [(encoded, url) for encoded, _, url in EXAMPLES])
async def test_the_examples_of_the_readme_work(api: Api, encoded: str, url: str) -> None:
    """Each example can be copied: it answers the holder of a token for one workspace.

    curl sends an address byte by byte as it was typed, and a server takes ASCII alone there.
    """
    assert url.isascii()
    asked = url.replace("$ID", api.world.ids["home"]) + (f"&{quote(encoded, safe='=')}" if encoded else "")
    answer = await api.get(asked, headers=api.scoped)

    assert answer.status == 200
    assert ".json" not in url or strictly(answer.body)["ok"] is True


async def test_the_readme_shows_every_kind_of_answer() -> None:
    """The examples are there, and cover search, session, event, lineage, timeline and download."""
    shown = {url.partition("?")[0].replace("$ID", "{id}").split("/")[1] for _, _, url in EXAMPLES}

    assert {name.removesuffix(".json") for name in shown} == {"search", "sessions", "trace", "timeline", "export"}
