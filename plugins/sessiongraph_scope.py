"""Who a request comes from, what Datasette may show him, and what SQL may do."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from datasette import hookimpl

from sessiongraph_web.web import databases, permissions, signin

if TYPE_CHECKING:
    from datasette import Request
    from datasette.app import Datasette
    from datasette.permissions import Action, PermissionSQL


@hookimpl(tryfirst=True)
def actor_from_request(datasette: Datasette, request: Request) -> dict[str, Any] | None:
    return signin.actor(datasette, request)


@hookimpl
def register_actions() -> list[Action]:
    return permissions.actions()


@hookimpl
def permission_resources_sql(datasette: Datasette, actor: dict[str, Any] | None, action: str) -> PermissionSQL:
    return permissions.rule(datasette, actor, action)


@hookimpl
def prepare_connection(conn: sqlite3.Connection) -> None:
    databases.limit(conn)
