"""Describes the routes in OpenAPI 3.1, for programs: parameters from the registry, answers from their types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any, Final, get_type_hints

import msgspec

from sessiongraph_web.answers import Answer
from sessiongraph_web.config import Settings
from sessiongraph_web.errors import CODES
from sessiongraph_web.models import Instant
from sessiongraph_web.web.route import Parameter, Route

JSON: Final = "application/json"
MAX_WHOLE: Final = 2**63 - 1
INSTANT: Final = r"^([+-]\d{6,}|\d{4})-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"
PATHS: Final = {"seq": r"^([0-9]{1,18}|-)$", "sha256": r"^[0-9a-f]{64}$"}
_REFERENCE: Final = "#/components/schemas/{name}"

Schema = dict[str, Any]


def describe(routes: Iterable[Route], settings: Settings) -> Schema:
    """Return the OpenAPI document of every route that answers data or a download."""
    shown = [route for route in routes if route.access != "public"]
    answers = {route.name: _answer_type(route) for route in shown if route.twin}
    references, schemas = msgspec.json.schema_components(
        list(answers.values()), schema_hook=_other_schema, ref_template=_REFERENCE
    )
    answered = dict(zip(answers, references, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sessiongraph-web",
            "version": version("sessiongraph-web"),
            "description": "The history of DeepSeek Harness sessions. Every page has a twin of JSON.",
        },
        "paths": {
            route.template + (".json" if route.twin else ""): _methods(route, answered.get(route.name), settings)
            for route in shown
        },
        "components": {
            "schemas": {"Error": _error_schema(), **schemas},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _answer_type(route: Route) -> type[Answer]:
    answer: type[Answer] = get_type_hints(route.view.operate)["return"]
    return answer


def _other_schema(kind: type) -> Schema:
    if kind is Instant:
        return {"type": "string", "pattern": INSTANT}
    raise NotImplementedError(f"an answer holds a {kind.__name__}")


def _methods(route: Route, answered: Schema | None, settings: Settings) -> Schema:
    parameters = [_path_parameter(name) for name in re.findall(r"{(\w+)}", route.template)]
    parameters += [_query_parameter(parameter, settings) for parameter in route.parameters]
    operation = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "responses": {"200": _found(route, answered), "default": _failure(route)},
    }
    if "POST" in route.methods and answered is None:
        operation["responses"] = {
            "303": {"description": "It was begun; see the status"},
            "default": _failure(route),
        }
    return {method.lower(): operation for method in route.methods if method != "HEAD"}


def _path_parameter(name: str) -> Schema:
    schema: Schema = {"type": "string", "minLength": 1}
    if name in PATHS:
        schema["pattern"] = PATHS[name]
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameter(parameter: Parameter, settings: Settings) -> Schema:
    schema = _value(parameter, settings)
    if parameter.many:
        schema = {"type": "array", "items": schema}
    return {"name": parameter.name, "in": "query", "description": parameter.meaning, "schema": schema}


def _value(parameter: Parameter, settings: Settings) -> Schema:
    if parameter.choices:
        return {"enum": list(parameter.choices)}
    if parameter.kind != "integer":
        return {"type": parameter.kind}
    most = getattr(settings, parameter.at_most) if parameter.at_most else MAX_WHOLE
    return {"type": "integer", "minimum": parameter.at_least, "maximum": most}


def _found(route: Route, answered: Schema | None) -> Schema:
    """Describe the answer to a request that went well: its envelope, or bytes of some kind."""
    if answered is None:
        return {"description": route.summary, "content": {"*/*": {}}}
    ok = {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"]}
    return {"description": route.summary, "content": {JSON: {"schema": {"allOf": [ok, answered]}}}}


def _failure(route: Route) -> Schema:
    """Describe an error: JSON from a twin; a page from an address that a browser opens to get a file."""
    schema = {"$ref": _REFERENCE.format(name="Error")}
    content: Schema = {JSON: {"schema": schema}} if route.twin else {"text/html": {}, JSON: {"schema": schema}}
    return {"description": "What went wrong, and what to do", "content": content}


def _error_schema() -> Schema:
    return {
        "type": "object",
        "required": ["ok", "error", "errors", "status", "code"],
        "properties": {
            "ok": {"const": False},
            "error": {"type": "string"},
            "errors": {"type": "array", "items": {"type": "string"}},
            "status": {"type": "integer"},
            "code": {"enum": sorted(CODES)},
            "parameter": {"type": "string", "description": "which parameter is wrong"},
            "candidates": {"type": "array", "items": {"type": "string"}, "description": "ids that begin like it"},
            "logs": {"type": "array", "items": {"type": "integer"}, "description": "values for `log`"},
            "cursor": {"type": "string", "description": "of the same place in today's history"},
            "links": {"type": "array", "items": {"type": "string"}, "description": "the same request of each"},
        },
    }
