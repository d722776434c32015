#!/usr/bin/env python3
"""Measure a server while many slow clients download the same large session.

    bench/downloads.py [--clients 10] [--rate 1.0] [--seconds 20] [--megabytes 200]

The session is made up. Each client reads at `--rate` MB/s. Memory is the peak of the server process above what it
held when it was idle and had answered a page; the pages are asked for all the while, one after the other.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from export import synthesize

from sessiongraph_web import access, tokens
from sessiongraph_web.tokens import Tokens

PIECE = 65_536


def resident(pid: int, field: str) -> int:
    """Return a resident size of a process in bytes."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+)", text)[1]) * 1024  # type: ignore[index]


def get(port: int, token: str, path: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
    return connection.getresponse()


def download(port: int, token: str, path: str, rate: float, until: float, got: list[int]) -> None:
    """Read at a rate (bytes a second) until a moment, or the end."""
    response = get(port, token, path)
    begun, taken = time.monotonic(), 0
    while time.monotonic() < until and (piece := response.read(PIECE)):
        taken += len(piece)
        time.sleep(max(0.0, taken / rate - (time.monotonic() - begun)))
    got.append(taken)
    response.close()


def main() -> None:
    """Run the benchmark and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--rate", type=float, default=1.0, help="MB/s of each client")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--megabytes", type=int, default=200, help="text of the session")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store, index = Path(folder) / "sessions", Path(folder) / "index"
        synthesize(store / "--w-large--" / "large" / "session.v4.jsonl.zstd", options.megabytes)
        private = Tokens(index / tokens.FILE)
        token = private.create(access.OWNER, "bench", int((time.time() + 3600) * 1000))
        private.close()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        where = ["--sessions", str(store), "--index", str(index)]
        cli = [sys.executable, "-m", "sessiongraph_web"]
        subprocess.run([*cli, "index", *where], check=True, stdout=subprocess.DEVNULL)
        server = subprocess.Popen([*cli, "serve", *where, "--port", str(port)], stdout=subprocess.DEVNULL)
        try:
            print(json.dumps(measured(server.pid, port, token, options), indent=1))
        finally:
            server.terminate()
            server.wait()


def measured(pid: int, port: int, token: str, options: argparse.Namespace) -> dict[str, object]:
    """Return the figures of one run."""
    while True:
        try:
            assert get(port, token, "/timeline.json").read()
            break
        except OSError:
            time.sleep(0.2)
    get(port, token, "/export/large.zip").read(PIECE)
    time.sleep(2)
    idle = resident(pid, "VmRSS")
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
    got: list[int] = []
    until = time.monotonic() + options.seconds
    rate = options.rate * 1e6
    clients = [
        threading.Thread(target=download, args=(port, token, "/export/large.zip", rate, until, got))
        for _ in range(options.clients)
    ]
    for client in clients:
        client.start()
    pages = []
    while time.monotonic() < until:
        begun = time.monotonic()
        assert get(port, token, "/timeline.json").read()
        pages.append(time.monotonic() - begun)
        time.sleep(0.1)
    for client in clients:
        client.join()
    return {
        "clients": options.clients,
        "mb_per_second_each": round(sum(got) / len(got) / options.seconds / 1e6, 2),
        "peak_mb_above_idle": round((resident(pid, "VmHWM") - idle) / 2**20, 1),
        "idle_mb": round(idle / 2**20, 1),
        "pages": len(pages),
        "page_ms_median": round(sorted(pages)[len(pages) // 2] * 1000, 1),
        "page_ms_worst": round(max(pages) * 1000, 1),
    }


if __name__ == "__main__":
    main()
