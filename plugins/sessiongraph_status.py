"""The routes of home, workspaces, status and static files; our commands; what templates need anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from datasette import hookimpl
from jinja2 import Environment

from sessiongraph_web.web import render, routes


@hookimpl
def register_routes() -> list[tuple[str, Callable[..., Any]]]:
    return routes.for_plugin("status")


@hookimpl
def prepare_jinja2_environment(env: Environment) -> None:
    render.install(env)


@hookimpl
def register_commands(cli: click.Group) -> None:
    from sessiongraph_web.cli import main

    cli.add_command(main, "sessiongraph")
