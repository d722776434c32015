"""What Datasette may show to whom: the bodies of its permission and connection hooks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from datasette.permissions import Action, PermissionSQL, Resource

from sessiongraph_web import access
from sessiongraph_web.access import Caller
from sessiongraph_web.schema import database_name
from sessiongraph_web.web.databases import WorkspaceDatabase

if TYPE_CHECKING:
    from datasette.app import Datasette

Pair = tuple[str | None, str | None]  # a database and what is in it; None stands for all

VIEW_WORKSPACE: Final = "view-workspace"
VIEW_SESSION: Final = "view-session"
DATABASE_READS: Final = frozenset({"view-database", "execute-sql", "view-table"})

_ONLY: Final = """
    SELECT json_extract(value, '$[0]') AS parent, json_extract(value, '$[1]') AS child
    FROM json_each(:{parameter})
"""
_ALLOW: Final = "SELECT NULL AS parent, NULL AS child, 1 AS allow, 'in the view of this caller' AS reason"
_NOTHING: Final = "SELECT NULL AS parent, NULL AS child WHERE 0"
_EVERYTHING: Final[Pair] = (None, None)


class WorkspaceResource(Resource):
    """A workspace, under the name of its database. Those that are attached can be listed."""

    name = "workspace"
    parent_class = None

    def __init__(self, database: str) -> None:
        super().__init__(parent=database, child=None)

    @classmethod
    async def resources_sql(cls, datasette: Datasette, actor: dict[str, Any] | None = None) -> str:  # noqa: ARG003
        return "SELECT database_name AS parent, NULL AS child FROM catalog_databases WHERE NOT is_memory"


class SessionResource(Resource):
    """One log, under its `log_id`, in its workspace. There are too many to list."""

    name = "session"
    parent_class = WorkspaceResource

    def __init__(self, database: str, log_id: str) -> None:
        super().__init__(parent=database, child=log_id)

    @classmethod
    async def resources_sql(cls, datasette: Datasette, actor: dict[str, Any] | None = None) -> str:  # noqa: ARG003
        return _NOTHING


def actions() -> list[Action]:
    """Return the actions that our own routes ask about."""
    return [
        Action(
            name=VIEW_WORKSPACE,
            description="View everything in a workspace",
            resource_class=WorkspaceResource,
        ),
        Action(name=VIEW_SESSION, description="View one session", resource_class=SessionResource),
    ]


def rule(datasette: Datasette, actor: dict[str, Any] | None, action: str) -> PermissionSQL:
    """Return the rule for an action: a list of what is allowed that no configuration and no `--root` can widen.

    The allow rule beside it is a global one, so that a deny in the configuration still beats it.
    """
    allowed = list(_allowed(datasette, access.from_actor(actor), action))
    if not allowed:
        return PermissionSQL(restriction_sql=_NOTHING)
    # A name of its own for each action: Datasette merges the parameters of an action with those of the action it
    # requires, and overwrites any called :database, :q, :pattern, :limit and the like.
    parameter = "sessiongraph_" + action.replace("-", "_")
    return PermissionSQL(
        sql=_ALLOW,
        restriction_sql=_ONLY.format(parameter=parameter),
        params={parameter: json.dumps(allowed)},
    )


def _allowed(datasette: Datasette, caller: Caller, action: str) -> Iterable[Pair]:
    """Return what a caller may do this to.

    Reading is limited to the caller's databases. What is not named here (writes, downloads, stored queries, debug
    pages, actions of other plugins) is denied to everybody.
    """
    if action == "view-instance" and caller.is_known:
        return [_EVERYTHING]
    if action in DATABASE_READS:
        return [(name, None) for name in readable_databases(datasette, caller)]
    if action == VIEW_WORKSPACE:
        return _workspaces(caller)
    if action == VIEW_SESSION:
        return [*_workspaces(caller), *_sessions(caller)]
    return []


def readable_databases(datasette: Datasette, caller: Caller) -> list[str]:
    """Return the attached databases that a caller may read, by the cwd that each is sealed for."""
    return [
        name
        for name, database in datasette.databases.items()
        if isinstance(database, WorkspaceDatabase) and access.sees_workspace(caller, database.cwd)
    ]


def _workspaces(caller: Caller) -> list[Pair]:
    if caller.is_owner:
        return [_EVERYTHING]
    return [(database_name(cwd), None) for cwd in caller.cwds] if caller.kind == "workspaces" else []


def _sessions(caller: Caller) -> list[Pair]:
    """Return the session a caller was given. Its descendants are found by the operations, which know them."""
    return [(database_name(cwd), str(caller.log_id)) for cwd in caller.cwds] if caller.kind == "session" else []
