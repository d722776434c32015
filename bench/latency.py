#!/usr/bin/env python3
"""Measure answers over HTTP: 13 probes, scoped and owner, beside the bare SQL; and the giant's first page.

    bench/latency.py STORE INDEX [--rounds 20]

STORE is one of the corpus maker's; INDEX is built if it is not there. A server runs in a process of its own and
is asked over one kept connection, as a browser would. `scoped` holds a token for the largest workspace. The bare
SQL reads in this process what a search has to rank (bench/query.py). Beside the time that a client waits stands
the CPU time of the server, which other work on the machine disturbs less.

How it grows with the number of workspaces, on a store that the corpus maker made with

    make_corpus.py OUT --mb 300 --workspaces 300 --sessions 2400
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

import query

from sessiongraph_web import access, config, filters, generation, indexer, schema, tokens
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.search import Source
from sessiongraph_web.tokens import Tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    settings = config.load({"sessions": given.store, "index": given.index, "freshness_seconds": 86_400})
    indexer.Run(settings).execute()
    cwd, giant = largest(settings)
    with ExitStack() as stack:
        sources = open_sources(settings, stack)
        with serving(settings) as (port, pid):
            for name, caller in (("scoped", access.workspaces(cwd)), ("owner", access.OWNER)):
                mine = [s for s in sources if caller.is_owner or s.cwd == cwd]
                browser = Browser(port, pid, token_of(settings, caller))
                for suffix in ("", ".json"):
                    report(f"{name}{suffix or '.html'}", browser, mine, suffix, given.rounds)
                page = browser.measured(f"/sessions/{giant}", given.rounds)
                size = len(browser.get(f"/sessions/{giant}"))
                print(f"{name} giant first page  {page}  {size / 1024:.0f} KiB")


def report(name: str, browser: Browser, sources: list[Source], suffix: str, rounds: int) -> None:
    """Print the times of each probe and of all together, and the ratio to the bare SQL."""
    everything, bare_all = Times(), []
    for probe in query.PROBES:
        times = browser.measured(f"/search{suffix}?q={quote(probe)}", rounds)
        bare = query.timed(partial(query.read_bare, sources, probe), rounds)
        everything.add(times)
        bare_all += bare
        print(f"  {name:12} {times}  bare {p50(bare):6.2f}  {probe}")
    ratio = sum(everything.cpu) / sum(bare_all)
    print(f"{name:14} {everything}  {ratio:.2f} x the bare SQL ({p50(bare_all):.2f}, p95 {p95(bare_all):.2f})")


@dataclass(slots=True)
class Times:
    """Milliseconds of requests: what the client waited, and what the server computed."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, more: Times) -> None:
        self.wall += more.wall
        self.cpu += more.cpu

    def __str__(self) -> str:
        shown = {"wall": self.wall, "CPU": self.cpu}
        return "  ".join(f"{name} p50 {p50(ms):6.1f} p95 {p95(ms):6.1f}" for name, ms in shown.items())


class Browser:
    """One kept connection with a token to a server whose process is known."""

    def __init__(self, port: int, pid: int, token: str) -> None:
        self.connection = HTTPConnection("127.0.0.1", port)
        self.pid = pid
        self.headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> bytes:
        self.connection.request("GET", path, headers=self.headers)
        response = self.connection.getresponse()
        body = response.read()
        assert response.status == 200, body[:300]
        return body

    def measured(self, path: str, rounds: int) -> Times:
        """Return the times of some rounds, after one that warms up."""
        self.get(path)
        times = Times()
        for _ in range(rounds):
            start, used = time.perf_counter(), computed(self.pid)
            self.get(path)
            times.wall.append((time.perf_counter() - start) * 1000)
            times.cpu.append((computed(self.pid) - used) / 1_000_000)
        return times


def computed(pid: int) -> int:
    """Return the nanoseconds that all threads of a process have computed, as Linux counts them."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread that ended meanwhile
            total += int((task / "schedstat").read_text("ascii").split()[0])
    return total


def p50(times: list[float]) -> float:
    return statistics.median(times)


def p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


def largest(settings: config.Settings) -> tuple[str, str]:
    """Return the cwd with most entries, and the id of the session with most events."""
    product = SessionGraph(settings)
    try:
        workspaces = product.workspaces(access.OWNER).workspaces
        cwd = max(workspaces, key=lambda workspace: workspace.entries).cwd
        request = filters.TimelineRequest(workspaces=(cwd or "",), limit=1000)
        sessions = product.timeline(access.OWNER, request).sessions
        return cwd or "", max(sessions, key=lambda session: session.events).id
    finally:
        product.close()


def open_sources(settings: config.Settings, stack: ExitStack) -> list[Source]:
    live = generation.live(settings.index)
    assert live is not None
    catalog = schema.open_reader(live.catalog)
    stack.callback(catalog.close)
    sources = []
    for row in catalog.execute("SELECT cwd, file FROM workspace"):
        connection = schema.open_reader(live.file(row["file"]))
        stack.callback(connection.close)
        sources.append(Source(row["cwd"], connection, 1))
    return sources


def token_of(settings: config.Settings, caller: access.Caller) -> str:
    private = Tokens(settings.index / tokens.FILE)
    try:
        return private.create(caller, "bench", int((time.time() + 3600) * 1000))
    finally:
        private.close()


@contextmanager
def serving(settings: config.Settings) -> Iterator[tuple[int, int]]:
    """Serve in a process of its own; yield its port and its id."""
    command = [sys.executable, "-m", "sessiongraph_web", "serve", "--port", "0"]
    command += ["--sessions", str(settings.sessions), "--index", str(settings.index)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+)", process.stdout.readline().partition("//")[2])
        assert found
        try:
            yield int(found[1]), process.pid
        finally:
            process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()
