"""The front door as a client meets it: refusals, the one 404, headers, signing in and out."""

from __future__ import annotations

import json
import re
import sqlite3
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from datasette.app import Datasette

from sessiongraph_web import access, schema
from sessiongraph_web.access import Caller
from sessiongraph_web.web import app, security, signin
from tests.asgi import Answer, Pairs, ask, bearer, form
from tests.world import FOREIGN, HOME, HOME_WORD, World, two_workspaces

pytestmark = pytest.mark.asyncio

HOME_DATABASE = schema.database_name(HOME)
FOREIGN_DATABASE = schema.database_name(FOREIGN)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return two_workspaces(tmp_path_factory.mktemp("front-door")).build()


def cookie(answer: Answer) -> Pairs:
    """Return the header with which a browser sends back what it was given."""
    given = answer.header("set-cookie")
    assert given is not None
    return [("cookie", given.split(";")[0])]


def token_of(link: str) -> str:
    return parse_qs(urlsplit(link).query)["token"][0]


async def sign_in(datasette: Datasette) -> Pairs:
    """Sign the owner's browser in and return its cookie."""
    link = signin.link(app.product(datasette), "http://localhost")
    return cookie(await ask(datasette, signin.LOGIN, **form(token=token_of(link))))


@pytest.mark.parametrize("path", ["/", "/search.json?q=a", "/-/static/app.css", "/-/login", f"/{HOME_DATABASE}"])
@pytest.mark.parametrize("host", ["evil.example", "localhost.", "", None])
async def test_a_foreign_name_is_refused_on_every_kind_of_page(
    served: Datasette, world: World, path: str, host: str | None
) -> None:
    """421 comes before everything else, signed in or not, static files included."""
    headers = [*bearer(world.token(access.OWNER)), ("x-forwarded-host", "localhost")]

    answer = await ask(served, path, host=host, headers=headers)

    assert (answer.status, answer.body) == (421, b"This server does not answer to that name.\n")


async def test_an_allowed_name_is_answered(world: World) -> None:
    """The plugin option adds to the names of this machine."""
    datasette = app.make({**world.options, "allow_hosts": ["box.lan"]})
    await datasette.invoke_startup()

    assert (await ask(datasette, "/-/login", host="box.lan:8001")).status == 200
    assert (await ask(datasette, "/-/login", host="localhost:8001")).status == 200
    assert (await ask(datasette, "/-/login", host="other.lan")).status == 421


async def test_another_site_cannot_act_or_embed(served: Datasette, world: World) -> None:
    """A request that a foreign page caused changes nothing and shows nothing."""
    owner = bearer(world.token(access.OWNER))
    foreign_form = [*owner, ("origin", "http://evil.example"), ("content-type", "text/plain")]
    foreign_frame = [*owner, ("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "iframe")]

    refused = await ask(served, "/status/rebuild", method="POST", headers=foreign_form, body="{}")
    framed = await ask(served, "/status", headers=foreign_frame)

    assert (refused.status, refused.body) == (403, b"This request came from another site.\n")
    assert (framed.status, framed.body) == (403, b"This request came from another site.\n")


async def test_a_websocket_is_closed(served: Datasette) -> None:
    """Nothing here speaks it, so nothing is left to guess."""
    sent: list[object] = []

    async def send(message: object) -> None:
        sent.append(message)

    await served.app()({"type": "websocket", "path": "/", "headers": []}, None, send)

    assert sent == [{"type": "websocket.close", "code": 1008}]


NOWHERE = [
    "/nothing",
    "/nothing/at/all",
    "/_internal",
    "/_memory",
    "/_internal/catalog_tables",
    "/catalog",
    "/catalog/session",
    "/private",
    f"/{FOREIGN_DATABASE}",
    f"/{FOREIGN_DATABASE}/entry",
    f"/{FOREIGN_DATABASE}/-/query?sql=select+1",
    f"/{FOREIGN_DATABASE}/-/schema",
    f"/{FOREIGN_DATABASE}/-/foreign-key-targets",
    f"/{FOREIGN_DATABASE.replace('_', '~5F')}/entry",
    f"/{FOREIGN_DATABASE.replace('_', '%5F')}/entry",
    f"/{FOREIGN_DATABASE.upper()}",
    f"/{HOME_DATABASE.upper()}",
    f"/{HOME_DATABASE}.db",
    f"/{FOREIGN_DATABASE}.db",
    f"/{FOREIGN_DATABASE}/",
    f"//{FOREIGN_DATABASE}",
    "/ws_none",
    "/ws_00000000000000000000000000000000",
    "/-/",
    "/-/plugins",
    "/-/permissions",
    "/-/threads",
    "/-/create-token",
    "/-/nothing",
]


async def test_missing_foreign_and_forbidden_are_one_answer(served: Datasette, world: World) -> None:
    """Byte for byte, header for header: nothing tells a scoped caller what exists beyond his view."""
    headers = bearer(world.token(access.workspaces(HOME)))

    answers = {path: await ask(served, path, headers=headers) for path in NOWHERE}

    first = answers["/nothing"]
    assert first.status == 404
    assert "There is nothing here that you may see." in first.text
    assert {path: answer for path, answer in answers.items() if answer != first} == {}


async def test_the_one_answer_has_a_json_variant(served: Datasette, world: World) -> None:
    """The same for data, in the shape of every JSON error."""
    headers = bearer(world.token(access.workspaces(HOME)))
    paths = [
        "/nothing.json",
        f"/{FOREIGN_DATABASE}.json",
        "/-/plugins.json",
        "/_memory.json",
        "/catalog/log.json",
    ]

    answers = {path: await ask(served, path, headers=headers) for path in paths}

    sentence = "There is nothing here that you may see."
    assert {path: (answer.status, json.loads(answer.body)) for path, answer in answers.items()} == dict.fromkeys(
        paths,
        (
            404,
            {
                "ok": False,
                "error": sentence,
                "errors": [sentence],
                "status": 404,
                "code": "SESSION_QUERY_SESSION_NOT_FOUND",
            },
        ),
    )


async def test_nobody_gets_the_same_answer_for_what_is_not_ours(served: Datasette) -> None:
    """Without a sign-in every database is nowhere, too."""
    answers = {path: await ask(served, path) for path in [*NOWHERE, f"/{HOME_DATABASE}/entry"]}

    assert {answer.body for answer in answers.values()} == {answers["/nothing"].body}
    assert {answer.status for answer in answers.values()} == {404}


async def test_a_scoped_caller_has_datasette_on_his_own_database(served: Datasette, world: World) -> None:
    """Tables, rows, SQL, CSV, facets and schema work inside it, under its canonical name and tilde-encoded."""
    headers = bearer(world.token(access.workspaces(HOME)))
    tilde = HOME_DATABASE.replace("_", "~5F")
    sql = "select+count(*)+as+found+from+entry+where+text+like+'%25" + HOME_WORD + "%25'"

    page = await ask(served, f"/{HOME_DATABASE}", headers=headers)
    table = await ask(served, f"/{tilde}/entry.json?_facet=kind&_extra=facet_results", headers=headers)
    rows = await ask(served, f"/{HOME_DATABASE}/-/query.json?sql={sql}&_shape=array", headers=headers)
    text = await ask(served, f"/{HOME_DATABASE}/entry.csv", headers=headers)
    schema_page = await ask(served, f"/{HOME_DATABASE}/-/schema.json", headers=headers)

    assert [answer.status for answer in (page, table, rows, text, schema_page)] == [200] * 5
    assert json.loads(table.body)["facet_results"]["results"]["kind"]["results"]
    assert json.loads(rows.body)[0]["found"] > 0
    assert HOME_WORD in text.text
    assert "entry" in page.text


async def test_a_one_session_caller_has_no_database(served: Datasette, world: World) -> None:
    """A workspace's database holds the sibling sessions, so it is nowhere for him."""
    caller = Caller("session", frozenset({HOME}), world.log_ids["home"], True)
    headers = bearer(world.token(caller))

    answer = await ask(served, f"/{HOME_DATABASE}/entry", headers=headers)

    assert answer == await ask(served, "/nothing", headers=headers)


async def test_the_owner_has_every_workspace_and_datasettes_pages(served: Datasette, world: World) -> None:
    """But no download, no debug page, no catalog and no memory: nobody has those."""
    headers = bearer(world.token(access.OWNER))
    nowhere = await ask(served, "/nothing", headers=headers)

    for path in (f"/{HOME_DATABASE}", f"/{FOREIGN_DATABASE}/entry", "/ws_none/entry", "/-/plugins", "/-/"):
        assert (await ask(served, path, headers=headers)).status == 200, path
    for path in ("/_internal", "/_memory", "/catalog", f"/{HOME_DATABASE}.db"):
        assert await ask(served, path, headers=headers) == nowhere, path
    for path in ("/-/threads", "/-/permissions", "/-/actions"):
        assert (await ask(served, path, headers=headers)).status == 403, path


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/-/insert", '{"rows": [{"key": "x"}]}'),
        ("/-/upsert", '{"rows": [{"key": "x"}]}'),
        ("/-/drop", '{"confirm": true}'),
        ("/-/alter", '{"operations": []}'),
        ("/sealed_cwd/-/update", '{"update": {"value": "/w/b"}}'),
        ("/sealed_cwd/-/delete", "{}"),
    ],
)
async def test_nobody_writes_through_datasette(served: Datasette, world: World, path: str, body: str) -> None:
    """Not even the owner: the index is made from the store alone."""
    headers = [*bearer(world.token(access.OWNER)), ("content-type", "application/json")]

    answer = await ask(served, f"/{HOME_DATABASE}/meta{path}", method="POST", headers=headers, body=body)
    meta = await ask(served, f"/{HOME_DATABASE}/meta/sealed_cwd.json?_shape=objects", headers=headers)

    assert answer.status == 403
    assert json.loads(meta.body)["rows"][0]["value"] == HOME


@pytest.mark.parametrize(
    "path", ["/-/create", "/-/execute-write", "/-/queries/store", "/-/queries/analyze?sql=delete+from+entry"]
)
async def test_nobody_makes_tables_or_stores_queries(served: Datasette, world: World, path: str) -> None:
    """The doors that Datasette has for it stay shut."""
    headers = [*bearer(world.token(access.OWNER)), ("content-type", "application/json")]
    body = '{"table": "t", "rows": [{"a": 1}], "sql": "delete from entry", "name": "q"}'

    answers = [
        await ask(served, f"/{HOME_DATABASE}{path}", method=method, headers=headers, body=body)
        for method in ("GET", "POST")
    ]

    assert all(answer.status in (403, 405) for answer in answers), [answer.status for answer in answers]


@pytest.mark.parametrize(
    "path",
    ["/", "/search?q=a", "/sessions/x", "/timeline", "/workspaces", "/status", "/trace/x", "/export/x.zip"],
)
async def test_a_page_of_ours_says_how_to_sign_in(served: Datasette, path: str) -> None:
    """401 with a form that leads back to the page that was asked for."""
    answer = await ask(served, path)

    assert answer.status == 401
    assert answer.header("www-authenticate") == 'Bearer realm="sessiongraph"'
    assert "sessiongraph-web serve" in answer.text
    assert f'name="next" value="{path}"' in unescape(answer.text)


@pytest.mark.parametrize("headers", [[], bearer("sg_wrong"), [("authorization", "Bearer")]])
async def test_a_twin_says_the_same_as_data(served: Datasette, headers: Pairs) -> None:
    """A program that is not signed in gets Datasette's error shape and our code."""
    answer = await ask(served, "/timeline.json", headers=headers)

    sentence = "Sign in first: `sessiongraph-web serve` prints the link."
    assert answer.status == 401
    assert json.loads(answer.body) == {
        "ok": False,
        "error": sentence,
        "errors": [sentence],
        "status": 401,
        "code": "SESSIONGRAPH_UNAUTHENTICATED",
    }


async def test_every_answer_carries_the_protective_headers(served: Datasette, world: World) -> None:
    """Ours, Datasette's, refusals and static files alike; only hashed static files may be kept by caches."""
    owner = bearer(world.token(access.OWNER))
    static = re.search(r"/static/[0-9a-f]{12}/style\.css", (await ask(served, "/-/login")).text)
    assert static is not None
    expected = {
        "/": (security.STRICT_POLICY, "private, no-store"),
        "/status.json": (security.STRICT_POLICY, "private, no-store"),
        "/openapi.json": (security.STRICT_POLICY, "private, no-store"),
        "/nothing": (security.STRICT_POLICY, "private, no-store"),
        "/-/login": (security.STRICT_POLICY, "private, no-store"),
        f"/{HOME_DATABASE}/entry": (security.LOOSE_POLICY, "private, no-store"),
        f"/{HOME_DATABASE}/entry.csv": (security.LOOSE_POLICY, "private, no-store"),
        "/-/plugins": (security.LOOSE_POLICY, "private, no-store"),
        static[0]: (security.STRICT_POLICY, "public, max-age=31536000, immutable"),
    }
    answers = {path: await ask(served, path, headers=owner) for path in expected}

    assert {
        path: (answer.header("content-security-policy"), answer.header("cache-control"))
        for path, answer in answers.items()
    } == expected
    for path, answer in answers.items():
        found = {name: answer.header(name) for name in map(bytes.decode, security.HEADERS)}
        assert found == {
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
            "referrer-policy": "no-referrer",
            "cross-origin-resource-policy": "same-origin",
            "cross-origin-opener-policy": "same-origin",
        }, path


async def test_our_policy_allows_nothing_inline() -> None:
    """The strict policy is the one the design names, word for word."""
    assert security.STRICT_POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


async def test_cors_is_never_granted(world: World) -> None:
    """Not even if Datasette is started with --cors."""
    datasette = world.serve()
    datasette.cors = True
    await datasette.invoke_startup()
    headers = [*bearer(world.token(access.OWNER)), ("origin", "http://evil.example")]

    answer = await ask(datasette, f"/{HOME_DATABASE}/entry.json", headers=headers)

    assert answer.status == 200
    assert [name for name, _ in answer.headers if name.startswith("access-control-")] == []


async def test_a_link_signs_in_when_its_button_is_pressed(served: Datasette) -> None:
    """Looking at the link spends nothing; pressing the button spends it and leads to a clean address."""
    link = signin.link(app.product(served), "http://localhost:8001")
    path = link.removeprefix("http://localhost:8001")
    assert path.startswith("/-/login?token=sg_")

    for _ in range(3):
        looked = await ask(served, path + "&next=/timeline%3Fsort%3Dactivity")
        assert looked.status == 200
        assert looked.header("set-cookie") is None
    fields = dict(re.findall(r'name="(token|next)" value="([^"]*)"', unescape(looked.text)))
    assert fields == {"token": token_of(link), "next": "/timeline?sort=activity"}

    pressed = await ask(served, "/-/login", **form(**fields))
    again = await ask(served, "/-/login", **form(**fields))

    assert (pressed.status, pressed.header("location")) == (303, "/timeline?sort=activity")
    attributes = (pressed.header("set-cookie") or "").split("; ")[1:]
    assert sorted(attributes) == ["HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=strict"]
    assert (await ask(served, "/timeline", headers=cookie(pressed))).status == 200
    assert again.status == 403
    assert "used already" in again.text
    assert again.header("set-cookie") is None


async def test_the_cookie_is_for_https_alone_where_https_is(served: Datasette) -> None:
    """Over plain HTTP on this machine a Secure cookie would never come back, so it is one only over HTTPS."""
    link = signin.link(app.product(served), "https://localhost")
    datasette_app = served.app()

    async def over_https(scope: dict[str, object], receive: object, send: object) -> None:
        await datasette_app({**scope, "scheme": "https"}, receive, send)

    served.app = lambda: over_https  # type: ignore[method-assign]
    pressed = await ask(served, "/-/login", **form(token=token_of(link)))

    assert "Secure" in (pressed.header("set-cookie") or "").split("; ")


@pytest.mark.parametrize("onward", ["//evil.example", "https://evil.example", "/\\evil.example", "/-/logout"])
async def test_sign_in_is_no_open_redirect(served: Datasette, onward: str) -> None:
    """Where `next` leads elsewhere, the home page comes instead."""
    link = signin.link(app.product(served), "http://localhost")

    pressed = await ask(served, "/-/login", **form(token=token_of(link), next=onward))

    assert (pressed.status, pressed.header("location")) == (303, "/")


async def test_signing_out_ends_the_sign_in_itself(served: Datasette) -> None:
    """A cookie that was kept elsewhere is worthless after sign-out."""
    headers = await sign_in(served)
    assert (await ask(served, "/", headers=headers)).status == 200

    left = await ask(served, "/-/logout", method="POST", headers=[*headers, ("sec-fetch-site", "same-origin")])

    assert (left.status, left.header("location")) == (303, "/-/login")
    assert "Max-Age=0" in (left.header("set-cookie") or "")
    assert (await ask(served, "/", headers=headers)).status == 401
    assert (await ask(served, "/-/logout", headers=headers)).status == 405


async def test_every_page_offers_to_sign_out(served: Datasette, world: World) -> None:
    """A form that works without a script, sent with an origin; who has not signed in is not offered it."""
    signed_in = await sign_in(served)
    offered = re.compile(r'<form class="sign-out" method="post" action="(/-/logout)"><button type="submit">')
    session = f"/sessions/{world.ids['home']}"
    for path in ("/", "/search", "/search?q=a", "/timeline", "/status", session, "/search?x=1"):
        page = (await ask(served, path, headers=signed_in)).text
        assert offered.findall(page) == ["/-/logout"], path
        assert page.count('<meta name="referrer" content="same-origin">') == 1
    assert not offered.search((await ask(served, "/")).text)

    pressed = await ask(served, "/-/logout", **{**form(), "headers": [*form()["headers"], *signed_in]})

    assert (pressed.status, pressed.header("location")) == (303, "/-/login")
    assert (await ask(served, "/", headers=signed_in)).status == 401


async def test_a_share_link_opens_what_the_token_grants(served: Datasette, world: World) -> None:
    """A token in a link signs browsers in again and again, to its own workspace, until it is revoked."""
    token = world.token(access.workspaces(HOME))

    opened = [await ask(served, "/-/login", **form(token=token, next="/workspaces")) for _ in range(2)]

    assert [(answer.status, answer.header("location")) for answer in opened] == [(303, "/workspaces")] * 2
    listed = [await ask(served, "/workspaces.json", headers=cookie(answer)) for answer in opened]
    assert [[found["cwd"] for found in json.loads(answer.body)["workspaces"]] for answer in listed] == [
        [HOME]
    ] * 2
    private = app.product(served).tokens
    assert private.revoke(next(found.id for found in private.list() if found.kind == "token"))
    assert [(await ask(served, "/", headers=cookie(answer))).status for answer in opened] == [401, 401]


async def test_a_bearer_token_speaks_alone(served: Datasette, world: World) -> None:
    """A wrong token is not rescued by a cookie that happens to be there."""
    headers = await sign_in(served)

    assert (await ask(served, "/", headers=[*headers, *bearer("sg_wrong")])).status == 401
    assert (await ask(served, "/", headers=[*headers, ("authorization", "Basic eDp5")])).status == 200
    assert (await ask(served, "/", headers=bearer(world.token(access.OWNER)))).status == 200


async def test_a_browsers_secret_is_no_bearer_token_nor_a_link(served: Datasette) -> None:
    """Each secret opens its own door only."""
    ((_, sent),) = await sign_in(served)
    secret = sent.partition("=")[2]
    link = token_of(signin.link(app.product(served), "http://localhost"))

    assert (await ask(served, "/", headers=bearer(secret))).status == 401
    assert (await ask(served, "/-/login", **form(token=secret))).status == 403
    assert (await ask(served, "/", headers=bearer(link))).status == 401


async def test_guessing_is_slowed_down(served: Datasette) -> None:
    """After ten failures an address waits a minute, whatever it offers; other addresses do not."""
    link = signin.link(app.product(served), "http://localhost")
    failed = [
        (await ask(served, "/-/login", **form(token=f"sg_{number}"))).status
        for number in range(signin.FAILURES_ALLOWED)
    ]

    waiting = await ask(served, "/-/login", **form(token=token_of(link)))
    elsewhere = await ask(served, "/-/login", client="10.0.0.2", **form(token=token_of(link)))

    assert failed == [403] * signin.FAILURES_ALLOWED
    assert (waiting.status, waiting.header("retry-after")) == (429, "60")
    assert elsewhere.status == 303


async def test_a_form_that_is_no_form_is_refused(served: Datasette) -> None:
    """Bodies of any size and content end in an answer, never in a fault."""
    huge = await ask(served, "/-/login", method="POST", body="token=" + "x" * 100_000)
    odd = await ask(served, "/-/login", method="POST", body="\x00\xff%zz&&&token=a&token=b")
    other = await ask(served, "/-/login", method="DELETE")

    assert (huge.status, odd.status, other.status) == (413, 403, 405)


async def test_the_sign_in_page_repeats_nothing_but_the_token_and_a_local_path(served: Datasette) -> None:
    """What is in the address is escaped, and nothing else of it comes back."""
    answer = await ask(served, '/-/login?token="><script>x</script>&next=/"><script>y</script>&other=zzz')

    assert answer.status == 200
    assert "<script>x" not in answer.text
    assert "<script>y" not in answer.text
    assert "zzz" not in answer.text


async def test_datasettes_own_root_is_nobody_here(served: Datasette) -> None:
    """`--root` signs an actor that we did not write; it opens neither our pages nor a database."""
    served.root_enabled = True
    headers = [("cookie", f"ds_actor={served.client.actor_cookie({'id': 'root'})}")]

    assert (await ask(served, "/", headers=headers)).status == 401
    assert await ask(served, f"/{HOME_DATABASE}", headers=headers) == await ask(served, "/nothing")
    assert await ask(served, f"/-/auth-token?token={served._root_token}") == await ask(served, "/nothing")


async def test_configuration_cannot_widen_what_a_caller_sees(world: World) -> None:
    """An allow rule on a foreign database or table, in any place, changes nothing."""
    permissive = {"allow": True, "allow_sql": True, "tables": {"entry": {"allow": True}}}
    datasette = world.serve()
    datasette.config = {**datasette.config, "allow": True, "databases": {FOREIGN_DATABASE: permissive}}
    await datasette.invoke_startup()
    headers = bearer(world.token(access.workspaces(HOME)))
    owner = bearer(world.token(access.OWNER))
    assert (await ask(datasette, f"/{FOREIGN_DATABASE}/entry", headers=owner)).status == 200

    answer = await ask(datasette, f"/{FOREIGN_DATABASE}/entry", headers=headers)
    actor = access.to_actor(access.workspaces(HOME))
    visible = [row.parent async for row in (await datasette.allowed_resources("view-table", actor)).all()]

    assert answer == await ask(datasette, "/nothing", headers=headers)
    assert set(visible) <= {HOME_DATABASE}


async def test_configuration_can_narrow_what_a_caller_sees(world: World) -> None:
    """Closing SQL, or the whole instance, in `metadata.yml` closes it."""
    datasette = world.serve()
    datasette.config = {**datasette.config, "allow_sql": False}
    await datasette.invoke_startup()
    headers = bearer(world.token(access.OWNER))

    closed = await ask(datasette, f"/{HOME_DATABASE}/-/query?sql=select+1", headers=headers)
    table = await ask(datasette, f"/{HOME_DATABASE}/entry", headers=headers)
    datasette.config = {**datasette.config, "allow": False}
    instance = await ask(datasette, "/timeline", headers=headers)

    assert (closed.status, table.status) == (403, 200)
    assert instance == await ask(datasette, "/nothing", headers=headers)


async def test_a_revoked_seal_closes_the_database(served: Datasette, world: World, tmp_path: Path) -> None:
    """If a workspace's file is not what its name says, the caller is told that the index is damaged."""
    other = two_workspaces(tmp_path).build()
    directory = next(other.index.glob("g*"))
    with sqlite3.connect(directory / f"{HOME_DATABASE}.db") as connection:
        connection.execute("UPDATE meta SET value = '/w/other' WHERE key = 'sealed_cwd'")
    datasette = other.serve()
    await datasette.invoke_startup()
    headers = bearer(other.token(access.workspaces(HOME)))

    answer = await ask(datasette, f"/{HOME_DATABASE}/entry.json", headers=headers)

    assert (answer.status, json.loads(answer.body)["code"]) == (503, "SESSIONGRAPH_CORRUPT")


async def test_a_cookie_that_cannot_be_parsed_is_passed_over(served: Datasette) -> None:
    """Another server on this host may set cookies that Python's parser chokes on; ours still works."""
    ((_, ours),) = await sign_in(served)

    answer = await ask(served, "/", headers=[("cookie", f"a/b=1; {ours}; (c)=2")])

    assert answer.status == 200


async def test_two_indexes_on_one_host_keep_their_cookies_apart(world: World, tmp_path: Path) -> None:
    """Browsers share cookies between ports, so each index has a name of its own."""
    first, second = (datasette := world.serve()), two_workspaces(tmp_path).build().serve()
    for datasette in (first, second):
        await datasette.invoke_startup()

    both = [("cookie", "; ".join(value for _, value in [*await sign_in(first), *await sign_in(second)]))]

    assert [(await ask(datasette, "/", headers=both)).status for datasette in (first, second)] == [200, 200]


async def test_head_is_answered_like_get_without_a_body(served: Datasette) -> None:
    """For refusals as for pages."""
    for path in ("/nothing", "/", "/-/login"):
        got, head = await ask(served, path), await ask(served, path, method="HEAD")
        assert (head.status, head.headers, head.body) == (got.status, got.headers, b""), path


async def test_a_token_that_expired_is_over(served: Datasette, world: World) -> None:
    """Its time decides at every request."""
    assert (await ask(served, "/", headers=bearer(world.token(access.OWNER, seconds=60)))).status == 200
    assert (await ask(served, "/", headers=bearer(world.token(access.OWNER, seconds=-1)))).status == 401


async def test_a_fault_logs_no_secret(
    served: Datasette, world: World, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes wrong inside Datasette is logged without the variables of the request, whatever is installed."""
    secret = world.token(access.OWNER)

    def broken(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(Datasette, "table_config", broken)
    answer = await ask(served, f"/{HOME_DATABASE}/entry", headers=bearer(secret))
    missing = await ask(served, f"/{HOME_DATABASE}/no/such/page/here", headers=bearer(secret))

    logged = "".join(capfd.readouterr())
    assert (answer.status, missing.status) == (500, 404)
    assert "broken on purpose" in logged
    assert secret not in logged


async def test_everything_holds_below_a_base_url(world: World) -> None:
    """Behind a proxy that serves it under a path, places, redirects and forms are the same below that path."""
    datasette = Datasette(
        config={"plugins": {"sessiongraph-web": world.options}}, settings={"base_url": "/history/"}
    )
    await datasette.invoke_startup()
    link = signin.link(app.product(datasette), "http://localhost/history/")
    assert link.startswith("http://localhost/history/-/login?token=")

    needed = await ask(datasette, "/history/timeline")
    pressed = await ask(datasette, "/history/-/login", **form(token=token_of(link)))
    headers = bearer(world.token(access.workspaces(HOME)))
    nowhere = await ask(datasette, "/history/nothing", headers=headers)

    assert needed.status == 401
    assert 'action="/history/-/login"' in needed.text
    assert 'name="next" value="/history/timeline"' in needed.text
    assert (pressed.status, pressed.header("location")) == (303, "/history/")
    assert (await ask(datasette, "/history/", headers=cookie(pressed))).status == 200
    assert (await ask(datasette, f"/history/{HOME_DATABASE}/entry", headers=headers)).status == 200
    for path in (f"/history/{FOREIGN_DATABASE}", "/history/-/plugins", "/history/_internal", "/-/plugins"):
        assert await ask(datasette, path, headers=headers) == nowhere, path
