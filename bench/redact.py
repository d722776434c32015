#!/usr/bin/env python3
"""Measure masking: the searchable texts of a store through `mask`, as MB/s of CPU time and against a floor.

    bench/redact.py STORE [--mb 60] [--rounds 5]

The floor is one search for one rare word in the same texts, which is what a single literal test would cost. The
best of the rounds counts on both sides. The budget is 200 MB/s.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from sessiongraph_web import documents, logs, redact
from sessiongraph_web.models import Event


def texts(store: Path, limit: int) -> list[str]:
    """Return the searchable texts of the store's logs, about `limit` bytes of them."""
    found, size = [], 0
    for log in logs.discover(store).logs:
        for unit in logs.read(log.path, detail="index"):
            if isinstance(unit, Event):
                for text in documents.extract(unit, tool_result_chars=16384):
                    found.append(text.text)
                    size += len(text.text)
        if size > limit:
            break
    return found


def best(rounds: int, work: Callable[[str], object], found: list[str]) -> float:
    """Return the fewest CPU seconds that `work` took over all texts."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        for text in found:
            work(text)
        taken.append(time.process_time() - start)
    return min(taken)


def main() -> None:
    """Run the benchmark and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--mb", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = texts(options.store, options.mb * 1_000_000)
    size = sum(len(text.encode()) for text in found)
    masking = best(options.rounds, redact.mask, found)
    floor = best(options.rounds, lambda text: "no such word" in text, found)
    figures = {
        "texts": len(found),
        "bytes": size,
        "masked": sum(redact.mask(text)[1] for text in found),
        "mb_per_second": round(size / masking / 1e6, 1),
        "floor_mb_per_second": round(size / floor / 1e6, 1),
        "ratio_to_floor": round(masking / floor, 2),
        "within_budget": size / masking >= 200e6,
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
