"""How a tool call ended, as the data of its result say it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sessiongraph_web import loose
from sessiongraph_web.language import N_

_END_CHARS: Final = 64  # of output, at its end, that hold an exit code
ERRORS: Final[dict[str, str]] = {
    "ABORTED": N_("stopped"),
    "INVALID_ARGS": N_("wrong arguments"),
    "UNKNOWN_TOOL": N_("no such tool"),
    "FS_NOT_FOUND": N_("file not found"),
    "FS_NOT_OBSERVED": N_("file not read before"),
    "TOOL_OUTCOME_UNKNOWN": N_("outcome unknown"),
    "TOOL_NOT_STARTED": N_("never started"),
}
UNTIMED: Final = frozenset({"TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED"})  # closers: written when nobody knows
_EXIT_CODE: Final = re.compile(r"\[exit code: (-?\d{1,10})\]\s*\Z")


def is_error(result: Mapping[str, Any]) -> bool:
    """Say whether dsh itself calls a result an error."""
    return loose.at(result, "message.isError") is True or bool(loose.mapping(result.get("error")))


def error_code(result: Mapping[str, Any]) -> str | None:
    """Return the code of the error that a result tells of, if it has one."""
    return loose.string(loose.at(result, "error.code"))


def exit_code(result: Mapping[str, Any]) -> int:
    """Return the exit code that a result's output ends with, 0 where it ends with none."""
    found = _EXIT_CODE.search(_last_text(loose.at(result, "message.content"))[-_END_CHARS:])
    return int(found[1]) if found else 0


def has_failed(result: Mapping[str, Any]) -> bool:
    """Say whether a call failed: a command that fails is no error to dsh, but it is a failure to its reader."""
    return is_error(result) or exit_code(result) != 0


def _last_text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = map(loose.mapping, reversed(loose.items(content)))
    texts = (loose.string(block.get("text")) for block in blocks if block.get("type") == "text")
    return next(filter(None, texts), "")
