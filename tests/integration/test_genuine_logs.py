"""Logs that dsh itself wrote, read to the same summary as when they were first checked.

`python -m tests.integration.test_genuine_logs` writes the summaries anew, after the counts were found equal by a
second route: one decompression of the whole file by zstd's own command, and `json` on every line.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from sessiongraph_web import logs
from sessiongraph_web.models import Event, Fault, FrameEnd, Resume
from tests.shared import SHARED, shared_folders
from tests.summaries import summarise

pytestmark = pytest.mark.shared

RECORDED: Final = Path(__file__).parents[1] / "data" / "genuine_summaries.json"
STORES: Final = ("sessions*", "killed-before-resume")
_PACKED: Final = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}


def _logs() -> dict[str, Path]:
    found = {}
    for pattern in STORES:
        for store in shared_folders("genuine", pattern):
            for log in logs.discover(store).logs:
                found[f"{store.name}/{log.relative}"] = log.path
    return found


LOGS: Final = _logs()


@pytest.mark.parametrize("name", sorted(LOGS))
def test_summary_is_as_recorded(name: str) -> None:
    """Every count, title, border and pair of a genuine log is as recorded, read fully and for the index."""
    recorded = json.loads(RECORDED.read_text("utf-8"))
    if name not in recorded:
        pytest.skip("not recorded yet")
    assert summarise(LOGS[name]).to_json() == recorded[name]
    assert summarise(LOGS[name], detail="index").to_json() == recorded[name]


@pytest.mark.parametrize("name", sorted(LOGS))
def test_counts_agree_with_another_route(name: str) -> None:
    """zstd's own command and `json` on every line count the same records, events and types."""
    if shutil.which("zstd") is None:
        pytest.skip("no zstd command here")
    summary = summarise(LOGS[name]).to_json()
    assert {key: summary[key] for key in ("id", "version", "records", "events", "types")} == _other_route(
        LOGS[name]
    )


@pytest.mark.parametrize("name", sorted(LOGS))
def test_no_genuine_log_is_damaged(name: str) -> None:
    """The only fault in genuine logs is the folder of the copy that was made before a resume."""
    renamed = name.startswith("killed-before-resume/")
    assert summarise(LOGS[name]).codes == (["id_mismatch"] if renamed else [])


@pytest.mark.parametrize("name", sorted(LOGS))
def test_resuming_at_any_frame_gives_the_rest(name: str) -> None:
    """Reading from any clean frame end yields exactly what reading from the start yields behind it."""
    for detail in ("full", "index"):
        whole = list(logs.read(LOGS[name], detail=detail))
        for position, unit in enumerate(whole):
            if isinstance(unit, FrameEnd) and unit.clean:
                resume = Resume(unit.end, unit.ordinal, unit.line, unit.next_seq)
                rest = list(logs.read(LOGS[name], resume=resume, detail=detail))
                if LOGS[name].suffix == ".zstd":
                    assert rest == whole[position + 1 :]
                else:  # the stretches of a plain log begin where reading does
                    assert _records(rest) == _records(whole[position + 1 :])


def test_the_text_as_stored_is_what_zstd_gives(shared: Path) -> None:
    """`plain_text` is byte for byte what zstd's own command writes."""
    if shutil.which("zstd") is None:
        pytest.skip("no zstd command here")
    for path in LOGS.values():
        assert b"".join(logs.plain_text(path)) == _decompressed(path)


def test_a_resume_closed_the_turn_as_the_repair_does(shared: Path) -> None:
    """What dsh appended to a killed log when it resumed it is what `OpenTurn` gives for the log before that."""
    (before,) = [path for name, path in LOGS.items() if name.startswith("killed-before-resume/")]
    killed = summarise(before)
    assert killed.header is not None
    (after,) = [path for name, path in LOGS.items() if name.startswith("sessions/") and killed.header.id in name]
    events = summarise(after).events
    last = killed.events[-1]
    made = killed.open_turn.closers(ordinal=len(killed.events), seq=(last.seq or 0) + 1, time=last.time)
    appended = events[len(killed.events) : len(killed.events) + len(made)]
    assert made
    assert [(e.type, e.seq, e.time, e.data) for e in made] == [(e.type, e.seq, e.time, e.data) for e in appended]


def _records(units: list[Any]) -> list[Any]:
    return [unit for unit in units if isinstance(unit, Event | Fault)]


def _decompressed(path: Path) -> bytes:
    if path.suffix != ".zstd":
        return path.read_bytes()
    return subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout


def _other_route(path: Path) -> dict[str, Any]:
    first, *rest = [json.loads(row) for row in _decompressed(path).split(b"\n") if row]
    counts = [len(row["data"][_PACKED[row["type"]]]) if row["type"] in _PACKED else 1 for row in rest]
    return {
        "id": first["id"],
        "version": first["version"],
        "records": len(rest),
        "events": sum(counts),
        "types": dict(sorted(Counter(row["type"] for row in rest).items())),
    }


if __name__ == "__main__":
    assert SHARED is not None
    recorded = {}
    for log_name, log_path in sorted(LOGS.items()):
        recorded[log_name] = summarise(log_path).to_json()
        for key, value in _other_route(log_path).items():
            assert recorded[log_name][key] == value, (log_name, key)
    RECORDED.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", "utf-8")
