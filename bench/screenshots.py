#!/usr/bin/env python3
"""Photograph every page of the demo: wide and 360 px, light and dark, with Chromium through Playwright.

    bench/screenshots.py DIRECTORY [--language zh-CN] [--only NAME …] [--whole] [--sessions STORE --index INDEX]

Each picture is `<page>-<wide|narrow>-<light|dark>.png`. `--whole` takes pages in their whole height. Another
store than the demo's is photographed where `--sessions` and `--index` say so.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

ARGUMENTS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
SIZES: Final = {"wide": {"width": 1280, "height": 860}, "narrow": {"width": 360, "height": 780}}
SETTLE_MS: Final = 250  # for custom elements to say times


@contextmanager
def served(places: list[str]) -> Iterator[str]:
    """Serve a store, and yield the link that signs its owner in."""
    command = [sys.executable, "-m", "sessiongraph_web", "serve", "--port", "0", *places]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        found = (re.search(r"http://\S+token=\S+", line) for line in process.stdout or ())
        link = next((match[0] for match in found if match), None)
        if link is None:
            raise SystemExit("the server did not start")
        yield link
    finally:
        process.terminate()
        process.wait()


def sign_in(browser: Browser, link: str, directory: Path, language: str) -> Any:
    """Photograph the sign-in page, sign in, and return what the browser keeps."""
    for size, scheme, page in _looks(browser, None, language):
        page.goto(link)
        page.wait_for_timeout(SETTLE_MS)
        page.screenshot(path=directory / f"login-{size}-{scheme}.png")
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.locator("button.primary").click()
    page.wait_for_load_state()
    return context.storage_state()


def pages(page: Page, base: str) -> dict[str, str]:
    """Return the address of every kind of page: the sessions are those that the store has most to show of."""
    while page.request.get(f"{base}/status.json").json()["index"]["indexing"]:
        page.wait_for_timeout(SETTLE_MS)
    listed = page.request.get(f"{base}/timeline.json?limit=100").json()["sessions"]
    rich = max(listed, key=lambda one: (one["live"] is True, one["tool_calls"]))["id"]
    traced = [page.request.get(f"{base}/trace/{one['id']}.json").json() for one in listed if not one["origin"]]
    family = max(traced, key=lambda one: len(one.get("descendants", ())))["session"]["id"]
    fork = next((one["id"] for one in listed if one["is_seeded"]), rich)
    word = "timeout"
    return {
        "home": "/",
        "search": "/search?q=%E5%B9%BF%E5%91%8A",
        "search-filtered": f"/search?q={word}&kinds=tool_result&tool=bash&sort=newest",
        "search-none": "/search?q=qqqnothing&tool=bash",
        "search-blank": "/search",
        "session": f"/sessions/{rich}",
        "session-focus": f"/sessions/{rich}?view=focus",
        "session-found": f"/sessions/{rich}?find={word}",
        "session-family": f"/sessions/{family}",
        "session-fork": f"/sessions/{fork}",
        "events": f"/sessions/{rich}/events",
        "event": f"/sessions/{rich}/events/5",
        "trace": f"/trace/{family}",
        "timeline": "/timeline",
        "workspaces": "/workspaces",
        "status": "/status",
        "share": f"/share?session={rich}",
        "missing": "/sessions/session-00000000000000000000000000000000",
    }


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--language", default="en", help="as browsers send it")
    parser.add_argument("--sessions")
    parser.add_argument("--index")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    places = ["--sessions", options.sessions, "--index", options.index] if options.sessions else ["--demo"]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with served(places) as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        kept = sign_in(browser, link, options.directory, options.language)
        base = link.partition("/-/")[0]
        found = pages(browser.new_context(storage_state=kept).new_page(), base)
        chosen = {name: path for name, path in found.items() if not options.only or name in options.only}
        for size, scheme, page in _looks(browser, kept, options.language):
            for name, path in chosen.items():
                page.goto(base + path)
                page.wait_for_timeout(SETTLE_MS)
                target = options.directory / f"{name}-{size}-{scheme}.png"
                page.screenshot(path=target, full_page=options.whole)
        browser.close()


def _looks(browser: Browser, kept: Any, language: str) -> Iterator[tuple[str, str, Page]]:
    for size, viewport in SIZES.items():
        for scheme in ("light", "dark"):
            context = browser.new_context(
                storage_state=kept,
                viewport=viewport,  # type: ignore[arg-type]
                color_scheme=scheme,  # type: ignore[arg-type]
                locale=language,
            )
            yield size, scheme, context.new_page()
            context.close()


if __name__ == "__main__":
    main()
