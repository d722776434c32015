"""Which sessions a process holds now, told by the kernel's table of locks; no lock is ever taken."""

from __future__ import annotations

import os
import re
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Final

from sessiongraph_web.discovery import LOCK

TABLE: Final = Path("/proc/locks")


class _Reader:
    """Reads the table in a thread of its own.

    The kernel lets no lock change while the table is read, and waits for all processors before: 10 ms for a page
    of it, where nobody read it just before. Whoever asks while others wait shares what they will get.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="locks")
        self._asked: Future[bytes] | None = None

    def ask(self) -> Future[bytes]:
        """Return a reading that begins now or later."""
        with self._guard:
            if self._asked is None or self._asked.running() or self._asked.done():
                self._asked = self._thread.submit(TABLE.read_bytes)
            return self._asked


_READER: Final = _Reader()


class Locks:
    """The locks of one moment, read once for many logs."""

    def __init__(self) -> None:
        self._reading: Future[bytes] | None = None

    def read_ahead(self) -> None:
        """Begin to read the table, for whoever has something to do before it asks."""
        self._reading = self._reading or _READER.ask()

    def is_held(self, log: Path) -> bool | None:
        """Say whether a process holds the lock beside a log; None where that cannot be known."""
        try:
            descriptor = os.open(log.parent / LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        except OSError:
            return None
        try:
            facts = os.fstat(descriptor)
            devices = self._places(facts.st_ino)
            return bool(devices) and not devices.isdisjoint(_devices(descriptor, facts.st_dev))
        except OSError:
            return None
        finally:
            os.close(descriptor)

    @cached_property
    def _table(self) -> bytes:
        return (self._reading or _READER.ask()).result()

    def _places(self, inode: int) -> set[int]:
        """Return the devices on which a file of this number is locked; rows with an arrow only wait."""
        if b":%d " % inode not in self._table:  # asked first: of hundreds of rows, SQLite's most, few are wanted
            return set()
        rows = re.findall(rb"^(?!.*->).* ([0-9a-f]+):([0-9a-f]+):%d " % inode, self._table, re.MULTILINE)
        return {os.makedev(int(major, 16), int(minor, 16)) for major, minor in rows}


def is_live(log: Path) -> bool | None:
    """Say whether a process holds the session's lock now; None where that cannot be known."""
    return Locks().is_held(log)


def _devices(descriptor: int, own: int) -> set[int]:
    """Return the devices by which the kernel may name a file's place: its own, and that of its mount.

    They differ on btrfs and overlays, where a stat names a part and `/proc/locks` the whole.
    """
    devices = {own}
    facts = Path(f"/proc/self/fdinfo/{descriptor}").read_text("ascii", "replace").split()
    mount = facts[facts.index("mnt_id:") + 1] if "mnt_id:" in facts else ""
    for row in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        identity, _, device, *_ = row.split()
        if identity == mount:
            devices.add(os.makedev(*map(int, device.split(":"))))
    return devices
