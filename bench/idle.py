#!/usr/bin/env python3
"""Measure what a server uses while nothing changes, and how pages fare while a large session is written.

    bench/idle.py STORE INDEX [--seconds 60] [--appending MEGABYTES]

The CPU of the server and of all that it starts, as a share of one processor, over so many seconds each: asked
nothing; with a page open that follows the index; asked for a page every second. With `--appending` instead: the
time of pages before and while so many MB of text a second are appended to the largest session of a copy of STORE.
INDEX is brought up to date first.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import standing
import zstandard

from sessiongraph_web import config, indexer, logs

WARM_UP_SECONDS = 5
ASK_SECONDS = 0.05  # between two pages while a session is written
WRITES_A_SECOND = 10
EVENT_BYTES = 10_000
PAGES = ("/search.json?q=timeout", "/search?q=timeout", "/timeline", "/", "/status")


def share(server: standing.Server, seconds: float) -> float:
    """Return the percentage of one processor that the server uses from now on."""
    time.sleep(WARM_UP_SECONDS)
    before = cpu_seconds(server)
    time.sleep(seconds)
    return 100 * (cpu_seconds(server) - before) / seconds


def cpu_seconds(server: standing.Server) -> float:
    total = 0.0
    for pid in standing.family(server.pid):
        with suppress(OSError):
            total += standing.cpu_seconds(pid)
    return total


def get(server: standing.Server, connection: http.client.HTTPConnection, path: str) -> float:
    """Return the milliseconds of a page."""
    began = time.perf_counter()
    connection.request("GET", path, headers=server.headers)
    response = connection.getresponse()
    response.read()
    if response.status != 200:
        raise RuntimeError(f"{path}: {response.status}")
    return 1000 * (time.perf_counter() - began)


@contextmanager
def meanwhile(action: object, every: float) -> Iterator[None]:
    """Do something again and again in a thread while the block runs."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(every):
            action()  # type: ignore[operator]

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def following(server: standing.Server) -> Iterator[None]:
    """Keep a page open that follows the index, as a browser does."""
    connection = server.connect()
    connection.request("GET", "/status/live", headers=server.headers)
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"not followed: {response.status}")
    try:
        yield
    finally:
        connection.close()


def idle(server: standing.Server, seconds: float) -> dict[str, float]:
    """Measure the three kinds of rest."""
    figures = {"asked_nothing_percent": share(server, seconds)}
    with following(server):
        figures["followed_percent"] = share(server, seconds)
    connection = server.connect()
    with meanwhile(lambda: get(server, connection, "/timeline"), 1):
        figures["asked_each_second_percent"] = share(server, seconds)
    return figures


def times(server: standing.Server, seconds: float) -> dict[str, float]:
    """Ask for pages in turn, and return how long they took."""
    connection, found, ends = server.connect(), list[float](), time.monotonic() + seconds
    while time.monotonic() < ends:
        found += [get(server, connection, path) for path in PAGES]
        time.sleep(ASK_SECONDS)
    return {f"p{at}_ms": standing.percentile(found, at) for at in (50, 95, 99)} | {"worst_ms": max(found)}


class Writer:
    """Appends made-up tool output to a log, a frame at a time."""

    def __init__(self, path: Path, megabytes: float) -> None:
        self.path, self.dice, self.seq = path, random.Random(1), 10_000_000
        self.events = max(1, round(megabytes * 1e6 / WRITES_A_SECOND / EVENT_BYTES))
        self.compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)

    def __call__(self) -> None:
        lines = b"".join(self._line() for _ in range(self.events))
        with self.path.open("ab") as file:
            file.write(self.compressor.compress(lines))

    def _line(self) -> bytes:
        self.seq += 1
        text = " ".join(
            f"{self.dice.choice(standing.WORDS)}_{self.dice.randrange(9999)}" for _ in range(EVENT_BYTES // 12)
        )
        event = {"type": "user/message", "seq": self.seq, "time": standing.now(), "surfaceOp": "append"}
        event["data"] = {"content": [{"type": "text", "text": text}], "source": {"kind": "user"}}
        return json.dumps(event, ensure_ascii=False).encode() + b"\n"


def copy(store: Path, folder: Path) -> Path:
    """Link a store into a folder, all but its largest log, which is copied; return where that is."""
    shutil.copytree(store, folder / "sessions", copy_function=os.link)
    largest = max(logs.discover(folder / "sessions").logs, key=lambda log: log.size).path
    stored = largest.read_bytes()
    largest.unlink()
    largest.write_bytes(stored)
    return largest


def appended(store: Path, index: Path, seconds: float, megabytes: float) -> dict[str, object]:
    """Ask for pages at rest and while the largest session is written."""
    with tempfile.TemporaryDirectory(dir=index.parent) as temporary:
        folder = Path(temporary)
        largest = copy(store, folder)
        shutil.copytree(index, folder / "index")
        with standing.serving(folder / "sessions", folder / "index") as server:
            times(server, WARM_UP_SECONDS)
            rest = times(server, seconds)
            before = cpu_seconds(server)
            with meanwhile(Writer(largest, megabytes), 1 / WRITES_A_SECOND):
                busy = times(server, seconds)
            used = 100 * (cpu_seconds(server) - before) / seconds
            held = standing.holdings(server, folder / "index")
        return {"at_rest": rest, "while_written": busy, "written_percent": used, "pss_mib": held["pss_mib"]}


def main() -> None:
    """Run the benchmark and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--appending", type=float, metavar="MEGABYTES")
    options = parser.parse_args()
    indexer.Run(config.load({"sessions": options.store, "index": options.index})).execute()
    figures: dict[str, object] = {"load": os.getloadavg()[0]}
    if options.appending:
        figures |= appended(options.store, options.index, options.seconds, options.appending)
    else:
        with standing.serving(options.store, options.index) as server:
            figures |= idle(server, options.seconds)
    print(json.dumps(figures, indent=1, default=float))


if __name__ == "__main__":
    main()
