"""Where the shared corpus lies, for tests that read it."""

from __future__ import annotations

import os
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2] / "shared"
_FOUND = Path(os.environ.get("SESSIONGRAPH_SHARED", _BESIDE))

SHARED: Path | None = _FOUND if (_FOUND / "genuine").is_dir() else None
MISSING = "the shared corpus is not beside the repository (set SESSIONGRAPH_SHARED)"


def shared_folders(relative: str, pattern: str = "*") -> list[Path]:
    """Return what lies in a folder of the shared corpus, sorted; nothing where it is missing."""
    return sorted((SHARED / relative).glob(pattern)) if SHARED else []
