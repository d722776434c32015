"""What many of these tests start from."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from datasette.app import Datasette

from tests.world import World


@pytest_asyncio.fixture
async def served(world: World) -> AsyncIterator[Datasette]:
    """Serve the world of a test file, which it makes as its own `world`."""
    datasette = world.serve()
    await datasette.invoke_startup()
    yield datasette
    await datasette.invoke_shutdown()
