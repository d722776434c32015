"""A real server on a socket, in a thread of its own, for tests of what only a connection shows."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from datasette.app import Datasette

from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.web import app
from tests.world import World


@dataclass(frozen=True, slots=True)
class Server:
    """Where it listens, and the product that answers."""

    port: int
    product: SessionGraph


@contextmanager
def serving(world: World) -> Iterator[Server]:
    """Serve a world until the block ends."""
    datasette = world.serve()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        settings = uvicorn.Config("", log_level="error", access_log=False, timeout_graceful_shutdown=1)
        server = uvicorn.Server(settings)
        thread = threading.Thread(target=lambda: asyncio.run(_serve(datasette, server, listening)))
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                thread.join(0.01)
            yield Server(listening.getsockname()[1], app.product(datasette))
        finally:
            server.should_exit = True
            thread.join()


async def _serve(datasette: Datasette, server: uvicorn.Server, listening: socket.socket) -> None:
    await datasette.invoke_startup()
    server.config.app = datasette.app()
    await server.serve(sockets=[listening])
    await datasette.invoke_shutdown()
