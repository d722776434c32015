#!/usr/bin/env python3
"""Run a server for hours over a store that is written to, and say whether what it holds stays flat.

    bench/soak.py MEGABYTES [--minutes 120] [--log soak.jsonl]

A store of its own, with so much text, gets a turn every few seconds, a new session and the end of an old one
every two minutes, a session written anew every five. Meanwhile pages, twins and searches are read, sessions
downloaded, somebody follows a session and goes, the index is refreshed every minute and built anew every twenty.
A sample is taken every five seconds; each minute's go to `--log`, the figures of the first and last quarter to
the output.
Flat is what grew by at most a tenth, and a little that does not count (`SLACK`). The index is compared with the
store that it describes. Exits with 1 if something grew or failed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import standing

SAMPLE_SECONDS = 5
GROWTH = 1.1
SLACK = {"pss_mib": 4, "descriptors": 3, "threads": 2, "wal_mib": 4, "index_per_store": 0.05, "cpu_seconds": 1}


@dataclass
class Record:
    """What readers met since the last minute, and what failed ever."""

    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    def take(self) -> tuple[list[float], Counter[str]]:
        taken = self.milliseconds, self.statuses
        self.milliseconds, self.statuses = [], Counter()
        return taken


@dataclass
class Soak:
    """Who writes and reads until it is time, each in a thread of its own."""

    store: standing.Store
    server: standing.Server
    dice: random.Random
    ends_at: float
    record: Record = field(default_factory=Record)

    def start(self) -> list[threading.Thread]:
        """Start everybody: what they do, and how long they pause, in seconds."""
        doings: list[tuple[Callable[[], object], float]] = [
            (self.store.append, 8),
            (self._come_and_go, 120),
            (self.store.rewrite, 300),
            (lambda: self._get(standing.addresses(self.store, self.dice)), 0.7),
            (self._get_again, 5),
            (lambda: self._get(standing.exports(self.store, self.dice)), 20),
            (self._follow, 3),
            (lambda: self._post("/status/refresh"), 60),
            (lambda: self._post("/status/rebuild"), 1200),
        ]
        threads = [threading.Thread(target=self._keep, args=doing, daemon=True) for doing in doings]
        for thread in threads:
            thread.start()
        return threads

    def _keep(self, action: Callable[[], object], pause: float) -> None:
        time.sleep(self.dice.uniform(0, min(pause, 30)))
        while time.monotonic() < self.ends_at:
            try:
                action()
            except Exception:  # noqa: BLE001 - it is counted, and the soak goes on
                self.record.errors.append(f"{time.strftime('%H:%M:%S')} {traceback.format_exc(limit=-2)}")
            time.sleep(self.dice.uniform(0.5, 1.5) * pause)

    def _come_and_go(self) -> None:
        self.store.begin(turns=20)
        self.store.drop()

    def _get(self, path: str, **headers: str) -> str:
        """Read an address to its end; what is not there any more may be missing. Return its ETag."""
        begun = time.perf_counter()
        connection = self.server.connect()
        connection.request("GET", path, headers=self.server.headers | headers)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        self.record.milliseconds.append((time.perf_counter() - begun) * 1000)
        self.record.statuses[f"{response.status}"] += 1
        fine = {200, 304} | ({404} if any(id_ in path for id_ in self.store.gone) else set())
        if response.status not in fine and not (response.status == 404 and "/events/" in path):
            self.record.errors.append(f"{time.strftime('%H:%M:%S')} {response.status} {path} {body[:200]!r}")
        return response.headers.get("etag", "")

    def _get_again(self) -> None:
        path = f"/sessions/{self.store.some().id}.json"
        if etag := self._get(path):
            self._get(path, **{"if-none-match": etag})

    def _follow(self) -> None:
        """Follow a session, or the index, for a while, and go in the middle of it."""
        path = f"/sessions/{self.store.some().id}/live" if self.dice.random() < 0.7 else "/status/live"
        patience = self.dice.uniform(1, 60)
        connection = self.server.connect(timeout=patience)
        connection.request("GET", path, headers=self.server.headers)
        response = connection.getresponse()
        self.record.statuses[f"live {response.status}"] += 1
        until = time.monotonic() + patience
        with suppress(TimeoutError):
            while time.monotonic() < until and response.read1(4096):
                pass
        connection.close()

    def _post(self, path: str) -> None:
        status = self.server.post(path)
        self.record.statuses[f"{path} {status}"] += 1
        if status not in (200, 202, 303):
            self.record.errors.append(f"{time.strftime('%H:%M:%S')} {status} {path}")


def watch(soak: Soak, index: Path, log: Path | None) -> list[dict[str, Any]]:
    """Sample until it is time; return a line for each minute: the median of each figure, the peak of the WAL."""
    minutes: list[dict[str, Any]] = []
    cpu = standing.cpu_seconds(soak.server.pid)
    while time.monotonic() < soak.ends_at:
        samples = []
        until = min(time.monotonic() + 60, soak.ends_at)
        while time.monotonic() < until:
            time.sleep(SAMPLE_SECONDS)
            samples.append(standing.holdings(soak.server, index))
        line: dict[str, Any] = {name: statistics.median(s[name] for s in samples) for name in samples[0]}
        line |= {f"{name}_peak": max(s[name] for s in samples) for name in ("pss_mib", "wal_mib", "descriptors")}
        store_mib = soak.store.bytes / standing.MIB
        line |= {"store_mib": round(store_mib, 3), "index_per_store": round(line["index_mib"] / store_mib, 3)}
        used, cpu = standing.cpu_seconds(soak.server.pid) - cpu, standing.cpu_seconds(soak.server.pid)
        times, statuses = soak.record.take()
        line |= {"cpu_seconds": round(used, 2), "answers": len(times), "statuses": dict(statuses)}
        line |= {f"ms_p{at}": round(standing.percentile(times, at), 1) for at in (50, 95)}
        line |= {"errors": len(soak.record.errors), "minute": len(minutes) + 1}
        minutes.append(line)
        if log:
            with log.open("a") as file:
                file.write(json.dumps(line) + "\n")
    return minutes


def verdict(minutes: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare the first quarter with the last."""
    quarter = max(1, len(minutes) // 4)
    figures = {}
    for name in (*SLACK, "ms_p50", "ms_p95", "index_mib", "store_mib", "pss_mib_peak", "wal_mib_peak"):
        first, last = (statistics.mean(m[name] for m in some) for some in (minutes[:quarter], minutes[-quarter:]))
        figures[name] = {"first": round(first, 3), "last": round(last, 3), "ratio": round(last / (first or 1), 3)}
        if name in SLACK:
            figures[name]["flat"] = last <= first * GROWTH + SLACK[name]
    return figures


def main() -> None:
    """Run it and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("megabytes", type=float)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        store, index = standing.Store(Path(folder) / "sessions", dice), Path(folder) / "index"
        store.fill(options.megabytes)
        with standing.serving(store.directory, index) as server:
            soak = Soak(store, server, dice, time.monotonic() + options.minutes * 60)
            soak.start()
            minutes = watch(soak, index, options.log)
    figures = verdict(minutes)
    errors = soak.record.errors
    print(
        json.dumps(
            {
                "minutes": len(minutes),
                "answers": sum(minute["answers"] for minute in minutes),
                "figures": figures,
                "flat": all(figure.get("flat", True) for figure in figures.values()),
                "errors": len(errors),
                "first_errors": errors[:20],
            },
            indent=1,
            ensure_ascii=False,
        )
    )
    sys.exit(bool(errors) or not all(figure.get("flat", True) for figure in figures.values()))


if __name__ == "__main__":
    main()
