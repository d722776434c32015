"""`serve`: what it says at the start, that it answers at once, and that it ends without leaving anything."""

from __future__ import annotations

import json
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import filelock
import pytest

from sessiongraph_web import access, tokens
from sessiongraph_web.indexer import LOCK
from sessiongraph_web.tokens import Tokens
from tests.builders import Log

START_SECONDS = 30
END_SECONDS = 20


@dataclass
class Served:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    port: int
    said: list[str]
    token: str = ""

    def get(self, path: str) -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def json(self, path: str) -> Any:
        status, body = self.get(path)
        assert status == 200, body
        return json.loads(body)

    def end(self, how: int) -> tuple[int, str]:
        """Send a signal; return the exit code and what was said on stderr."""
        self.process.send_signal(how)
        _, err = self.process.communicate(timeout=END_SECONDS)
        return self.process.returncode, err


@contextmanager
def serving(*options: str) -> Iterator[Served]:
    """Start `serve` on a free port and wait for the link that it prints."""
    command = [sys.executable, "-m", "sessiongraph_web", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = [process.stdout.readline(), process.stdout.readline()]
        found = re.search(r"http://127\.0\.0\.1:(\d+)", said[0])
        assert found, process.stderr.read() if process.stderr else ""
        yield Served(process, int(found[1]), said)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@contextmanager
def serving_store(store: Path, index: Path) -> Iterator[Served]:
    """Serve a store to a client that holds an owner's token."""
    index.mkdir(exist_ok=True)
    private = Tokens(index / tokens.FILE)
    token = private.create(access.OWNER, "test", int((time.time() + 600) * 1000))
    private.close()
    with serving("--sessions", str(store), "--index", str(index)) as served:
        served.token = token
        yield served


def children(process: subprocess.Popen[str]) -> list[int]:
    """Return the processes that a process started, and those that they did."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found, waiting = [], [process.pid]
    while waiting:
        at = waiting.pop()
        below = [child for child, parent in parents.items() if parent == at]
        found += below
        waiting += below
    return found


def gone(process_ids: list[int]) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{process_id}").exists() for process_id in process_ids):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_is_served_and_ends_without_a_trace(how: signal.Signals) -> None:
    """It prints a sign-in link, serves made-up sessions, and a signal ends it, its helpers and its directory."""
    with serving("--demo") as served:
        assert "/-/login?token=" in served.said[1]
        assert served.get("/")[0] == 401
        helpers = children(served.process)
        code, err = served.end(how)

    assert code == 0
    assert "Traceback" not in err
    assert gone(helpers)


def test_without_a_store_it_says_where_it_looked(tmp_path: Path) -> None:
    """No sessions yet is a sentence with the place and two ways on, and pages that answer."""
    missing = tmp_path / "nowhere"
    with serving_store(missing, tmp_path / "index") as served:
        status = served.json("/status.json")
        _, err = served.end(signal.SIGINT)

    assert f"looked in {missing}" in err
    assert "--sessions DIR" in err and "serve --demo" in err
    assert status["store_problem"]
    assert "Traceback" not in err


def test_a_port_that_is_taken_is_said_at_once(tmp_path: Path) -> None:
    """Two servers on one port: the second one ends with a sentence that names the port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "sessiongraph_web", "serve", "--port", str(port)]
        command += ["--sessions", str(tmp_path), "--index", str(tmp_path / "index")]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS)

    assert ended.returncode == 78
    assert f"Port {port}" in ended.stderr and "--port" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_sessions_are_read_before_anything_is_indexed(store: Path, tmp_path: Path) -> None:
    """While another run holds the index, nothing waits: sessions come from the store, a search says why not."""
    log = Log().turn("needle", "answer")
    log.write(store)
    (tmp_path / "index").mkdir()
    with filelock.FileLock(tmp_path / "index" / LOCK), serving_store(store, tmp_path / "index") as served:
        page = served.json(f"/sessions/{log.id}.json")
        status, body = served.get("/search.json?q=needle")
        served.end(signal.SIGTERM)

    assert page["session"]["title"] == "needle"
    assert (status, json.loads(body)["code"]) == (503, "SESSION_QUERY_INDEX_FAILED")


def test_it_answers_while_it_is_indexing(store: Path, tmp_path: Path) -> None:
    """A store that takes a while: pages answer meanwhile and say how far it is; in the end all is found."""
    rng = random.Random(7)
    words = [f"word{number}" for number in range(4000)]
    logs = []
    for number in range(16):
        log = Log(f"/w/{number % 8}")
        for _ in range(30):
            log.turn(
                f"needle {number} " + " ".join(rng.choices(words, k=2500)), " ".join(rng.choices(words, k=2500))
            )
        log.write(store)
        logs.append(log)
    with serving_store(store, tmp_path / "index") as served:
        seen = []
        while not seen or seen[-1]["indexing"]:
            answer = served.json("/timeline.json") if (tmp_path / "index/current").exists() else None
            seen.append(answer["index"] if answer else {"indexing": True, "done": 0})
            assert served.json(f"/sessions/{logs[-1].id}.json?limit=1")["session"]["id"] == logs[-1].id
        found = served.json("/search.json?q=needle")
        helpers = children(served.process)
        _, err = served.end(signal.SIGTERM)

    assert any(note["indexing"] for note in seen)
    assert found["session_count"] == 16
    assert "Traceback" not in err
    assert gone(helpers)
