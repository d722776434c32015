"""The ZIP format as a stream: bytes that wait to be sent, and what is said of each entry."""

from __future__ import annotations

import stat
import time
import zipfile
from typing import Final

LEVEL: Final = 1  # of DEFLATE: level 6 makes a seventh less of it and takes three times as long
_FIRST_YEAR, _LAST_YEAR = 1980, 2107  # what a ZIP can date
_MODE: Final = (stat.S_IFREG | 0o600) << 16


class Sink:
    """What the ZIP writer writes to: bytes that wait to be sent. It cannot seek."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._waiting.append(data)
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        taken = b"".join(self._waiting)
        self._waiting.clear()
        return taken


def entry(name: str, mtime: float, *, stored: bool) -> zipfile.ZipInfo:
    """Return the head of an entry; a `stored` one is not compressed again."""
    info = zipfile.ZipInfo(name, _date(mtime))
    info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
    info._compresslevel = LEVEL  # type: ignore[attr-defined]  # no public name before Python 3.13
    info.external_attr = _MODE
    info.create_system = 3  # Unix, wherever this runs: the mode is one
    return info


def _date(mtime: float) -> tuple[int, int, int, int, int, int]:
    """Return a time as ZIP writes it, in UTC; what lies outside its range becomes the nearest it can hold."""
    try:
        moment = time.gmtime(mtime)[:6]
    except (OverflowError, OSError, ValueError):
        moment = (_FIRST_YEAR - 1 if mtime < 0 else _LAST_YEAR + 1, 1, 1, 0, 0, 0)
    if moment[0] < _FIRST_YEAR:
        return (_FIRST_YEAR, 1, 1, 0, 0, 0)
    return moment if moment[0] <= _LAST_YEAR else (_LAST_YEAR, 12, 31, 23, 59, 58)
