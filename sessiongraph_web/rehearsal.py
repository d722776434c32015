"""A made-up session that goes on while it is watched, as dsh would write it: line by line, its lock held."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sessiongraph_web import demo
from sessiongraph_web.discovery import LOCK

PAUSE_SECONDS: Final = 1.5  # between two lines
_BEGUN_MS: Final = 11 * 60_000  # ago


@contextmanager
def going_on(store: Path, *, pause: float = PAUSE_SECONDS) -> Iterator[Path]:
    """Write the session as far as it has come, and go on with it until the block is left; yield its log."""
    log, written = _session(time.time_ns() // 1_000_000 - _BEGUN_MS)
    path = log.write(store, written)
    left = threading.Event()
    with (path.parent / LOCK).open("w") as lock, path.open("a", encoding="utf-8") as file:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def play() -> None:
            for line in log.lines[written:]:
                if left.wait(pause):
                    return
                line["time"] = time.time_ns() // 1_000_000
                file.write(demo.spelled(line))
                file.flush()

        player = threading.Thread(target=play, name="rehearsal")
        player.start()
        try:
            yield path
        finally:
            left.set()
            player.join()


def _session(started: int) -> tuple[demo.Log, int]:
    """Return the session with all that is still to come, and how many of its lines have been written."""
    log = demo.Log(demo.SHOP, started, agentPreset="standard")
    _limit(log)
    log.ask("Answer 429 with Retry-After then, and test that it is right at the border of a minute.")
    log.call("read", {"file_path": "shop/api/limits.py"}, _LIMITS)
    written = len(log.lines)
    _retry_after(log)
    _translate(log)
    return log, written


_LIMITS: Final = """\
class Bucket:
    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self.hits: deque[float] = deque()

    def admits(self, now: float) -> bool:
        while self.hits and self.hits[0] <= now - 60:
            self.hits.popleft()
        if len(self.hits) >= self.per_minute:
            return False
        self.hits.append(now)
        return True
"""


def _limit(log: demo.Log) -> None:
    log.ask("Add a rate limit to the public API: 60 requests a minute for each key.", "Rate limits for the API")
    log.todo(
        Find_where_keys_are_checked="completed", Limit_requests_by_key="in_progress", Test_the_limit="pending"
    )
    log.call(
        "bash",
        _command("rg -n 'api_key' shop/api", "Find where keys are checked"),
        "shop/api/auth.py:18:    key = request.headers.get('x-api-key')\nshop/api/app.py:42:    check(api_key)\n",
        reasoning="The limit belongs right behind the check of the key, so that strangers cost nothing.",
    )
    log.call(
        "write",
        {"file_path": "shop/api/limits.py", "content": _LIMITS},
        "The file shop/api/limits.py was written.",
    )
    log.edit(
        "shop/api/app.py",
        "    check(api_key)\n    return await handle(request)\n",
        "    check(api_key)\n    if not buckets[api_key].admits(monotonic()):\n        raise TooManyRequests\n"
        "    return await handle(request)\n",
    )
    log.call(
        "bash",
        _command("pytest -q tests/api", "Run the API's tests"),
        "\x1b[31mF\x1b[0m\x1b[32m.................\x1b[0m\nE   NameError: name 'monotonic' is not defined\n"
        "1 failed, 17 passed in 2.1s\n[exit code: 1]",
    )
    log.edit("shop/api/app.py", "import asyncio\n", "import asyncio\nfrom time import monotonic\n")
    log.call(
        "bash",
        _command("pytest -q tests/api", "Run them again"),
        "\x1b[32m..................\x1b[0m\n18 passed in 2.0s\n",
    )
    log.answer(
        "Each key now has a bucket of **60 requests in any 60 seconds**:\n\n"
        "| file | what changed |\n|---|---|\n| `shop/api/limits.py` | `Bucket`, a sliding window |\n"
        "| `shop/api/app.py` | asks it behind the key check |\n\nToo many requests raise `TooManyRequests`, which"
        " is a bare 500 so far. Shall it be a 429?"
    )


def _retry_after(log: demo.Log) -> None:
    log.todo(Answer_429="in_progress", Say_when_to_come_back="pending", Test_the_border="pending")
    log.edit(
        "shop/api/limits.py",
        "        self.hits.append(now)\n        return True\n",
        "        self.hits.append(now)\n        return True\n\n    def opens_in(self, now: float) -> int:\n"
        "        return max(1, ceil(self.hits[0] + 60 - now))\n",
    )
    log.edit(
        "shop/api/app.py",
        "        raise TooManyRequests\n",
        "        wait = buckets[api_key].opens_in(monotonic())\n"
        '        return Response(429, headers={"retry-after": str(wait)})\n',
    )
    log.call(
        "write",
        {
            "file_path": "tests/api/test_limits.py",
            "content": "def test_the_sixty_first_waits(clock):\n    bucket = Bucket(60)\n"
            "    assert all(bucket.admits(clock()) for _ in range(60))\n    assert not bucket.admits(clock())\n"
            "    assert bucket.opens_in(clock()) == 60\n",
        },
        "The file tests/api/test_limits.py was written.",
    )
    log.call(
        "bash",
        _command("pytest -q tests/api/test_limits.py", "Test the border"),
        "\x1b[31mF\x1b[0m\nE   assert 61 == 60\n1 failed in 0.3s\n[exit code: 1]",
        reasoning="61 at the border: a float that is a hair above 60. Count in whole milliseconds.",
    )
    log.edit(
        "shop/api/limits.py",
        "        return max(1, ceil(self.hits[0] + 60 - now))\n",
        "        return max(1, -(-round((self.hits[0] + 60 - now) * 1000) // 1000))\n",
    )
    log.call(
        "bash",
        _command("pytest -q tests/api", "Run all of them"),
        "\x1b[32m...................\x1b[0m\n19 passed in 2.2s\n",
    )
    log.todo(Answer_429="completed", Say_when_to_come_back="completed", Test_the_border="completed")
    log.answer("The 61st request is a **429** with `Retry-After`, in whole seconds and never 0. 19 tests pass.")


def _translate(log: demo.Log) -> None:
    log.ask("顺便给 429 的正文写一句中文提示。")
    log.edit(
        "shop/api/app.py",
        '        return Response(429, headers={"retry-after": str(wait)})\n',
        '        body = {"error": f"请求过于频繁，请在 {wait} 秒后重试。"}\n'
        '        return Response(429, body, headers={"retry-after": str(wait)})\n',
    )
    log.call(
        "bash",
        _command("pytest -q tests/api", "跑测试"),
        "\x1b[32m...................\x1b[0m\n19 passed in 2.2s\n",
    )
    log.answer('正文现在是 `{"error": "请求过于频繁，请在 12 秒后重试。"}`，秒数与 `Retry-After` 一致。')


def _command(command: str, description: str) -> dict[str, Any]:
    return {"command": command, "description": description}
