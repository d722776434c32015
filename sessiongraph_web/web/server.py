"""Serves the product: binds, says where it is and how to sign in, indexes in the background, stops cleanly."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import shutil
import signal
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import uvicorn

from sessiongraph_web import config, demo, rehearsal
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.indexer import Wish
from sessiongraph_web.language import gettext, sentence
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.web import app, security, signin

PROGRESS_SECONDS: Final = 1.0
SWITCH_SECONDS: Final = 0.001  # how long a thread that computes keeps the others waiting; Python's own is 0.005
DRAIN_SECONDS: Final = 3  # how long requests under way may go on when the server stops
# What glibc's mallopt is told: the names and numbers of <malloc.h>.
M_MMAP_THRESHOLD: Final = (-3, 128 * 1024)
M_ARENA_MAX: Final = (-8, 2)


@dataclass(frozen=True, slots=True)
class Options:
    """What `serve` was asked."""

    sessions: Path | None
    index: Path | None
    host: str
    port: int
    allow_hosts: tuple[str, ...]
    open_browser: bool
    demo: bool


async def serve(options: Options) -> None:
    """Run until interrupted."""
    security.check_bind(options.host, options.allow_hosts)
    _be_frugal()
    with _places(options) as places, _bound(options.host, options.port) as listening:
        port = listening.getsockname()[1]
        settings = config.load(places)
        datasette = app.make(
            {**places, "allow_hosts": list(options.allow_hosts), "port": port, "announce": False}
        )
        await datasette.invoke_startup()
        product = app.product(datasette)
        _announce(product, options, f"http://{_shown(options.host)}:{port}")
        if settings.auto_build:
            product.refresher.request(Wish())
        progress = asyncio.create_task(_show_progress(product))
        try:
            application = datasette.app()
            _be_prompt()
            await _run(application, listening)
        finally:
            progress.cancel()
            app.close(datasette)


def _be_frugal() -> None:
    """Have the allocator give back what is freed, where it can be told so (glibc).

    By itself it keeps a heap for each of up to 16 threads, and learns from each large buffer that is freed to
    keep the next: 85 MiB became 114 over 14 rebuilds with readers between them, and with this 82 became 89.
    """
    allocator = ctypes.CDLL(None) if sys.platform == "linux" else None
    if allocator is not None and hasattr(allocator, "mallopt"):
        for parameter, value in (M_ARENA_MAX, M_MMAP_THRESHOLD):
            allocator.mallopt(parameter, value)


def _be_prompt() -> None:
    """Keep requests from waiting for threads that compute, and for walks over all that was loaded.

    Measured: a full collection over the 74,000 objects of a server took 25 to 45 ms, once in about twenty
    searches; over what came after the start, 1 ms. A search beside a busy thread took 55 ms, and 25 with the
    shorter turns.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()


class _Server(uvicorn.Server):
    """A server that ends when it is asked to, and leaves it to its caller to clean up.

    Uvicorn would raise the signal once more, which ends the process where it stands.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


async def _run(application: Any, listening: socket.socket) -> None:
    server = _Server(
        uvicorn.Config(
            application,
            log_level="error",  # what is no HTTP is refused and not told, however often it comes
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            h11_max_incomplete_event_size=64 * 1024,
        )
    )
    await server.serve(sockets=[listening])


@contextmanager
def _places(options: Options) -> Iterator[dict[str, str]]:
    """Yield the plugin options for the store and the index; a demo has its own, deleted afterwards."""
    if not options.demo:
        given = {"sessions": options.sessions, "index": options.index}
        yield {name: str(path) for name, path in given.items() if path is not None}
        return
    home = Path(tempfile.mkdtemp(prefix="sessiongraph-demo-"))
    try:
        places = {name: home / name for name in ("sessions", "index", "attachments")}
        demo.write(places["sessions"], places["attachments"])
        with rehearsal.going_on(places["sessions"]):
            yield {name: str(path) for name, path in places.items()}
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """Listen before anything slow is done, so that a taken port is said at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small writes at once; else answers wait 40 ms for the client's ACK.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()  # a browser that opens the link at once is kept waiting, not refused
    except OSError as error:
        listening.close()
        raise SessionGraphError(
            "SESSION_QUERY_INVALID_CONFIG",
            sentence(
                "Port %(port)s on %(host)s cannot be used; choose another with --port.", port=port, host=host
            ),
        ) from error
    try:
        yield listening
    finally:
        listening.close()


def _announce(product: SessionGraph, options: Options, address: str) -> None:
    settings = product.settings
    link = signin.link(product, address)
    click.echo(gettext("sessiongraph-web is at %(address)s", address=address))
    click.echo(gettext("Sign in (this link works once): %(link)s", link=link))
    if options.demo:
        click.echo(gettext("These are made-up sessions; they are deleted when the server stops."))
    elif not settings.sessions.is_dir():
        missing = gettext(
            "No sessions yet: looked in %(directory)s. Use dsh once, or say where they are with --sessions DIR;"
            " `serve --demo` shows made-up ones.",
            directory=settings.sessions,
        )
        click.echo(missing, err=True)
    if not security.is_loopback(options.host):
        warning = gettext(
            "This address can be reached from other machines. Whoever has a sign-in link or a token reads what it"
            " grants; traffic is not encrypted."
        )
        click.echo(warning, err=True)
    if options.open_browser:
        webbrowser.open(link)


async def _show_progress(product: SessionGraph) -> None:
    """Show how indexing goes on a terminal, one line that is written over."""
    shown = False
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        progress = product.refresher.progress
        if progress and progress.logs_total > 1 and sys.stderr.isatty():
            said = gettext("Indexing %(done)s of %(total)s logs", done=progress.logs, total=progress.logs_total)
            click.echo(f"\r\x1b[K{said}", err=True, nl=False)
            shown = True
        elif shown and not product.refresher.running:
            click.echo("\r\x1b[K" + gettext("The index is up to date."), err=True)
            shown = False


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
