"""Sharing: the owner gives a session or a workspace away, the visitor sees that alone, and it is taken back."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from datasette.app import Datasette

from sessiongraph_web import access
from sessiongraph_web.web import signin
from tests.asgi import Answer, Pairs, ask, bearer, form
from tests.builders import Log
from tests.world import FOREIGN, HOME, World, two_workspaces

pytestmark = pytest.mark.asyncio
ROLES = ("home", "fork", "subagent", "sibling", "foreign", "nowhere")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return two_workspaces(tmp_path).build()


async def make(served: Datasette, world: World, **fields: str) -> Answer:
    """Post the form as the owner's browser does."""
    posted = form(**fields)
    posted["headers"] = [*posted["headers"], *bearer(world.token(access.OWNER))]
    return await ask(served, "/share/create", **posted)


def shown(answer: Answer, name: str) -> str:
    """Return what a field of the page holds."""
    found = re.search(rf'<input id="{name}"[^>]* value="([^"]*)"', answer.text)
    assert found is not None
    return unescape(found[1])


async def seen(served: Datasette, world: World, who: Pairs) -> set[str]:
    """Return the roles of the sessions that a visitor can open."""
    found = set()
    for role in ROLES:
        answer = await ask(served, f"/sessions/{world.ids[role]}.json", headers=who)
        assert answer.status in (200, 404)
        found |= {role} if answer.status == 200 else set()
    return found


@pytest.mark.parametrize(
    ("fields", "opens"),
    [
        ({"session": "home"}, {"home"}),
        ({"session": "home", "descendants": "1"}, {"home", "fork", "subagent"}),
        ({"workspace": HOME}, {"home", "fork", "subagent", "sibling"}),
        ({"workspace": FOREIGN, "days": "1", "label": "for <you>"}, {"foreign"} | set()),
    ],
    ids=["session", "with descendants", "workspace", "other workspace"],
)
async def test_a_link_opens_exactly_what_was_shared(
    served: Datasette, world: World, fields: dict[str, str], opens: set[str]
) -> None:
    """The link shows a button and spends nothing; pressing it signs in; the token works for programs."""
    given = {name: world.ids.get(value, value) for name, value in fields.items()}
    page = await make(served, world, **given)
    assert page.status == 200
    link, token = urlsplit(shown(page, "link")), shown(page, "token")
    query = parse_qs(link.query)
    assert (link.netloc, link.path, query["token"]) == ("localhost", signin.LOGIN, [token])

    for _ in range(2):
        button = await ask(served, f"{link.path}?{link.query}")
        assert (button.status, f'value="{token}"' in button.text) == (200, True)
        assert button.header("set-cookie") is None
    cookies = []
    for _ in range(2):
        pressed = await ask(served, signin.LOGIN, **form(token=token, next=query["next"][0]))
        assert (pressed.status, pressed.header("location")) == (303, query["next"][0])
        cookies.append([("cookie", (pressed.header("set-cookie") or "").split(";")[0])])

    assert await seen(served, world, cookies[0]) == await seen(served, world, bearer(token)) == opens
    landed = await ask(served, query["next"][0], headers=cookies[1])
    assert landed.status == 200
    assert "/status/revoke" not in landed.text


async def test_a_shared_session_is_masked(served: Datasette, world: World) -> None:
    """A visitor reads and downloads masked text, whatever he asks for; the owner reads what is there."""
    secret = "gh" + "p_" + "a1B2c3D4" * 5
    world.write("secret", Log(HOME).turn(f"use {secret}", "done"))
    world.build()
    session = world.ids["secret"]
    visitor = dict(bearer(shown(await make(served, world, session=session), "token")))
    owner = dict(bearer(world.token(access.OWNER)))

    for path in (f"/sessions/{session}.json", f"/export/{session}.ndjson", f"/export/{session}.md?redact=0"):
        masked, plain = [await served.client.get(path, headers=who) for who in (visitor, owner)]
        assert (masked.status_code, plain.status_code) == (200, 200)
        assert (secret in masked.text, "github-token" in masked.text, secret in plain.text) == (False, True, True)
    raw = await served.client.get(f"/export/{session}.zip?format=raw", headers=visitor)
    assert raw.status_code == 400


async def test_what_was_given_is_listed_and_taken_back(served: Datasette, world: World) -> None:
    """Status lists each grant without its secret; revoking ends the token and every sign-in made with it."""
    owner = bearer(world.token(access.OWNER, label="mine"))
    page = await make(served, world, session=world.ids["home"], label="for <b>you</b>", days="3")
    token = shown(page, "token")
    pressed = await ask(served, signin.LOGIN, **form(token=token))
    cookie = [("cookie", (pressed.header("set-cookie") or "").split(";")[0])]

    status = await ask(served, "/status", headers=owner)
    listed = json.loads((await ask(served, "/status.json", headers=owner)).body)["grants"]
    (grant,) = [grant for grant in listed if grant["label"] == "for <b>you</b>"]
    assert token not in status.text + json.dumps(listed)
    assert "for &lt;b&gt;you&lt;/b&gt;" in status.text
    assert (grant["opens"], grant["workspaces"], grant["session_id"], grant["state"]) == (
        "session",
        [HOME],
        world.ids["home"],
        "in force",
    )

    posted = form(token=grant["id"])
    posted["headers"] = [*posted["headers"], *owner]
    revoked = await ask(served, "/status/revoke", **posted)
    assert (revoked.status, revoked.header("location")) == (303, "/status#access")
    for who in (bearer(token), cookie):
        assert (await ask(served, f"/sessions/{world.ids['home']}.json", headers=who)).status == 401
    again = await ask(served, "/status/revoke", **posted)
    assert again.status == 400


@pytest.mark.parametrize("path", ["/share?workspace=/w/a", "/share/create", "/status/revoke"])
async def test_giving_access_is_the_owners(served: Datasette, world: World, path: str) -> None:
    """A visitor cannot pass on what he was given; another site's page cannot make the owner do it."""
    method = "GET" if "?" in path else "POST"
    scoped = bearer(world.token(access.workspaces(HOME)))
    foreign = [*bearer(world.token(access.OWNER)), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "cors")]
    body = "" if method == "GET" else "workspace=/w/a"

    assert (await ask(served, path, method=method, headers=scoped, body=body)).status == 404
    assert (await ask(served, path, method=method, body=body)).status == 401
    assert (await ask(served, path, method=method, headers=foreign, body=body)).status == 403


async def test_a_scoped_caller_is_told_of_no_grants(served: Datasette, world: World) -> None:
    """Who else was given access is the owner's to know."""
    answer = await ask(served, "/status.json", headers=bearer(world.token(access.workspaces(HOME))))
    assert json.loads(answer.body)["grants"] is None


@pytest.mark.parametrize(
    ("fields", "parameter", "status"),
    [
        ({}, "session", 400),
        ({"session": "home", "workspace": HOME}, "session", 400),
        ({"session": "nowhere"}, "session", 400),
        ({"workspace": "/w/a/"}, "workspace", 400),
        ({"workspace": HOME, "days": "0"}, "days", 400),
        ({"workspace": HOME, "days": "3651"}, "days", 400),
        ({"workspace": HOME, "label": "x" * 201}, "label", 400),
        ({"workspace": HOME, "owner": "1"}, "owner", 400),
        ({"session": "session-" + "0" * 32}, None, 404),
    ],
)
async def test_what_cannot_be_shared_is_named(
    served: Datasette, world: World, fields: dict[str, str], parameter: str | None, status: int
) -> None:
    """Nothing is made, and the answer says which field is wrong."""
    given = {name: world.ids.get(value, value) for name, value in fields.items()}
    posted = form(**given)
    posted["headers"] = [*posted["headers"], *bearer(world.token(access.OWNER, label="mine"))]

    answer = await ask(served, "/share/create.json", **posted)

    told = json.loads(answer.body)
    assert (answer.status, told.get("parameter")) == (status, parameter)


async def test_the_offer_says_what_will_be_opened(served: Datasette, world: World) -> None:
    """The form names the session by title."""
    owner = bearer(world.token(access.OWNER))
    session = world.ids["home"]
    offered = await ask(served, f"/share?session={session}", headers=owner)
    assert "About the amberfish" in offered.text
    assert f'name="session" value="{session}"' in offered.text


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/", "/share"),
        ("/status", "/share"),
        ("/workspaces", "/share"),
        ("/search?q=nothinglikethis", "/share"),
        ("/search?q=amberfish", "/share?workspace=%2Fw%2Fa"),
        ("/search?q=amberfish&session={home}", "/share?session={home}"),
        ("/search?q=is+here", "/share?workspace=%2Fw%2Fa&workspace=%2Fw%2Fbravo-hidden"),
        ("/timeline?workspace=/w/a", "/share?workspace=%2Fw%2Fa"),
        ("/sessions/{home}", "/share?session={home}"),
        ("/sessions/{home}/events", "/share?session={home}"),
        ("/sessions/{home}/events/0", "/share?session={home}"),
        ("/trace/{home}", "/share?session={home}"),
        ("/sessions/{nowhere}", None),
    ],
)
async def test_every_page_leads_its_owner_to_sharing_what_it_shows(
    served: Datasette, world: World, path: str, link: str | None
) -> None:
    """The foot of a page has the form's address with this session or these workspaces; for the owner alone."""
    owner = bearer(world.token(access.OWNER))
    page = await ask(served, path.format(**world.ids), headers=owner)
    found = re.findall(r'<a href="(/share[^"]*)"', page.text[page.text.index('<footer class="foot">') :])
    if link is None:
        assert (page.status, "/share" in page.text) == (200, False)
        return
    assert (page.status, [unescape(address) for address in found]) == (200, [link.format(**world.ids)])
    assert (await ask(served, unescape(found[0]), headers=owner)).status == 200
    if "nowhere" not in path and "workspace=" not in path:
        scoped = await ask(served, path.format(**world.ids), headers=bearer(world.token(access.workspaces(HOME))))
        assert (scoped.status, "/share" in scoped.text) == (200, False)


async def test_an_open_offer_lets_the_owner_choose(served: Datasette, world: World) -> None:
    """Without a session or one workspace the form lists those that were named, or all; none is chosen for him."""
    owner = bearer(world.token(access.OWNER))
    for query, choices in (("", {HOME, FOREIGN}), ("?workspace=/w/a&workspace=/gone", {HOME})):
        page = await ask(served, f"/share{query}", headers=owner)
        told = json.loads((await ask(served, f"/share.json{query}", headers=owner)).body)
        assert (told["session"], told["workspace"], set(told["choices"])) == (None, None, choices)
        assert set(re.findall(r'<option value="([^"]*)"', page.text)) == choices
