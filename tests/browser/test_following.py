"""Following in a real browser: what is written appears around a reader who keeps his place."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from sessiongraph_web import config, indexer
from tests.browser.sites import Site, opened, until
from tests.builders import Log

pytestmark = pytest.mark.browser

PROMISED_SECONDS = 2.0
MARGIN_SECONDS = 2.0  # for a machine that is busy with other tests
TURNS = 6
WRITTEN = """() => {
  const turns = document.getElementById("turns").cloneNode(true);
  for (const button of turns.querySelectorAll("copy-button")) button.replaceChildren();
  return turns.innerHTML.replace(/\\s+/g, " ").replace(/> </g, "><");
}"""


@dataclass
class Talk:
    """A session that somebody is in, and the page of its last part."""

    log: Log
    path: Path

    @property
    def address(self) -> str:
        return f"/sessions/{self.log.id}?last=1"

    def append(self, prompt: str, **parts: Any) -> float:
        """Write a turn and return the moment."""
        self.log.turn(prompt, f"the answer to {prompt}", **parts)
        self.log.append(self.path)
        return time.monotonic()


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("following")
    Log("/w/a", id="session-quiet").turn("a quiet one", "yes").write(home / "sessions")
    index(home / "sessions")
    with opened(browser, options(home / "sessions")) as site:
        yield site


def options(store: Path) -> dict[str, Any]:
    return {"sessions": str(store), "index": str(store.parent / "index"), "auto_build": False}


def index(store: Path) -> None:
    """Make what was written known to the server."""
    assert indexer.Run(config.load(options(store))).execute().outcome == "complete"


@pytest.fixture
def talk(site: Site, request: pytest.FixtureRequest) -> Iterator[Talk]:
    """A live session of some turns, with tool calls."""
    log = Log("/w/a", id=f"session-{request.node.name}".replace("_", "-").replace("[", "-").replace("]", ""))
    for number in range(TURNS):
        log.turn(f"prompt {number}", "a line\n\n" * 8, [("bash", '{"command": "ls"}', "out\n" * 5)])
    path = log.write(site.store)
    index(site.store)
    with (path.parent / "session.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Talk(log, path)


def appears(page: Page, text: str, since: float) -> None:
    """Check that a prompt is on the page in time."""
    expect(page.locator(".card.prompt", has_text=text)).to_have_count(1, timeout=10_000)
    assert time.monotonic() - since < PROMISED_SECONDS + MARGIN_SECONDS


def test_what_is_written_appears_and_the_reader_keeps_his_place(site: Site, talk: Talk) -> None:
    """New turns come within two seconds; scroll position, open folds, focus and the current item stay."""
    with site.page(talk.address) as page:
        expect(page.locator("follow-live [role=status]")).to_have_text("This session is live")
        card = page.locator(".card.tool").nth(3)
        card.scroll_into_view_if_needed()
        card.locator("summary").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("j")
        place = "[scrollY, document.activeElement.closest('[id]').id, document.querySelector('.current').id]"
        before = page.evaluate(place)
        for number in range(3):
            appears(page, f"new {number}", talk.append(f"new {number}"))
        assert page.evaluate(place) == before
        assert card.locator("details[open]").count() == 1
        expect(page.locator("follow-live [role=status]")).to_contain_text("new event")
        assert page.locator("turn-rail li").count() == TURNS + 3
        turns = page.locator(".session-head .facts div", has=page.get_by_text("Turns", exact=True))
        expect(turns.locator("dd")).to_have_text(str(TURNS + 3), timeout=12_000)


def test_an_open_turn_grows_card_by_card(site: Site, talk: Talk) -> None:
    """A call that has no result yet gets it in place, its card open as the reader left it."""
    log = talk.log
    with site.page(talk.address) as page:
        expect(page.locator("follow-live")).to_have_count(1)
        log.start_turn("slow work")
        log.assistant("", [("slow", "bash", '{"command": "sleep"}')])
        log.call("slow", "bash", '{"command": "sleep"}')
        log.frame()
        log.append(talk.path)
        card = page.locator(".card.tool", has_text="sleep")
        expect(card).to_have_count(1)
        card.locator("summary").click()
        head = page.locator(".turn").last
        before = head.evaluate("turn => (turn.kept = true)")
        log.result("slow", "done at last")
        log.frame()
        log.append(talk.path)
        expect(card).to_contain_text("done at last")
        assert card.locator("details[open]").count() == 1
        assert before
        assert head.evaluate("turn => turn.kept"), "only what changed is replaced"


def test_a_followed_page_is_what_a_reload_shows(site: Site, talk: Talk) -> None:
    """However the log grows, card by card or by turns, the page holds what it would hold if opened now."""
    log = talk.log
    with site.page(talk.address) as page, site.page() as fresh:
        expect(page.locator("follow-live")).to_have_count(1)
        steps: list[Callable[[], object]] = [
            lambda: log.start_turn("work"),
            lambda: log.assistant("", [("slow", "bash", '{"command": "sleep"}')], reasoning="hm"),
            lambda: log.call("slow", "bash", '{"command": "sleep"}'),
            lambda: log.result("slow", "done"),
            lambda: log.todo(("one", "completed"), ("two", "pending")),
            lambda: log.turn("next", "yes"),
        ]
        for number, step in enumerate(steps):
            step()
            log.frame()
            log.append(talk.path)
            expect(page.locator("follow-live")).to_have_attribute("data-next", str(len(log.events)))
            followed = page.evaluate(WRITTEN)
            fresh.goto(talk.address)
            assert (number, followed) == (number, fresh.evaluate(WRITTEN))


def test_who_reads_the_end_stays_at_the_end(site: Site, talk: Talk) -> None:
    """At the bottom of the page, it scrolls along."""
    with site.page(talk.address) as page:
        expect(page.locator("follow-live")).to_have_count(1)
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        appears(page, "at the end", talk.append("at the end"))
        until(page, "innerHeight + scrollY >= document.documentElement.scrollHeight - 2")


def test_a_page_that_fills_up_goes_on(site: Site, talk: Talk) -> None:
    """More events than a page holds are all brought, in order."""
    with site.page(talk.address) as page:
        expect(page.locator("follow-live")).to_have_count(1)
        for number in range(40):
            talk.log.turn(f"many {number}", "yes")
        talk.log.append(talk.path)
        expect(page.locator(".card.prompt", has_text="many 39")).to_have_count(1)
        shown = [text for text in page.locator(".card.prompt .plain-text").all_inner_texts() if "many" in text]
        assert shown == [f"many {number}" for number in range(40)]
        numbers = page.locator("[id^=e]:not(a)").evaluate_all("all => all.map((one) => one.id)")
        assert len(numbers) == len(set(numbers))


def test_a_hidden_page_rests_and_catches_up(site: Site, talk: Talk) -> None:
    """A page that nobody sees follows nothing; when it is seen again, it brings what it missed."""
    show = """hidden => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    with site.page(talk.address) as page:
        expect(page.locator("follow-live")).to_have_count(1)
        page.evaluate(show, arg=True)
        assert page.evaluate("document.querySelector('follow-live').stream.readyState") == 2
        talk.append("unseen")
        page.wait_for_timeout(1500)
        assert page.locator(".card.prompt", has_text="unseen").count() == 0
        page.evaluate(show, arg=False)
        expect(page.locator(".card.prompt", has_text="unseen")).to_have_count(1)


def test_without_a_stream_the_page_asks(site: Site, talk: Talk) -> None:
    """Where the server has no stream left, the page asks by itself now and then."""
    with site.context() as context:
        page = context.new_page()
        page.clock.install()
        page.route("**/live?*", lambda route: route.fulfill(status=503, headers={"retry-after": "30"}))
        page.goto(talk.address)
        expect(page.locator("follow-live")).to_have_count(1)
        talk.append("by asking")
        page.wait_for_timeout(200)
        page.clock.fast_forward(6_000)
        expect(page.locator(".card.prompt", has_text="by asking")).to_have_count(1)


def test_a_session_that_was_at_rest_is_followed_too(site: Site) -> None:
    """A session that somebody takes up again while its page is open goes on there."""
    log = Log("/w/a", id="session-resumed")
    path = log.turn("first", "answer").write(site.store)
    index(site.store)
    with site.page(f"/sessions/{log.id}") as page:
        assert page.locator("follow-live [role=status]").is_hidden()
        log.turn("taken up again", "yes")
        log.append(path)
        expect(page.locator(".card.prompt", has_text="taken up again")).to_have_count(1)


def test_an_index_run_shows_on_the_status_page(site: Site) -> None:
    """The button looks for new events; when the run has ended the page says what came of it by itself."""
    with site.page("/status") as page:
        count = page.locator(".figures dd").first.inner_text()
        Log("/w/b", id="session-newcomer").turn("hello", "there").write(site.store)
        page.get_by_role("button", name="Look for new events").click()
        page.wait_for_url("**/status")
        expect(page.locator(".figures dd").first).not_to_have_text(count)
        assert page.locator("follow-index .notice").count() == 0
