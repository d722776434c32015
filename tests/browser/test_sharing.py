"""Sharing in two browsers: the owner gives access away, a visitor uses it, the owner takes it back."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.sites import Site, opened
from tests.builders import Log
from tests.world import FOREIGN, FOREIGN_WORD, HOME, HOME_WORD, SIBLING_WORD, two_workspaces

pytestmark = pytest.mark.browser
SECRET = "gh" + "p_" + "a1B2c3D4" * 5
NOTHING = "Nothing found"
ENDED = "its time is over, or it was taken back"


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    world = two_workspaces(tmp_path_factory.mktemp("shared"))
    world.write("secret", Log(HOME).turn(f"a heron with {SECRET}", "done"))
    world.build()
    with opened(browser, world.options, world.ids) as site:
        yield site


def give(page: Any, label: str, days: str) -> tuple[str, str]:
    """Fill in the form that the foot of a page leads to; return the link and the token."""
    page.locator("footer.foot").get_by_role("link", name="Share", exact=True).click()
    page.get_by_label("days").fill(days)
    page.get_by_label("Label").fill(label)
    page.get_by_role("button", name="Make the link").click()
    return page.get_by_label("Link for a browser").input_value(), page.get_by_label("Token for").input_value()


def follow(site: Site, link: str) -> Any:
    """Open a link in a browser of its own and sign in with it."""
    context = site.browser.new_context(base_url=site.address)
    page = context.new_page()
    page.goto(link)
    with page.expect_navigation():
        page.get_by_role("button", name="Sign in on this browser").click()
    return page


def take_back(page: Any, label: str) -> None:
    page.goto("/status")
    row = page.get_by_role("row").filter(has_text=label)
    row.get_by_role("button", name="Take back").click()
    expect(row).to_contain_text("ended")


def asked(site: Site, token: str, path: str) -> tuple[int, Any]:
    """Ask for JSON as curl does."""
    with closing(http.client.HTTPConnection(urlsplit(site.address).netloc, timeout=60)) as connection:
        connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
        response = connection.getresponse()
        return response.status, json.load(response)


def test_a_session_is_shared_read_and_taken_back(site: Site) -> None:
    """The visitor sees exactly that session, masked, and is told when it is over."""
    secret = site.ids["secret"]
    with site.page(f"/sessions/{secret}/events/0") as owner:
        link, token = give(owner, "for a friend", "2")
        assert parse_qs(urlsplit(link).query)["next"] == [f"/sessions/{secret}"]

        visitor = follow(site, link)
        assert urlsplit(visitor.url).path == f"/sessions/{secret}"
        assert "token" not in visitor.url
        expect(visitor.locator("main")).to_contain_text("a heron with [masked:github-token]")
        assert SECRET not in visitor.content()
        assert "/share" not in visitor.content()
        visitor.goto("/search?q=heron")
        expect(visitor.locator("#results li")).to_have_count(1)
        visitor.goto(f"/search?q={HOME_WORD}")
        expect(visitor.locator("main")).to_contain_text(NOTHING)
        assert [visitor.goto(f"/sessions/{site.ids[role]}").status for role in ("home", "foreign")] == [404, 404]
        status, told = asked(site, token, f"/sessions/{secret}.json")
        assert (status, told["session"]["id"], SECRET in json.dumps(told)) == (200, secret, False)
        assert asked(site, token, f"/sessions/{site.ids['home']}.json")[0] == 404

        visitor.goto(f"/sessions/{secret}")
        take_back(owner, "for a friend")
        visitor.get_by_role("link", name="Events", exact=True).click()
        expect(visitor.get_by_role("alert")).to_contain_text(ENDED)
        assert SECRET[:3] not in visitor.content()
        assert asked(site, token, f"/sessions/{secret}.json")[0] == 401
        visitor.context.close()


def test_a_workspace_is_shared_and_taken_back(site: Site) -> None:
    """The link of a timeline's workspace opens all sessions of exactly that directory, and no other's."""
    with site.page(f"/timeline?workspace={quote(HOME)}") as owner:
        link, token = give(owner, "for the team", "1")

        visitor = follow(site, link)
        visitor.goto("/timeline")
        expect(visitor.locator("main")).to_contain_text("5 sessions")
        for word, count in ((SIBLING_WORD, 1), (FOREIGN_WORD, 0)):
            visitor.goto(f"/search?q={word}")
            expect(visitor.locator("#results > ol > li")).to_have_count(count)
        assert visitor.goto(f"/sessions/{site.ids['foreign']}").status == 404
        status, told = asked(site, token, "/workspaces.json")
        assert (status, [workspace["cwd"] for workspace in told["workspaces"]]) == (200, [HOME])
        assert FOREIGN not in json.dumps(told)

        take_back(owner, "for the team")
        visitor.goto("/timeline")
        expect(visitor.get_by_role("alert")).to_contain_text(ENDED)
        visitor.context.close()


def test_the_owner_chooses_among_the_workspaces_in_view(site: Site) -> None:
    """From a search over several workspaces the form asks which of them."""
    with site.page("/search?q=is+here") as owner:
        owner.locator("footer.foot").get_by_role("link", name="Share", exact=True).click()
        choice = owner.get_by_label("Workspace")
        assert sorted(choice.locator("option").all_inner_texts()) == sorted([HOME, FOREIGN])
        choice.select_option(FOREIGN)
        owner.get_by_role("button", name="Make the link").click()
        expect(owner.locator("main")).to_contain_text(FOREIGN)
