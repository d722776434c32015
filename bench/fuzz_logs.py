#!/usr/bin/env python3
"""Read mutated genuine logs: nothing but our own error may be raised, nothing may hang or take much memory.

    bench/fuzz_logs.py LOG_OR_FOLDER... [--runs 10000] [--seed 1] [--seconds 2] [--mebibytes 64]

Mutations are of the stored bytes (flips, cuts, doubled, moved and foreign pieces, zeros) and, under the
container, of the lines (the same, compressed again). Each mutated log is read in full and for the index, peeked
at, fingerprinted and unpacked. The suite runs a few hundred of these.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import zstandard

from sessiongraph_web import documents, logs, tracing
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.models import Event, Fault
from sessiongraph_web.repair import OpenTurn
from sessiongraph_web.surface import Fold

LIMITS = logs.Limits(max_line_bytes=4 << 20, max_window_bytes=32 << 20)
_PIECES = (
    b"\0" * 64,
    b"\x28\xb5\x2f\xfd",
    b"\x28\xb5\x2f\xfd\x04\x58",
    b"\x50\x2a\x4d\x18\xff\xff\xff\x7f",
    b"\n",
    b"{",
)
_TOKENS = (
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"null",
    b"1e999",
    b"\\ud800",
    b"\\u0000",
    b"\xff",
    b"9" * 40,
    b"[" * 300,
)


def mutate(stored: bytes, chance: random.Random) -> bytes:
    """Return stored bytes with one to eight mutations, above or below the compression."""
    if chance.random() < 0.5:
        return _scramble(stored, chance, _PIECES)
    text = _scramble(_unpacked(stored), chance, _TOKENS)
    lines = text.splitlines(keepends=True)
    frames, compressor = [], zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)
    while lines:
        count = chance.choice((1, 1, 1, 2, 5, 50))
        frames.append(compressor.compress(b"".join(lines[:count])))
        lines = lines[count:]
    return b"".join(frames)


def _unpacked(stored: bytes) -> bytes:
    reader = zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True)
    return b"".join(iter(lambda: reader.read(1 << 20), b""))


def _scramble(text: bytes, chance: random.Random, pieces: tuple[bytes, ...]) -> bytes:
    made = bytearray(text)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(made) + 1)
        length = min(chance.choice((1, 2, 4, 16, 200, 4000)), len(made) - at)
        match chance.randrange(6):
            case 0 if length:
                made[at] ^= 1 << chance.randrange(8)
            case 1:
                del made[at : at + length]
            case 2:
                made[at:at] = made[at : at + length]
            case 3:
                made[at : at + length] = chance.randbytes(length)
            case 4:
                made[at:at] = chance.choice(pieces)
            case 5 if chance.random() < 0.3:
                del made[at:]
    return bytes(made)


def exercise(path: Path) -> Counter[str]:
    """Read one log in every way; return how often each outcome occurred. Only our own error is let pass."""
    seen: Counter[str] = Counter()
    for detail in ("full", "index"):
        try:
            events, digest, turn, fold = [], documents.Digest(), OpenTurn(), Fold()
            units = list(logs.read(path, detail=detail, limits=LIMITS))
            for event, damaged in tracing.with_damage(units):
                fold.push(event, damaged=damaged)
                digest.push(event)
                turn.push(event)
                documents.extract(event, tool_result_chars=16384)
                json.dumps(event.data, allow_nan=False).encode()
                events.append(event)
            turn.closers(ordinal=len(events), seq=0, time=None)
            json.dumps([digest.to_carried(), turn.to_carried()], allow_nan=False).encode()
        except SessionGraphError as error:
            seen[error.code] += 1
            continue
        seen.update(f"{detail}: {unit.code}" for unit in units if isinstance(unit, Fault))
        seen[f"{detail}: events"] += sum(isinstance(unit, Event) for unit in units)
    assert seen["full: events"] == seen["index: events"], "the two readings differ"
    logs.peek_header(path, LIMITS)
    logs.fingerprint(path, path.stat().st_size)
    assert all(len(piece) <= 1 << 20 for piece in logs.plain_text(path, limits=LIMITS))
    return seen


def run(sources: list[Path], runs: int, seed: int, folder: Path) -> tuple[Counter[str], float]:
    """Mutate and read `runs` times; return the outcomes and the longest time one log took, in seconds."""
    chance = random.Random(seed)
    stored = [source.read_bytes() for source in sources]
    path = folder / "--w--" / "s" / "session.v4.jsonl.zstd"
    path.parent.mkdir(parents=True, exist_ok=True)
    seen: Counter[str] = Counter()
    longest = 0.0
    for number in range(runs):
        path.write_bytes(mutate(chance.choice(stored), chance))
        began = time.perf_counter()
        try:
            seen += exercise(path)
        except BaseException:
            print(f"mutation {number} of seed {seed} failed; its bytes are kept in {path}", file=sys.stderr)
            raise
        longest = max(longest, time.perf_counter() - began)
    return seen, longest


def main() -> None:
    """Run the fuzzer and print what it met; fail if a bound was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--mebibytes", type=int, default=64)
    options = parser.parse_args()
    sources = [path for given in options.paths for path in _logs(given)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        seen, longest = run(sources, options.runs, options.seed, Path(folder))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    figures = {"runs": options.runs, "longest_seconds": round(longest, 3), "grown_mib": round(grown, 1)}
    print(json.dumps(figures | {"seen": dict(seen.most_common())}, indent=1))
    if longest > options.seconds or grown > options.mebibytes:
        sys.exit("a bound was broken")


def _logs(given: Path) -> list[Path]:
    return [given] if given.is_file() else sorted(given.glob("**/session*.jsonl.zstd"))


if __name__ == "__main__":
    main()
