"""Whatever happens to a store, refreshing the index gives what a fresh build gives."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec import structs

from sessiongraph_web import access, config, indexer
from sessiongraph_web.filters import SearchRequest
from sessiongraph_web.models import KINDS
from sessiongraph_web.operations import SessionGraph
from tests.builders import Log, line
from tests.dumps import dump

WORDS = st.sampled_from(
    ["hello world", "广告SDK超时", "回滚 数据库", "get_user_by_id", "a b a b", "é ß İ", "x" * 3000]
)
CWDS = st.sampled_from(["/w/a", "/w/a/", None])
NAMES = st.sampled_from(["session-1", "session-2"])  # few, so that changes meet each other
QUERIES = ("hello", "广告")
MOST_LOGS = 5


class Store(RuleBasedStateMachine):
    """A store that dsh and people change, and an index that is refreshed after some of the changes."""

    @initialize()
    def start(self) -> None:
        self.home = Path(tempfile.mkdtemp())
        self.store = self.home / "sessions"
        self.store.mkdir()
        self.logs: dict[str, tuple[Log, Path]] = {}
        self.create("session-1", "/w/a", None, "hello", True)

    @rule(name=NAMES, cwd=CWDS, parent=st.none() | NAMES, text=WORDS, refresh=st.booleans())
    def create(self, name: str, cwd: str | None, parent: str | None, text: str, refresh: bool) -> None:
        """A new session, or one that was replaced by another under the same name."""
        self._delete(name)
        log = Log(cwd, id=name, parent=parent).turn(text, text[::-1])
        self.logs[name] = (log, log.write(self.store))
        self._settle(refresh)

    @precondition(lambda self: self.logs)
    @rule(which=st.integers(0, 5), text=WORDS, tool=st.booleans(), refresh=st.booleans())
    def append(self, which: int, text: str, tool: bool, refresh: bool) -> None:
        """A whole turn more."""
        log, path = self._pick(which)
        log.turn(text, "answer", [("bash", '{"command": "ls"}', text)] if tool else [])
        log.append(path)
        self._settle(refresh)

    @precondition(lambda self: self.logs)
    @rule(which=st.integers(0, 5), text=WORDS, refresh=st.booleans())
    def open_turn(self, which: int, text: str, refresh: bool) -> None:
        """A turn that has begun and not ended."""
        log, path = self._pick(which)
        log.start_turn(text)
        log.append(path)
        self._settle(refresh)

    @precondition(lambda self: self.logs)
    @rule(which=st.integers(0, 5), refresh=st.booleans())
    def compact(self, which: int, refresh: bool) -> None:
        """Everything on the surface is replaced by a summary."""
        log, path = self._pick(which)
        on_surface = [e["seq"] for e in log.events if e.get("surfaceOp") == "append"]
        if not any(isinstance(event.get("surfaceOp"), dict) for event in log.events):
            log.compact("a summary", on_surface[0], on_surface[-1], on_surface)
            log.append(path)
            self._settle(refresh)

    @precondition(lambda self: self.logs)
    @rule(which=st.integers(0, 5), text=WORDS, refresh=st.booleans())
    def fork(self, which: int, text: str, refresh: bool) -> None:
        """A session that begins with a copy of another one."""
        parent = self._pick(which)[0]
        name = f"{parent.id}-fork"
        if name not in self.logs and len(self.logs) < MOST_LOGS:
            log = Log(parent.cwd, id=name, version=parent.version, seeded_from=parent).turn(text, "forked")
            self.logs[name] = (log, log.write(self.store))
            self._settle(refresh)

    @precondition(lambda self: self.logs)
    @rule(which=st.integers(0, 5), drop=st.integers(1, 400), refresh=st.booleans())
    def truncate(self, which: int, drop: int, refresh: bool) -> None:
        """The file loses its end, and is not appended to again."""
        log, path = self._pick(which)
        del self.logs[log.id]
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.truncate(max(0, size - drop))
        self._settle(refresh)

    @precondition(lambda self: self.logs)
    @rule(which=st.integers(0, 5), refresh=st.booleans())
    def prune(self, which: int, refresh: bool) -> None:
        """A tool result that was stored long before is replaced by a shorter one."""
        log, path = self._pick(which)
        results = [e for e in log.events if e["type"] == "tool/result" and e.get("surfaceOp") == "append"]
        if results and not any(isinstance(event.get("surfaceOp"), dict) for event in log.events):
            old = results[0]
            message = {**old["data"]["message"], "content": [{"type": "text", "text": "pruned"}]}
            log.replace("tool/result", {**old["data"], "message": message}, old["seq"], old["seq"])
            log.frame()
            log.append(path)
            self._settle(refresh)

    @precondition(lambda self: self.logs)
    @rule(which=st.integers(0, 5), to=st.sampled_from(["--w-c--", "--elsewhere--"]), refresh=st.booleans())
    def move(self, which: int, to: str, refresh: bool) -> None:
        """A session's folder is put below another project, its header as it was."""
        log, path = self._pick(which)
        place = self.store / to / path.parent.name
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            path.parent.rename(place)
            self.logs[log.id] = (log, place / path.name)
            self._settle(refresh)

    @precondition(lambda self: self.logs)
    @rule(which=st.integers(0, 5), cwd=CWDS, parent=st.none() | NAMES, refresh=st.booleans())
    def rewrite_header(self, which: int, cwd: str | None, parent: str | None, refresh: bool) -> None:
        """The first line says another cwd or parent, the events are the same."""
        log, path = self._pick(which)
        header = {key: value for key, value in log.header.items() if key not in ("cwd", "parentSession")}
        header |= {"cwd": cwd} if cwd else {}
        header |= {"parentSession": parent} if parent else {}
        log.header, log.frames[0], log.cwd = header, line(header), cwd
        path.write_bytes(log.to_bytes(path.suffix == ".zstd"))
        self._settle(refresh)

    @precondition(lambda self: self.logs)
    @rule(which=st.integers(0, 5), where=st.floats(0.1, 0.9), refresh=st.booleans())
    def damage(self, which: int, where: float, refresh: bool) -> None:
        """Bytes in the middle are wiped; dsh goes on appending."""
        path = self._pick(which)[1]
        stored = bytearray(path.read_bytes())
        at = int(len(stored) * where)
        stored[at : at + 3] = b"\0\0\0"
        path.write_bytes(stored)
        self._settle(refresh)

    @rule(name=NAMES, version=st.sampled_from([0, 3]), compressed=st.booleans(), refresh=st.booleans())
    def create_old(self, name: str, version: int, compressed: bool, refresh: bool) -> None:
        """A session of an earlier generation, compressed or plain."""
        self._delete(name)
        log = Log("/w/a", id=name, version=version).turn("old 广告", "answer", [("bash", "{}", "hello world")])
        self.logs[name] = (log, log.write(self.store, compressed))
        self._settle(refresh)

    @precondition(lambda self: self.logs)
    @rule(which=st.integers(0, 5), refresh=st.booleans())
    def migrate(self, which: int, refresh: bool) -> None:
        """A newer generation is put beside a log; the older one stays."""
        log, path = self._pick(which)
        if log.version < 4 and "v4" not in path.name:
            newer = Log(log.cwd, id=log.id).turn("migrated", "answer")
            place = path.with_name("session.v4.jsonl.zstd")
            place.write_bytes(newer.to_bytes())
            newer._written = len(newer.frames)
            self.logs[log.id] = (newer, place)
            self._settle(refresh)

    @rule(name=NAMES, refresh=st.booleans())
    def delete(self, name: str, refresh: bool) -> None:
        """A session is gone with its folder."""
        self._delete(name)
        self._settle(refresh)

    def teardown(self) -> None:
        if hasattr(self, "home"):
            self._settle(True)
            shutil.rmtree(self.home)

    def _settle(self, refresh: bool) -> None:
        """Refresh the index, if this is the moment; then it equals a fresh build."""
        if not refresh:
            return
        self._run("index")
        shutil.rmtree(self.home / "fresh", ignore_errors=True)
        self._run("fresh")
        assert dump(self.home / "index") == dump(self.home / "fresh")
        for query in QUERIES:
            assert self._hits("index", query) == self._hits("fresh", query)

    def _pick(self, which: int) -> tuple[Log, Path]:
        return self.logs[sorted(self.logs)[which % len(self.logs)]]

    def _run(self, index: str) -> None:
        indexer.Run(config.load({"sessions": self.store, "index": self.home / index})).execute()

    def _hits(self, index: str, query: str) -> dict[str, Any]:
        """Return what a search says, but for what names the index itself."""
        settings = config.load({"sessions": self.store, "index": self.home / index, "auto_refresh": False})
        with closing(SessionGraph(settings)) as product:
            page = product.search(access.OWNER, SearchRequest(query=query, kinds=KINDS, group="none", limit=100))
        return {name: value for name, value in structs.asdict(page).items() if name not in ("took_ms", "index")}

    def _delete(self, name: str) -> None:
        self.logs.pop(name, None)
        for folder in self.store.glob(f"*/{name}"):
            shutil.rmtree(folder)


TestStore = Store.TestCase
EXAMPLES = int(os.environ.get("SESSIONGRAPH_EXAMPLES", "20"))
TestStore.settings = hypothesis_settings(max_examples=EXAMPLES, stateful_step_count=14, deadline=None)
