"""Several logs with one id: each is listed, and every address of one says which is meant."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest
import pytest_asyncio
from datasette.app import Datasette

from sessiongraph_web import access
from tests.asgi import Pairs, ask
from tests.builders import Log
from tests.world import HOME, World

pytestmark = pytest.mark.asyncio

TWIN = "session-twin"
LINK = re.compile(rf'(?:href|action)="([^"]*/(?:sessions|trace|export)/{TWIN}[^"]*)"')


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Datasette, World]]:
    """Two logs with one id in one workspace, and a third one elsewhere."""
    world = World(tmp_path / "sessions", tmp_path / "index")
    for name, cwd in (("first", HOME), ("second", HOME), ("foreign", "/w/b")):
        path = Log(cwd, id=TWIN).turn(f"heron {name}", "answer").write(world.store)
        if name == "first":
            shutil.move(path.parent, path.parent.with_name("copy"))
    datasette = world.build().serve()
    await datasette.invoke_startup()
    yield datasette, world
    await datasette.invoke_shutdown()


CALLERS = {
    "owner": (access.OWNER, 3),
    "both": (access.workspaces(HOME), 2),
    "one": (access.workspaces("/w/b"), 1),
}


@pytest.mark.parametrize("name", CALLERS)
async def test_every_link_to_a_twin_says_which_log(served: tuple[Datasette, World], name: str) -> None:
    """On lists and on the session's own pages; who sees one of them alone is told of no other."""
    datasette, world = served
    caller, visible = CALLERS[name]
    headers: Pairs = [("authorization", f"Bearer {world.token(caller)}")]
    listed = json.loads((await ask(datasette, "/timeline.json", headers=headers)).text)["sessions"]
    assert [session["duplicate"] for session in listed] == [visible > 1] * visible
    paths = ["/search?q=heron", "/timeline", "/"]
    for session in listed:
        paths += [f"/sessions/{TWIN}{tail}?log={session['log_id']}" for tail in ("", "/events", "/events/1")]
    for path in paths:
        page = await ask(datasette, path, headers=headers)
        assert page.status == 200
        links = [unescape(link) for link in LINK.findall(page.text)]
        assert links or path.endswith("1"), path
        forms = {link for link in links if f'action="{link}"' in page.text}  # these have a field of it
        unsaid = [link for link in links if "log=" not in link and link not in forms]
        assert bool(unsaid) == (visible == 1 and bool(links)), path
