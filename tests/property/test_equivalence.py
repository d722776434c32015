"""Whatever happens to a store, refreshing the index gives what a fresh build gives."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from sessiongraph_web import config, indexer
from tests.builders import Log
from tests.dumps import dump

WORDS = st.sampled_from(
    ["hello world", "广告SDK超时", "回滚 数据库", "get_user_by_id", "a b a b", "é ß İ", "x" * 3000]
)
CWDS = st.sampled_from(["/w/a", "/w/a/", None])
NAMES = st.sampled_from(["session-1", "session-2"])  # few, so that changes meet each other
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
            log = Log(parent.cwd, id=name, seeded_from=parent).turn(text, "forked")
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

    def _pick(self, which: int) -> tuple[Log, Path]:
        return self.logs[sorted(self.logs)[which % len(self.logs)]]

    def _run(self, index: str) -> None:
        indexer.Run(config.load({"sessions": self.store, "index": self.home / index})).execute()

    def _delete(self, name: str) -> None:
        self.logs.pop(name, None)
        for folder in self.store.glob(f"*/{name}"):
            shutil.rmtree(folder)


TestStore = Store.TestCase
TestStore.settings = hypothesis_settings(max_examples=40, stateful_step_count=12, deadline=None)
