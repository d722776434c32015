#!/usr/bin/env python3
"""Measure reading: decode, parse and extract a store, as a ratio of CPU time to `zstd -dc` of the same files.

    bench/reading.py STORE [--detail index|full] [--rounds 3] [--profile]

Make a store with the corpus maker first. The floor is one `zstd -dc` over all compressed logs, to nowhere; the
best of the rounds counts on both sides.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import resource
import subprocess
import time
from pathlib import Path

from sessiongraph_web import documents, logs
from sessiongraph_web.models import Event, Fault, FrameEnd


def floor(paths: list[Path]) -> float:
    """Return the CPU seconds that zstd's own command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for at in range(0, len(paths), 500):
        subprocess.run(["zstd", "-dcq", *paths[at : at + 500]], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def walk(found: list[logs.LogFile], detail: logs.Detail, *, extract: bool = True) -> dict[str, int]:
    """Read every log and extract its texts; return what was counted."""
    meter = logs.Meter()
    counts = dict.fromkeys(("events", "frames", "faults", "texts", "characters"), 0)
    for log in found:
        for unit in logs.read(log.path, version=log.version, detail=detail, meter=meter):
            if isinstance(unit, Event):
                counts["events"] += unit.count
                for text in documents.extract(unit, tool_result_chars=16384) if extract else ():
                    counts["texts"] += 1
                    counts["characters"] += len(text.text)
            elif isinstance(unit, FrameEnd):
                counts["frames"] += 1
            elif isinstance(unit, Fault):
                counts["faults"] += 1
    return counts | {"stored_bytes": meter.bytes_read, "text_bytes": meter.text_bytes}


def main() -> None:
    """Run the benchmark and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--detail", choices=("index", "full"), default="index")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    found = logs.discover(options.store).logs
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(walk, found, options.detail)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return
    compressed = [log.path for log in found if log.compressed]
    floors, reads, bare = [], [], []
    for _ in range(options.rounds):
        floors.append(floor(compressed))
        began = time.process_time()
        counts = walk(found, options.detail)
        reads.append(time.process_time() - began)
        began = time.process_time()
        walk(found, options.detail, extract=False)
        bare.append(time.process_time() - began)
    figures = {
        "floor_seconds": round(min(floors), 3),
        "read_seconds": round(min(bare), 3),
        "read_and_extract_seconds": round(min(reads), 3),
        "ratio": round(min(reads) / min(floors), 3),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "load": os.getloadavg()[0],
    }
    print(json.dumps(figures | counts, indent=1))


if __name__ == "__main__":
    main()
