"""A bounded memory of what was made once: what was asked for longest ago is forgotten first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """Values by key that together weigh no more than `most`; what alone weighs more is not kept. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._found: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self.weight = 0

    def get(self, key: Hashable) -> T | None:
        """Return what is kept under a key, None if it is not (any more)."""
        with self._lock:
            found = self._found.get(key)
            if found is None:
                return None
            self._found.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: T, weight: int) -> None:
        """Keep a value, and forget as much of others as it needs."""
        if weight > self._most:
            return
        with self._lock:
            self.weight += weight - self._found.pop(key, (value, 0))[1]
            self._found[key] = (value, weight)
            while self.weight > self._most:
                self.weight -= self._found.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._found.clear()
            self.weight = 0
