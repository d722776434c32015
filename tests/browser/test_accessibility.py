"""Who cannot see, use a mouse, or bear movement reads and works all the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import axe
from tests.browser.sites import Site, opened
from tests.builders import Log
from tests.world import HOME, HOME_WORD, home_only

pytestmark = pytest.mark.browser

COLOURS = ("color-contrast",)  # all that one scheme has of its own

DIFF = '{"path": "a.py", "old_string": "a = 1", "new_string": "a = 2"}'


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    world = home_only(tmp_path_factory.mktemp("accessible"))
    world.write("rich", _rich())
    world.build()
    with opened(browser, world.options, world.ids) as site:
        yield site


def _rich() -> Log:
    """Return a session with a card of every shape, coloured code and terminal output in it."""
    log = Log(HOME)
    log.title("广告 SDK 超时")
    code = '```python\n@cache\ndef f(x: int) -> str:  # why\n    return f"{x}" + 1.5\n```\n'
    log.turn(
        "广告 SDK 超时", f"# Found\n\n{code}\n| a | b |\n|---|---|\n| c | d |\n\n> quoted [link](https://x.test)"
    )
    log.todo(("one", "completed"), ("two", "in_progress"), ("three", "pending"))
    colours = "".join(f"\x1b[{code}mcolour {code}\x1b[0m " for code in [*range(31, 38), *range(41, 48), 2, 7])
    log.turn("run it", "done", [("bash", '{"command": "ls"}', colours), ("edit", DIFF, "ok")])
    log.start_turn("and then?")
    log.assistant("thinking aloud", [("c9", "bash", '{"command": "false"}')], reasoning="hm, **well**")
    log.call("c9", "bash", '{"command": "false"}')
    log.result("c9", "", error=("exit", "exit status 1"))
    log.user("injected context", kind="system-reminder")
    log.event("unknown/type", {"a": 1})
    return log


def paths(site: Site) -> list[str]:
    """Return an address of every page of ours that a signed-in reader meets, and of an error."""
    rich = f"/sessions/{site.ids['rich']}"
    found = [
        "/",
        "/search",
        f"/search?q={HOME_WORD}",
        "/search?q=nothingatall",
        f"/search?q={HOME_WORD}&group=none",
    ]
    found += [rich, f"{rich}?view=focus", f"{rich}/events", f"{rich}/events/3", f"/sessions/{site.ids['fork']}"]
    found += [f"/trace/{site.ids['home']}", "/timeline", "/workspaces", "/status?ledger=1", "/sessions/no-such"]
    return found


@pytest.fixture(scope="module")
def axe_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return axe.script(tmp_path_factory.mktemp("axe"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(site: Site, axe_script: Path, scheme: Any) -> None:
    """No page of ours has a serious or critical finding, with every fold open, in either scheme."""
    found: list[str] = []
    with site.context(color_scheme=scheme, bypass_csp=True) as context:
        page = context.new_page()
        for path in paths(site):
            page.goto(path)
            found += _findings(page, axe_script, COLOURS if scheme == "dark" else ())
    assert found == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_at_the_door(site: Site, axe_script: Path, scheme: Any) -> None:
    """Neither has the sign-in page, nor what somebody sees who is not signed in."""
    context = site.browser.new_context(base_url=site.address, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    found: list[str] = []
    for path in ("/", "/-/login", "/-/login?token=x"):
        page.goto(path)
        found += _findings(page, axe_script)
    context.close()
    assert found == []


def test_axe_finds_nothing_serious_in_dialogs(site: Site, axe_script: Path) -> None:
    """The palette and the list of keys are no exception, on a narrow screen either."""
    found: list[str] = []
    with site.context(bypass_csp=True, viewport={"width": 360, "height": 700}) as context:
        page = context.new_page()
        page.goto("/")
        page.keyboard.press("?")
        found += _findings(page, axe_script)
        page.keyboard.press("Escape")
        page.keyboard.press("Control+k")
        page.wait_for_selector("[role=option]")
        found += _findings(page, axe_script)
    assert found == []


def test_axe_would_find_what_is_wrong(site: Site, axe_script: Path) -> None:
    """The instrument works: a picture without words and text too pale are found."""
    with site.context(bypass_csp=True) as context:
        page = context.new_page()
        page.goto("/")
        page.evaluate(
            "document.querySelector('main').innerHTML = '<img src=/favicon.ico><p style=color:#ccc>pale'"
        )
        found = " ".join(_findings(page, axe_script))
    assert "image-alt" in found
    assert "color-contrast" in found


def _findings(page: Any, axe_script: Path, rules: Sequence[str] = ()) -> list[str]:
    page.evaluate("document.querySelectorAll('details:not(.menu)').forEach((fold) => { fold.open = true; })")
    page.add_script_tag(path=axe_script)
    return axe.findings(page, rules)


@pytest.mark.parametrize("opener", ["Control+k", "/"])
def test_a_search_needs_keys_alone(site: Site, opener: str) -> None:
    """A key opens the palette, one types, an arrow chooses, Enter opens, and the hit is in view."""
    with site.page("/timeline") as page:
        page.keyboard.press(opener)
        expect(page.locator("#q")).to_be_focused()
        page.keyboard.type("超时")
        expect(page.locator("[role=option]", has_text="All results")).to_have_count(1)
        page.keyboard.press("ArrowDown")
        chosen = page.locator("#q").get_attribute("aria-activedescendant")
        assert page.locator(f"#{chosen}").get_attribute("aria-selected") == "true"
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/sessions/{site.ids['rich']}?**")


def test_escape_gives_the_focus_back(site: Site) -> None:
    """Closing the palette or a dialog returns to where the reader was; a dialog keeps the focus inside."""
    with site.page(f"/sessions/{site.ids['rich']}") as page:
        page.keyboard.press("j")
        where = "document.activeElement.closest('[id]')?.id"
        before = page.evaluate(where)
        assert before
        page.keyboard.press("?")
        for _ in range(5):
            page.keyboard.press("Tab")
            assert page.evaluate(
                "!document.hasFocus() || document.activeElement === document.body || "
                "document.activeElement.closest('dialog') !== null"
            )
        page.keyboard.press("Escape")
        assert page.evaluate(where) == before
        page.keyboard.press("Control+k")
        page.wait_for_selector("[role=option]")
        page.keyboard.press("Escape")
        assert page.evaluate(where) == before


def test_walking_moves_the_focus(site: Site) -> None:
    """j and k, J and K go through items and prompts; what is current has the focus, is in view and outlined."""
    with site.page(f"/sessions/{site.ids['rich']}") as page:
        for key, count in (("j", 4), ("k", 2), ("J", 2), ("K", 1), ("j", 1)):
            for _ in range(count):
                page.keyboard.press(key)
            current = page.locator("[data-item].current")
            expect(current).to_have_count(1)
            expect(current).to_be_in_viewport()
            assert current.evaluate("item => item.contains(document.activeElement)"), key
            assert current.evaluate("item => getComputedStyle(item).outlineStyle") == "solid"
        page.keyboard.press("Shift+J")
        assert "run it" in page.locator(".current").inner_text() or page.locator(".current.prompt").count() == 1


def test_results_open_by_keys(site: Site) -> None:
    """On results, j chooses and o opens; e on a session downloads it."""
    with site.page(f"/search?q={HOME_WORD}") as page:
        page.keyboard.press("j")
        expect(page.locator(".result.current")).to_have_count(1)
        page.keyboard.press("o")
        page.wait_for_url("**/sessions/**")
        with page.expect_download():
            page.keyboard.press("e")


def test_brackets_go_to_the_sessions_beside(site: Site) -> None:
    """[ and ] open the session before and after this one, wherever one reads; the last one stays."""
    with site.page("/timeline") as page:
        order = page.locator(".row-title").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
        page.goto(order[1])
        page.keyboard.press("]")
        page.wait_for_url(f"**{order[2]}")
        page.keyboard.press("[")
        page.wait_for_url(f"**{order[1]}")
        page.evaluate("sessionStorage.clear()")
        page.keyboard.press("]")
        page.wait_for_url(lambda url: "/sessions/" in url and not url.endswith(order[1]))


def test_every_stop_of_the_tab_key_is_seen(site: Site) -> None:
    """Whatever has the focus has an outline (or a frame that shows it), and nothing hides it."""
    with site.page(f"/sessions/{site.ids['rich']}") as page:
        for _ in range(40):
            page.keyboard.press("Tab")
            bare = page.evaluate(
                """() => {
                  const one = document.activeElement;
                  if (one === document.body) return null;
                  const shown = (element) => {
                    const style = getComputedStyle(element);
                    return style.outlineStyle !== "none" || style.boxShadow !== "none";
                  };
                  const frame = one.closest(".search");
                  return shown(one) || (frame && shown(frame)) ? null : one.outerHTML;
                }"""
            )
            assert bare is None


def test_nothing_moves_for_who_asks_for_rest(site: Site) -> None:
    """With reduced motion no animation runs."""
    with site.page(f"/sessions/{site.ids['rich']}", reduced_motion="reduce") as page:
        page.evaluate("document.querySelector('.live').textContent = 'live'")
        assert page.evaluate("document.getAnimations({ subtree: true }).length") == 0
