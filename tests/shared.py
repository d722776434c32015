"""Where the shared corpus lies, for tests that read it."""

from __future__ import annotations

import json
import os
from collections.abc import Container
from pathlib import Path
from typing import Any

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared"
_FOUND = Path(os.environ.get("SESSIONGRAPH_SHARED", _BESIDE))

SHARED: Path | None = _FOUND if (_FOUND / "genuine").is_dir() else None
MISSING = "the shared corpus is not beside the repository (set SESSIONGRAPH_SHARED)"


def shared_folders(relative: str, pattern: str = "*") -> list[Path]:
    """Return what lies in a folder of the shared corpus, sorted; nothing where it is missing."""
    return sorted((SHARED / relative).glob(pattern)) if SHARED else []


def recorded_cases(files: Container[str]) -> list[Any]:
    """Return the recorded cases of some vector files, as parameters named after file and case."""
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}")
        for path in shared_folders("vectors/cases", "*.json")
        if path.stem in files
        for case in json.loads(path.read_text("utf-8"))
    ]
