"""The demo's session that goes on: it looks live, grows, and leaves nothing behind."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from sessiongraph_web import demo, logs, rehearsal
from sessiongraph_web.models import Event, Fault

SECONDS = 30  # after which a test gives up; nothing is measured with it


def test_it_grows_while_its_lock_is_held(tmp_path: Path) -> None:
    """Lines are added with the time they are written at, until the last; then it waits, live still."""
    with rehearsal.going_on(tmp_path, pause=0.001) as path:
        assert logs.is_live(path) is not False
        until, size = time.monotonic() + SECONDS, -1
        while path.stat().st_size != size and time.monotonic() < until:
            size = path.stat().st_size
            threading.Event().wait(0.2)
        units = list(logs.read(path))
    assert logs.is_live(path) is False
    events = [unit for unit in units if isinstance(unit, Event)]
    assert [unit for unit in units if isinstance(unit, Fault)] == []
    assert [event.seq for event in events] == list(range(len(events)))
    assert [event.type for event in events].count("user/message") == 3
    assert events[-1].type == "turn/end"
    times = [event.time or 0 for event in events]
    assert times == sorted(times)


def test_leaving_stops_it_where_it_is(tmp_path: Path) -> None:
    """What was written are whole lines, and no thread goes on."""
    threads = threading.active_count()
    with rehearsal.going_on(tmp_path, pause=SECONDS) as path:
        assert threading.active_count() == threads + 1
    assert threading.active_count() == threads
    assert [json.loads(line)["type"] for line in path.read_text("utf-8").splitlines()][-1] == "step/start"


def test_the_demo_is_the_same_every_time_and_fills_a_year(tmp_path: Path) -> None:
    """Sessions have the same ids each time; every workspace has some, and most months do."""
    made = []
    for name in ("one", "two"):
        demo.write(tmp_path / name, tmp_path / f"{name}-attachments")
        made.append({path.parent.name for path in (tmp_path / name).rglob("session.v4.jsonl")})
    headers = [logs.peek_header(path) for path in (tmp_path / "one").rglob("session.v4.jsonl")]
    assert made[0] == made[1]
    assert not [header for header in headers if isinstance(header, Fault)]
    assert {header.cwd for header in headers} == {demo.SHOP, demo.ADS, demo.BLOG, demo.INFRA, demo.NOTES}
    assert len({time.gmtime((header.created_at or 0) // 1000)[:2] for header in headers}) >= 9
