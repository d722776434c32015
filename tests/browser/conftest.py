"""A running server and a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.builders import Log

# The first has no windows at all: measured, a context in 0.2 s for 1.4 s and a page in half the time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@dataclass(frozen=True)
class Server:
    """Where a server listens, and the link that signs its owner in once."""

    address: str
    link: str
    store: Path


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, headless; its tests are skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server on a small store, in a process of its own, on a free port."""
    store = tmp_path / "sessions"
    log = Log("/w/ads", id="session-ads", preset="standard")
    log.turn(
        "帮我把广告SDK的超时改成三秒",
        "改好了：`timeout=3`",
        [("bash", '{"command": "grep -rn timeout"}', "ads.py:1")],
    )
    log.title("广告SDK超时")
    log.write(store)
    Log("/w/other", id="session-other").turn("an unrelated question", "an unrelated answer").write(store)
    command = [sys.executable, "-m", "sessiongraph_web", "serve", "--port", "0"]
    places = ["--sessions", str(store), "--index", str(tmp_path / "index")]
    process = subprocess.Popen(command + places, stdout=subprocess.PIPE, text=True)
    try:
        yield _started(process, store)
    finally:
        process.terminate()
        process.wait(20)


def _started(process: subprocess.Popen[str], store: Path) -> Server:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if found := re.search(r"(http://\S+)/-/login\?token=\S+", said):
            return Server(found[1], found[0], store)
    raise AssertionError(f"the server ended without a link: {said}")


@pytest.fixture
def context(browser: Browser) -> Iterator[Any]:
    """A fresh browser profile that notes every request that leaves the machine."""
    opened = browser.new_context(accept_downloads=True)
    yield opened
    opened.close()
