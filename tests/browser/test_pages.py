"""Pages in a real browser: scripts, keys, colours, widths, and what happens without any of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.sites import Site, opened
from tests.builders import Log
from tests.world import HOME, HOME_WORD, home_only

pytestmark = pytest.mark.browser


def paths(site: Site) -> list[str]:
    """Return the path of every kind of page."""
    rich = f"/sessions/{site.ids['rich']}"
    found = ["/", "/search", f"/search?q={HOME_WORD}", "/search?q=nothingatall", "/timeline", "/workspaces"]
    found += ["/status?ledger=1", rich, f"{rich}?view=focus", f"{rich}/events", f"{rich}/events/3"]
    return [*found, f"/trace/{site.ids['home']}"]


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    world = home_only(tmp_path_factory.mktemp("browser"))
    world.write("rich", _rich())
    world.build()
    with opened(browser, world.options, world.ids) as site:
        yield site


def _rich() -> Log:
    log = Log(HOME)
    log.title("一个很长的标题 " * 12)
    code = "```python\n" + "x = 'a very long line of code' * 100  # " + "y" * 200 + "\n```\n"
    log.turn("广告 SDK 超时\n" + "w" * 300, f"# Found\n\n{code}\n| a | b |\n|---|---|\n| {'c' * 300} | d |")
    log.todo(("one", "completed"), ("二", "in_progress"))
    log.turn("again", "yes", [("bash", '{"command": "ls"}', "\x1b[31mred\x1b[0m " + "z" * 500)] * 3)
    return log


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_ask_nothing_of_others_and_break_no_rule(site: Site, scheme: str) -> None:
    """No page has a script error, breaks its content policy, or asks another host for anything."""
    with site.page(color_scheme=scheme) as page:
        for path in paths(site):
            assert page.goto(path).status == 200


@pytest.mark.parametrize("width", [360, 640, 1280])  # of a telephone; at twice the size; at once
def test_pages_are_as_wide_as_the_window(site: Site, width: int) -> None:
    """Whatever a log holds, no page scrolls sideways, folded or unfolded."""
    with site.page(viewport={"width": width, "height": 800}) as page:
        for path in paths(site):
            page.goto(path)
            page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
            assert (path, page.evaluate("document.documentElement.scrollWidth")) == (path, width)


def test_pages_work_without_scripts(site: Site) -> None:
    """Searching, reading and paging need no JavaScript, and no control is shown that does."""
    with site.page(java_script_enabled=False) as page:
        page.goto("/")
        page.fill("#q", HOME_WORD)
        page.press("#q", "Enter")
        page.wait_for_url("**/search?q=*")
        page.click(".result .hit")
        page.wait_for_url("**/sessions/**")
        assert page.locator(".card.prompt").first.is_visible()
        assert page.locator("theme-switch button, copy-button button, fold-all button").count() == 0


def test_results_follow_what_is_typed(site: Site) -> None:
    """Under the search box, results appear from the second character on, and Enter searches."""
    with site.page() as page:
        page.goto("/")
        page.keyboard.press("/")
        page.keyboard.type(HOME_WORD[:1])
        page.wait_for_timeout(400)
        assert page.locator("[role=option]").count() == 0
        page.keyboard.type(HOME_WORD[1:])
        page.wait_for_selector("[role=option]")
        assert HOME_WORD in page.locator("[role=option]").first.inner_text()
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/search?q={HOME_WORD}")


def test_an_input_method_is_left_alone(site: Site) -> None:
    """While a word is being composed nothing is searched; one character of Chinese is enough when it is done."""
    with site.page() as page:
        asked: list[str] = []
        page.goto("/")
        page.on("request", lambda request: asked.append(urlsplit(request.url).path))
        page.evaluate(
            """() => {
              const box = document.querySelector("#q");
              box.focus();
              box.value = "guang";
              box.dispatchEvent(new InputEvent("input", { bubbles: true, isComposing: true }));
            }"""
        )
        page.wait_for_timeout(500)
        assert "/search.json" not in asked
        page.evaluate(
            """() => {
              const box = document.querySelector("#q");
              box.value = "广";
              box.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true, data: "广" }));
            }"""
        )
        page.wait_for_selector("[role=option]")
        assert asked.count("/search.json") == 1


def test_the_palette_shows_recent_sessions_and_opens_by_keys(site: Site) -> None:
    """Ctrl+K lists recent sessions; arrows choose one, Enter opens it, Escape leaves."""
    with site.page() as page:
        page.goto("/status")
        page.keyboard.press("Control+k")
        page.wait_for_selector("[role=option]")
        page.keyboard.press("Escape")
        expect(page.locator("#palette")).to_be_hidden()
        page.keyboard.press("Control+k")
        page.wait_for_selector("[role=option]")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/sessions/**")


def test_a_search_page_follows_its_query(site: Site) -> None:
    """On the search page results and address change as the query does."""
    with site.page() as page:
        page.goto("/search?q=nothingatall")
        page.fill("#q", HOME_WORD)
        page.wait_for_selector(".result")
        assert page.url.endswith(f"/search?q={HOME_WORD}")


def test_keys_walk_through_a_transcript(site: Site) -> None:
    """j goes to the next item, J to the next prompt, o unfolds, ? lists the keys."""
    with site.page() as page:
        page.goto(f"/sessions/{site.ids['rich']}")
        page.keyboard.press("J")
        page.keyboard.press("J")
        assert "again" in page.locator(".card.prompt.current").inner_text()
        page.keyboard.press("j")
        page.keyboard.press("o")
        assert page.locator(".card.tool.current > details[open]").count() == 1
        page.keyboard.press("?")
        assert page.locator("dialog").is_visible()
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)


def test_a_hit_in_tool_output_opens_its_card(site: Site) -> None:
    """A link to what is inside a folded card unfolds it."""
    with site.page() as page:
        page.goto("/search?q=zzzz&kinds=tool_result&match=text")
        page.goto(page.locator(".result .hit").first.get_attribute("href"))
        page.wait_for_selector(".card.tool > details[open]")


def test_times_are_the_readers(site: Site) -> None:
    """A time shows in the zone of the browser, with the exact UTC beside; the server's days follow."""
    with site.page(timezone_id="Asia/Shanghai") as page:
        page.goto(f"/sessions/{site.ids['rich']}")
        clock = page.locator("local-time[data-style=clock] time").first
        utc = re.search(r"T(\d\d):(\d\d):(\d\d)", clock.get_attribute("datetime"))
        assert utc
        assert clock.inner_text() == f"{(int(utc[1]) + 8) % 24:02d}:{utc[2]}:{utc[3]}"
        assert "(UTC)" in clock.get_attribute("title")
        page.goto("/timeline")
        assert (
            page.evaluate("fetch('/timeline.json').then((r) => r.json()).then((a) => a.zone)") == "Asia/Shanghai"
        )


def test_a_chosen_scheme_stays(site: Site) -> None:
    """The switch goes from the system's colours to light to dark, and the next page is drawn so by the server."""
    with site.page() as page:
        page.goto("/")
        page.click("theme-switch button")
        page.click("theme-switch button")
        page.goto("/timeline")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert page.locator("theme-switch button").inner_text() == "Dark"


def test_a_set_says_how_much_it_is_where_it_is_asked(site: Site) -> None:
    """The answer stands in place of the question; without scripts the question leads to it."""
    with site.page() as page:
        for path in ("/timeline", f"/search?q={HOME_WORD}"):
            page.goto(path)
            page.click("set-size a")
            expect(page.locator("set-size")).to_have_text(re.compile(r"^[\d.]+ KiB of logs, as they are stored$"))
    with site.page("/timeline", java_script_enabled=False) as page:
        page.click("set-size a")
        page.wait_for_url("**/export.zip?preview=1*")


def test_kinds_of_cards_can_be_hidden(site: Site) -> None:
    """A box at the head of the transcript hides the cards of a kind."""
    with site.page() as page:
        page.goto(f"/sessions/{site.ids['rich']}")
        assert page.locator(".card.tool").first.is_visible()
        page.uncheck("#show-tools")
        assert page.locator(".card.tool").first.is_hidden()
