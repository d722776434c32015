"""Describes the routes in OpenAPI 3.1, for programs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from sessiongraph_web.errors import CODES
from sessiongraph_web.web.route import Parameter, Route


def describe(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the OpenAPI document of every route that answers data or a download."""
    shown = [route for route in routes if route.access != "public"]
    return {
        "openapi": "3.1.0",
        "info": {"title": "sessiongraph-web", "version": version("sessiongraph-web")},
        "paths": {_address(route): _methods(route) for route in shown},
        "components": {
            "schemas": {"Error": _error_schema()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _address(route: Route) -> str:
    if not route.twin:
        return route.template
    return route.template + ".json"


def _methods(route: Route) -> dict[str, Any]:
    parameters = [_path_parameter(name) for name in re.findall(r"{(\w+)}", route.template)]
    parameters += [_query_parameter(parameter) for parameter in route.parameters]
    operation = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "responses": {"200": _answer(route), "default": _failure()},
    }
    return {method.lower(): operation for method in route.methods if method != "HEAD"}


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query_parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.kind}
    if parameter.many:
        schema = {"type": "array", "items": schema}
    return {"name": parameter.name, "in": "query", "description": parameter.meaning, "schema": schema}


def _answer(route: Route) -> dict[str, Any]:
    if not route.twin:
        return {"description": "The bytes, or where to look next"}
    schema = {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"]}
    return {"description": route.summary, "content": {"application/json": {"schema": schema}}}


def _failure() -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": "What went wrong", "content": {"application/json": {"schema": schema}}}


def _error_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["ok", "error", "errors", "status", "code"],
        "properties": {
            "ok": {"const": False},
            "error": {"type": "string"},
            "errors": {"type": "array", "items": {"type": "string"}},
            "status": {"type": "integer"},
            "code": {"enum": sorted(CODES)},
        },
    }
