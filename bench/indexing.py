#!/usr/bin/env python3
"""Measure the index of a store as ratios against floors taken in the same run.

    bench/indexing.py STORE [--growth] [--rounds 3]

The floor of a build is one `zstd -dc` over all logs to nowhere, of a refresh a bare walk that stats every file.
Peak memory is the sum over all processes, sampled twenty times a second from /proc (shared pages counted once, by
PSS). `--growth` repeats the unchanged refresh with 1, 3 and 10 times the sessions, as hard links.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zstandard

from sessiongraph_web import config, generation, indexer, logs

KIBI, MEBI = 1024, 1024 * 1024
COMMAND = Path(sys.executable).with_name("sessiongraph-web")


def seconds(action: Callable[[], object], rounds: int = 1) -> float:
    """Return the best wall time of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - began)
    return best


def children_cpu() -> float:
    """Return the CPU seconds of the processes that have ended: a figure that a busy machine changes little."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def floor(paths: list[Path]) -> dict[str, Any]:
    """Decompress everything to nowhere."""
    best = seconds(lambda: decompress_all(paths), 2)
    before = children_cpu()
    decompress_all(paths)
    return {"floor_seconds": best, "floor_cpu_seconds": children_cpu() - before}


def decompress_all(paths: list[Path]) -> None:
    for at in range(0, len(paths), 500):
        subprocess.run(["zstd", "-dcq", *paths[at : at + 500]], stdout=subprocess.DEVNULL, check=True)


def stat_walk(folder: str | os.PathLike[str]) -> int:
    """Stat every file below a folder."""
    total = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            total += stat_walk(entry.path) if entry.is_dir() else entry.stat().st_size
    return total


@contextlib.contextmanager
def watched(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Sample the memory of a process and its descendants while the block runs; the list holds the peak in KiB."""
    peak, done = [0], threading.Event()

    def sample() -> None:
        while not done.wait(0.05):
            peak[0] = max(peak[0], sum(map(_pss, _family(process.pid))))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _family(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        threads = [path.name for path in Path(f"/proc/{pid}/task").iterdir() if path.name != str(pid)]
        for thread in threads:
            children += Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
        return [pid, *(found for child in children for found in _family(int(child)))]
    return []


def _pss(pid: int) -> int:
    with contextlib.suppress(OSError, StopIteration, PermissionError):
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return int(next(row for row in rows if row.startswith("Pss:")).split()[1])
    return 0


def build(store: Path, index: Path) -> dict[str, Any]:
    """Build from nothing with the command, as a person does."""
    shutil.rmtree(index, ignore_errors=True)
    began, before = time.perf_counter(), children_cpu()
    arguments = [COMMAND, "index", "--sessions", store, "--index", index]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    with watched(process) as peak:
        process.wait()
    taken = {"build_seconds": time.perf_counter() - began, "build_cpu_seconds": children_cpu() - before}
    return taken | {"peak_mib": peak[0] // KIBI}


def size_of(index: Path) -> dict[str, Any]:
    """Compare the files of the index with the text of its entries."""
    live = generation.live(index)
    assert live is not None
    text = 0
    for path in live.directory.glob("ws_*.db"):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            text += (
                connection.execute("SELECT ifnull(sum(octet_length(text)), 0) FROM entry").fetchone()[0]
                if (sqlite3.sqlite_version_info >= (3, 43))
                else connection.execute(
                    "SELECT ifnull(sum(length(CAST(text AS BLOB))), 0) FROM entry"
                ).fetchone()[0]
            )
    stored = sum(path.stat().st_size for path in live.directory.iterdir())
    return {"text_mib": text / MEBI, "index_mib": stored / MEBI, "index_per_text": stored / text}


def refresh(store: Path, index: Path) -> None:
    indexer.Run(config.load({"sessions": store, "index": index})).execute()


def append_to_largest(store: Path, index: Path, rounds: int) -> dict[str, Any]:
    """Append one prompt to the largest session, and refresh; the log is put back as it was."""
    largest = max(logs.discover(store).logs, key=lambda log: log.size)
    stored = largest.path.read_bytes()
    compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)
    number = 10_000_000
    taken = []
    try:
        for _ in range(rounds):
            number += 1
            event = {"type": "user/message", "seq": number, "time": 1_790_000_000_000, "surfaceOp": "append"}
            event["data"] = {"content": [{"type": "text", "text": "one more"}], "source": {"kind": "user"}}
            with largest.path.open("ab") as file:
                file.write(compressor.compress(json.dumps(event).encode() + b"\n"))
            taken.append(seconds(lambda: refresh(store, index)))
    finally:
        largest.path.write_bytes(stored)
        refresh(store, index)
    return {"largest_mib": largest.size / MEBI, "append_ms": 1000 * min(taken)}


def unchanged(store: Path, index: Path, rounds: int) -> dict[str, Any]:
    """Compare a refresh that finds nothing with the bare walk."""
    walk = seconds(lambda: stat_walk(store), rounds + 2)
    look = seconds(lambda: refresh(store, index), rounds + 2)
    return {"walk_ms": 1000 * walk, "refresh_ms": 1000 * look, "refresh_per_walk": look / walk}


def growth(store: Path, folder: Path, rounds: int) -> list[dict[str, Any]]:
    """Repeat the unchanged refresh over ever more sessions: small ones, of which there are most."""
    small = [log for log in logs.discover(store).logs if log.size < 64 * KIBI]
    figures = []
    for times in (1, 3, 10):
        grown = folder / f"grown-{times}"
        for copy in range(times):
            for log in small:
                place = grown / log.path.parent.parent.name / f"{log.path.parent.name}-{copy}"
                place.mkdir(parents=True)
                shutil.copy(log.path, place / log.path.name)
        refresh(grown, folder / f"index-{times}")
        figures.append({"sessions": times * len(small)} | unchanged(grown, folder / f"index-{times}", rounds))
    return figures


def main() -> None:
    """Run the benchmark and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", action="store_true")
    options = parser.parse_args()
    store = options.store
    paths = [log.path for log in logs.discover(store).logs if log.compressed]
    with tempfile.TemporaryDirectory() as temporary:
        folder, index = Path(temporary), Path(temporary) / "index"
        if options.growth:
            print(json.dumps(growth(store, folder, options.rounds), indent=1))
            return
        figures = floor(paths)
        figures |= min(
            (build(store, index) for _ in range(options.rounds)), key=lambda made: made["build_seconds"]
        )
        for kind in ("", "cpu_"):
            figures[f"build_per_floor_{kind}ratio"] = (
                figures[f"build_{kind}seconds"] / figures[f"floor_{kind}seconds"]
            )
        figures |= size_of(index)
        figures |= unchanged(store, index, options.rounds)
        figures |= append_to_largest(store, index, options.rounds)
    figures |= {"sessions": len(paths), "processors": os.cpu_count(), "load": os.getloadavg()[0]}
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
