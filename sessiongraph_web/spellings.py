"""Spellings of one directory: workspaces of their own here, though a person may mean the same place."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable


def others(cwd: str, known: Iterable[str | None]) -> list[str]:
    """Return which known directories may be `cwd` under another name: links, dots, slashes, case or accents."""
    meant = _meant(cwd)
    return [other for other in known if other is not None and other != cwd and _meant(other) == meant]


def _meant(cwd: str) -> str:
    """Return what is left of a directory's name when everything is gone that often differs by accident."""
    try:
        real = os.path.realpath(cwd.replace("\\", "/"))
    except ValueError:  # no path of this system: nothing is gone
        return cwd
    return unicodedata.normalize("NFC", real).casefold()
