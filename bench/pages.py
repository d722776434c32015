#!/usr/bin/env python3
"""Measure every page over a large store: p95 of wall and CPU time, bytes of HTML, and what is loaded beside.

    bench/pages.py STORE INDEX [--rounds 20]

INDEX is an index of STORE (`sessiongraph-web index`). Pages are asked in the process, so that no network and no
other program is measured. The largest session is read at its beginning, its end, in the middle, and searched,
each page again and again, as who goes back to it; then places all over it, each once, as who jumps about.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import gzip
import json
import os
import random
import resource
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from datasette.app import Datasette

from sessiongraph_web import access, tokens
from sessiongraph_web.tokens import Tokens
from sessiongraph_web.web import app, render

WORD: Final = "error"
WORDS: Final = (WORD, "test", "the", "%E5%B9%BF%E5%91%8A")
HOUR_MS: Final = 3_600_000
SEED: Final = 7


async def sessions(datasette: Datasette, headers: dict[str, str]) -> list[dict[str, Any]]:
    """Return all sessions, the one with most events first."""
    listed: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = (await datasette.client.get(f"/timeline.json?limit=100{cursor}", headers=headers)).json()
        listed += answer["sessions"]
        cursor = f"&cursor={answer['next_cursor']}" if answer["next_cursor"] else None
    return sorted(listed, key=lambda session: -int(session["events"]))


def addresses(listed: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return an address of every kind of page."""
    largest = listed[0]
    giant, middle = f"/sessions/{largest['id']}", largest["events"] // 2
    child = next(session["id"] for session in listed if session["parent_session"])
    return {
        "home": "/",
        "search": f"/search?q={WORD}",
        "search, Chinese": "/search?q=%E5%B9%BF%E5%91%8A",
        "search, one session": f"/search?q={WORD}&session={largest['id']}&group=none",
        f"session of {largest['events']:,} events, first page": giant,
        "its last page": f"{giant}?last=1",
        "its middle, by position": f"{giant}?at={middle}",
        "its middle, by number": f"{giant}?seq={middle}",
        "its last activity, by time": f"{giant}?time={largest['last_at']}",
        "its prompts and answers": f"{giant}?view=focus",
        "found inside it": f"{giant}?find={WORD}&at={middle}",
        "its events": f"{giant}/events",
        "one event": f"{giant}/events/{middle}",
        "trace": f"/trace/{child}",
        "timeline": "/timeline",
        "workspaces": "/workspaces",
        "status": "/status",
    }


def jumps(largest: dict[str, Any], count: int) -> dict[str, list[str]]:
    """Return addresses of so many places all over a session, by each way to come there."""
    giant = f"/sessions/{largest['id']}"
    begun, ended = (datetime.fromisoformat(largest[name]).timestamp() for name in ("created_at", "last_at"))
    shares = [random.Random(SEED + number).random() for number in range(count)]
    places = [int(share * largest["events"]) for share in shares]
    times = [datetime.fromtimestamp(begun + share * (ended - begun), UTC) for share in shares]
    words = [WORDS[number % len(WORDS)] for number in range(count)]
    return {
        "anywhere, by position": [f"{giant}?at={place}" for place in places],
        "anywhere, by number": [f"{giant}?seq={place}" for place in places],
        "anywhere, by time": [f"{giant}?time={time:%Y-%m-%dT%H:%M:%SZ}" for time in times],
        "anywhere, found inside it": [
            f"{giant}?find={word}&at={place}" for word, place in zip(words, places, strict=True)
        ],
    }


async def measure(
    datasette: Datasette, headers: dict[str, str], paths: Sequence[str]
) -> dict[str, float | int | str]:
    """Ask for pages one after another; the first one warms and does not count."""
    walls, cpus, size = [], [], 0
    for path in paths:
        wall, cpu = time.perf_counter(), time.process_time()
        response = await datasette.client.get(path, headers=headers)
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
        response.raise_for_status()
        size = max(size, len(response.content))
    walls, cpus = walls[1:], cpus[1:]
    return {
        "wall_ms_p50": round(percentile(walls, 50), 1),
        "wall_ms_p95": round(percentile(walls, 95), 1),
        "cpu_ms_p50": round(percentile(cpus, 50), 1),
        "cpu_ms_p95": round(percentile(cpus, 95), 1),
        "html_bytes": size,
    }


def percentile(figures: list[float], hundredths: int) -> float:
    """Return a percentile by the nearest rank."""
    return sorted(figures)[max(0, -(-len(figures) * hundredths // 100) - 1)]


def assets() -> dict[str, int]:
    """Return the bytes of all style and all scripts, as they are and as gzip would send them."""
    found = {name: (render.STATIC / name).read_bytes() for name in render.asset_names()}
    style = b"".join(content for name, content in found.items() if name.endswith(".css"))
    scripts = b"".join(content for name, content in found.items() if name.endswith(".js"))
    return {
        "css_bytes": len(style),
        "js_bytes": len(scripts),
        "css_gzip_bytes": len(gzip.compress(style)),
        "js_gzip_bytes": len(gzip.compress(scripts)),
    }


async def run(store: Path, index: Path, rounds: int) -> dict[str, Any]:
    """Measure all pages as the owner sees them."""
    private = Tokens(index / tokens.FILE)
    secret = private.create(access.OWNER, "bench", int(time.time() * 1000) + HOUR_MS)
    private.close()
    options = {"sessions": str(store), "index": str(index), "auto_build": False, "auto_refresh": False}
    datasette = app.make(options)
    await datasette.invoke_startup()
    headers = {"authorization": f"Bearer {secret}", "host": "localhost"}
    gc.collect()
    gc.freeze()  # as a server does once it has started
    listed = await sessions(datasette, headers)
    asked = {name: [path] * (rounds + 1) for name, path in addresses(listed).items()}
    asked |= jumps(listed[0], 3 * rounds + 1)
    pages = {name: await measure(datasette, headers, paths) for name, paths in asked.items()}
    await datasette.invoke_shutdown()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"pages": pages, "assets": assets(), "peak_mib": peak, "load": round(os.getloadavg()[0], 1)}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    print(
        json.dumps(asyncio.run(run(options.store, options.index, options.rounds)), indent=1, ensure_ascii=False)
    )


if __name__ == "__main__":
    main()
