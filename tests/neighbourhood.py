"""A workspace beside others whose names are almost its own, for tests of what a tool tells whom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from sessiongraph_web import config, indexer
from sessiongraph_web.operations import SessionGraph
from tests.builders import Log

ASKED: Final = "heron"  # in every session
TWIN: Final = "session-twin"
FOREIGN: Final = {
    "parent folder": "/w",
    "child folder": "/w/a/b",
    "trailing slash": "/w/a/",
    "other case": "/w/A",
    "dots": "/w/./a",
    "no cwd": None,
}


def secret(name: str) -> str:
    """Return a word that only one foreign session holds."""
    return "secret" + re.sub("[^a-z]", "", name)


class Neighbourhood:
    """A workspace beside others whose names are almost its own, each with a session that has a secret."""

    def __init__(self, folder: Path) -> None:
        self.store, self.index = folder / "sessions", folder / "index"
        own = Log("/w/a", id="session-own").turn(f"where is the {ASKED}?", "It flew.")
        own.write(self.store)
        Log("/w/a", id="session-same", parent=own.id).turn(f"the {ASKED}", "again").write(self.store)
        for name, cwd in FOREIGN.items():
            log = Log(cwd, id=f"session-{secret(name)}", parent=own.id)
            log.turn(f"the {ASKED} {secret(name)}", secret(name)).title(secret(name))
            log.write(self.store)
        Log("/w/a", id=TWIN).turn(f"the {ASKED}", "mine").write(self.store)
        Log("/w/b", id=TWIN).turn(f"the {ASKED} secrettwin", "secrettwin").write(self.store)
        Log(None, id="session-nowhere").turn(f"the {ASKED}", "nowhere").turn("on", "on").write(self.store)
        twice = Log("/w/a", id="session-twice")
        twice.turn(f"the {ASKED}", "first").write(self.store)
        moved = twice.folder(self.store)
        copy = self.store / "--elsewhere--" / moved.name
        copy.mkdir(parents=True)
        for file in moved.iterdir():
            (copy / file.name).write_bytes(file.read_bytes())

    def open(self, **values: Any) -> SessionGraph:
        """Index the store and return the product on it."""
        settings = config.load({"sessions": self.store, "index": self.index, "auto_refresh": False, **values})
        indexer.Run(settings).execute()
        return SessionGraph(settings)
