"""The commands that give access and take it back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from sessiongraph_web import access, commands, config, console, filters, language
from sessiongraph_web.access import Caller
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.language import gettext
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.shell import opened, places, show_json
from sessiongraph_web.tokens import FILE as PRIVATE
from sessiongraph_web.tokens import Tokens

DAY_SECONDS: Final = 86_400


@click.group(cls=commands.Group)
def token() -> None:
    """Give others access to exact workspaces or one session, and take it back."""


@token.command("create")
@places
@click.option("--label", default="", help="What the token is for; shown in lists.")
@click.option("--workspace", multiple=True, help="An exact working directory that it opens; repeatable.")
@click.option("--session", "session_id", help="The one session that it opens.")
@click.option(
    "--descendants", is_flag=True, help="With that session's forks and subagents in the same workspace."
)
@click.option("--owner", is_flag=True, help="It opens everything, as you do.")
@click.option("--days", type=click.IntRange(1, 3650), default=30, show_default=True, help="How long it works.")
def token_create(sessions: Path | None, index: Path | None, label: str, days: int, **grant: Any) -> None:
    """Make a bearer token and print it; it is kept as a hash and cannot be shown again.

    Example: sessiongraph-web token create --workspace /home/me/shop --label ci
    """
    with opened(config.load({"sessions": sessions, "index": index})) as product:
        expires_at = int((time.time() + days * DAY_SECONDS) * 1000)
        secret = product.tokens.create(_grantee(product, **grant), label, expires_at)
    click.echo(secret)


@token.command("list")
@places
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def token_list(sessions: Path | None, index: Path | None, as_json: bool) -> None:
    """List who was given access.

    Example: sessiongraph-web token list
    """
    with _tokens(sessions, index) as tokens:
        found = tokens.list()
    if as_json:
        with language.spoken(language.ENGLISH):
            show_json([console.token_facts(given) for given in found])
        return
    if not found:
        command = "sessiongraph-web token create --help"
        click.echo(gettext("Nobody was given access yet; `%(command)s` says how.", command=command))
    for given in found:
        click.echo("  ".join(console.token_facts(given).values()))


@token.command("revoke")
@places
@click.argument("token_id")
def token_revoke(sessions: Path | None, index: Path | None, token_id: str) -> None:
    """End a grant, and every sign-in made with it, at once.

    Example: sessiongraph-web token revoke 3fa9c0d1e2b4
    """
    with _tokens(sessions, index) as tokens:
        if not tokens.revoke(token_id):
            raise SessionGraphError(
                "SESSION_QUERY_INVALID_FILTER", "No grant in force has this id; see `token list`."
            )


@contextmanager
def _tokens(sessions: Path | None, index: Path | None) -> Iterator[Tokens]:
    opened = Tokens(config.load({"sessions": sessions, "index": index}).index / PRIVATE)
    try:
        yield opened
    finally:
        opened.close()


def _grantee(
    product: SessionGraph, workspace: tuple[str, ...], session_id: str | None, descendants: bool, owner: bool
) -> Caller:
    """Return the caller that a token is for; exactly one kind of grant must have been asked."""
    if sum((bool(workspace), session_id is not None, owner)) != 1:
        raise click.UsageError(
            gettext("Say what the token opens: --workspace (repeatable), or --session, or --owner.")
        )
    if owner:
        return access.OWNER
    if session_id is None:
        return access.workspaces(*workspace)
    summary = product.session(access.OWNER, filters.SessionRequest(id=session_id, limit=1)).session
    if summary.cwd is None:
        raise SessionGraphError(
            "SESSION_QUERY_INVALID_FILTER", "A session without a workspace is the owner's alone."
        )
    return Caller("session", frozenset((summary.cwd,)), summary.log_id, descendants)
