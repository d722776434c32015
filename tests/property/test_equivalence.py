"""Whatever happens to a store, refreshing the index gives what a fresh build gives."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from sessiongraph_web import config, indexer
from tests.builders import Log
from tests.dumps import dump

WORDS = st.sampled_from(
    ["hello world", "广告SDK超时", "回滚 数据库", "get_user_by_id", "a b a b", "é ß İ", "x" * 3000]
)
CWDS = st.sampled_from(["/w/a", "/w/b", "/w/a/", None])
NAMES = st.sampled_from(["session-1", "session-2", "session-3", "session-4"])


class Store(RuleBasedStateMachine):
    """A store that dsh and people change, and an index that is refreshed between any two changes or not."""

    @initialize()
    def start(self) -> None:
        self.home = Path(tempfile.mkdtemp())
        self.store = self.home / "sessions"
        self.store.mkdir()
        self.logs: dict[str, tuple[Log, Path]] = {}

    @rule(name=NAMES, cwd=CWDS, parent=st.none() | NAMES, text=WORDS)
    def create(self, name: str, cwd: str | None, parent: str | None, text: str) -> None:
        """A new session, or one that was replaced by another under the same name."""
        self._delete(name)
        log = Log(cwd, id=name, parent=parent).turn(text, text[::-1])
        self.logs[name] = (log, log.write(self.store))

    @rule(name=NAMES, text=WORDS, tool=st.booleans())
    def append(self, name: str, text: str, tool: bool) -> None:
        """A whole turn more."""
        if name in self.logs:
            log, path = self.logs[name]
            log.turn(text, "answer", [("bash", '{"command": "ls"}', text)] if tool else [])
            log.append(path)

    @rule(name=NAMES, text=WORDS)
    def open_turn(self, name: str, text: str) -> None:
        """A turn that has begun and not ended."""
        if name in self.logs:
            log, path = self.logs[name]
            log.start_turn(text)
            log.append(path)

    @rule(name=NAMES, text=WORDS)
    def fork(self, name: str, text: str) -> None:
        """A session that begins with a copy of another one."""
        if name in self.logs and f"{name}-fork" not in self.logs:
            parent = self.logs[name][0]
            log = Log(parent.cwd, id=f"{name}-fork", seeded_from=parent).turn(text, "forked")
            self.logs[f"{name}-fork"] = (log, log.write(self.store))

    @rule(name=NAMES, drop=st.integers(1, 400))
    def truncate(self, name: str, drop: int) -> None:
        """The file loses its end, and is not appended to again."""
        if name in self.logs:
            path = self.logs.pop(name)[1]
            size = path.stat().st_size
            with path.open("r+b") as file:
                file.truncate(max(0, size - drop))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self._delete(name)

    @rule()
    def refresh(self) -> None:
        """A run at this moment; then the index equals a fresh build."""
        self._run("index")
        shutil.rmtree(self.home / "fresh", ignore_errors=True)
        self._run("fresh")
        assert dump(self.home / "index") == dump(self.home / "fresh")

    def teardown(self) -> None:
        if hasattr(self, "home"):
            self.refresh()
            shutil.rmtree(self.home)

    def _run(self, index: str) -> None:
        indexer.Run(config.load({"sessions": self.store, "index": self.home / index})).execute()

    def _delete(self, name: str) -> None:
        self.logs.pop(name, None)
        for folder in self.store.glob(f"*/{name}"):
            shutil.rmtree(folder)


TestStore = Store.TestCase
TestStore.settings = hypothesis_settings(max_examples=40, stateful_step_count=12, deadline=None)
