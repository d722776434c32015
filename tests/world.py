"""A store of several workspaces behind a served product, for tests of who may see what."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from datasette.app import Datasette

from sessiongraph_web import config, indexer, schema, tokens
from sessiongraph_web.access import Caller
from sessiongraph_web.tokens import Tokens
from sessiongraph_web.web import app
from tests.builders import Log

HOME: Final = "/w/a"
FOREIGN: Final = "/w/bravo-hidden"
HOME_WORD: Final = "amberfish"
SIBLING_WORD: Final = "copperfinch"
FOREIGN_WORD: Final = "bluewhale"
FOREIGN_MARK: Final = "zephyrstone"  # beside the word in every foreign text, and never asked for
NOWHERE_WORD: Final = "greyheron"  # in the session without a cwd
DAY_SECONDS: Final = 86_400
FOREIGN_ENTRIES: Final = 1237  # a number that occurs nowhere by chance


@dataclass
class World:
    """What was stored: ids by role, and where."""

    store: Path
    index: Path
    ids: dict[str, str] = field(default_factory=dict)
    log_ids: dict[str, int] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, object]:
        """Return the plugin options that serve this world as it stands."""
        return {
            "sessions": str(self.store),
            "index": str(self.index),
            "auto_build": False,
            "auto_refresh": False,
        }

    def write(self, role: str, log: Log) -> Log:
        """Put a log into the store under a role."""
        path = log.write(self.store)
        self.ids[role] = log.id
        self.log_ids[role] = schema.log_id(str(path.relative_to(self.store)).encode())
        return log

    def build(self) -> World:
        """Index what was written."""
        settings = config.load(self.options)
        report = indexer.Run(settings).execute()
        assert report.failed == 0
        return self

    def token(self, caller: Caller, *, seconds: float = 3600, label: str = "") -> str:
        """Return a bearer token for a caller; with a negative time it expired so long ago."""
        made_at = time.time() - DAY_SECONDS
        private = Tokens(self.index / tokens.FILE, clock=lambda: made_at)
        try:
            return private.create(caller, label, int((time.time() + seconds) * 1000))
        finally:
            private.close()

    def revoke(self, label: str) -> None:
        """End the grants that have this label."""
        private = Tokens(self.index / tokens.FILE)
        found = [private.revoke(token.id) for token in private.list() if token.label == label]
        assert any(found)
        private.close()

    def serve(self) -> Datasette:
        """Return a Datasette instance on this world; call `invoke_startup` before use."""
        return app.make(self.options)


def home_only(directory: Path) -> World:
    """Make a world of one workspace: a session, its fork, a subagent of it, and an unrelated one."""
    world = World(directory / "sessions", directory / "index")
    main = _talk(HOME, HOME_WORD)
    main.title(f"About the {HOME_WORD}")
    world.write("home", main)
    world.write("fork", Log(HOME, seeded_from=main).turn("go on", f"with the {HOME_WORD}"))
    world.write("subagent", Log(HOME, parent=main.id, origin="subagent").turn("look", f"found an {HOME_WORD}"))
    world.write("sibling", _talk(HOME, SIBLING_WORD))
    return world


def two_workspaces(directory: Path) -> World:
    """Make the same beside a foreign workspace and a session without cwd."""
    return add_foreign(home_only(directory))


def add_foreign(world: World) -> World:
    """Put beside what is there a foreign workspace and a session without cwd."""
    both = f"{FOREIGN_WORD} {FOREIGN_MARK}"
    foreign = _talk(FOREIGN, both)
    foreign.title(f"About the {both}")
    for number in range(FOREIGN_ENTRIES):
        foreign.user(f"{both} number {number}")
    world.write("foreign", foreign)
    world.write("foreign-fork", Log(FOREIGN, seeded_from=foreign).turn("go on", f"with the {both}"))
    world.write("nowhere", _talk(None, NOWHERE_WORD))
    return world


def _talk(cwd: str | None, word: str) -> Log:
    arguments = f'{{"command": "grep {word} notes"}}'
    log = Log(cwd)
    log.turn(f"where is the {word}?", f"The {word} is here.", [("bash", arguments, f"notes: a {word}")])
    return log
