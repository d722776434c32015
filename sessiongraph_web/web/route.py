"""What a route is: an address, what it takes, and which view answers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sessiongraph_web.web import http

Plugin = Literal["search", "session", "trace", "timeline", "export", "status"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter, and what it means to who reads `/openapi.json`.

    `at_most` names the setting that bounds a number, `at_least` is the other bound.
    """

    name: str
    meaning: str
    kind: Literal["string", "integer", "boolean"] = "string"
    many: bool = False
    choices: tuple[str, ...] = ()
    at_least: int = 0
    at_most: Literal["max_limit", "read_window_max"] | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """One address of the product.

    `pattern` is anchored and takes an id as one raw path segment (`id`); with `twin`, the same address with
    `.json` before the query string answers the same thing as data (`format`).
    """

    name: str
    template: str
    pattern: str
    plugin: Plugin
    summary: str
    view: http.View
    operation: str | None = None
    parameters: tuple[Parameter, ...] = ()
    methods: tuple[str, ...] = ("GET", "HEAD")
    access: http.Access = "caller"
    twin: bool = True
