"""Reading in a real browser: from a search to the event and back, also without scripts."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.sites import Site, opened, until
from tests.builders import Log
from tests.world import HOME, World

pytestmark = pytest.mark.browser

NEEDLE = "针在草垛里"
TURNS = 60
NEEDLE_TURN = 41


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("reading")
    world = World(home / "sessions", home / "index")
    log = Log(HOME)
    log.title("A long talk")
    for number in range(TURNS):
        said = f"这里有一根{NEEDLE}，找到了" if number == NEEDLE_TURN else f"answer {number}"
        log.turn(f"prompt {number}", f"{said}\n\n" + "and more\n\n" * 6, [("bash", '{"command": "ls"}', "out")])
    world.write("long", log)
    for number in range(30):
        world.write(f"other {number}", Log(HOME).turn(f"haystack {number}", f"{NEEDLE} " * 3))
    world.build()
    with opened(browser, world.options, world.ids) as site:
        yield site


def test_a_hit_opens_at_its_event_and_back_returns(site: Site) -> None:
    """A hit far down the results opens the transcript at the event, marked and in view; back is where one was."""
    with site.page(f"/search?q={NEEDLE}&limit=50") as page:
        hit = page.locator(f".result:has(a[href*='{site.ids['long']}']) .hit").first
        hit.scroll_into_view_if_needed()
        before = page.evaluate("scrollY")
        hit.click()
        page.wait_for_url(f"**/sessions/{site.ids['long']}?at=*")
        target = page.locator(":target")
        expect(target).to_contain_text(NEEDLE)
        expect(target).to_be_in_viewport()
        assert target.evaluate("card => getComputedStyle(card).outlineStyle") == "solid"
        assert page.evaluate("document.querySelector(':target').getBoundingClientRect().top") > 40
        page.go_back()
        expect(page.locator(".result").first).to_be_visible()
        until(page, f"Math.abs(scrollY - {before}) < 4")


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_what_is_found_is_under_no_bar(site: Site, width: int) -> None:
    """The bar of the search stands below the page's own, whole, and the hit below both."""
    with site.page(viewport={"width": width, "height": 780}, locale="en") as page:
        page.goto(f"/sessions/{site.ids['long']}?find={NEEDLE}")
        page.wait_for_timeout(300)  # until the window stands where the address says
        boxes = [page.locator(one).bounding_box() for one in ("header.top", "nav.found", ":target")]
        top, found, hit = boxes
        assert top["y"] + top["height"] <= found["y"] + 1
        assert found["y"] + found["height"] <= hit["y"] + 1, boxes
        assert hit["y"] < 780


def test_folds_open_and_close_together(site: Site) -> None:
    """One button opens every card, and closes it again."""
    with site.page(f"/sessions/{site.ids['long']}") as page:
        cards = page.locator("#turns .card.tool > details").count()
        button = page.locator("fold-all button")
        button.click()
        assert page.locator("#turns .card.tool > details[open]").count() == cards
        button.click()
        assert page.locator("#turns .card.tool > details[open]").count() == 0


def test_finding_in_a_session_finds_in_all_of_it(site: Site) -> None:
    """The box in a session's head searches the whole session, not the page, and this session alone."""
    with site.page(f"/sessions/{site.ids['long']}") as page:
        assert NEEDLE not in page.locator("main").inner_text()
        box = page.get_by_label("Find in this session").locator("visible=true").last
        box.fill(NEEDLE)
        box.press("Enter")
        page.wait_for_url("**find=*")
        expect(page.locator("nav.found")).to_contain_text("1 of 1 match")
        expect(page.locator(":target")).to_contain_text(NEEDLE)


def test_a_number_leads_to_its_event(site: Site) -> None:
    """Going to a seq shows the page that holds it; its permalink shows the whole record."""
    with site.page(f"/sessions/{site.ids['long']}") as page:
        last = page.locator(".pager .quiet").first.inner_text().split(" of ")[1].replace(",", "")
        seq = int(last) // 2
        page.locator(".goto input").first.fill(str(seq))
        page.keyboard.press("Enter")
        page.wait_for_url(f"**seq={seq}*")
        link = page.locator(f"a[href$='/events/{seq}']").first
        expect(link).to_have_count(1)
        page.goto(link.get_attribute("href"))
        expect(page.locator("h1")).to_contain_text(str(seq))


def test_the_head_needs_no_scripts(site: Site, tmp_path: Path) -> None:
    """Without scripts one searches, opens the hit at its event, pages, and takes the session along."""
    with site.page("/", java_script_enabled=False, accept_downloads=True) as page:
        page.fill("#q", f"{NEEDLE}，找到了")
        page.press("#q", "Enter")
        page.click(f".result a.hit[href*='{site.ids['long']}']")
        expect(page.locator(":target")).to_contain_text(NEEDLE)
        address = page.url
        page.locator("a[rel=prev]").first.click()
        assert page.url != address
        page.locator("a[rel=next]").first.click()
        page.locator("summary", has_text="Export").click()
        with page.expect_download() as started:
            page.locator("a[data-export]").click()
        target = tmp_path / "session.zip"
        started.value.save_as(target)
        with zipfile.ZipFile(target) as archive:
            assert NEEDLE in archive.read("session.v4.jsonl").decode()


def test_a_scheme_outlives_the_page(site: Site) -> None:
    """The chosen colours are there on the next page before any script runs."""
    with site.context() as context:
        page = context.new_page()
        page.goto("/")
        page.click("theme-switch button")
        page.click("theme-switch button")
        assert context.request.get("/timeline").text().count('data-theme="dark"') == 1
        page.goto("/timeline")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") is not None
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_an_input_method_composes_in_peace(site: Site) -> None:
    """While Chinese is composed, by the browser's own input method, nothing is searched; then it is, once."""
    asked: list[str] = []
    with site.page("/") as page:
        page.on("request", lambda request: asked.append(request.url) if "/search" in request.url else None)
        page.keyboard.press("/")
        method = page.context.new_cdp_session(page)
        for text in ("z", "zh", "zhen", "针"):
            method.send(
                "Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)}
            )
            page.wait_for_timeout(250)
        assert asked == []
        method.send("Input.insertText", {"text": "针"})
        page.wait_for_selector("[role=option]")
        assert page.locator("#q").input_value() == "针"
        assert len(asked) == 1


def test_an_input_method_composes_in_peace_on_results(site: Site) -> None:
    """Results that follow the query do not follow half a word, and Enter that ends it submits nothing."""
    asked: list[str] = []
    with site.page("/search?q=haystack") as page:
        page.on("request", lambda request: asked.append(request.url) if "/search" in request.url else None)
        page.fill("#q", "")
        page.focus("#q")
        method = page.context.new_cdp_session(page)
        method.send("Input.imeSetComposition", {"text": "zhen", "selectionStart": 4, "selectionEnd": 4})
        page.wait_for_timeout(500)
        assert asked == []
        method.send("Input.insertText", {"text": NEEDLE})
        expect(page.locator(".result mark").first).to_have_text(NEEDLE)
        assert len(asked) == 1


def test_a_hit_inside_a_fold_is_unfolded(site: Site) -> None:
    """An address that seeks something inside a card opens the card, on arrival and on this page."""
    with site.page(f"/sessions/{site.ids['long']}") as page:
        inner = page.locator("article.tool span[id^=e]").first.get_attribute("id")
        page.goto(f"/sessions/{site.ids['long']}#{inner}")
        expect(page.locator(f"article.tool:has(#{inner}) > details")).to_have_attribute("open", "")
    with site.page(f"/sessions/{site.ids['long']}#{inner}") as page:
        expect(page.locator(f"article.tool:has(#{inner}) > details")).to_have_attribute("open", "")


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_the_turns_are_a_sheet_on_a_narrow_screen(site: Site, scripts: bool) -> None:
    """By keyboard alone: it opens, its links lead to turns of this page and of others, and it folds again."""
    narrow = {"viewport": {"width": 360, "height": 740}, "java_script_enabled": scripts}
    with site.page(f"/sessions/{site.ids['long']}", **narrow) as page:
        summary, lines = page.locator(".turns-fold > summary"), page.locator("turn-rail a")
        expect(lines.first).to_be_hidden()
        summary.focus()
        page.keyboard.press("Enter")
        expect(lines.first).to_be_visible()
        page.keyboard.press("Tab")
        expect(lines.first).to_be_focused()
        expect(lines.first).to_be_in_viewport()
        lines.nth(2).press("Enter")
        expect(page.locator(":target")).to_contain_text("prompt 2")
        if scripts:
            expect(lines.first).to_be_hidden()
            summary.press("Enter")
        elif lines.first.is_hidden():
            summary.press("Enter")
        lines.nth(NEEDLE_TURN).press("Enter")
        expect(page.locator(":target")).to_contain_text(f"prompt {NEEDLE_TURN}")
        expect(page.locator(":target")).to_be_in_viewport()
        expect(page.locator("turn-rail a").first).to_be_hidden()


def test_the_turns_stand_beside_the_transcript_on_a_wide_screen(site: Site) -> None:
    """There they need no unfolding, and the one that is read is marked."""
    with site.page(f"/sessions/{site.ids['long']}", viewport={"width": 1280, "height": 800}) as page:
        expect(page.locator("turn-rail a").first).to_be_visible()
        expect(page.locator(".turns-fold > summary")).to_be_hidden()
        page.locator("turn-rail a").nth(3).click()
        expect(page.locator("turn-rail [aria-current]")).to_contain_text("prompt 3")
        expect(page.locator("turn-rail a").first).to_be_visible()
