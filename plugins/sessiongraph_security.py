"""The front door, and signing in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from datasette import hookimpl

from sessiongraph_web.web import security, signin

if TYPE_CHECKING:
    from datasette.app import Datasette


@hookimpl(trylast=True)  # the last wrapper is the outermost
def asgi_wrapper(datasette: Datasette) -> Callable[..., Any]:
    return security.wrapper(datasette)


@hookimpl
def register_routes() -> list[tuple[str, Callable[..., Any]]]:
    return signin.ROUTES


@hookimpl
def startup(datasette: Datasette) -> None:
    security.start(datasette, sys.argv)


@hookimpl
def shutdown(datasette: Datasette) -> None:
    security.close(datasette)
