"""Index runs in a test's own directory: one command each, and the index that a fresh build would give."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sessiongraph_web import config, generation, indexer, schema
from sessiongraph_web.config import Settings
from sessiongraph_web.generation import Generation
from sessiongraph_web.indexer import Wish
from sessiongraph_web.reports import RunReport
from tests.dumps import dump


def settings(store: Path, index: str = "index", **values: Any) -> Settings:
    """Return the settings for a store and an index beside it."""
    return config.load({"sessions": store, "index": store.parent / index, **values})


def run(store: Path, wish: Wish | None = None, index: str = "index") -> RunReport:
    """Bring the index up to date."""
    return indexer.Run(settings(store, index)).execute(wish)


def content(store: Path) -> dict[str, Any]:
    """Return everything that the index holds."""
    return dump(store.parent / "index")


def fresh(store: Path) -> dict[str, Any]:
    """Return everything that an index built from nothing holds."""
    shutil.rmtree(store.parent / "fresh", ignore_errors=True)
    run(store, index="fresh")
    return dump(store.parent / "fresh")


def live(store: Path) -> Generation:
    """Return the generation that readers see."""
    found = generation.live(store.parent / "index")
    assert found is not None
    return found


def database(store: Path, cwd: str | None = "/w/a") -> Path:
    """Return the file of a workspace as it is named at first."""
    return live(store).file(f"{schema.database_name(cwd)}.db")
