#!/usr/bin/env python3
"""Put many readers on a server at once, and clients that are slow, rude or gone, and say what the readers met.

    bench/load.py MEGABYTES [--readers 64] [--seconds 60] [--pause 2] [--rude 50]

A store of its own, with so much text, is read by one client first: that is the idle floor. Then by all readers at
once, while the store is written to, the index is refreshed, ten sessions are downloaded, and `--rude` connections
of each kind are held: half a request, a request a byte at a time, headers without end, an answer that nobody
reads. A reader pauses before each answer, the first too, as people do; without pauses latency is their number by
one's time.
Memory is compared with what a first, short load of the same kind left. Exits with 1 if an answer failed or was
incomplete, or if p95 is above ten times the idle p95.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import standing

IDLE_ANSWERS = 300
IDLE_SECONDS = 120
EXPORTS = 10
TIMES_IDLE = 10


@dataclass
class Met:
    """What readers met."""

    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)


@dataclass
class Load:
    """A store, its server, and the time when everybody stops."""

    store: standing.Store
    server: standing.Server
    pause: float
    ends_at: float = 0

    def read(self, met: Met, address: Callable[[], str], most: int = sys.maxsize, *, pause: float = 0) -> None:
        """Ask one address after another over one connection until it is time."""
        connection = self.server.connect()
        while time.monotonic() < self.ends_at and most:
            most -= 1
            time.sleep(random.uniform(0, 2) * pause)
            path, begun = address(), time.perf_counter()
            try:
                connection.request("GET", path, headers=self.server.headers)
                response = connection.getresponse()
                body = response.read()
            except OSError as error:
                met.errors.append(f"{path}: {error!r}")
                connection.close()
                continue
            met.milliseconds.append((time.perf_counter() - begun) * 1000)
            met.statuses[response.status] += 1
            if response.status != 200 and not (response.status == 404 and "/events/" in path):
                met.errors.append(f"{path}: {response.status} {body[:200]!r}")
        connection.close()

    def write(self) -> None:
        """Append, and have the index refreshed."""
        while time.monotonic() < self.ends_at:
            self.store.append()
            self.server.post("/status/refresh")
            time.sleep(1)


def hold(server: standing.Server, stack: ExitStack, count: int) -> list[socket.socket]:
    """Open connections that are of no use to anybody, and keep them until the stack ends."""
    held = []
    path = f"GET /timeline HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n".encode()
    for begin in (b"GET /sea", path, path + b"X-Long: " + b"a" * 200_000, path + b"\r\n", b"\x16\x03\x01", b""):
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            one.setblocking(False)
            with suppress(OSError):
                one.send(begin)
            held.append(one)
    return held


def trickle(load: Load, held: list[socket.socket]) -> None:
    """Send a byte more on each connection now and then."""
    while time.monotonic() < load.ends_at:
        for one in held:
            with suppress(OSError):
                one.send(b"a")
        time.sleep(1)


def crowd(load: Load, readers: int, seconds: float, rude: int) -> tuple[Met, Met]:
    """Put everybody on the server for so long; return what readers and downloads met."""
    dice, busy, exported = random.Random(1), Met(), Met()
    with ExitStack() as stack:
        held = hold(load.server, stack, rude)
        load.ends_at = time.monotonic() + seconds
        reading = partial(load.read, busy, lambda: standing.addresses(load.store, dice), pause=load.pause)
        exporting = partial(load.read, exported, lambda: standing.exports(load.store, dice), 1)
        doings = [*[reading] * readers, *[exporting] * EXPORTS, load.write, partial(trickle, load, held)]
        everybody = [threading.Thread(target=doing) for doing in doings]
        for one in everybody:
            one.start()
        for one in everybody:
            one.join()
    return busy, exported


def run(load: Load, readers: int, seconds: float, rude: int) -> dict[str, Any]:
    """Measure the idle floor, then the load; return the figures."""
    dice, idle, index = random.Random(1), Met(), load.store.directory.parent / "index"
    load.ends_at = time.monotonic() + IDLE_SECONDS
    load.read(idle, lambda: standing.addresses(load.store, dice), IDLE_ANSWERS)
    crowd(load, readers, seconds / 3, rude)
    before = standing.holdings(load.server, index)
    busy, exported = crowd(load, readers, seconds, rude)
    after = standing.holdings(load.server, index)
    floor, p95 = (standing.percentile(met.milliseconds, 95) for met in (idle, busy))
    errors = idle.errors + busy.errors + exported.errors
    return {
        "answers": len(busy.milliseconds),
        "answers_a_second": round(len(busy.milliseconds) / seconds, 1),
        "statuses": dict(busy.statuses),
        "exports": dict(exported.statuses),
        "idle_ms": {f"p{at}": round(standing.percentile(idle.milliseconds, at), 1) for at in (50, 95)},
        "busy_ms": {f"p{at}": round(standing.percentile(busy.milliseconds, at), 1) for at in (50, 95)},
        "p95_per_idle": round(p95 / floor, 1),
        "before": before,
        "after": after,
        "pss_ratio": round(after["pss_mib"] / before["pss_mib"], 2),
        "errors": len(errors),
        "first_errors": errors[:10],
    }


def main() -> None:
    """Run it and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("megabytes", type=float)
    parser.add_argument("--readers", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pause", type=float, default=2, help="seconds between two answers of a reader")
    parser.add_argument("--rude", type=int, default=50, help="connections of each rude kind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        store = standing.Store(Path(folder) / "sessions", random.Random(7))
        store.fill(options.megabytes)
        with standing.serving(store.directory, Path(folder) / "index") as server:
            figures = run(Load(store, server, options.pause), options.readers, options.seconds, options.rude)
    print(json.dumps(figures, indent=1))
    sys.exit(bool(figures["errors"]) or figures["p95_per_idle"] > TIMES_IDLE)


if __name__ == "__main__":
    main()
