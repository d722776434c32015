"""A store that is hostile in every field, in a real browser: no script runs, nothing is asked, nothing fails."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser

from sessiongraph_web import config, indexer, schema
from sessiongraph_web.web.links import canonical
from tests import hostile
from tests.browser.sites import Site, Watch, check_inert, opened, sessions

pytestmark = pytest.mark.browser

UNFOLD = "document.querySelectorAll('details').forEach((fold) => { fold.open = true; })"
HREFS = "(all) => all.map((one) => one.src || one.href)"


@pytest.fixture(scope="module")
def full(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A store that is hostile in every field."""
    home = tmp_path_factory.mktemp("full")
    store = hostile.write(home).store
    options = {"sessions": str(store), "index": str(home / "index"), "auto_build": False, "auto_refresh": False}
    indexer.Run(config.load(options)).execute()
    with opened(browser, options) as site:
        yield site


def check_nothing_ran(page: Any) -> None:
    """Check that no script of a log ran, here or in a frame."""
    assert page.evaluate(f"window.{hostile.FLAG}") is None
    assert len(page.frames) == 1


def visit(site: Site, *addresses: str, ours: bool = True) -> None:
    """Open pages one after another, unfolded; what is refused may say so on the console, and no more."""
    with site.context() as context:
        watch = Watch(site.address)
        page = watch.page(context)
        for address in addresses:
            status = page.goto(address, wait_until="domcontentloaded").status
            page.evaluate(UNFOLD)
            if ours:
                check_inert(page)
            check_nothing_ran(page)
            refusal = f"console: Failed to load resource: the server responded with a status of {status}"
            assert status < 500
            assert [said for said in watch.problems if status == 200 or not said.startswith(refusal)] == []
            watch.problems.clear()


@pytest.mark.parametrize(
    "tail", ["", "?last=1", "?view=focus", f"?find={hostile.WORD}", "/events", "/events?last=1"]
)
def test_no_field_of_a_session_acts(full: Site, tail: str) -> None:
    """Every page of every session is shown, unfolded and pointed at, and nothing of it runs or asks."""
    visit(full, *(f"/sessions/{canonical(session['id'])}{tail}" for session in sessions(full)))


def test_no_event_acts(full: Site) -> None:
    """Each event has a page, whatever its type and its fields; so has each relation."""
    for session in sessions(full):
        spelled, last = canonical(session["id"]), min(session["events"], 40)
        pages = [f"/sessions/{spelled}/events/-?ordinal={n}&before=2&after=2" for n in range(last)]
        visit(full, *pages, f"/trace/{spelled}", f"/share?session={spelled}")


@pytest.mark.parametrize(
    "address",
    [
        *("/", "/timeline", "/timeline?sort=activity", "/workspaces", "/status?ledger=1", "/-/login", "/nothing"),
        *(f"/search?group={group}&q={hostile.WORD}" for group in ("session", "none")),
        *(f"/{path}={quote(hostile.TEXT)}" for path in ("search?q", "timeline?workspace", "search?q=x&tool")),
        *(f"/{path}={quote(hostile.TEXT)}" for path in ("sessions/x?find", "share?workspace", "-/login?token")),
        f"/sessions/{quote(hostile.SHORT, safe='')}",
        f"/search?q={hostile.WORD}&kinds=tool_call,tool_result,todo,turn_end,title,user,assistant",
    ],
)
def test_no_list_acts(full: Site, address: str) -> None:
    """What lists, searches, forms and errors show of a log, or of an address, is text."""
    visit(full, address)


@pytest.mark.parametrize("table", ["entry", "session", "log", "entry/1", "-/query?sql=select+*+from+entry"])
def test_no_page_of_datasette_acts(full: Site, table: str) -> None:
    """Datasette's own pages, whose policy is looser, show the same texts as text."""
    visit(full, *(f"/{schema.database_name(cwd)}/{table}" for cwd in workspaces(full)), ours=False)


def test_no_attachment_acts(full: Site) -> None:
    """What a log calls a picture, and is a page or a drawing with a script, is kept from being either."""
    seen = []
    with full.page() as page:
        for session in sessions(full):
            path = f"/sessions/{canonical(session['id'])}"
            page.goto(path)
            cited = page.eval_on_selector_all("[src*=attachments], a[href*=attachments]", HREFS)
            answers = [page.context.request.get(address) for address in cited]
            for headers in [answer.headers for answer in answers if answer.ok]:
                is_saved = headers["content-disposition"].startswith("attachment")
                assert is_saved or headers["content-type"] == "image/png"
                seen.append(headers["content-disposition"].partition(";")[0])
    assert set(seen) == {"attachment", "inline"}


def test_no_page_of_an_archive_acts(full: Site, browser: Browser, tmp_path: Path) -> None:
    """The pages of a download, opened from the disk, are as inert as those that are served."""
    with full.context() as context:
        packed = context.request.get(f"/export.zip?q={hostile.WORD}").body()
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(tmp_path)
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 3
    watch = Watch("")
    context = browser.new_context()
    page = watch.page(context)
    for found in pages:
        page.goto(found.as_uri())
        page.evaluate(UNFOLD)
        check_nothing_ran(page)
    context.close()
    assert watch.problems == []


def workspaces(site: Site) -> list[str | None]:
    """Return the directory of every workspace."""
    with site.context() as context:
        return [found["cwd"] for found in context.request.get("/workspaces.json").json()["workspaces"]]
