"""The switch of language in a real browser: by keyboard, without scripts, and back at the same place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.sites import Site, opened, until
from tests.builders import Log
from tests.world import HOME, HOME_WORD, home_only

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    world = home_only(tmp_path_factory.mktemp("languages"))
    log = Log(HOME)
    for number in range(12):
        log.turn(f"number {number}", "word " * 400, [("bash", '{"command": "ls"}', "ads.py")])
    world.write("long", log)
    world.build()
    with opened(browser, world.options, world.ids) as site:
        yield site


def spoken(page: Any) -> str:
    return str(page.evaluate("document.documentElement.lang"))


def reach(page: Any, name: str) -> None:
    """Go with the Tab key to the control that has this name."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == name:
            return
    raise AssertionError(f"no Tab leads to {name}")


def test_a_language_is_chosen_by_keyboard_and_stays(site: Site) -> None:
    """Tab reaches the switch, Enter presses it; language and colours are kept from page to page."""
    with site.page("/timeline?sort=activity", locale="en-US") as page:
        page.click("theme-switch button")
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        page.reload()
        reach(page, "中文")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert (spoken(page), page.url) == ("zh-Hans", f"{site.address}/timeline?sort=activity")
        expect(page.locator("theme-switch button")).to_have_text("浅色")
        page.get_by_role("link", name="工作区", exact=True).click()
        expect(page.locator("h1")).to_have_text("工作区")
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        reach(page, "English")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Workspaces")


def test_a_reader_comes_back_to_the_very_place(site: Site) -> None:
    """The address as scripts have made it, and the event it names, are where they were."""
    with site.page(f"/sessions/{site.ids['long']}#e30", locale="en-US") as page:
        page.uncheck("#show-notes")
        until(page, "location.search === '?hide=notes'")
        with page.expect_navigation():
            page.click("language-switch button")
        assert (spoken(page), page.evaluate("location.search + location.hash")) == ("zh-Hans", "?hide=notes#e30")
        until(page, "scrollY > 500")
        assert not page.is_checked("#show-notes")


def test_the_switch_needs_no_script(site: Site) -> None:
    """A form does it; the browser says where it was sent from, also on the page of an error."""
    with site.context(java_script_enabled=False, locale="en-US") as context:
        page = context.new_page()
        for path in (f"/search?q={HOME_WORD}", "/sessions/session-none"):
            page.goto(path)
            with page.expect_navigation():
                page.click("language-switch button")
            assert page.url == site.address + path
            expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
            with page.expect_navigation():
                page.click("language-switch button")
            expect(page.locator("html")).to_have_attribute("lang", "en")


def test_scripts_speak_the_language_of_the_page(site: Site) -> None:
    """Ages, days, keys, the palette and what folds are said as the page says the rest."""
    with site.page(f"/sessions/{site.ids['long']}", locale="zh-CN") as page:
        expect(page.locator("fold-all button")).to_have_text("全部展开")
        expect(page.locator("theme-switch button")).to_have_text("系统")
        until(page, "/\\d{4}年|\\d+月\\d+日/.test(document.querySelector('.facts time').textContent)")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="快捷键")).to_be_visible()
        expect(page.get_by_role("dialog")).to_contain_text("下一条、上一条")
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
        page.keyboard.press("Control+k")
        expect(page.get_by_role("listbox", name="建议")).to_contain_text("最近的会话")
