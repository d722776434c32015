"""The genuine logs in a real browser: their pages load, and no console says that anything failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from sessiongraph_web.web.links import canonical
from tests.browser.sites import Site, gathered, opened, sessions
from tests.shared import shared_folders

pytestmark = [pytest.mark.browser, pytest.mark.shared]

STORES = [path for path in shared_folders("genuine", "sessions*") if path.is_dir()]
LISTS = ("/", "/timeline", "/workspaces", "/status?ledger=1", "/search?q=a")


@pytest.fixture(scope="module")
def site(browser: Browser, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    options = gathered(STORES, tmp_path_factory.mktemp("stores"))
    with opened(browser, options | {"attachments": str(shared / "genuine/attachments")}) as site:
        yield site


def test_every_page_loads_in_silence(site: Site) -> None:
    """Lists, and of every session its transcript, its last page, its events and its trace."""
    found = sessions(site)
    assert len(found) >= 30
    with site.page() as page:
        for address in LISTS:
            assert page.goto(address).status == 200
        for session in found:
            spelled, log = canonical(session["id"]), f"log={session['log_id']}"
            paths = [f"/sessions/{spelled}{tail}" for tail in (f"?{log}", f"?last=1&{log}", f"/events?{log}")]
            for address in [*paths, f"/trace/{spelled}?{log}"]:
                assert page.goto(address, wait_until="domcontentloaded").status == 200, address
                assert page.locator("main").count() == 1
