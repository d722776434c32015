"""Bad days of a running server: what its readers see meanwhile, and how the index is afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessiongraph_web import access, config
from sessiongraph_web.filters import SearchRequest
from sessiongraph_web.indexer import Run, Wish
from sessiongraph_web.operations import SessionGraph
from tests.builders import Log


def deleted_files(index: Path) -> list[str]:
    """Return the files of an index that are deleted, and that this process holds open."""
    links = [_link(descriptor) for descriptor in Path("/proc/self/fd").iterdir()]
    return [link for link in links if link.startswith(str(index)) and link.endswith("(deleted)")]


def _link(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_nothing_of_a_generation_that_was_replaced_is_held(tmp_path: Path) -> None:
    """What was kept open from before a rebuild is closed by the next question: its disk and memory come back."""
    store, index = tmp_path / "sessions", tmp_path / "index"
    for cwd in ("/w/a", "/w/b"):
        Log(cwd).turn("where is the amberfish?", "here").write(store)
    settings = config.load({"sessions": store, "index": index, "auto_refresh": False})
    Run(settings).execute()
    product = SessionGraph(settings)
    for _ in range(3):
        assert product.search(access.OWNER, SearchRequest(query="amberfish")).hits == 2
        Run(settings).execute(Wish(force=True))
    assert product.search(access.OWNER, SearchRequest(query="amberfish")).hits == 2
    assert deleted_files(index) == []
    product.close()
