"""What a failure of SQLite or of the disk means: damage, which a rebuild heals, or want of space or access."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.language import N_

_NO_ACCESS: Final = N_("The index directory cannot be written; choose another with --index.")
_TROUBLE: Final = {
    sqlite3.SQLITE_FULL: (
        "SESSION_QUERY_INDEX_FAILED",
        N_("The disk that holds the index is full; make room and run `sessiongraph-web index`."),
    ),
    sqlite3.SQLITE_IOERR: (
        "SESSION_QUERY_INDEX_FAILED",
        N_("The disk that holds the index is full or fails; make room and run `sessiongraph-web index`."),
    ),
    sqlite3.SQLITE_READONLY: ("SESSION_QUERY_INDEX_FAILED", _NO_ACCESS),
    sqlite3.SQLITE_PERM: ("SESSION_QUERY_INDEX_FAILED", _NO_ACCESS),
    sqlite3.SQLITE_CANTOPEN: ("SESSION_QUERY_INDEX_FAILED", N_("The index cannot be opened.")),
    sqlite3.SQLITE_NOMEM: ("SESSION_QUERY_INDEX_FAILED", N_("There is not enough memory for the index.")),
    sqlite3.SQLITE_BUSY: ("SESSION_QUERY_INDEX_FAILED", N_("Another program holds the index; try again.")),
    sqlite3.SQLITE_LOCKED: ("SESSION_QUERY_INDEX_FAILED", N_("Another program holds the index; try again.")),
    sqlite3.SQLITE_INTERRUPT: ("SESSION_QUERY_ABORTED", None),
}
_ERRNO: Final = {
    errno.ENOSPC: sqlite3.SQLITE_FULL,
    errno.EDQUOT: sqlite3.SQLITE_FULL,
    errno.EFBIG: sqlite3.SQLITE_FULL,
    errno.EACCES: sqlite3.SQLITE_PERM,
    errno.EPERM: sqlite3.SQLITE_PERM,
    errno.EROFS: sqlite3.SQLITE_READONLY,
}


@contextmanager
def translated() -> Iterator[None]:
    """Raise what SQLite and the disk report as an error of ours: the one border between them and us."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise failure(error) from error


def failure(error: sqlite3.Error | OSError) -> SessionGraphError:
    """Return what a failure of SQLite or the disk means; anything but want of space or access is damage."""
    if isinstance(error, OSError):
        code = _ERRNO.get(error.errno or 0, sqlite3.SQLITE_IOERR)
    else:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return SessionGraphError("SESSIONGRAPH_CORRUPT")
    meaning, detail = _TROUBLE.get(code & 0xFF, ("SESSIONGRAPH_CORRUPT", None))
    return SessionGraphError(meaning, detail)


def is_damage(error: SessionGraphError) -> bool:
    """Say whether a rebuild from the store is what helps."""
    return error.code == "SESSIONGRAPH_CORRUPT"
