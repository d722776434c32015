"""Pages in two languages: which one is spoken to whom, and that nothing of the other one is left in it."""

from __future__ import annotations

import io
import json
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest
from datasette.app import Datasette

from sessiongraph_web import access, language
from sessiongraph_web.web import signin
from tests import catalogue
from tests.asgi import Answer, Pairs, ask, bearer, form
from tests.builders import Log
from tests.world import HOME, HOME_WORD, World, two_workspaces

pytestmark = pytest.mark.asyncio
VARY = "Accept-Language, Cookie, Authorization"
CHINESE: Pairs = [("accept-language", "zh-CN,zh;q=0.9,en;q=0.8")]
ENGLISH: Pairs = [("accept-language", "en-US,en;q=0.9")]
READ = ("aria-label", "title", "placeholder", "alt")
UNREAD = {"code", "pre", "bdi", "kbd", "script", "style", "symbol"}  # text of a log, or a name
VOID = {"meta", "link", "input", "img", "br", "hr", "rect", "path", "use", "circle"}
README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
MISSING = "/sessions/session-00000000000000000000000000000000"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = two_workspaces(tmp_path_factory.mktemp("languages"))
    rich = Log(HOME)
    rich.turn(f"{HOME_WORD} again", "It went wrong.", [("bash", '{"command": "false"}', "no\n[exit code: 1]")])
    rich.todo(("look closely", "completed"), ("write it up", "pending"))
    rich.event("no/such-type", {"x": 1})
    made.write("rich", rich)
    return made.build()


@pytest.fixture(scope="module")
def owner(world: World) -> Pairs:
    return bearer(world.token(access.OWNER))


class Said(HTMLParser):
    """What a page says to its reader: text and attributes, less what is quoted from logs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.language = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "html":
            self.language = dict(attrs)["lang"] or ""
        if tag not in VOID:
            self._open.append(tag)
        self.texts += [value for name, value in attrs if value and (name in READ or name.startswith("data-"))]

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if UNREAD.isdisjoint(self._open):
            self.texts.append(" ".join(data.split()))


def sentences() -> re.Pattern[str]:
    """Return a pattern of every English sentence whose Chinese is another."""
    found = set()
    for message in catalogue.read("zh"):
        for text in message.id if isinstance(message.id, list | tuple) else (message.id,):
            if re.search("[a-z]{3}", text) and text != message.string:
                for part in re.split(r"<[^>]*>", text):
                    words = [re.escape(word) for word in re.split(r"%\(\w+\)s|\{\w+\}", part.strip())]
                    if re.search("[a-z]{3}", "".join(words)):
                        found.add(".+?".join(words))
    return re.compile("|".join(sorted(found, key=len, reverse=True)))


def pages(world: World) -> list[str]:
    """Return an address of every kind of page."""
    rich, fork, home = (world.ids[role] for role in ("rich", "fork", "home"))
    found = [
        "/",
        "/search",
        f"/search?q={HOME_WORD}",
        f"/search?q={HOME_WORD}&group=none",
        "/search?q=nothingatall",
    ]
    found += [f"/search?q={HOME_WORD}&tool=bash&surfaces=current", "/timeline", "/timeline?day=2001-01-01"]
    found += ["/workspaces", "/status", "/status?ledger=1", "/search?q=", MISSING, "/search?q=x&limit=zero"]
    found += [f"/share?session={rich}", f"/share?workspace={HOME}", signin.LOGIN, "/nowhere/at/all"]
    for one in (rich, fork, home):
        found += [f"/sessions/{one}", f"/sessions/{one}?find={HOME_WORD}&at=0", f"/sessions/{one}?view=focus"]
        found += [f"/sessions/{one}/events", f"/sessions/{one}/events/3", f"/trace/{one}"]
    return found


async def test_a_chinese_page_says_nothing_in_english(world: World, served: Datasette, owner: Pairs) -> None:
    """Every page, in every state of it, is wholly in its reader's language; so is what is read out."""
    english = sentences()
    for path in pages(world):
        page = await ask(served, path, headers=[*owner, *CHINESE])
        said = Said(page.text)
        assert (path, said.language) == (path, "zh-Hans")
        assert (path, [text for text in said.texts if english.fullmatch(text)]) == (path, [])
        assert re.search("[\u3400-\u9fff]", " ".join(said.texts)), path


async def test_an_english_page_says_nothing_in_chinese(world: World, served: Datasette, owner: Pairs) -> None:
    """The only Chinese there is the way to Chinese, and a sample of what can be searched."""
    for path in pages(world):
        said = Said((await ask(served, path, headers=[*owner, *ENGLISH])).text)
        assert (path, said.language) == (path, "en")
        assert {text for text in said.texts if re.search("[\u3400-\u9fff]", text)} == {"中文"}, path


@pytest.mark.parametrize(
    ("headers", "spoken"),
    [
        ([], "en"),
        (CHINESE, "zh-Hans"),
        (ENGLISH, "en"),
        ([*CHINESE, ("cookie", "sg_language=en")], "en"),
        ([*ENGLISH, ("cookie", "sg_language=zh")], "zh-Hans"),
        ([*ENGLISH, ("cookie", "sg_theme=dark; sg_language=zh")], "zh-Hans"),
        ([*CHINESE, ("cookie", "sg_language=xx")], "zh-Hans"),
        ([("cookie", 'sg_language="><script>')], "en"),
    ],
)
async def test_a_choice_beats_the_browser(served: Datasette, owner: Pairs, headers: Pairs, spoken: str) -> None:
    """The cookie of the switch first, then what the browser asks for, then English."""
    for path in ("/", signin.LOGIN, MISSING):
        answer = await ask(served, path, headers=[*owner, *headers])
        assert Said(answer.text).language == spoken
        assert answer.header("vary") == VARY


async def test_no_cache_takes_one_language_for_the_other(served: Datasette, owner: Pairs) -> None:
    """Twins are told apart by their tag and by what they depend on; their data are the same."""
    both = [await ask(served, "/timeline.json", headers=[*owner, *headers]) for headers in (CHINESE, ENGLISH)]
    assert both[0].body == both[1].body
    assert {answer.header("vary") for answer in both} == {VARY}
    tags = [answer.header("etag") or "" for answer in both]
    assert tags[0] != tags[1]
    for tag, statuses in ((tags[0], (304, 200)), (tags[1], (200, 304))):
        found = [
            await ask(served, "/timeline.json", headers=[*owner, *headers, ("if-none-match", tag)])
            for headers in (CHINESE, ENGLISH)
        ]
        assert tuple(answer.status for answer in found) == statuses


async def test_errors_follow_the_reader_and_their_codes_do_not(served: Datasette, owner: Pairs) -> None:
    """A program that asks for nothing is told in English; the code is the same in every language."""
    told = [
        json.loads((await ask(served, f"{MISSING}.json", headers=[*owner, *headers])).body)
        for headers in ([], ENGLISH, CHINESE)
    ]
    assert [one["error"] for one in told] == [
        "There is no such session here.",
        "There is no such session here.",
        "这里没有这个会话。",
    ]
    assert {one["code"] for one in told} == {"SESSION_QUERY_SESSION_NOT_FOUND"}


def cookies(answer: Answer) -> list[str]:
    return [value for name, value in answer.headers if name == "set-cookie"]


@pytest.mark.parametrize(
    ("told", "referer", "back"),
    [
        ("/timeline?sort=activity", None, "/timeline?sort=activity"),
        ("/sessions/x?find=a%20b#e12", None, "/sessions/x?find=a%20b#e12"),
        ("", "http://localhost/search?q=a", "/search?q=a"),
        (None, "http://localhost/-/login?token=t", "/-/login?token=t"),
        (None, None, "/"),
        ("//evil.example", None, "/"),
        ("/\\evil.example", None, "/"),
        ("\\/evil.example", None, "/"),
        ("https://evil.example/", None, "/"),
        ("evil.example", None, "/"),
        ("javascript:alert(1)", None, "/"),
        ("/a\r\nset-cookie: x=y", None, "/"),
        ("/\t/evil.example", None, "/"),
        (None, "http://evil.example/search", "/"),
        (None, "http://localhost.evil.example/", "/"),
        (None, "http://localhost//evil.example/", "/"),
        (None, "http://user@localhost/x", "/"),
        (None, "ftp://localhost/x", "/"),
        (None, "not an address", "/"),
        (None, "http://[", "/"),
    ],
)
async def test_a_choice_comes_back_and_never_leaves(
    served: Datasette, told: str | None, referer: str | None, back: str
) -> None:
    """It returns to the page that it was made on, and to no other site whatever it is told."""
    sent = form(language="zh", **({} if told is None else {"next": told}))
    sent["headers"] += [("referer", referer)] if referer else []
    answer = await ask(served, signin.LANGUAGE, **sent)
    assert (answer.status, answer.header("location")) == (303, back)
    assert cookies(answer) == ["sg_language=zh; Max-Age=31536000; Path=/; SameSite=lax"]


async def test_only_languages_that_there_are_can_be_chosen(served: Datasette) -> None:
    """Anything else changes nothing; neither does a mere visit, or another site's form."""
    for wished in ("", "xx", "zh-CN", "en; Domain=evil.example"):
        answer = await ask(served, signin.LANGUAGE, **form(language=wished))
        assert (answer.status, cookies(answer)) == (303, [])
    assert (await ask(served, f"{signin.LANGUAGE}?language=zh")).status == 405
    foreign = form(language="zh")
    foreign["headers"] = [foreign["headers"][0], ("origin", "https://evil.example")]
    assert (await ask(served, signin.LANGUAGE, **foreign)).status == 403


async def test_a_choice_opens_nothing(world: World, served: Datasette) -> None:
    """Who has no access may choose a language, and has none after it; who was sent a link reads what it opens."""
    for headers in ([("cookie", "sg_language=zh")], [("cookie", "sg_language=en")]):
        assert (await ask(served, "/timeline", headers=headers)).status == 401
    visitor = bearer(world.token(access.Caller("session", frozenset({HOME}), world.log_ids["home"])))
    page = await ask(served, f"/sessions/{world.ids['home']}", headers=[*visitor, ("cookie", "sg_language=zh")])
    assert (page.status, Said(page.text).language) == (200, "zh-Hans")
    foreign = await ask(
        served, f"/sessions/{world.ids['foreign']}", headers=[*visitor, ("cookie", "sg_language=zh")]
    )
    assert foreign.status == 404


async def test_every_page_offers_the_other_language_in_its_own(served: Datasette, owner: Pairs) -> None:
    """The switch names the language as its speakers do, and is marked as being in it."""
    for headers, name, said in ((ENGLISH, "zh", "中文"), (CHINESE, "en", "English")):
        for path in ("/", signin.LOGIN, MISSING):
            page = await ask(served, path, headers=[*owner, *headers])
            assert f'<button name="language" value="{name}" lang="{name}">{said}</button>' in page.text


async def test_the_answer_to_a_form_offers_no_switch(world: World, served: Datasette, owner: Pairs) -> None:
    """A secret that is shown once would be gone after a change of language."""
    sent = form(workspace=HOME, days="1")
    sent["headers"] = [*sent["headers"], *owner, *CHINESE]
    answer = await ask(served, "/share/create", **sent)
    assert (answer.status, Said(answer.text).language) == (200, "zh-Hans")
    assert signin.LANGUAGE not in answer.text


async def test_an_archive_is_in_the_language_of_who_asked_for_it(served: Datasette, owner: Pairs) -> None:
    """Its pages are; its Markdown and data are in English, since programs read them."""
    english = sentences()
    for headers, tag in ((CHINESE, "zh-Hans"), (ENGLISH, "en")):
        answer = await ask(served, f"/export.zip?workspace={HOME}", headers=[*owner, *headers])
        with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
            found = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".html")}
        assert len(found) > 2
        assert {Said(text).language for text in found.values()} == {tag}
        left = [text for page in found.values() for text in Said(page).texts if english.fullmatch(text)]
        assert bool(left) == (tag == "en"), left


async def test_what_a_log_says_is_never_translated(tmp_path: Path) -> None:
    """A log that happens to say what a page says is quoted as it stands, markup and all."""
    world = World(tmp_path / "sessions", tmp_path / "index")
    log = Log(HOME)
    log.turn("Timeline", "Status", [("Prompt", '{"command": "<b>%(num)s turns</b>"}', "ok")])
    log.title("No sessions yet")
    world.write("copycat", log)
    world.build()
    datasette = world.serve()
    await datasette.invoke_startup()
    headers = [*bearer(world.token(access.OWNER)), *CHINESE]
    page = (await ask(datasette, f"/sessions/{log.id}", headers=headers)).text
    await datasette.invoke_shutdown()
    assert "No sessions yet" in page
    assert '<div class="plain-text" dir="auto">Timeline</div>' in page
    assert "&lt;b&gt;%(num)s turns&lt;/b&gt;" in page
    assert "<b>" not in page


async def test_hidden_characters_stay_visible_inside_sentences(tmp_path: Path) -> None:
    """What stands in a sentence is escaped and made visible as anywhere on a page."""
    world = World(tmp_path / "sessions", tmp_path / "index")
    parent = Log(HOME).turn("one", "two")
    parent.title("<i>odd</i>\u202etitle")
    world.write("parent", parent)
    fork = Log(HOME, seeded_from=parent).turn("three", "four")
    world.write("fork", fork)
    world.build()
    datasette = world.serve()
    await datasette.invoke_startup()
    for headers in (CHINESE, ENGLISH):
        owner = bearer(world.token(access.OWNER))
        page = (await ask(datasette, f"/sessions/{fork.id}", headers=[*owner, *headers])).text
        assert "\u202e" not in page
        assert "<i>odd" not in page
        assert page.count("&lt;i&gt;odd&lt;/i&gt;") > 1
    await datasette.invoke_shutdown()


async def test_the_documented_languages_are_those_that_there_are() -> None:
    """The README's section names each."""
    section = README.split("## Languages\n", 1)[1].split("\n## ", 1)[0]
    assert [said for said in language.LANGUAGES.values() if said not in section] == []
