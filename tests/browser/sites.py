"""Sites: a served store, a browser that is signed in to it, and pages in which nothing may go wrong."""

from __future__ import annotations

import asyncio
import shutil
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page

from sessiongraph_web import config, indexer
from sessiongraph_web.web import app, live, signin

NAVIGATION_TIMEOUT_MS = 30_000
POLLS = 100


@dataclass(frozen=True)
class Site:
    """One server for many pages."""

    address: str
    browser: Browser
    cookies: Any
    store: Path
    ids: Mapping[str, str] = field(default_factory=dict)  # of the sessions, by role

    @contextmanager
    def context(self, **options: Any) -> Iterator[BrowserContext]:
        """Open a browser profile that is signed in; its pages wait for nothing long."""
        context = self.browser.new_context(storage_state=self.cookies, base_url=self.address, **options)
        context.set_default_timeout(NAVIGATION_TIMEOUT_MS)
        try:
            yield context
        finally:
            context.close()

    @contextmanager
    def page(self, path: str | None = None, **options: Any) -> Iterator[Any]:
        """Open a page; leaving it, nothing may have gone wrong in it, or left for elsewhere."""
        with self.context(**options) as context:
            watch = Watch(self.address)
            page = watch.page(context)
            if path is not None:
                page.goto(path)
            yield page
        assert watch.problems == [], watch.problems


@dataclass
class Watch:
    """Notes what a page must never do: fail, warn, ask another host, speak through a dialog."""

    address: str
    problems: list[str] = field(default_factory=list)

    def page(self, context: BrowserContext) -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("console", self._console)
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self._request(request.url))
        return page

    def _console(self, said: Any) -> None:
        if said.type in ("error", "warning"):
            self.problems.append(f"console: {said.text}")

    def _dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.netloc != urlsplit(self.address).netloc:
            self.problems.append(f"request: {url}")


def until(page: Page, condition: str) -> None:
    """Wait for a condition in JavaScript, which the pages' content policy lets no script poll."""
    for _ in range(POLLS):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(NAVIGATION_TIMEOUT_MS / POLLS)
    raise AssertionError(f"never came true: {condition}")


@contextmanager
def opened(browser: Browser, options: Mapping[str, Any], ids: Mapping[str, str] | None = None) -> Iterator[Site]:
    """Serve a store, and sign a browser in to it."""
    with served(options) as (address, link):
        context = browser.new_context()
        page = context.new_page()
        page.goto(link())
        with page.expect_navigation():
            page.click("main button")
        cookies = context.storage_state()
        context.close()
        yield Site(address, browser, cookies, Path(options["sessions"]), ids or {})


@contextmanager
def served(options: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], str]]]:
    """Serve on a free port from a thread; yield the address and a maker of sign-in links."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    datasette = app.make({**options, "port": port})
    server = uvicorn.Server(uvicorn.Config(datasette.app(), log_level="error", timeout_graceful_shutdown=2))

    async def run() -> None:
        await datasette.invoke_startup()
        await server.serve(sockets=[listening])

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    address = f"http://127.0.0.1:{port}"
    try:
        yield address, lambda: signin.link(app.product(datasette), address)
    finally:
        server.should_exit = True
        thread.join()
        live.close(datasette)
        app.close(datasette)


def gathered(stores: Iterable[Path], home: Path) -> dict[str, object]:
    """Index several stores as one, each in project folders of its own; return the options that serve it."""
    for number, store in enumerate(stores):
        for project in store.iterdir():
            if project.is_dir():
                shutil.copytree(project, home / "sessions" / f"{number}{project.name}", symlinks=True)
    options = {"sessions": str(home / "sessions"), "index": str(home / "index")}
    options |= {"auto_build": False, "auto_refresh": False}
    indexer.Run(config.load(options)).execute()
    return options


def sessions(site: Site) -> list[dict[str, Any]]:
    """Return every session that the timeline lists."""
    with site.context() as context:
        answer = context.request.get("/timeline.json?limit=100").json()
    assert answer["next_cursor"] is None
    found: list[dict[str, Any]] = answer["sessions"]
    return found


def check_inert(page: Any) -> None:
    """Check that the page holds no script, handler, frame, form or address but ours."""
    found = page.evaluate(
        """() => {
          const foreign = (address) => {
            const to = new URL(address, location.href);
            return to.origin !== location.origin && !["https:", "http:", "mailto:"].includes(to.protocol);
          };
          const find = (selector, isBad) => [...document.querySelectorAll(selector)].filter(isBad);
          const isHandler = ({ name }) => name.startsWith("on") || name === "srcdoc";
          const elsewhere = (address) => new URL(address).origin !== location.origin;
          return [
            ...find("*", (one) => [...one.attributes].some(isHandler)),
            ...document.querySelectorAll("iframe, object, embed, base, frame, :not(page-keys) > template"),
            ...find("script", (one) => !one.getAttribute("src")?.startsWith("/static/")),
            ...find("a[href]", (link) => foreign(link.getAttribute("href"))),
            ...find("[src]", (one) => elsewhere(one.src)),
            ...find("form", (form) => elsewhere(form.action)),
          ].map((one) => one.outerHTML.slice(0, 200));
        }"""
    )
    assert found == [], found
