"""What the README says to agents: its configurations parse and start what they name, its example is true."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from sessiongraph_web import cli, config, demo, indexer, lending, mcp
from sessiongraph_web.agents import Agent
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.tools import Toolbox
from sessiongraph_web.toolschemas import TOOLS

README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
AGENTS = README.split("\n## Agents\n")[1].split("\n## ")[0]
PARSERS = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}


def snippets(language: str) -> list[str]:
    """Return the code blocks of a language in the section."""
    return re.findall(rf"```{language}\n(.*?)```", AGENTS, re.DOTALL)


def servers() -> Iterator[dict[str, Any]]:
    """Yield each server that a configuration describes."""
    for language, parse in PARSERS.items():
        for text in snippets(language):
            yield from _described(parse(text))


def _described(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and value.keys() & {"command", "url"}:
        yield value
        return
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _described(inner)


def test_each_way_of_starting_is_shown() -> None:
    """There is a configuration for JSON over pipes and HTTP, for TOML, and for dsh."""
    assert [sorted(server.keys() & {"command", "url"}) for server in servers()] == [
        ["command"],
        ["url"],
        ["command"],
        ["command"],
    ]


@pytest.mark.parametrize("server", [server for server in servers() if "command" in server])
def test_a_configuration_starts_the_server(server: dict[str, Any]) -> None:
    """The command exists and takes these words."""
    assert server["command"] == "sessiongraph-web"
    command, *words = server["args"]
    context = cli.main.commands[command].make_context(command, list(words))
    assert context.params["workspace"] == "/home/me/shop"


def test_the_address_is_where_the_server_listens() -> None:
    """The URL is that of the default port."""
    (url,) = [server["url"] for server in servers() if "url" in server]
    assert url == f"http://{mcp.HOST}:{lending.DEFAULT_MCP_PORT}{mcp.PATH}"


def test_the_example_is_what_a_model_reads(tmp_path: Path) -> None:
    """The text in the README is the tool's answer over the made-up sessions, ids and times aside."""
    demo.write(tmp_path / "sessions")
    settings = config.load(
        {"sessions": tmp_path / "sessions", "index": tmp_path / "index", "auto_refresh": False}
    )
    indexer.Run(settings).execute()
    product = SessionGraph(settings)
    query = json.loads(re.findall(r"calls `session_search` with `(.*?)`", AGENTS)[0])
    answer = Toolbox(product, Agent(demo.ADS)).call("session_search", query)
    product.close()
    (shown,) = snippets("text")
    assert _timeless(answer.text) == _timeless(shown.rstrip("\n"))


def _timeless(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "…", text)


def test_every_tool_is_named() -> None:
    """The section names each tool that a model may be given, and the commands in it exist."""
    assert {name for name in TOOLS if f"`{name}`" in AGENTS} == TOOLS.keys() - {"sessiongraph_index"}
    for command in re.findall(r"`sessiongraph-web (\w+)", AGENTS):
        assert isinstance(cli.main.commands[command], click.Command)
