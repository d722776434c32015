"""Pages of a bounded answer: the offset, carried by a cursor that is bound to caller, request and index."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from sessiongraph_web import cursors, literal
from sessiongraph_web.access import Caller
from sessiongraph_web.errors import SessionGraphError

_EPOCH_LENGTH: Final = 16


class Paging:
    """Where a page begins, and the cursors of the pages after it.

    `epoch` stands for the state of the index that the answer was read from: a cursor from another state is
    STALE_CURSOR, with the `cursor` of the same place in today's index; one that was altered, or made for another
    caller or request, is INVALID_CURSOR.
    """

    def __init__(self, operation: str, caller: Caller, request: Any, epoch: Any, *, key: bytes) -> None:
        plain = {name: _normal(getattr(request, name)) for name in request.__slots__ if name != "cursor"}
        self._key = key
        self._bound = _digest([operation, caller.key, plain])
        self._epoch = _digest(epoch)[:_EPOCH_LENGTH]
        self.offset = 0 if request.cursor is None else self._open(request.cursor)

    def cursor(self, offset: int | None) -> str | None:
        """Return the cursor of the page at an offset, or None for none."""
        if offset is None:
            return None
        return cursors.sign({"bound": self._bound, "epoch": self._epoch, "offset": offset}, self._key)

    def _open(self, text: str) -> int:
        payload = cursors.open_cursor(text, self._key)
        offset = payload.get("offset")
        if payload.get("bound") != self._bound or type(offset) is not int or offset < 0:
            raise SessionGraphError("SESSION_QUERY_INVALID_CURSOR")
        if payload.get("epoch") != self._epoch:
            raise SessionGraphError("SESSION_QUERY_STALE_CURSOR", cursor=self.cursor(offset))
        return offset


def _normal(value: Any) -> Any:
    """Return a value of a request so that equal questions are equal: neither the order of several values nor the
    white space round words asks for anything else."""
    if isinstance(value, tuple):
        return sorted(value)
    return literal.collapse(value).strip(" ") if isinstance(value, str) else value


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()
