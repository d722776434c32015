#!/usr/bin/env python3
"""Measure searching: CPU milliseconds of `search()` over 13 probes, and as a ratio to the bare SQL of its rows.

    bench/query.py INDEX [--rounds 20] [--probe WORD …]

INDEX is an index directory, built from a store of the corpus maker. `scoped` asks its largest workspace, `owner`
all of them. The bare SQL reads, for the same expression, the newest rows of the default kinds that a search
ranks, texts included; it neither counts, ranks, groups nor excerpts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from sessiongraph_web import config, generation, schema, tokenizer
from sessiongraph_web.answers import IndexNote, SearchPage
from sessiongraph_web.filters import SearchRequest
from sessiongraph_web.matching import RANKED_IN_ALL, RANKED_OF_WORKSPACE
from sessiongraph_web.search import Source, search

PROBES = (
    *("reindex", "connection reset by peer", "get_user_by_id", "广告", "回滚", "数据库", "错误码", "FTS5索引"),
    *("支付回调超时", "zq7xkplanted", "qqqnonexistentzzz", "龘靐齉", "error"),
)
BARE_SQL = """
    SELECT e.id, e.log_id, e.time, e.kind, e.length, e.text
    FROM entry_fts AS f CROSS JOIN entry AS e ON e.id = f.rowid
    WHERE f.entry_fts MATCH ? AND e.kind IN ('user', 'assistant', 'tool_call', 'title')
    ORDER BY f.rowid DESC LIMIT ?
"""


def ask(sources: Sequence[Source], probe: str, settings: config.Settings) -> SearchPage:
    """Run one search as an operation does."""
    page, _ = search(
        sources,
        SearchRequest(query=probe),
        settings=settings,
        offset=0,
        deadline=time.monotonic() + settings.search_timeout_seconds,
        index=IndexNote(epoch=1, refreshed_at=None, indexing=False),
        visible=lambda _cwd, _log_id: True,
    )
    return page


def read_bare(sources: Sequence[Source], probe: str) -> None:
    """Read what a search would have to rank."""
    expression = tokenizer.match_expression(tokenizer.parse(probe))
    rows = min(RANKED_OF_WORKSPACE, RANKED_IN_ALL // len(sources))
    for source in sources:
        source.connection.execute(BARE_SQL, [expression, rows]).fetchall()


def timed(act: Callable[[], object], rounds: int) -> list[float]:
    """Return the milliseconds of CPU of each round, so that other work on the machine matters less."""
    figures = []
    for _ in range(rounds):
        started = time.process_time()
        act()
        figures.append((time.process_time() - started) * 1000)
    return figures


def percentile(figures: Sequence[float], hundredths: int) -> float:
    """Return a percentile by the nearest rank."""
    return sorted(figures)[max(0, -(-len(figures) * hundredths // 100) - 1)]


def measure(name: str, sources: Sequence[Source], probes: Sequence[str], rounds: int) -> None:
    """Print a line for each probe and one for all of them."""
    settings = config.load()
    everything: list[float] = []
    bare: list[float] = []
    for probe in probes:
        page = ask(sources, probe, settings)
        figures = timed(partial(ask, sources, probe, settings), rounds)
        floor = timed(partial(read_bare, sources, probe), rounds)
        everything += figures
        bare += floor
        hits = f"{page.hits}{'' if page.hits_exact else '+'}"
        here, there = statistics.median(figures), statistics.median(floor)
        print(f"  {here:7.2f} ms, bare {there:7.2f} ms, {hits:>6} hits  {probe}")
    p50, p95 = statistics.median(everything), percentile(everything, 95)
    ratio = sum(everything) / sum(bare)
    print(
        f"{name}: p50 {p50:.2f} ms, p95 {p95:.2f} ms, {ratio:.2f} x bare SQL ({percentile(bare, 95):.2f} ms p95)"
    )


def main() -> None:
    """Measure one workspace, then all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--probe", nargs="*", default=PROBES)
    arguments = parser.parse_args()
    live = generation.live(arguments.index)
    if live is None:
        parser.error("there is no index")
    with ExitStack() as stack:
        sources = []
        for path in sorted(live.directory.glob("ws_*.db"), key=lambda path: path.stat().st_size):
            connection = schema.open_reader(path)
            stack.callback(connection.close)
            cwd = connection.execute("SELECT value FROM meta WHERE key = 'sealed_cwd'").fetchone()[0]
            sources.append(Source(cwd, connection, 1))
        measure("scoped", sources[-1:], arguments.probe, arguments.rounds)
        measure("owner", sources, arguments.probe, arguments.rounds)


if __name__ == "__main__":
    main()
