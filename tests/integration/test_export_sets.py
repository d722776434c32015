"""Archives of what a search finds or a timeline lists: what is in them, how much may be, and how they read."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from datasette.app import Datasette

from sessiongraph_web import access, leaving
from sessiongraph_web.access import Caller
from tests.asgi import ask, bearer
from tests.attachments import image_block, put_attachment
from tests.builders import Log
from tests.world import FOREIGN_WORD, HOME, HOME_WORD, World, two_workspaces

pytestmark = pytest.mark.asyncio
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
SECRET = "gh" + "p_" + "a1B2c3D4" * 5
HOSTILE = '</pre></details><script>alert(1)</script><img src="http://evil.example/x.png" onerror="a">'


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = two_workspaces(tmp_path_factory.mktemp("sets"))
    sha256 = put_attachment(world.store.parent / "attachments", PNG, kind="image")
    rich = Log(HOME, id="weird id/../", created_at=0)
    rich.turn(f"rarebird {HOSTILE}", f"**bold** {HOSTILE} {SECRET}", [("bash", '{"command":"ls"}', HOSTILE * 50)])
    rich.event("user/message", {"content": [image_block(sha256)], "source": {"kind": "user"}}, surfaceOp="append")
    for number in range(200):
        rich.turn(f"rarebird {number}", "yes")
    rich.title(f"rarebird {HOSTILE}")
    world.write("rich", rich)
    return world.build()


async def packed(served: Datasette, world: World, query: str, caller: Caller = access.OWNER) -> zipfile.ZipFile:
    found = await served.client.get(f"/export.zip?{query}", headers=dict(bearer(world.token(caller))))
    assert (found.status_code, found.headers["content-type"]) == (200, "application/zip")
    assert found.headers["content-disposition"].startswith('attachment; filename="dsh-sessions.zip"')
    archive = zipfile.ZipFile(io.BytesIO(found.content))
    assert archive.testzip() is None
    return archive


def manifest(archive: zipfile.ZipFile) -> Any:
    return json.loads(archive.read("manifest.json"))


def logs_of(archive: zipfile.ZipFile) -> set[str]:
    return {entry["session_id"] for entry in manifest(archive)["entries"] if entry["kind"] == "log"}


@pytest.mark.parametrize(
    ("query", "roles"),
    [
        (f"q={HOME_WORD}", {"home", "fork", "subagent"}),
        (f"q={HOME_WORD}&roots=1", {"home"}),
        ("q=greyheron", {"nowhere"}),
        ("q=nothinglikethis", set()),
        ("workspace=/w/a&roots=1", {"home", "sibling", "rich"}),
        ("before=1970-01-02", {"rich"}),
    ],
)
async def test_a_set_holds_what_its_filters_find(
    served: Datasette, world: World, query: str, roles: set[str]
) -> None:
    """The preview, the logs in the archive and the manifest agree with the search or the timeline."""
    ids = {world.ids[role] for role in roles}
    owner = bearer(world.token(access.OWNER))

    archive = await packed(served, world, query)
    preview = json.loads((await ask(served, f"/export.zip.json?{query}", headers=owner)).body)
    same = json.loads((await ask(served, f"/export.zip?{query}&preview=1", headers=owner)).body)

    assert logs_of(archive) == {session["id"] for session in preview["sessions"]} == ids
    sizes = {path.parent.name: path.stat().st_size for path in world.store.rglob("session*.zstd")}
    assert preview == same
    assert preview["bytes"] == sum(
        size
        for folder, size in sizes.items()
        if any(i.replace("/", "~002F").replace(" ", "~0020") == folder for i in ids)
    )
    assert (manifest(archive)["sessions"], manifest(archive)["unreachable"]) == (len(ids), [])
    assert manifest(archive)["complete"] is preview["complete"] is True


async def test_a_set_says_when_more_may_match(served: Datasette, world: World) -> None:
    """A search looks at the newest thousand matches of a workspace; sessions behind them are not in the set."""
    archive = await packed(served, world, f"q={FOREIGN_WORD}")
    assert manifest(archive)["complete"] is False
    assert world.ids["foreign"] in logs_of(archive)


async def test_each_session_lies_in_a_folder_with_its_transcript(served: Datasette, world: World) -> None:
    """The layout, the log byte for byte, and a manifest that describes every other entry, last."""
    archive = await packed(served, world, "q=rarebird")

    folder = "sessions/weird_id____/"
    image = f"media/sha256-{hashlib.sha256(PNG).hexdigest()}.png"
    names = [
        "index.html",
        "style.css",
        f"{folder}session.v4.jsonl",
        f"{folder}transcript.html",
        image,
        "manifest.json",
    ]
    assert archive.namelist() == names
    entries = manifest(archive)["entries"]
    assert [entry["name"] for entry in entries] == names[:-1]
    for entry in entries:
        content = archive.read(entry["name"])
        assert (entry["size"], entry["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    header = json.loads(archive.read(f"{folder}session.v4.jsonl").partition(b"\n")[0])
    assert header["id"] == "weird id/../"


class Page(HTMLParser):
    """A page of an archive: its elements and its text."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(archive.read(name).decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data


def addresses(page: Page) -> Iterator[str]:
    for tag, attributes in page.elements:
        yield from (attributes[name] for name in ("href", "src") if name in attributes and tag != "use")


async def test_the_pages_read_without_a_server(served: Datasette, world: World) -> None:
    """Every address leads into the archive or nowhere; nothing runs; a log's text is text."""
    archive = await packed(served, world, "workspace=/w/a")
    pages = {name: Page(archive, name) for name in archive.namelist() if name.endswith(".html")}
    assert len(pages) == 1 + len(logs_of(archive))

    for name, page in pages.items():
        assert "script" not in {tag for tag, _ in page.elements}
        assert not [
            key for _, attributes in page.elements for key in attributes if key.startswith("on") or key == "style"
        ]
        for address in addresses(page):
            if not address.startswith("#"):
                assert urlsplit(address)[:2] == ("", "")
                target = PurePosixPath(name).parent / unquote(urlsplit(address).path)
                assert _plain(target) in archive.namelist()
    rich = pages["sessions/weird_id____/transcript.html"]
    assert HOSTILE in rich.text
    assert "rarebird 199" in rich.text
    images = [attributes["src"] for tag, attributes in rich.elements if tag == "img"]
    assert [address.rpartition("/")[2] for address in images] == [f"sha256-{hashlib.sha256(PNG).hexdigest()}.png"]
    assert set(addresses(pages["index.html"])) >= {name for name in pages if name != "index.html"}


def _plain(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


async def test_others_get_their_own_sessions_masked(served: Datasette, world: World) -> None:
    """A scoped caller's set ends at its workspace, and no page or log in it holds a known secret."""
    archive = await packed(served, world, "q=rarebird", access.workspaces(HOME))
    whole = b"".join(archive.read(name) for name in archive.namelist())
    assert SECRET.encode() not in whole
    assert b"[masked:github-token]" in archive.read("sessions/weird_id____/transcript.html")
    assert SECRET.encode() in (await packed(served, world, "q=rarebird")).read(
        "sessions/weird_id____/transcript.html"
    )
    assert logs_of(await packed(served, world, f"q={FOREIGN_WORD}", access.workspaces(HOME))) == set()


@pytest.mark.parametrize(
    ("bound", "value", "said"), [("MOST_SESSIONS", 2, "2 sessions"), ("MOST_BYTES", 100, "of stored logs")]
)
async def test_too_much_is_refused_by_name(
    served: Datasette, world: World, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, said: str
) -> None:
    """A 400 names the bound, for the preview as for the archive."""
    monkeypatch.setattr(leaving, bound, value)
    owner = bearer(world.token(access.OWNER))
    for path in ("/export.zip.json", "/export.zip"):
        answer = await ask(served, f"{path}?q={HOME_WORD}", headers=owner)
        assert (answer.status, said in answer.text) == (400, True)


async def test_a_session_that_is_gone_is_told(tmp_path: Path) -> None:
    """The rest is packed; the manifest and the preview name what is missing."""
    world = two_workspaces(tmp_path).build()
    (log,) = world.store.rglob(f"{world.ids['sibling']}/session*")
    log.unlink()
    datasette = world.serve()
    await datasette.invoke_startup()

    archive = await packed(datasette, world, "workspace=/w/a")

    await datasette.invoke_shutdown()
    assert manifest(archive)["unreachable"] == [world.ids["sibling"]]
    assert world.ids["sibling"] not in logs_of(archive)
    assert len(logs_of(archive)) == 3


@pytest.mark.parametrize("page", [f"/search?q={HOME_WORD}", "/timeline?workspace=/w/a"])
async def test_pages_offer_what_they_list(served: Datasette, world: World, page: str) -> None:
    """The link has the page's filters and says how many sessions it is; what is too much is not offered."""
    owner = dict(bearer(world.token(access.OWNER)))
    shown = (await served.client.get(page, headers=owner)).text
    start = shown.index('href="/export.zip?')
    link = shown[start + 6 : shown.index('"', start + 6)].replace("&amp;", "&")
    preview = (await served.client.get(link.replace("/export.zip?", "/export.zip.json?"), headers=owner)).json()
    count = len(preview["sessions"])
    assert f">Download these {count} sessions<" in shown


async def test_replaced_events_are_marked_as_on_their_page(tmp_path: Path) -> None:
    """What the model no longer sees says so in a transcript read offline, by the number of what took over."""
    world = two_workspaces(tmp_path)
    log = Log(HOME).turn("remember the kingfisher", "Noted.")
    surface = [event["seq"] for event in log.events if event.get("surfaceOp") == "append"]
    log.compact("They talked of a kingfisher.", surface[0], surface[-1], surface)
    log.turn("and now?", "Still noted.")
    world.write("compacted", log)
    world.build()
    datasette = world.serve()
    await datasette.invoke_startup()
    owner = dict(bearer(world.token(access.OWNER)))

    page = (await datasette.client.get(f"/sessions/{log.id}", headers=owner)).text
    archive = await packed(datasette, world, "q=kingfisher")

    await datasette.invoke_shutdown()
    offline = archive.read(f"sessions/{log.id}/transcript.html").decode()
    marked = re.findall(r'class="card[^"]* shadowed" id="(e\d+)"', page)
    assert len(marked) == len(surface)
    assert re.findall(r'class="card[^"]* shadowed" id="(e\d+)"', offline) == marked
    assert re.findall(r"replaced by #\d+", offline) == re.findall(r"replaced by #\d+", page) != []


async def test_relatives_in_the_set_are_linked_and_others_said_to_be_outside(tmp_path: Path) -> None:
    """A transcript leads to its subagents and its parent where the archive holds them, and nowhere else."""
    world = two_workspaces(tmp_path)
    main = Log(HOME)
    main.turn("kingfisher: ask around", "I asked.")
    child = Log(HOME, parent=main.id, origin="subagent")
    child.event("subagent/descriptor", {"label": "packed", "mode": "one-shot"})
    child.turn("kingfisher?", "Seen.")
    child.title("A look around")
    for label, child_id in (("packed", child.id), ("left out", "session-elsewhere")):
        main.event("subagent/catalog", {"childId": child_id, "label": label, "mode": "one-shot"})
    world.write("asker", main)
    world.write("asked", child)
    world.build()
    datasette = world.serve()
    await datasette.invoke_startup()
    archives = [await packed(datasette, world, f"q=kingfisher{more}") for more in ("", "&roots=1")]
    await datasette.invoke_shutdown()

    pages = [Page(archive, f"sessions/{main.id}/transcript.html") for archive in archives]
    addressed = [
        {address for address in addresses(page) if address.endswith("transcript.html")} for page in pages
    ]
    assert addressed == [{f"../../sessions/{child.id}/transcript.html"}, set()]
    assert [page.text.count("its log is not in this archive") for page in pages] == [1, 2]
    assert "A look around" in pages[0].text
    asked = Page(archives[0], f"sessions/{child.id}/transcript.html")
    assert f"../../sessions/{main.id}/transcript.html" in set(addresses(asked))
