"""No address leaks another workspace: every page and every SQL trick we know, as every kind of caller."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import time
import zipfile
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote_plus

import pytest
import pytest_asyncio
from datasette.app import Datasette
from datasette.utils import tilde_encode

from sessiongraph_web import access, schema
from sessiongraph_web.access import Caller
from sessiongraph_web.agents import Agent, agent_of
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.tools import Toolbox
from sessiongraph_web.toolschemas import TOOLS
from sessiongraph_web.web import app, routes, security, signin
from sessiongraph_web.web.route import Route
from tests.asgi import Answer, Pairs, ask, bearer, form
from tests.attachments import image_block, put_attachment
from tests.builders import Log
from tests.world import (
    FOREIGN,
    FOREIGN_MARK,
    FOREIGN_WORD,
    HOME,
    HOME_WORD,
    NOWHERE_WORD,
    SIBLING_WORD,
    World,
    add_foreign,
    home_only,
    two_workspaces,
)

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # Datasette leaves other facets unawaited when one of them fails.
    pytest.mark.filterwarnings("ignore:coroutine .*Facet:RuntimeWarning"),
]

HOME_DATABASE: Final = schema.database_name(HOME)
FOREIGN_DATABASE: Final = schema.database_name(FOREIGN)
OTHER_DATABASES: Final = (schema.NO_CWD_DATABASE, "_internal", "_memory", "catalog", "private", "index")
LEAST_URLS: Final = 1000
IMAGE: Final = b"\x89PNG\r\n\x1a\n" + FOREIGN_MARK.encode()
FOREIGN_IMAGE: Final = hashlib.sha256(IMAGE).hexdigest()

TABLES: Final = ("entry", "session", "meta", "log", "frame", "entry_fts", "entry_fts_data", "entry_fts_docsize")
TABLE_QUERIES: Final = (
    "?_facet=kind&_facet=log_id&_facet_size=max",
    "?_facet_array=text",
    "?_facet_date=time",
    "?_where=1=1",
    "?_where=text+in+(select+text+from+{foreign}.entry)",
    "?_where=1=1)+union+select+*+from+{foreign}.entry--",
    "?_extra=count,count_sql,facet_results,suggested_facets,columns,foreign_key_tables,database,query,metadata",
    "?_shape=array&_size=max",
    "?_shape=object&_labels=on",
    "?_search=a&_fts_table=entry_fts&_fts_pk=id",
    "?_search=*&_searchmode=raw&_fts_table={foreign}.entry_fts",
    '?_through={{"table":"entry","column":"kind","value":"user"}}',
    '?_through={{"table":"{foreign}.entry","column":"kind","value":"user"}}',
    "?_sort_desc=text&_next=1",
    "?text__contains=a&_trace=1&_context=1",
    "?x%5D)%20union%20select%20text%20from%20entry--__arraycontains=a",
    "?_col=text&_nocol=kind&_ttl=100&_stream=on",
)
TABLE_PAGES: Final = (
    "",
    ".json",
    ".csv?_stream=1",
    ".blob?_blob_column=text",
    "/1",
    "/1.json?_extras=foreign_key_tables",
    "/1.blob?_blob_column=block",
    "/../../{foreign}/entry/1",
    "/-/fragment?_row=1",
    "/-/autocomplete?q=a&_initial=1",
    "/-/count",
    "/-/schema",
    "/-/schema.json",
    "/-/schema.md",
    "/-/foreign-key-suggestions",
    "/-/insert",
    "/-/drop",
)
DATABASE_PAGES: Final = (
    "",
    "/",
    ".json",
    ".db",
    ".csv",
    ".json?sql=select+*+from+entry",
    "/-/schema",
    "/-/schema.json",
    "/-/schema.md",
    "/-/queries",
    "/-/queries.json",
    "/-/queries/analyze?sql=select+*+from+entry",
    "/-/query",
    "/-/query/parameters?sql=select+:a",
    "/-/foreign-key-targets",
    "/-/create",
    "/-/execute-write?sql=select+*+from+entry",
)
SQL: Final = (
    "select * from entry",
    "select * from main.entry",
    "select * from {foreign}.entry",
    "select * from [{foreign}].[entry]",
    "select * from catalog.session",
    "select * from catalog_databases",
    "select text from entry union all select text from {foreign}.entry",
    "select text from entry union select group_concat(text) from temp.entry",
    "with entry as (select * from entry) select * from entry",
    "with entry as (select * from main.entry) select * from entry",
    "with session as (select * from sqlite_master) select * from session",
    "with {foreign} as (select text from entry) select * from {foreign}",
    "with recursive r(n) as (select 1 union all select n+1 from r where n < 9) select * from r join entry on id",
    "select * from entry_fts where entry_fts match 'a*'",
    "select * from entry_fts_data",
    "select * from entry_fts_idx",
    "select * from entry_fts_docsize",
    "select * from entry_fts_config",
    "select * from entry_fts_content",
    "select bm25(entry_fts), * from entry_fts where entry_fts match 'the'",
    "select * from pragma_database_list",
    "select * from pragma_database_list()",
    "select * from pragma_table_list",
    "select * from pragma_table_info('entry')",
    "select * from pragma_table_xinfo('entry', '{foreign}')",
    "select * from pragma_function_list",
    "select * from pragma_module_list",
    "select * from pragma_schema_version",
    "select * from sqlite_master",
    "select * from sqlite_schema",
    "select * from {foreign}.sqlite_master",
    "select * from sqlite_temp_master",
    "select * from dbstat",
    "select * from sqlite_dbpage",
    "select * from bytecode('select * from entry')",
    "select * from sqlite_stmt",
    "attach database '{file}' as x",
    "select 1; attach database '{file}' as x; select * from x.entry",
    "explain attach '{file}' as x",
    'select * from "file:{file}?mode=ro".entry',
    "select load_extension('{file}')",
    "select readfile('{file}')",
    "select * from fsdir('{index}')",
    "select * from zipfile('{file}')",
    "select edit('{file}')",
    "vacuum into '/tmp/x'",
    "select fts3_tokenizer('simple')",
    "select * from json_each((select json_group_array(text) from entry))",
    "select * from json_each((select json_group_array(text) from {foreign}.entry))",
    "select * from json_tree((select json_group_object(key, value) from meta))",
    "select value from json_each('[1]') join entry",
    "select key, value from meta",
    "select count(*) from entry",
    "select count(*) from {foreign}.entry",
    "select * from entry where text like :q",
    "/* */ select * from entry",
    "select writefile('/tmp/x', text) from entry",
    "select eval('select * from entry')",
    "pragma database_list",
    "delete from entry returning text",
)
INSTANCE_PAGES: Final = (
    "",
    ".json",
    "actions",
    "actions.json",
    "actor",
    "actor.json",
    "allow-debug",
    "allowed",
    "allowed.json?action=view-database",
    "allowed.json?action=view-table&parent={foreign}",
    "api",
    "auth-token",
    "check.json?action=view-database&parent={foreign}",
    "config",
    "config.json",
    "create-token",
    "databases",
    "databases.json",
    "debug/autocomplete",
    "jump",
    "jump.json?q=entry",
    "logout",
    "messages",
    "metadata",
    "metadata.json",
    "patterns",
    "permissions",
    "plugins",
    "plugins.json?all=1",
    "queries",
    "queries.json",
    "rules",
    "rules.json?action=view-database",
    "schema",
    "schema.json",
    "schema.md",
    "settings",
    "settings.json",
    "tasks.json",
    "threads",
    "threads.json",
    "versions",
    "versions.json",
    "static/../../{foreign}",
    "static/..%2f..%2f..%2fetc/passwd",
    "static-plugins/sessiongraph_web/../x",
    "login",
    "login?token=x",
)
LIST_QUERIES: Final = (
    "",
    f"?q={FOREIGN_WORD}",
    f"?q={FOREIGN_WORD}&group=none&limit=100",
    f"?q={FOREIGN_WORD[:4]}&match=text&kinds=user,assistant,tool_call,tool_result,title,todo,turn_end",
    f"?q={NOWHERE_WORD}",
    f"?q={SIBLING_WORD}",
    "?q=the&inherited=1&limit=100",
    "?q=the&sort=oldest&group=none",
    "?q=the&session={foreign_id}",
    "?q=the&parent={foreign_id}",
    f"?q=the&workspace={quote(FOREIGN)}",
    f"?q=the&workspace={quote(HOME)}&workspace={quote(FOREIGN)}",
    "?q=the&workspace=",
    "?q=the&cursor={search_cursor}",
    f"?q={FOREIGN_WORD}&limit=1&cursor={{search_cursor}}",
    f"?workspace={quote(FOREIGN)}",
    "?cursor={timeline_cursor}",
    "?limit=1&cursor={timeline_cursor}",
    "?sort=activity&limit=100",
    "?roots=1&limit=100",
    "?tz=Asia/Shanghai",
    "?ledger=1&limit=100",
    "?ledger=1&states=indexed,partial,unreadable",
)
SESSION_QUERIES: Final = (
    "",
    "?log={foreign_log}",
    "?log={sibling_log}",
    "?ordinal=0&limit=100",
    "?last=1",
    "?redact=0",
)


def all_urls(world: World, cursors: dict[str, str]) -> list[str]:
    """Return every address to be tried, each once."""
    words = _words_of(world, cursors)
    found = [
        *(f"/{name}{tail}" for name in (FOREIGN_DATABASE, HOME_DATABASE) for tail in _database_tails(words)),
        *(f"/{name}{tail}" for name in _spellings(FOREIGN_DATABASE) for tail in _few_tails(words)),
        *(f"/{name}{tail}" for name in OTHER_DATABASES for tail in _few_tails(words)),
        *(f"/-/{page}".format(**words) for page in INSTANCE_PAGES),
        *_product_urls(world, words),
    ]
    return list(dict.fromkeys(found))


def _words_of(world: World, cursors: dict[str, str]) -> dict[str, Any]:
    """Return what addresses are filled with."""
    return {
        "foreign": FOREIGN_DATABASE,
        "foreign_id": world.ids["foreign"],
        "foreign_log": world.log_ids["foreign"],
        "sibling_log": world.log_ids["sibling"],
        "index": world.index,
        "file": next(world.index.glob(f"g*/{FOREIGN_DATABASE}.db")),
        **cursors,
    }


def _database_tails(words: dict[str, Any]) -> Iterator[str]:
    """Yield what follows a database's name."""
    yield from DATABASE_PAGES
    for table in TABLES:
        yield from (f"/{table}{page}".format(**words) for page in TABLE_PAGES)
    for query in TABLE_QUERIES:
        yield from (f"/{table}{query}".format(**words) for table in ("entry", "entry.json", "session.json"))
    for sql in SQL:
        for suffix in ("/-/query?sql=", "/-/query.json?_shape=array&sql=", "/-/query.csv?sql="):
            yield suffix + quote(sql.format(**words))


def _few_tails(words: dict[str, Any]) -> Iterator[str]:
    yield from DATABASE_PAGES
    yield from ("/entry", "/entry.json?_size=max", "/entry.csv", "/entry/1.json", "/session.json", "/log.json")
    yield from ("/catalog_tables.json", "/entry/-/schema", "/entry/-/fragment?_row=1")
    yield from (f"/-/query.json?sql={quote(sql.format(**words))}" for sql in SQL[:4])


def _spellings(name: str) -> list[str]:
    """Return the ways to write a database's name that might slip past a comparison."""
    tilde = "".join(f"~{ord(char):02X}" for char in name)
    percent = "".join(f"%{ord(char):02X}" for char in name)
    return [
        name.replace("_", "~5F"),
        name.replace("_", "~5f"),
        name.replace("_", "%5F"),
        name.replace("_", "~7E5F"),
        tilde,
        percent,
        name.upper(),
        name.title(),
        f"{name}~00",
        f"%20{name}",
        f".~2F{name}",
        f"{HOME_DATABASE}/../{name}",
        f"/{name}",
        f"./{name}",
    ]


def _product_urls(world: World, words: dict[str, Any]) -> Iterator[str]:
    """Yield every route of ours that can be read, filled with ids of others in every spelling."""
    for route in routes.ROUTES:
        if "GET" not in route.methods:
            continue
        for filled in _filled(route.template, world):
            twins = (filled, "/.json" if filled == "/" else f"{filled}.json") if route.twin else (filled,)
            yield from (
                twin + query.format(**words) for twin in twins for query in _queries(route, filled, world)
            )


def _queries(route: Route, filled: str, world: World) -> Sequence[str]:
    if "{id}" not in route.template:
        return LIST_QUERIES
    known = [world.ids[role] for role in ("foreign", "foreign-image", "home") if role in world.ids]
    is_spelled_right = any(f"/{session_id}" in filled for session_id in known)
    return SESSION_QUERIES if is_spelled_right else SESSION_QUERIES[:1]


def _filled(template: str, world: World) -> Iterator[str]:
    if "{id}" not in template:
        yield template.format(digest="0" * 12, name="style.css")
        return
    roles = ("foreign", "foreign-fork", "foreign-image", "nowhere", "sibling", "home")
    ids = [world.ids[role] for role in roles if role in world.ids]
    foreign = world.ids["foreign"]
    ids += [foreign[:-1], foreign.removeprefix("session-"), foreign.upper(), tilde_encode(foreign + "/../x")]
    ids += [
        "".join(f"%{ord(char):02X}" for char in foreign),
        "session-",
        "*",
        "..",
        str(world.log_ids["foreign"]),
    ]
    for session_id in ids:
        for seq in ("0", "3") if "{seq}" in template else ("",):
            for sha256 in ("0" * 64, FOREIGN_IMAGE) if "{sha256}" in template else ("",):
                yield template.format(id=session_id, seq=seq, sha256=sha256)


@dataclass(frozen=True)
class Secret:
    """What must not be shown: a word, in whatever case, or a number that stands by itself."""

    spellings: tuple[str, ...]  # casefolded
    is_number: bool = False

    def is_in(self, folded: str) -> bool:
        """Say whether a casefolded text shows it. A pattern that ignores case would take fifty times as long."""
        return any(
            spelling in folded and (not self.is_number or _stands_alone(spelling, folded))
            for spelling in self.spellings
        )


def _stands_alone(number: str, text: str) -> bool:
    return re.search(rf"(?<![\w.]){number}(?!\w)", text) is not None


@dataclass(frozen=True)
class Stranger:
    """A caller, the headers that present him, and what he must never be shown."""

    name: str
    headers: Pairs
    secrets: tuple[Secret, ...]

    def leaks(self, url: str, answer: Answer) -> list[Secret]:
        """Return what of the secrets an answer shows, beyond what the address itself said."""
        return _told(self.secrets, _readable(answer), unquote_plus(url), url)


def _told(secrets: Sequence[Secret], shown: str, *said: str) -> list[Secret]:
    """Return the secrets that a text shows and whoever asked for it did not say."""
    folded, known = shown.casefold(), [text.casefold() for text in said]
    return [secret for secret in secrets if secret.is_in(folded) and not any(map(secret.is_in, known))]


STRANGERS: Final = (
    "/w/a",
    "/w/a/",
    "one session",
    "a session with descendants",
    "expired",
    "revoked",
    "truncated",
    "forged",
    "forged cookie",
    "null cwd",
    "cwd not in a list",
    "list of lists",
    "owner with cwds",
    "root",
    "anonymous",
    "signed in, in Chinese",
    "signed in to one session",
    "signed out",
    "spent link",
)


def stranger(name: str, world: World, datasette: Datasette, counts: Sequence[int]) -> Stranger:
    """Return a caller that is not the owner, by name."""
    foreign = _foreign_secrets(world, counts)
    sibling = _words(SIBLING_WORD, world.ids["sibling"], str(world.log_ids["sibling"]))
    family = _words(world.ids["fork"], world.ids["subagent"])
    everything = foreign + sibling + family + _words(HOME_WORD, world.ids["home"])
    secrets = {
        "/w/a": foreign,
        "signed in, in Chinese": foreign,
        "signed in to one session": foreign + sibling + family,
        "one session": foreign + sibling + family,
        "a session with descendants": foreign + sibling,
    }
    return Stranger(name, _credentials(name, world, datasette), secrets.get(name, everything))


def _credentials(name: str, world: World, datasette: Datasette) -> Pairs:
    """Return the headers that present a caller."""
    token = world.token(access.workspaces(HOME))
    home = world.log_ids["home"]
    grants = {
        "/w/a": access.workspaces(HOME),
        "/w/a/": access.workspaces(HOME + "/"),
        "one session": Caller("session", frozenset({HOME}), home, False),
        "a session with descendants": Caller("session", frozenset({HOME}), home, True),
    }
    actors: dict[str, object] = {
        "null cwd": {"id": "x", access.ACTOR_KEY: {"kind": "workspaces", "cwds": [None]}},
        "cwd not in a list": {"id": "x", access.ACTOR_KEY: {"kind": "workspaces", "cwds": FOREIGN}},
        "list of lists": {"id": "x", access.ACTOR_KEY: {"kind": "workspaces", "cwds": [[FOREIGN]]}},
        "owner with cwds": {"id": "x", access.ACTOR_KEY: {"kind": "owner", "cwds": [HOME]}},
        "root": {"id": "root"},
    }
    if name in grants:
        return bearer(world.token(grants[name]))
    if name.startswith("signed"):
        one = grants["one session"] if name.endswith("session") else grants["/w/a"]
        return _cookie(datasette, world.token(one), name)
    if name == "spent link":
        private = app.product(datasette).tokens
        secret = private.create(access.OWNER, "", int((time.time() + 60) * 1000), "link")
        assert private.sign_in(secret)
        return [*bearer(secret), ("cookie", f"{signin.cookie_name(private)}={secret}")]
    if name in actors:
        return [("cookie", f"ds_actor={datasette.client.actor_cookie(actors[name])}")]
    if name == "revoked":
        secret = world.token(access.OWNER, label="revoked")
        world.revoke("revoked")
        return bearer(secret)
    return {
        "expired": bearer(world.token(access.OWNER, seconds=-1)),
        "truncated": bearer(token[:-1]),
        "forged": bearer(token[:-1] + ("A" if token[-1] != "A" else "B")),
        "forged cookie": [("cookie", "ds_actor=eyJhIjp7ImlkIjoicm9vdCJ9fQ.x")],
        "anonymous": [],
    }[name]


def _cookie(datasette: Datasette, secret: str, name: str) -> Pairs:
    """Return the headers of a browser that signed in with a token, as its link does."""
    private = app.product(datasette).tokens
    signed_in = private.sign_in(secret)
    assert signed_in
    if name == "signed out":
        private.sign_out(signed_in.secret)
    language = [("accept-language", "zh-CN")] if name.endswith("Chinese") else []
    return [("cookie", f"{signin.cookie_name(private)}={signed_in.secret}"), *language]


def _foreign_secrets(world: World, counts: Sequence[int]) -> tuple[Secret, ...]:
    ids = (world.ids["foreign"], world.ids["foreign-fork"], world.ids["nowhere"])
    logs = tuple(str(world.log_ids[role]) for role in ("foreign", "foreign-fork", "nowhere"))
    paths = (FOREIGN.removeprefix("/w/"), str(world.index), str(world.store), FOREIGN_DATABASE)
    numbers = tuple(Secret((str(count), f"{count:,}"), is_number=True) for count in counts)
    return _words(FOREIGN_WORD, FOREIGN_MARK, NOWHERE_WORD, *ids, *logs, *paths) + numbers


def _words(*words: str) -> tuple[Secret, ...]:
    return tuple(Secret((word.casefold(),)) for word in words)


def _readable(answer: Answer) -> str:
    """Return everything an answer says, headers included."""
    return "\n".join([*(f"{name}: {value}" for name, value in answer.headers), _contents(answer)])


def _contents(answer: Answer) -> str:
    """Return the body as text, an archive unpacked."""
    if not answer.body.startswith(b"PK"):
        return answer.text
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        return "\n".join(name + archive.read(name).decode("utf-8", "replace") for name in archive.namelist())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    directory = tmp_path_factory.mktemp("bypass")
    world = two_workspaces(directory)
    picture = Log(FOREIGN)
    message = {"content": [image_block(FOREIGN_IMAGE)], "source": {"kind": "user"}, "role": "user"}
    picture.event("user/message", message, surfaceOp="append")
    world.write("foreign-image", picture)
    put_attachment(directory / "attachments", IMAGE, kind="image")
    return world.build()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(world: World) -> AsyncIterator[Datasette]:
    """One server for every caller: what it keeps of one must be of no use to another."""
    datasette = await _started(world)
    datasette.root_enabled = True
    yield datasette
    await datasette.invoke_shutdown()


async def _started(world: World) -> Datasette:
    """Return an instance that keeps its application between requests, as a server does."""
    datasette = world.serve()
    await datasette.invoke_startup()
    application = datasette.app()
    datasette.app = lambda: application  # type: ignore[method-assign]
    return datasette


async def owners_cursors(datasette: Datasette, world: World) -> dict[str, str]:
    """Return cursors that the owner was given, for others to try."""
    headers = bearer(world.token(access.OWNER))
    search = await ask(datasette, f"/search.json?q={FOREIGN_WORD}&limit=1", headers=headers)
    timeline = await ask(datasette, "/timeline.json?limit=1", headers=headers)
    return {
        "search_cursor": json.loads(search.body)["next_cursor"],
        "timeline_cursor": json.loads(timeline.body)["next_cursor"],
    }


async def owners_counts(datasette: Datasette, world: World) -> list[int]:
    """Return the numbers that tell how much there is in the foreign workspace, and in all of them."""
    headers = bearer(world.token(access.OWNER))
    listed = json.loads((await ask(datasette, "/workspaces.json", headers=headers)).body)["workspaces"]
    totals = json.loads((await ask(datasette, "/status.json", headers=headers)).body)
    counts = [found["entries"] for found in listed if found["cwd"] == FOREIGN] + [totals["entries"]]
    assert all(count > 1000 for count in counts), "a small number would be met by chance"
    return counts


@pytest.mark.parametrize("name", STRANGERS)
async def test_no_address_leaks_another_workspace(served: Datasette, world: World, name: str) -> None:
    """Above a thousand addresses for each kind of caller, and not one foreign byte, nor a fault of ours."""
    urls = all_urls(world, await owners_cursors(served, world))
    assert len(urls) > LEAST_URLS
    caller = stranger(name, world, served, await owners_counts(served, world))
    leaks, faults = {}, []
    for url in urls:
        answer = await ask(served, url, headers=caller.headers)
        if found := caller.leaks(url, answer):
            leaks[url] = found
        # Datasette's own pages answer some nonsense (a facet by JSON that is none) with 500.
        if answer.status >= 500 and security.place(url.partition("?")[0]).kind != "database":
            faults.append(url)

    assert leaks == {}
    assert faults == []


@pytest.mark.parametrize("name", STRANGERS)
async def test_nothing_posted_leaks_or_acts(served: Datasette, world: World, name: str) -> None:
    """Whatever a stranger posts to our routes, he is told nothing foreign, gives no access, and starts no run."""
    caller = stranger(name, world, served, await owners_counts(served, world))
    product = app.product(served)
    before = product.tokens.list(), product.refresher.rounds, product.refresher.running
    grant = next(token.id for token in before[0])
    asked = (
        {},
        {"session": world.ids["foreign"]},
        {"session": world.ids["home"], "log": str(world.log_ids["foreign"]), "descendants": "1"},
        {"workspace": FOREIGN},
        {"workspace": HOME, "days": "365"},
        {"token": grant},
    )
    for route in (route for route in routes.ROUTES if "POST" in route.methods):
        for address in (route.template, f"{route.template}.json") if route.twin else (route.template,):
            for values in asked:
                answer = await ask(served, address, **_posted(caller.headers, values))
                assert answer.status in (401, 404), (address, values)
                assert caller.leaks(address, answer) == []
    assert before == (product.tokens.list(), product.refresher.rounds, product.refresher.running)


def _posted(headers: Pairs, values: dict[str, str]) -> dict[str, Any]:
    """Return the arguments of `ask` that post a form as a page of ours would, for a caller."""
    sent = form(**values)
    return sent | {"headers": [*sent["headers"], *headers]}


@pytest.mark.parametrize("name", sorted(TOOLS))
@pytest.mark.parametrize("agent", ["workspace", "home", "fork", "sibling"])
async def test_no_tool_leaks_another_workspace(served: Datasette, world: World, agent: str, name: str) -> None:
    """No tool tells an agent of another workspace, whichever of its arguments names something there."""
    product = app.product(served)
    secrets = _foreign_secrets(world, await owners_counts(served, world))
    bound = Agent(HOME) if agent == "workspace" else agent_of(product, world.ids[agent])
    told = [
        (arguments, Toolbox(product, bound).call(name, arguments).text)
        for arguments in _tool_arguments(product, world, name, await owners_cursors(served, world))
    ]
    assert len(told) >= 2
    for arguments, text in told:
        assert _told(secrets, text, json.dumps(arguments)) == []


def _tool_arguments(
    product: SessionGraph, world: World, name: str, cursors: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield arguments of a tool, each property filled in turn with what is foreign."""
    foreign, schema_of = world.ids["foreign"], TOOLS[name].schema
    least = {"query": "the", "seq": 0, "operation": "session" if name == "sessiongraph" else ""}
    needed = {key: least[key] for key in schema_of.get("required", ())}
    yield needed
    strings = (foreign, world.ids["nowhere"], FOREIGN, "", "*", FOREIGN_WORD[:4], *cursors.values())
    for key, kind in schema_of["properties"].items():
        if key == "operation":
            yield from ({**needed, key: value, "query": "the"} for value in kind["enum"])
            yield from ({key: "search", "query": word} for word in (FOREIGN_WORD[:4], NOWHERE_WORD, "the*"))
        elif kind["type"] == "string":
            yield from ({**needed, key: value} for value in strings)
            yield from ({**needed, "operation": "search", "query": "the", key: value} for value in strings)
        elif kind["type"] == "array":
            yield from ({**needed, key: [value]} for value in strings)
        elif kind["type"] == "integer":
            numbers = (0, 3, world.log_ids["foreign"])
            yield from ({**needed, "session_id": foreign, key: number} for number in numbers)
        else:
            yield {**needed, key: True}


async def test_the_suite_can_find_a_leak(
    served: Datasette, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same addresses show the owner every secret, and show a scoped caller many once one check is broken."""
    urls = all_urls(world, await owners_cursors(served, world))
    secrets = _foreign_secrets(world, await owners_counts(served, world))
    owner = Stranger("owner", bearer(world.token(access.OWNER)), secrets)
    found = {
        url: leaks for url in urls if (leaks := owner.leaks(url, await ask(served, url, headers=owner.headers)))
    }
    assert len(found) > 200
    assert {secret for leaks in found.values() for secret in leaks} == set(secrets)

    scoped = Stranger("/w/a", bearer(world.token(access.workspaces(HOME))), secrets)
    tables = [f"/{FOREIGN_DATABASE}/entry.json", f"/{FOREIGN_DATABASE}/-/query.json?sql=select+*+from+entry"]
    assert [scoped.leaks(url, await ask(served, url, headers=scoped.headers)) for url in tables] == [[], []]
    monkeypatch.setattr(access, "sees_workspace", lambda _caller, _cwd: True)
    assert all([scoped.leaks(url, await ask(served, url, headers=scoped.headers)) for url in tables])


async def test_permissions_hold_without_the_front_door(served: Datasette, world: World) -> None:
    """Were the door left open, Datasette's own checks would still keep a caller in his workspace."""
    actor = access.to_actor(access.workspaces(HOME))
    owner = bearer(world.token(access.OWNER))
    for name in (HOME_DATABASE, FOREIGN_DATABASE, schema.NO_CWD_DATABASE):
        assert (await ask(served, f"/{name}", headers=owner)).status == 200

    allowed = {
        action: sorted({row.parent async for row in (await served.allowed_resources(action, actor)).all()})
        for action in served.actions
        if served.actions[action].resource_class is not None and action != "view-workspace"
    }

    readable = {"view-database", "execute-sql", "view-table"}
    assert allowed == {action: [HOME_DATABASE] if action in readable else [] for action in allowed}
    assert readable < allowed.keys()


@pytest.mark.parametrize(
    "actor", [None, {"id": "root"}, access.to_actor(access.OWNER)], ids=["nobody", "root", "owner"]
)
async def test_nobody_may_write_download_or_debug(served: Datasette, actor: dict[str, Any] | None) -> None:
    """Every action but reading is denied to everybody, `--root` included; reading needs someone we know."""
    granted = set()
    for name, action in served.actions.items():
        resource_class = action.resource_class
        arguments = {None: (), "database": (HOME_DATABASE,), "workspace": (HOME_DATABASE,)}.get(
            resource_class and resource_class.name, (HOME_DATABASE, "entry")
        )
        resource = resource_class(*arguments) if resource_class else None
        if await served.allowed(action=name, resource=resource, actor=actor):
            granted.add(name)

    is_owner = access.from_actor(actor).is_owner
    ours = {"view-instance", "view-workspace", "view-session"}
    reading = {"view-database", "execute-sql", "view-table"}
    assert granted - reading == (ours if is_owner else set())
    assert granted & reading <= (reading if is_owner else set())


# What differs from moment to moment. Times of sessions are in the JSON twins, and compared there.
VOLATILE: Final = re.compile(
    r'"(?:took_ms|refreshed_at)":(?:"[^"]*"|[\d.]+|null)|<local-time .*?</local-time>|[\d.]+ ms\b', re.DOTALL
)


@dataclass(frozen=True)
class Pair:
    """One workspace served twice: alone, and beside a foreign one."""

    worlds: tuple[World, World]
    instances: tuple[Datasette, Datasette]

    def credentials(self, caller: Caller) -> list[Pairs]:
        """Return the headers that present a caller to each."""
        return [bearer(world.token(caller)) for world in self.worlds]

    async def ask(self, credentials: Sequence[Pairs], url: str) -> list[Answer]:
        """Return both answers to one request."""
        both = zip(self.instances, credentials, strict=True)
        return [await ask(datasette, url, headers=headers) for datasette, headers in both]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    tmp_path = tmp_path_factory.mktemp("pair")
    alone = home_only(tmp_path / "alone").build()
    shutil.copytree(alone.store, tmp_path / "beside" / "sessions")
    copied = World(tmp_path / "beside" / "sessions", tmp_path / "beside" / "index", alone.ids, alone.log_ids)
    beside = add_foreign(copied).build()
    instances = await _started(alone), await _started(beside)
    yield Pair((alone, beside), instances)
    for datasette in instances:
        await datasette.invoke_shutdown()


@pytest.mark.parametrize("kind", ["workspaces", "session"])
async def test_answers_do_not_depend_on_what_is_foreign(pair: Pair, kind: str) -> None:
    """A scoped caller is told the same, whether his workspace is the only one or one of several."""
    caller = access.workspaces(HOME)
    if kind == "session":
        caller = Caller("session", frozenset({HOME}), pair.worlds[0].log_ids["home"], True)
    words = _words_of(pair.worlds[1], {"search_cursor": "x", "timeline_cursor": "x"})
    urls = [*_product_urls(pair.worlds[1], words), *(f"/{FOREIGN_DATABASE}{tail}" for tail in _few_tails(words))]
    credentials, differing = pair.credentials(caller), []
    for url in urls:
        alone, beside = [_settled(answer) for answer in await pair.ask(credentials, url)]
        if alone != beside:
            differing.append(url)

    assert differing == []


def _settled(answer: Answer) -> tuple[int, str]:
    """Return an answer less what differs from moment to moment."""
    return answer.status, VOLATILE.sub("", _contents(answer))
