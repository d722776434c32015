"""The same wall at the edges: over HTTP byte for byte, and on the command line word for word."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from click.testing import CliRunner
from datasette.app import Datasette

from sessiongraph_web import access, cli
from sessiongraph_web.access import Caller
from sessiongraph_web.web import routes
from tests import scopes
from tests.asgi import Answer, Pairs, ask, bearer
from tests.world import HOME, World, two_workspaces

STRANGERS: Final = ("workspace", "session", "session with descendants")
CONDITIONS: Final[tuple[Pairs, ...]] = (
    (),
    (("if-none-match", "*"), ("range", "bytes=0-9")),
    (("accept", "application/json"), ("accept-encoding", "gzip"), ("last-event-id", "0")),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return two_workspaces(tmp_path_factory.mktemp("edges")).build()


@pytest_asyncio.fixture
async def served(world: World) -> AsyncIterator[Datasette]:
    datasette = world.serve()
    await datasette.invoke_startup()
    application = datasette.app()
    datasette.app = lambda: application  # type: ignore[method-assign]
    yield datasette
    await datasette.invoke_shutdown()


def _addresses(session_id: str) -> Iterator[str]:
    """Yield every address of ours about a session, with its twin."""
    for route in routes.ROUTES:
        if "{id}" in route.template:
            path = route.template.format(id=session_id, seq=3, sha256="0" * 64)
            yield from (path, f"{path}.json") if route.twin else (path,)


@pytest.mark.asyncio
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
@pytest.mark.parametrize("who", STRANGERS)
async def test_foreign_hidden_and_missing_are_the_same_bytes(
    served: Datasette, world: World, who: str, method: str
) -> None:
    """Status, every header and the body, whatever the method and the conditions of the request."""
    caller = access.workspaces(HOME)
    if who != "workspace":
        caller = Caller("session", frozenset({HOME}), world.log_ids["home"], who.endswith("descendants"))
    hidden = {"workspace": (), "session": ("fork", "subagent", "sibling")}.get(who, ("sibling",))
    outside = [world.ids[role] for role in ("foreign", "foreign-fork", "nowhere", *hidden)]
    granted = bearer(world.token(caller))
    differing = {}
    for given in CONDITIONS:
        headers = [*granted, *given]
        missing = [
            await ask(served, path, method=method, headers=headers) for path in _addresses("session-" + "e" * 32)
        ]
        for session_id in outside:
            for path, expected in zip(_addresses(session_id), missing, strict=True):
                told = await ask(served, path, method=method, headers=headers)
                if told != expected or told.status not in (404, 405):
                    differing[path] = told, expected
    assert differing == {}


@pytest.mark.asyncio
async def test_the_owner_has_other_bytes(served: Datasette, world: World) -> None:
    """So that the comparison can fail: to him each of these addresses is something else."""
    headers = bearer(world.token(access.OWNER))
    found: list[Answer] = [
        await ask(served, path, method="HEAD", headers=headers) for path in _addresses(world.ids["foreign"])
    ]
    assert {answer.status for answer in found} == {200, 404}
    assert [answer.status for answer in found].count(404) == 1  # the attachment that nothing cites


COMMANDS: Final = (
    "session {id}",
    "session {id} --json --last",
    "event {id} 3 --before 2 --after 2",
    "event {id} 3 --json",
    "trace {id}",
    "trace {id} --json",
)
LISTS: Final = (
    f"search {scopes.ASKED}",
    f"search {scopes.SECRET} --json",
    f"search {scopes.ASKED} --kinds user,assistant,tool_call,tool_result,title --json --limit 100",
    f"search {scopes.ASKED} --match text",
    "timeline --limit 100",
    "timeline --json --sort activity",
    "workspaces",
    "workspaces --json",
    "status --ledger",
    "status --json",
)


@pytest.mark.parametrize("target", scopes.TARGETS)
def test_the_command_line_sees_its_workspace_alone(tmp_path: Path, target: str) -> None:
    """With `--workspace`, a foreign session is refused as a missing one, and no list or count knows of it."""
    own, foreign = scopes.workspaces(target, tmp_path)
    places = []
    for name in ("alone", "beside"):
        store = tmp_path / name / "sessions"
        scopes.write(store, scopes.own_logs(own).values())
        if name == "beside":
            scopes.write(store, scopes.foreign_logs(foreign))
        places.append(["--sessions", str(store), "--index", str(tmp_path / name / "index")])
    for command in COMMANDS:
        told = {
            _run(command.format(id=id_), own, places[1]).replace(id_, "")
            for id_ in (scopes.ALONE, scopes.CHILD, scopes.MISSING)
        }
        assert told == {"66 sessiongraph-web: There is no such session here.\n"}, command
    for command in LISTS:
        told_twice = [_run(command, own, place) for place in places]
        assert _settled(told_twice[0]) == _settled(told_twice[1]), command
        assert scopes.SECRET not in told_twice[1].replace(f'"query": "{scopes.SECRET}"', "")


def _run(command: str, workspace: str, places: list[str]) -> str:
    """Run a command in a workspace; return its exit code and what it printed, less the offer of other spellings:
    who has the command line is the owner."""
    result = CliRunner().invoke(cli.main, [*command.split(), "--workspace", workspace, *places])
    printed = [line for line in result.output.splitlines(keepends=True) if "under another name" not in line]
    again = shlex.join(places)  # of the command that shows more, which says where as it was said
    return f"{result.exit_code} {''.join(line.replace(again, '') for line in printed)}"


def _settled(printed: str) -> str:
    """Return what was printed less the times of this moment."""
    kept = (line for line in printed.splitlines() if "refreshed" not in line and "took_ms" not in line)
    return "\n".join(line.partition(" (")[0] if " ms)" in line else line for line in kept)
