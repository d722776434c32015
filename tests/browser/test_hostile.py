"""Hostile logs in a real browser: every page loads, and nothing that a log says runs, asks or fails."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser

from sessiongraph_web.web.links import canonical
from tests.browser.sites import Site, check_inert, gathered, opened, sessions
from tests.shared import shared_folders

pytestmark = [pytest.mark.browser, pytest.mark.shared]

AREAS = "WJ"
CASES = [path for path in shared_folders("field-cases", f"[{AREAS}]*") if (path / "sessions").is_dir()]
LONG_MS = 30_000  # a page of a line of 100 MB


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """All cases in one store, each in project folders of its own."""
    home = tmp_path_factory.mktemp("hostile")
    with opened(browser, gathered([case / "sessions" for case in CASES], home)) as site:
        yield site


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_nothing_in_a_log_runs(site: Site, *, scripts: bool) -> None:
    """Session, focus, events, event and trace pages of every case are shown, and only shown."""
    found = sessions(site)
    assert len(found) >= len(CASES) // 2
    with site.page(java_script_enabled=scripts) as page:
        page.set_default_timeout(LONG_MS)
        for session in found:
            spelled, log = canonical(session["id"]), f"log={session['log_id']}"
            tails = [f"?{log}", f"?view=focus&{log}", f"/events?{log}", f"/events/-?ordinal=0&{log}"]
            addresses = [f"/sessions/{spelled}{tail}" for tail in tails] + [f"/trace/{spelled}?{log}"]
            for address in addresses if scripts else addresses[:1]:
                status = page.goto(address, wait_until="domcontentloaded").status
                assert status == 200 or (status == 404 and "ordinal=0" in address), address
                assert page.locator("main").count() == 1
                if scripts:
                    check_inert(page)


@pytest.mark.parametrize(
    "address", ["/", "/timeline", "/workspaces", "/status?ledger=1", "/search?group=none&q="]
)
def test_lists_are_inert(site: Site, address: str) -> None:
    """Titles, directories, snippets and file names of hostile logs are text."""
    with site.page() as page:
        for word in ["script", "img", "onerror", "javascript", "svg"] if address.endswith("=") else [""]:
            page.goto(address + quote(word))
            page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
            check_inert(page)


def test_the_palette_is_inert(site: Site) -> None:
    """What the palette shows of a hostile log is text."""
    with site.page("/") as page:
        page.keyboard.press("Control+k")
        page.wait_for_selector("[role=option]")
        page.keyboard.type("script")
        page.wait_for_selector("[role=option] .what >> text=All results")
        check_inert(page)


def test_the_cases_are_there() -> None:
    """The folder of cases is read, so that more of the same kinds are tested as they come."""
    assert {"W06", "W08"} <= {case.name for case in CASES}
