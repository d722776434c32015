"""The folder names that dsh derives from a cwd and from a session id."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_MAX_KEY: Final = 251  # characters between the dashes of a project folder
_LITERAL: Final = re.compile(r"[A-Za-z0-9._-]")


def project_key(cwd: str) -> str:
    """Return the folder name under which dsh keeps the sessions of a cwd (many cwds may share one)."""
    key, in_separator = "", False
    for unit in _utf16_units(cwd):
        if unit in "/\\:":
            key += "" if in_separator else "-"
        else:
            key += unit if _LITERAL.fullmatch(unit) else f"~{ord(unit):04X}"
        in_separator = unit in "/\\:"
    return f"--{key.lstrip('-')[:_MAX_KEY] or 'root'}--"


def folder_name(session_id: str) -> str:
    """Return the folder name that dsh gives a session id; no two ids share one."""
    if session_id in (".", ".."):
        return "~002E" * len(session_id)
    return "".join(unit if _LITERAL.fullmatch(unit) else f"~{ord(unit):04X}" for unit in _utf16_units(session_id))


def _utf16_units(text: str) -> Iterator[str]:
    raw = text.encode("utf-16-le", "surrogatepass")
    return (chr(raw[at] | raw[at + 1] << 8) for at in range(0, len(raw), 2))
