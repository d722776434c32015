"""The commands that lend agents the model tools."""

from __future__ import annotations

import asyncio
import importlib
import os
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

import click
import msgspec

from sessiongraph_web import agents, commands, config
from sessiongraph_web.agents import Agent
from sessiongraph_web.errors import CODES, SessionGraphError
from sessiongraph_web.indexer import Wish
from sessiongraph_web.language import gettext
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.screen import safe
from sessiongraph_web.shell import offer_spellings, opened, places
from sessiongraph_web.tools import Toolbox
from sessiongraph_web.toolschemas import TOOLS

DEFAULT_MCP_PORT: Final = 8643


@click.command(cls=commands.Command)
@places
@click.argument("name", type=click.Choice(list(TOOLS)))
@click.option("--caller", "session_id", help="Id of the session that calls; its workspace is what it may see.")
@click.option("--workspace", help="Call without a session, for this exact working directory.")
@click.option("--args", "arguments", default="{}", help="The arguments, as a JSON object.")
def tool(
    sessions: Path | None,
    index: Path | None,
    name: str,
    session_id: str | None,
    workspace: str | None,
    arguments: str,
) -> None:
    """Call a model tool and print what a model would read.

    Example: sessiongraph-web tool session_search --caller 02b75564-7c1d --args '{"query": "广告"}'
    """
    settings = config.load({"sessions": sessions, "index": index, "auto_refresh": TOOLS[name].is_reader})
    with opened(settings) as product:
        result = Toolbox(product, _agent(product, session_id, workspace)).call(name, _json_object(arguments))
    text = safe(result.text) if sys.stdout.isatty() else result.text
    click.echo(text, err=result.code is not None)
    if result.code is not None:
        raise SystemExit(CODES[result.code].exit_code)


@click.command(cls=commands.Command)
@places
@click.option("--workspace", help="The exact working directory to serve; default the current one.")
@click.option("--http", is_flag=True, help="Serve on this machine over HTTP, for clients with a token.")
@click.option("--port", default=DEFAULT_MCP_PORT, type=click.IntRange(1, 65535), help="Port to listen on.")
def mcp(sessions: Path | None, index: Path | None, workspace: str | None, http: bool, port: int) -> None:
    """Serve the model tools of one workspace to an agent that speaks MCP.

    Example: sessiongraph-web mcp --workspace /home/me/shop
    """
    served = _mcp()
    product = SessionGraph(config.load({"sessions": sessions, "index": index}))
    try:
        cwd = served.workspace(workspace, os.environ)
        offer_spellings(product, cwd)
        product.refresher.request(Wish())
        server = served.server(product, cwd)
        if http:
            said = gettext(
                "Serving %(directory)s at %(address)s; make a token with `%(command)s`",
                directory=safe(cwd),
                address=f"http://{served.HOST}:{port}{served.PATH}",
                command=f"sessiongraph-web token create --workspace {shlex.quote(safe(cwd))}",
            )
            click.echo(said, err=True)
            asyncio.run(served.serve_http(server, product, cwd, port))
        else:
            asyncio.run(served.serve_stdio(server))
    finally:
        product.close()


def _agent(product: SessionGraph, session_id: str | None, workspace: str | None) -> Agent:
    """Return whom a tool is called for: a session, a workspace, or (with neither) the owner."""
    if session_id is not None and workspace is not None:
        raise click.UsageError(gettext("Say who calls: --caller or --workspace, not both."))
    return Agent(workspace) if session_id is None else agents.agent_of(product, session_id)


def _json_object(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise click.UsageError(gettext("--args must be a JSON object.")) from error


def _mcp() -> ModuleType:
    """Return the server module, whose SDK is an extra."""
    try:
        return importlib.import_module("sessiongraph_web.mcp")
    except ModuleNotFoundError as error:
        raise SessionGraphError(
            "SESSION_QUERY_INVALID_CONFIG", "This needs an extra: pip install 'sessiongraph-web[mcp]'"
        ) from error
