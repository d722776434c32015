#!/usr/bin/env python3
"""Put many readers on a server at once, and clients that are slow, rude or gone, and say what the readers met.

    bench/load.py MEGABYTES [--readers 64] [--seconds 60] [--rude 50]

A store of its own, with so much text, is read by one client first: that is the idle floor. Then by all readers at
once, while the store is written to, the index is refreshed, ten sessions are downloaded, and `--rude` connections
of each kind are held: half a request, a request a byte at a time, headers without end, an answer that nobody
reads. Exits with 1 if an answer failed or was incomplete, or if p95 is above ten times the idle p95.
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
from pathlib import Path
from typing import Any

import standing

IDLE_ANSWERS = 300
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
    ends_at: float = 0

    def read(self, met: Met, address: Callable[[], str], most: int = sys.maxsize) -> None:
        """Ask one address after another over one connection until it is time."""
        connection = self.server.connect()
        while time.monotonic() < self.ends_at and most:
            most -= 1
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


def run(load: Load, readers: int, seconds: float, rude: int) -> dict[str, Any]:
    """Measure the idle floor, then the load; return the figures."""
    dice = random.Random(1)
    idle, busy, exported = Met(), Met(), Met()
    load.ends_at = time.monotonic() + 300
    load.read(idle, lambda: standing.addresses(load.store, dice), IDLE_ANSWERS)
    rested = standing.holdings(load.server, load.store.directory.parent / "index")
    with ExitStack() as stack:
        held = hold(load.server, stack, rude)
        load.ends_at = time.monotonic() + seconds
        everybody = [
            *(
                threading.Thread(target=load.read, args=(busy, lambda: standing.addresses(load.store, dice)))
                for _ in range(readers)
            ),
            *(
                threading.Thread(target=load.read, args=(exported, lambda: standing.exports(load.store, dice), 1))
                for _ in range(EXPORTS)
            ),
            threading.Thread(target=load.write),
            threading.Thread(target=trickle, args=(load, held)),
        ]
        for one in everybody:
            one.start()
        peak = 0.0
        while time.monotonic() < load.ends_at:
            time.sleep(2)
            peak = max(peak, standing.holdings(load.server, load.store.directory)["pss_mib"])
        for one in everybody:
            one.join()
    time.sleep(3)
    after = standing.holdings(load.server, load.store.directory.parent / "index")
    floor = standing.percentile(idle.milliseconds, 95)
    p95 = standing.percentile(busy.milliseconds, 95)
    errors = idle.errors + busy.errors + exported.errors
    return {
        "answers": len(busy.milliseconds),
        "answers_a_second": round(len(busy.milliseconds) / seconds, 1),
        "statuses": dict(busy.statuses),
        "exports": dict(exported.statuses),
        "rude_connections": len(held),
        "idle_ms": {f"p{at}": round(standing.percentile(idle.milliseconds, at), 1) for at in (50, 95)},
        "busy_ms": {f"p{at}": round(standing.percentile(busy.milliseconds, at), 1) for at in (50, 95)},
        "p95_per_idle": round(p95 / floor, 1),
        "p95_per_idle_and_reader": round(p95 / floor / readers, 2),
        "pss_mib": {"rested": rested["pss_mib"], "peak": peak, "after": after["pss_mib"]},
        "descriptors": {"rested": rested["descriptors"], "after": after["descriptors"]},
        "errors": len(errors),
        "first_errors": errors[:10],
    }


def main() -> None:
    """Run it and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("megabytes", type=float)
    parser.add_argument("--readers", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rude", type=int, default=50, help="connections of each rude kind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        store = standing.Store(Path(folder) / "sessions", random.Random(7))
        store.fill(options.megabytes)
        with standing.serving(store.directory, Path(folder) / "index") as server:
            figures = run(Load(store, server), options.readers, options.seconds, options.rude)
    print(json.dumps(figures, indent=1))
    sys.exit(bool(figures["errors"]) or figures["p95_per_idle"] > TIMES_IDLE)


if __name__ == "__main__":
    main()
