"""Rows of CSV in which no spreadsheet takes a text for a formula."""

from __future__ import annotations

import re
from typing import Final

GUARD: Final = "'"  # what a spreadsheet takes for the mark of a text

_CELL: Final = re.compile(r'(^|,)(?:"((?:[^"]|"")*)"|([^,"\r\n]*))')
_FORMULA: Final = re.compile(r"[=+\-@\t\r\n＝＋－＠]")  # spreadsheets take the wide ones as well
_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE)


def inert(row: str) -> str:
    """Return one row of CSV, a guard before each text that would begin a formula."""
    return _CELL.sub(_guarded, row)


def _guarded(cell: re.Match[str]) -> str:
    before, quoted, plain = cell.groups()
    text = plain if quoted is None else quoted
    if not _FORMULA.match(text) or _NUMBER.fullmatch(text):
        return cell[0]
    return f"{before}{GUARD}{text}" if quoted is None else f'{before}"{GUARD}{text}"'
