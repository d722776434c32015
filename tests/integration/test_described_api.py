"""Requests made from `/openapi.json` by a fuzzer: whatever it sends, the answers are as described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from asgiref.sync import async_to_sync
from datasette.app import Datasette
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from sessiongraph_web import access, config
from sessiongraph_web.web import openapi, routes
from tests.world import HOME, World, two_workspaces

EXAMPLES = 12  # for each route, caller, and way to make values
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
FOLLOWED = ("session_live", "status_live")  # streams: they answer for minutes


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return two_workspaces(tmp_path_factory.mktemp("world")).build()


@pytest.fixture(scope="module")
def datasette(world: World) -> Iterator[Datasette]:
    instance = world.serve()
    async_to_sync(instance.invoke_startup)()
    yield instance
    instance.close()


def _described() -> list[Any]:
    return [
        pytest.param(route.name, id=route.name)
        for route in routes.ROUTES
        if route.access != "public" and "GET" in route.methods and route.name not in FOLLOWED
    ]


def _served(datasette: Datasette) -> Any:
    """Return the application as a server that stays up: the client of each request ends its own lifespan."""
    application = datasette.app()

    async def served(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await application(scope, receive, send)
            return
        for _ in range(2):
            asked = (await receive())["type"]
            await send({"type": f"{asked}.complete"})

    return served


@pytest.mark.parametrize("who", ["owner", "scoped"])
@pytest.mark.parametrize("name", _described())
def test_whatever_is_sent_the_answer_is_as_described(
    name: str, who: str, world: World, datasette: Datasette
) -> None:
    """Right and wrong values alike are answered with a described status, type and shape, never by a crash."""
    caller = access.OWNER if who == "owner" else access.workspaces(HOME)
    token = world.token(caller)
    described = openapi.describe(routes.ROUTES, config.load(world.options))
    schema = schemathesis.openapi.from_dict(described)
    schema.app = _served(datasette)
    (operation,) = [
        found.ok() for found in schema.get_all_operations() if found.ok().definition.raw["operationId"] == name
    ]
    ids = [*world.ids.values(), "nowhere"]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    )
    def fuzz(case: schemathesis.Case) -> None:
        if "id" in case.path_parameters and isinstance(case.path_parameters["id"], str):
            case.path_parameters["id"] = ids[len(case.path_parameters["id"]) % len(ids)]
        case.call_and_validate(
            base_url="http://localhost", headers={"Authorization": f"Bearer {token}"}, checks=CHECKS
        )

    fuzz()
