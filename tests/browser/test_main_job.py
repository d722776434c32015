"""The main job in a real browser: sign in, search, open the hit, take the session along."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, expect

pytestmark = pytest.mark.browser


def signed_in(context: BrowserContext, server: Any) -> Any:
    page = context.new_page()
    page.goto(server.link)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("input[name=q]:visible").first).to_be_visible()
    return page


def test_a_chinese_word_is_found_opened_and_downloaded(
    context: BrowserContext, server: Any, tmp_path: Path
) -> None:
    """Two characters inside a longer run find the session; its ZIP holds the log as stored."""
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    problems: list[str] = []
    page = signed_in(context, server)
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))

    page.locator("input[name=q]:visible").first.fill("广告")
    page.keyboard.press("Enter")
    expect(page.locator("mark").first).to_have_text("广告")
    page.get_by_role("link", name="广告SDK超时").first.click()
    expect(page.locator("main")).to_contain_text("帮我把广告SDK的超时改成三秒")
    expect(page.locator("main")).to_contain_text("grep -rn timeout")

    page.locator("summary, button").filter(has_text="Export").first.click()
    with page.expect_download() as started:
        page.locator("a[href*='/export/'][href*='.zip']").first.click()
    target = tmp_path / "session.zip"
    started.value.save_as(target)
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["session.v4.jsonl", "manifest.json"]
        assert "帮我把广告SDK的超时改成三秒" in archive.read("session.v4.jsonl").decode()

    assert problems == []
    assert {urlsplit(url).netloc for url in asked} == {urlsplit(server.address).netloc}


def test_nobody_is_let_in_without_the_link(context: BrowserContext, server: Any) -> None:
    """Without signing in there is a page that says how, and no text of any session."""
    page = context.new_page()
    response = page.goto(f"{server.address}/search?q=广告")
    assert response is not None
    assert response.status == 401
    expect(page.locator("body")).to_contain_text("sessiongraph-web serve")
    assert "帮我把" not in page.content()


def test_the_link_works_once(context: BrowserContext, server: Any) -> None:
    """A link that was used signs nobody else in."""
    signed_in(context, server)
    context.clear_cookies()
    page = context.new_page()
    page.goto(server.link)
    page.get_by_role("button", name="Sign in").click()
    assert page.goto(f"{server.address}/").status == 401  # type: ignore[union-attr]
