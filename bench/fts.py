#!/usr/bin/env python3
"""Measure how FTS5 is best set up for the entries of a store: time to insert, size, time to find.

    bench/fts.py STORE [--megabytes 60]

Every variant gets the same tokens, in a file of its own, in one transaction as a fresh build does. Times are CPU
seconds of this process; finding is the mean over phrases and prefixes that occur, rowids newest first.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sqlite3
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from sessiongraph_web import documents, logs, redact, tokenizer
from sessiongraph_web.models import Event

QUERIES = (
    '"reindex"',
    '"get_user_by_id"',
    '"广告"',
    '"数据" AND "据库"',
    '"广" *',
    '"connection reset by peer"',
    '"error"',
)
MEBI = 1024 * 1024


@dataclass(frozen=True)
class Variant:
    """One way to set the table up."""

    name: str
    options: str = ""
    settings: dict[str, int] = field(default_factory=lambda: {"hashsize": 16 * MEBI})
    page: int = 8192
    optimize: bool = False


VARIANTS = (
    Variant("hashsize 1 MiB (FTS5's own)", settings={}),
    Variant("hashsize 4 MiB", settings={"hashsize": 4 * MEBI}),
    Variant("hashsize 16 MiB"),
    Variant("hashsize 32 MiB", settings={"hashsize": 32 * MEBI}),
    Variant("hashsize 64 MiB", settings={"hashsize": 64 * MEBI}),
    Variant("automerge 0", settings={"hashsize": 16 * MEBI, "automerge": 0}),
    Variant("automerge 0, crisismerge 64", settings={"hashsize": 16 * MEBI, "automerge": 0, "crisismerge": 64}),
    Variant("automerge 0, then optimize", settings={"hashsize": 16 * MEBI, "automerge": 0}, optimize=True),
    Variant("pages of 4 KiB", page=4096),
    Variant("pages of 16 KiB", page=16384),
    Variant("fts pgsz 8000", settings={"hashsize": 16 * MEBI, "pgsz": 8000}),
    Variant("prefix 1", options=", prefix='1'"),
    Variant("columnsize 0", options=", columnsize=0"),
)


def tokens_of(store: Path, limit: int) -> list[str]:
    """Return what the index is given for the first entries of a store."""
    made: list[str] = []
    size = 0
    for log in logs.discover(store).logs:
        for unit in logs.read(log.path, version=log.version, detail="index"):
            for text in documents.extract(unit, tool_result_chars=16384) if isinstance(unit, Event) else ():
                made.append(tokenizer.index_text(redact.mask(text.text)[0]))
                size += len(text.text)
        if size >= limit:
            break
    return made


def measure(variant: Variant, tokens: list[str], folder: Path) -> dict[str, object]:
    """Build one table and ask it."""
    path = folder / "fts.db"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        f"PRAGMA page_size={variant.page}; PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;"
        "PRAGMA cache_size=-32768;"
        "CREATE VIRTUAL TABLE f USING fts5(tokens, content='', detail=full,"
        f" tokenize='unicode61'{variant.options})"
    )
    for name, value in variant.settings.items():
        connection.execute("INSERT INTO f(f, rank) VALUES (?, ?)", (name, value))
    began = time.process_time()
    connection.execute("BEGIN")
    for batch in (
        itertools.batched(enumerate(tokens, 1), 500) if hasattr(itertools, "batched") else [enumerate(tokens, 1)]
    ):
        connection.executemany("INSERT INTO f(rowid, tokens) VALUES (?, ?)", batch)
    connection.execute("COMMIT")
    if variant.optimize:
        connection.execute("INSERT INTO f(f) VALUES ('optimize')")
    inserted = time.process_time() - began
    finding = []
    for query in QUERIES:
        began = time.perf_counter()
        for _ in range(5):
            connection.execute(
                "SELECT rowid FROM f WHERE f MATCH ? ORDER BY rowid DESC LIMIT 1001", (query,)
            ).fetchall()
        finding.append((time.perf_counter() - began) / 5)
    connection.close()
    return {
        "variant": variant.name,
        "insert_seconds": round(inserted, 2),
        "mebibytes": round(path.stat().st_size / MEBI, 1),
        "find_ms": round(1000 * sum(finding) / len(finding), 2),
        "one_character_ms": round(1000 * finding[4], 2),
    }


def main() -> None:
    """Measure every variant and print one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--megabytes", type=int, default=60)
    options = parser.parse_args()
    tokens = tokens_of(options.store, options.megabytes * 1_000_000)
    print(json.dumps({"entries": len(tokens), "characters": sum(map(len, tokens))}))
    with tempfile.TemporaryDirectory() as folder:
        for variant in VARIANTS:
            print(json.dumps(measure(variant, tokens, Path(folder)), ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
