"""The routes of searching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from datasette import hookimpl

from sessiongraph_web.web import routes


@hookimpl
def register_routes() -> list[tuple[str, Callable[..., Any]]]:
    return routes.for_plugin("search")
