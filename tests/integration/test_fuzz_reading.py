"""A few hundred mutated logs: nothing but our own error is raised, and both readings agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import fuzz_logs
from tests.builders import Log
from tests.shared import shared_folders


def test_mutated_logs_raise_nothing(tmp_path: Path) -> None:
    """Logs of every generation survive mutation of their bytes and lines."""
    sources = []
    for version in (0, 3, 4):
        log = Log(version=version, id=f"v{version}").turn(
            "请检查", "done " * 50, [("bash", '{"a":[1]}', "out\n" * 99)]
        )
        log.title("T")
        sources.append(log.write(tmp_path))
    seen, _ = fuzz_logs.run(sources, 150, seed=3, folder=tmp_path)
    assert seen["full: events"] > 150


@pytest.mark.shared
def test_mutated_genuine_logs_raise_nothing(tmp_path: Path) -> None:
    """So do the logs that dsh wrote."""
    sources = shared_folders("genuine", "**/session*.jsonl.zstd")
    seen, _ = fuzz_logs.run(sources, 200, seed=2, folder=tmp_path)
    assert seen["full: events"] > 200
