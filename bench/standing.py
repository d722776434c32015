"""A server in a process of its own over a made-up store: what is written to it, asked of it, and what it holds.

`bench/soak.py` and `bench/load.py` run it.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent.parent))

from sessiongraph_web import access, schema, tokens
from sessiongraph_web.tokens import Tokens
from tests.builders import Log

WORKSPACES = ("/w/shop", "/w/shop/api", "/w/广告平台", "/w/blog", "/w/tools", "/w/site")
WORDS = (
    *("timeout", "retry", "cache", "session", "token", "parser", "schema", "index", "query", "client", "server"),
    *(
        "request",
        "deploy",
        "广告",
        "投放",
        "模块",
        "回滚",
        "数据库",
        "迁移",
        "脚本",
        "超时",
        "重试",
        "接口",
        "缓存",
        "查询",
    ),
)
PROBES = ("timeout", "广告", "数据库 迁移", '"cache session"', "module_9", "nothing-like-it")
TOKEN_SECONDS = 7 * 86_400
SEEN_MS = 60_000
MIB = 2**20


@dataclass
class Store:
    """A store that is written to, and the ids of what is in it. Every method may be called from any thread."""

    directory: Path
    dice: random.Random
    logs: dict[str, tuple[Log, Path]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    def fill(self, megabytes: float) -> None:
        """Write sessions until the store holds so much text."""
        written = 0
        while written < megabytes * 1e6:
            log = self.begin(turns=self.dice.randint(1, 60))
            written += sum(map(len, log.frames))

    def begin(self, *, turns: int = 1) -> Log:
        """Write a new session, now and then a fork or a subagent."""
        with self.lock:
            kin = self.logs[self.dice.choice(sorted(self.logs))][0] if self.logs else None
            chance = self.dice.random()
            if kin is not None and chance < 0.1:
                log = Log(kin.cwd, seeded_from=kin, created_at=now())
            elif kin is not None and chance < 0.25:
                log = Log(kin.cwd, parent=kin.id, origin="subagent", created_at=now())
            else:
                log = Log(self.dice.choice(WORKSPACES), created_at=now())
            for _ in range(turns):
                self._talk(log)
            self.logs[log.id] = log, log.write(self.directory)
            return log

    def append(self) -> None:
        """Append a turn to some session."""
        with self.lock:
            log, path = self.logs[self.dice.choice(sorted(self.logs))]
            self._talk(log)
            log.append(path)

    def rewrite(self) -> None:
        """Write some session anew, with other texts, in the place of the old one."""
        with self.lock:
            old, path = self.logs[self.dice.choice(sorted(self.logs))]
            log = Log(old.cwd, id=old.id, created_at=old.created_at)
            for _ in range(self.dice.randint(1, 60)):
                self._talk(log)
            aside = path.with_name("aside")
            aside.write_bytes(log.to_bytes())
            aside.replace(path)
            log._written = len(log.frames)
            self.logs[log.id] = log, path

    def drop(self) -> None:
        """Delete the oldest session."""
        with self.lock:
            oldest = next(iter(self.logs))
            _, path = self.logs.pop(oldest)
            self.gone.add(oldest)
            shutil.rmtree(path.parent)

    def some(self) -> Log:
        """Return some session that is there, and no newer than a look at the store may be late."""
        with self.lock:
            known = [log for log, _ in self.logs.values() if log.created_at < now() - SEEN_MS]
            return self.dice.choice(known or [log for log, _ in self.logs.values()])

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.directory.rglob("session.*"))

    def _talk(self, log: Log) -> None:
        output = self._text(150)
        log.time = max(log.time, now() - 10_000)
        log.turn(self._text(12), self._text(60), [("bash", json.dumps({"command": self._text(3)}), output)])

    def _text(self, words: int) -> str:
        chosen = [self.dice.choice(WORDS) for _ in range(words)]
        return " ".join(
            word if self.dice.random() < 0.7 else f"{word}_{self.dice.randrange(99)}" for word in chosen
        )


def now() -> int:
    return int(time.time() * 1000)


def addresses(store: Store, dice: random.Random) -> str:
    """Return the address of some page or its twin."""
    log = store.some()
    session, seq = f"/sessions/{log.id}", dice.randrange(log.seq)
    workspace = f"/{schema.database_name(log.cwd)}"
    return dice.choice(
        (
            *(f"/{suffix}" for suffix in ("", ".json")),
            *(f"/search{suffix}?q={quote(dice.choice(PROBES))}" for suffix in ("", "", ".json", ".json")),
            *(
                f"{session}{suffix}"
                for suffix in ("", "?last=1", "?view=focus", ".json", "/events", "/events.json")
            ),
            *(f"{session}/events/{seq}{suffix}" for suffix in ("", ".json?before=3&after=3")),
            *(f"/trace/{log.id}{suffix}" for suffix in ("", ".json")),
            *(f"/timeline{suffix}" for suffix in ("", ".json?sort=activity")),
            *("/workspaces.json", "/status", "/status.json?ledger=1", "/openapi.json"),
            *(
                f"{workspace}/entry?_size=10",
                f"{workspace}/session.json",
                f"/search.json?q=cache&workspace={quote(log.cwd)}",
            ),
        )
    )


def exports(store: Store, dice: random.Random) -> str:
    """Return the address of some download."""
    log = store.some()
    forms = (".zip", ".zip?descendants=1", ".zip?redact=1", ".md", ".json", ".ndjson")
    return f"/export/{log.id}{dice.choice(forms)}"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its process, its port, and a token of its owner."""

    pid: int
    port: int
    token: str

    def connect(self, timeout: float = 120) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def post(self, path: str) -> int:
        connection = self.connect()
        kind = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
        connection.request("POST", path, body="", headers=self.headers | kind)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status


@contextmanager
def serving(store: Path, index: Path) -> Iterator[Server]:
    """Serve until the block ends; begin when the first index is there."""
    private = Tokens(index / tokens.FILE)
    token = private.create(access.OWNER, "bench", now() + TOKEN_SECONDS * 1000)
    private.close()
    command = [sys.executable, "-m", "sessiongraph_web", "serve", "--port", "0"]
    command += ["--sessions", str(store), "--index", str(index)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+)", process.stdout.readline().partition("//")[2])
        assert found
        server = Server(process.pid, int(found[1]), token)
        try:
            _until_indexed(server)
            yield server
        finally:
            process.send_signal(signal.SIGTERM)


def _until_indexed(server: Server) -> None:
    while True:
        connection = server.connect()
        connection.request("GET", "/status.json", headers=server.headers)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        if answer["sessions"] and not answer["index"]["indexing"]:
            return
        time.sleep(0.5)


def family(pid: int) -> list[int]:
    """Return a process and all that it started."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    found = [int(child) for each in children for child in each.read_text().split()]
    return [pid, *(member for child in found for member in family(child))]


def holdings(server: Server, index: Path) -> dict[str, float]:
    """Return what the server and its workers hold now: memory in MiB, descriptors, threads, bytes of files."""
    memory = descriptors = threads = 0
    for pid in family(server.pid):
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            memory += int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1])  # type: ignore[index]
            descriptors += sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
            threads += sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
        except (OSError, TypeError):
            continue  # a worker that has just ended
    files = {path: _size(path) for path in index.rglob("*") if path.is_file()}
    wal = sum(size for path, size in files.items() if path.name.endswith("-wal"))
    return {
        "pss_mib": round(memory / 1024, 2),
        "descriptors": descriptors,
        "threads": threads,
        "wal_mib": round(wal / MIB, 3),
        "index_mib": round((sum(files.values()) - wal) / MIB, 3),
    }


def cpu_seconds(pid: int) -> float:
    """Return what a process and its ended children have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def percentile(figures: list[float], hundredths: int) -> float:
    """Return a percentile by the nearest rank, or 0 of nothing."""
    return sorted(figures)[max(0, -(-len(figures) * hundredths // 100) - 1)] if figures else 0.0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
