#!/usr/bin/env python3
"""Measure the archive of a store's largest session against `zip -1` on the same bytes, and its memory.

    bench/export.py STORE [--rounds 5]
    bench/export.py --synthetic 500 [--rounds 2]

`--synthetic` makes a session of so many megabytes of text (answers of made-up words) and takes that.
Both run in turn, in wall time; the best of the rounds counts on both sides. Memory is the resident peak of a
process of its own, above what it held before it began. Budgets: 0.8 x the speed of `zip -1`, 32 MB.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import zstandard

from sessiongraph_web import export, logs
from sessiongraph_web.models import Header

FRAME_BYTES = 100_000  # of text in each append of a synthetic session


def pack(path: Path, *, redact: bool = False) -> int:
    """Make the archive of one log and return its size."""
    header = logs.peek_header(path)
    assert isinstance(header, Header)
    source = export.Source(0, path, header.id, header.cwd, header.version)
    download = export.zip_download(
        source, [], attachments=path.parent / "none", redact=redact, limits=logs.Limits()
    )
    return sum(len(chunk) for chunk in download.chunks)


def seconds(path: Path, *, redact: bool = False) -> float:
    """Return the wall time of one archive."""
    start = time.perf_counter()
    pack(path, redact=redact)
    return time.perf_counter() - start


def zip_seconds(text: Path) -> float:
    """Return the wall time of `zip -1` on the same bytes, its output to nowhere."""
    start = time.perf_counter()
    subprocess.run(["zip", "-q", "-1", "-", text.name], cwd=text.parent, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def resident(field: str) -> int:
    """Return a resident size of this process in bytes: `VmRSS` now, `VmHWM` at its highest."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise ValueError(field)


def memory(path: Path, redact: bool) -> int:
    """Return the peak above idle of a process that makes one archive."""
    arguments = [sys.executable, __file__, str(path), "--child", *(["--redact"] if redact else [])]
    return int(subprocess.run(arguments, capture_output=True, check=True).stdout)


def synthesize(path: Path, megabytes: int) -> None:
    """Write a session of tool output and answers, cut into frames as dsh cuts its appends."""
    chance = random.Random(0)
    words = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz_/", k=chance.randint(2, 12))) for _ in range(5000)
    ]
    path.parent.mkdir(parents=True)
    header = {"type": "session", "version": 4, "id": path.parent.name, "createdAt": 0, "cwd": "/w/large"}
    compressor = zstandard.ZstdCompressor()
    with path.open("wb") as file:
        file.write(compressor.compress(json.dumps(header).encode() + b"\n"))
        for seq in range(megabytes * 1_000_000 // FRAME_BYTES):
            text = " ".join(chance.choices(words, k=FRAME_BYTES // 7))[:FRAME_BYTES]
            message = {"role": "assistant", "content": [{"type": "text", "text": text}], "id": f"m{seq}"}
            event = {"type": "assistant/message", "seq": seq, "time": seq, "data": {"message": message}}
            file.write(compressor.compress(json.dumps(event | {"surfaceOp": "append"}).encode() + b"\n"))


def main() -> None:
    """Run the benchmark and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path, nargs="?")
    parser.add_argument("--synthetic", type=int, metavar="MB", help="measure a made-up session of this size")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--redact", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        idle = resident("VmRSS")
        pack(options.store, redact=options.redact)
        print(resident("VmHWM") - idle)
        return
    with tempfile.TemporaryDirectory() as folder:
        if options.synthetic:
            giant = Path(folder) / "store" / "--w-large--" / "large" / "session.v4.jsonl.zstd"
            synthesize(giant, options.synthetic)
        else:
            giant = max(logs.discover(options.store).logs, key=lambda log: log.size).path
        print(json.dumps(measured(giant, Path(folder), options.rounds), indent=1))


def measured(giant: Path, folder: Path, count: int) -> dict[str, object]:
    """Return the figures of one log."""
    text = folder / "session.jsonl"
    with text.open("wb") as file:
        file.writelines(logs.plain_text(giant))
    size = text.stat().st_size
    rounds = [(seconds(giant), zip_seconds(text)) for _ in range(count)]
    ours, theirs = (min(column) for column in zip(*rounds, strict=True))
    peaks = {redact: memory(giant, redact) for redact in (False, True)}
    return {
        "text_bytes": size,
        "archive_bytes": pack(giant),
        "mb_per_second": round(size / ours / 1e6, 1),
        "zip_mb_per_second": round(size / theirs / 1e6, 1),
        "speed_ratio": round(theirs / ours, 2),
        "masked_mb_per_second": round(size / seconds(giant, redact=True) / 1e6, 1),
        "peak_mb_above_idle": round(peaks[False] / 2**20, 1),
        "masked_peak_mb_above_idle": round(peaks[True] / 2**20, 1),
        "within_budget": theirs / ours >= 0.8 and peaks[False] <= 32 * 2**20,
    }


if __name__ == "__main__":
    main()
