"""Keeps the index fresh while a server runs: one background thread, asked by queries and by people."""

from __future__ import annotations

import threading
import time
from typing import Final

from sessiongraph_web import generation, indexer
from sessiongraph_web.config import Settings
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.indexer import Progress, Wish
from sessiongraph_web.standstill import Standstill

QUERY_WAIT_SECONDS: Final = 0.05  # the longest that a query waits for the refresh it triggered


class Refresher:
    """Runs index runs one after another in a thread of its own; `look` never waits long."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.progress: Progress | None = None
        self.problem: str | None = None
        self._condition = threading.Condition()
        self._wanted: Wish | None = None
        self._running = False
        self._closed = False
        self._finished_at = float("-inf")
        self._rounds = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._standstill: Standstill | None = None

    @property
    def running(self) -> bool:
        return self._running

    @property
    def rounds(self) -> int:
        """How many looks and runs have ended."""
        return self._rounds

    def look(self) -> None:
        """Before a query: look for new events if the last look is too old, and wait a moment for the answer."""
        if self.glance():
            with self._condition:
                self._condition.wait_for(lambda: self._is_fresh() or self._closed, QUERY_WAIT_SECONDS)

    def glance(self) -> bool:
        """While somebody watches: look for new events if the last look is too old; say whether that was so."""
        if not self.settings.auto_refresh or self._is_fresh():
            return False
        if generation.live(self.settings.index) is None and not self.settings.auto_build:
            return False
        self._ask(Wish())
        return True

    def request(self, wish: Wish) -> None:
        """Ask for a run that begins after this call."""
        self._ask(wish)

    def heal(self, timeout: float) -> bool:
        """Have every file looked at and what is damaged rebuilt, and wait; say whether that ended in time."""
        with self._condition:
            before = self._rounds + self._running
            self._ask(Wish(verify=True))
            return self._condition.wait_for(lambda: self._rounds > before or self._closed, timeout)

    def close(self) -> None:
        """Stop after the log that is being read, and wait for the thread."""
        self._stop.set()
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._thread:
            self._thread.join()

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._finished_at < max(self.settings.freshness_seconds, 0.001)

    def _ask(self, wish: Wish) -> None:
        with self._condition:
            if self._closed:
                return
            self._wanted = wish.and_also(self._wanted or Wish())
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="sessiongraph-refresher", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def _work(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._wanted is not None or self._closed)
                if self._closed:
                    return
                wish, self._wanted, self._running = self._wanted or Wish(), None, True
            self.problem = self._run(wish)
            with self._condition:
                self._running, self.progress = False, None
                self._rounds += 1
                self._finished_at = time.monotonic()
                self._condition.notify_all()

    def _run(self, wish: Wish) -> str | None:
        """Run once and return what went wrong as a sentence: the thread goes on whatever a run meets."""
        try:
            if wish == Wish() and self._is_still():
                return None
            run = indexer.Run(self.settings, stop=self._stop, on_progress=self._tell, aside=True)
            run.execute(wish)
            self._standstill = run.standstill
        except SessionGraphError as error:
            return error.detail
        except Exception as error:  # noqa: BLE001 - a background thread has nobody to raise to; status shows it
            return f"{type(error).__name__} during an index run; the old index is still served"
        return None

    def _is_still(self) -> bool:
        """Say whether nothing changed since a run that had nothing to do, and note that this was looked at."""
        found, self._standstill = self._standstill, None
        if found is None or not found.holds(self.settings.index):
            return False
        generation.look(found.target, time.time_ns() // 1_000_000)
        self._standstill = found
        return True

    def _tell(self, progress: Progress) -> None:
        self.progress = progress
