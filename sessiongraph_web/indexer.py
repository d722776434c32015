"""Index runs: one at a time, on the live generation or on one that takes its place."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import filelock

from sessiongraph_web import generation
from sessiongraph_web.config import Settings
from sessiongraph_web.damage import is_damage, translated
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.generation import Generation
from sessiongraph_web.reports import RunReport
from sessiongraph_web.standstill import Standstill
from sessiongraph_web.update import Tally, Update
from sessiongraph_web.update import Wish as Wish
from sessiongraph_web.workers import Progress as Progress

LOCK: Final = "index.lock"


class Run:
    """One index run. `stop` asks it to end after the logs it is reading; what is done stays done.

    `aside` has large logs read in other processes, so that this one goes on answering.

    One that had nothing to do leaves a `standstill`: while that holds, another run has nothing to do either.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        stop: threading.Event | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        aside: bool = False,
    ) -> None:
        self.settings = settings
        self.stop = stop or threading.Event()
        self.on_progress = on_progress or (lambda _: None)
        self.aside = aside
        self.wish = Wish()
        self.tally = Tally()
        self.standstill: Standstill | None = None

    def execute(self, wish: Wish | None = None) -> RunReport:
        """Index what changed, and what the wish asks for beyond that."""
        self.wish = wish or self.wish
        index = self.settings.index
        generation.make_private(index)
        with locked(self.settings, self.stop), translated():
            target = self._target()
            try:
                report = self._bring_up_to_date(target)
            except SessionGraphError as error:
                if self.wish.force or not is_damage(error):
                    raise
                self.tally.notes.append(f"the catalog was damaged ({error.detail}); everything was built anew")
                target = self._anew()
                report = self._bring_up_to_date(target)
            if self.wish.force and report.outcome == "complete":
                generation.publish(index, target)
            if not generation.sweep(index, keep=generation.live(index) or target):
                self.standstill = None  # there is more to sweep once nobody uses it
        return report

    def _target(self) -> Generation:
        """Return the generation to work on: the live one if it can be used, else one that is published at once;
        a forced one is published when it is complete, and is gone on with if that was interrupted."""
        index = self.settings.index
        if self.wish.force:
            return generation.unfinished(index) or generation.start(index)
        live = generation.live(index)
        if live is None:
            target = generation.unfinished(index) or generation.start(index)
            generation.publish(index, target)
            return target
        if generation.is_sound(live):
            return live
        self.tally.notes.append(
            "the index was of another make, or its catalog damaged; everything was built anew"
        )
        return self._anew()

    def _anew(self) -> Generation:
        target = generation.start(self.settings.index)
        generation.publish(self.settings.index, target)
        return target

    def _bring_up_to_date(self, target: Generation) -> RunReport:
        self.tally = self.tally.again()
        with (
            generation.using(target),
            generation.writing(target, self.settings.lock_wait_seconds),
        ):
            with Update(
                self.settings, target, self.wish, self.tally, self.stop, self.on_progress, aside=self.aside
            ) as update:
                report = update.perform()
            names = [place.file for place in update.places.values()]
            if update.sight is not None:
                self.standstill = Standstill.of(update.sight, target, names)
            return report


def locked(settings: Settings, stop: threading.Event | None = None) -> filelock.BaseFileLock:
    """Take the lock of the one writer, for use as a context; whoever holds it is waited for, for a while, unless
    the wait is stopped."""
    stop = stop or threading.Event()
    lock = filelock.FileLock(settings.index / LOCK, mode=0o600)
    try:
        lock.acquire(timeout=settings.lock_wait_seconds, cancel_check=stop.is_set)
    except filelock.Timeout as error:
        if stop.is_set():
            raise SessionGraphError("SESSION_QUERY_ABORTED") from error
        raise SessionGraphError(
            "SESSION_QUERY_INDEX_FAILED", "Another index run is going on; wait for it to end, or stop it."
        ) from error
    except OSError as error:
        raise SessionGraphError(
            "SESSION_QUERY_INDEX_FAILED", "The index directory cannot be written; choose another with --index."
        ) from error
    return lock
