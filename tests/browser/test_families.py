"""The trace of large families in a real browser: the first view shows the session, scripts or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.sites import Site, opened
from tests.builders import Log
from tests.world import HOME, World

pytestmark = pytest.mark.browser

GENERATIONS = 55
CHILDREN = 200


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("families")
    world = World(home / "sessions", home / "index")
    parent: str | None = None
    for number in range(GENERATIONS):
        log = Log(HOME, parent=parent).turn(f"go on {number}", "yes")
        log.title(f"{number} 广告投放 SDK, and a title that is longer than its box")
        parent = world.write(f"generation {number}", log).id
    for number in range(CHILDREN):
        world.write(f"child {number}", Log(HOME, parent=parent, origin="subagent").turn("look", "found"))
    world.build()
    with opened(browser, world.options, world.ids) as site:
        yield site


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("width", [360, 820, 1280])
@pytest.mark.parametrize("generation", [0, 20, GENERATIONS - 1])
def test_a_trace_opens_where_the_session_is(site: Site, width: int, generation: int, scripts: bool) -> None:
    """Whole in the window, before anything is scrolled; the picture of the other kind of window is not shown."""
    path = f"/trace/{site.ids[f'generation {generation}']}"
    with site.page(
        path, viewport={"width": width, "height": 860}, java_script_enabled=scripts, locale="en"
    ) as page:
        expect(page.locator(".node.self rect:visible")).to_have_count(1)
        box = page.locator(".node.self rect:visible").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= 860
        expect(page.locator(".tree svg:visible")).to_have_count(1)


@pytest.mark.parametrize("width", [360, 1280])
def test_a_gap_leads_to_who_is_in_it(site: Site, width: int) -> None:
    """The count in a long line of ancestors is a link to the first that it stands for, in the list."""
    path = f"/trace/{site.ids[f'generation {GENERATIONS - 1}']}"
    with site.page(path, viewport={"width": width, "height": 860}, locale="en") as page:
        gap = page.locator(".node.gap a:visible").first
        expect(gap).to_have_text(f"and {GENERATIONS - 3} more")
        gap.click()
        expect(page.locator(".outline :target")).to_contain_text("1 广告投放 SDK")
        expect(page.locator(".outline :target")).to_be_in_viewport()


@pytest.mark.parametrize("language", ["en", "zh-CN"])
@pytest.mark.parametrize("width", [360, 480, 640, 1280])
def test_the_list_of_exports_is_inside_the_window(site: Site, width: int, language: str) -> None:
    """Wherever the button stands in a line that wraps, every way to export can be read."""
    with site.page(
        f"/sessions/{site.ids['generation 0']}", viewport={"width": width, "height": 900}, locale=language
    ) as page:
        page.click(".menu summary")
        links = [_sides(link) for link in page.locator(".menu a").all()]
        assert all(0 <= left < right <= width for left, right in links), links


def _sides(link: Any) -> tuple[float, float]:
    box = link.bounding_box()
    return box["x"], box["x"] + box["width"]
