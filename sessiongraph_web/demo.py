"""Made-up sessions, so that the product can be tried without a store of one's own."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import struct
import time
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sessiongraph_web import logs

SHOP: Final = "/home/you/work/shop"
ADS: Final = "/home/you/work/广告平台"
BLOG: Final = "/home/you/blog"
INFRA: Final = "/home/you/work/infra"
NOTES: Final = "/home/you/笔记"
DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
SMALL_SESSIONS: Final = 180
BUSY_WEEKS: Final = 40  # over which the small sessions are spread, more of them lately
MODELS: Final = ("deepseek-chat", "deepseek-reasoner")
CHART_WIDTH, CHART_HEIGHT = 360, 140  # pixels
CHART_BARS: Final = (12, 9, 17, 14, 11, 96, 118, 64, 20, 10)  # timeouts an hour, in pixels
_SEED: Final = 20


class Log:
    """One session under construction, written as a plain log of generation 4."""

    def __init__(self, cwd: str, started: int, **header: Any) -> None:
        self.cwd, self.time = cwd, started
        self.id = header.pop("id", None) or f"session-{uuid.UUID(int=_random.getrandbits(128), version=4)}"
        seeded = header.pop("seed", None)
        first = {"type": "session", "version": 4, "id": self.id, "createdAt": started, "cwd": cwd}
        self.lines = [first | {"isSeeded": seeded is not None, "delegationDepth": 0} | header]
        self.turn, self.step = 0, 0
        self.model = MODELS[0]
        if seeded is not None:
            self.lines += seeded.lines[1:]
            self.turn = seeded.turn
            self.add("session/end-seed", {"inherited": True})

    def add(self, type_: str, data: dict[str, Any], *, after: int = 900, **envelope: Any) -> int:
        self.time += after
        seq = len(self.lines) - 1
        self.lines.append({"type": type_, "seq": seq, "time": self.time, "data": data, **envelope})
        return seq

    def ask(self, prompt: str, title: str | None = None, *, picture: bytes | None = None) -> None:
        self.turn, self.step = self.turn + 1, 1
        self.add("turn/start", {"turn": self.turn}, after=60_000)
        self.add("step/start", {"turn": self.turn, "step": 1})
        content: list[dict[str, Any]] = [{"type": "text", "text": prompt}]
        content += [_image_block(picture)] if picture else []
        message = {"content": content, "source": {"kind": "user"}, "role": "user", "id": _message_id()}
        seq = self.add("user/message", message, surfaceOp="append")
        if title:
            self.add("session/title", {"title": title, "messageSeqs": [seq], "source": {"kind": "provider"}})

    def call(
        self,
        name: str,
        arguments: dict[str, Any],
        output: str,
        *,
        reasoning: str = "",
        failed: str = "",
        took: int = 1400,
        meta: dict[str, Any] | None = None,
    ) -> None:
        call_id, text = f"call_{_random.getrandbits(40):010x}", json.dumps(arguments, ensure_ascii=False)
        block = {"type": "tool-call", "id": call_id, "name": name, "arguments": text}
        self._answer([{"type": "reasoning", "text": reasoning}, block] if reasoning else [block])
        where = {"turn": self.turn, "step": self.step}
        called = self.add("tool/call", {**where, "callId": call_id, "name": name, "arguments": text})
        message = {
            "role": "tool",
            "source": {"kind": "tool", "callId": call_id},
            "toolCallId": call_id,
            "content": [{"type": "text", "text": output}],
            "isError": bool(failed),
            "id": _message_id(),
        }
        data: dict[str, Any] = {**where, "message": message}
        data |= {"meta": meta} if meta else {}
        data |= {"error": {"name": "ToolError", "code": failed}} if failed else {}
        self.add("tool/result", data, after=took, sourceEventSeqs=[called], surfaceOp="append")
        self.add("step/end", where)
        self.step += 1
        self.add("step/start", {"turn": self.turn, "step": self.step})

    def answer(self, text: str) -> None:
        self._answer([{"type": "text", "text": text}])
        self.add("step/end", {"turn": self.turn, "step": self.step})
        self.add("turn/end", {"turn": self.turn, "reason": {"kind": "completed"}})

    def _answer(self, content: list[dict[str, Any]]) -> None:
        usage = {"inputTokens": _random.randrange(900, 9000), "outputTokens": _random.randrange(40, 900)}
        message = {
            "role": "assistant",
            "content": content,
            "id": _message_id(),
            "source": {"kind": "model", "provider": "demo", "model": self.model},
        }
        data = {"turn": self.turn, "step": self.step, "message": message, "usage": usage, "stream": []}
        self.add("assistant/message", data, after=4200, surfaceOp="append")

    def todo(self, **statuses: str) -> None:
        """Write the to-do list; spaces in what is to be done are low lines here."""
        todos = [{"content": what.replace("_", " "), "status": status} for what, status in statuses.items()]
        self.add("todo/write", {"todos": todos})

    def edit(self, path: str, old: str, new: str) -> None:
        arguments = {"file_path": path, "old_string": old, "new_string": new}
        self.call("edit", arguments, f"The file {path} was edited.")

    def write(self, store: Path, lines: int | None = None) -> Path:
        """Write the log, or so many of its lines; return its path."""
        folder = store / logs.project_key(self.cwd) / self.id
        folder.mkdir(parents=True)
        path = folder / "session.v4.jsonl"
        path.write_text("".join(map(spelled, self.lines[:lines])), "utf-8")
        return path


def spelled(line: dict[str, Any]) -> str:
    """Return a line as it stands in a log."""
    return json.dumps(line, ensure_ascii=False) + "\n"


_random = random.Random(_SEED)  # noqa: S311 - the same demo every time


def write(store: Path, attachments: Path | None = None) -> None:
    """Write the demo's sessions into an empty directory, and the picture that one of them shows (beside it)."""
    _attach(attachments or store.parent / "attachments", _chart())
    now = time.time_ns() // 1_000_000
    _random.seed(_SEED)
    for log in itertools.chain(_timeouts(now), _checkout(now), _migration(now), _small(now)):
        log.write(store)


def _attach(attachments: Path, picture: bytes) -> None:
    digest = hashlib.sha256(picture).hexdigest()
    path = attachments / "v1" / "objects" / digest[:2] / digest
    path.parent.mkdir(parents=True)
    path.write_bytes(picture)


def _image_block(picture: bytes) -> dict[str, Any]:
    attachment = {
        "attachmentId": f"sha256:{hashlib.sha256(picture).hexdigest()}",
        "mediaType": "image/png",
        "name": "超时次数.png",
        "bytes": len(picture),
        "width": CHART_WIDTH,
        "height": CHART_HEIGHT,
    }
    return {"type": "image", "attachment": attachment}


def _chart() -> bytes:
    """Return a PNG of a bar chart: one colour behind, one for the bars."""
    width = CHART_WIDTH // len(CHART_BARS)
    rows = []
    for y in range(CHART_HEIGHT):
        left = CHART_HEIGHT - y
        bars = (bar if x % width < width * 2 // 3 else 0 for bar in CHART_BARS for x in range(width))
        rows.append(b"\0" + bytes(left <= bar for bar in bars))
    header = struct.pack(">IIBBBBB", CHART_WIDTH, CHART_HEIGHT, 8, 3, 0, 0, 0)
    parts = [
        (b"IHDR", header),
        (b"PLTE", bytes.fromhex("f4f6f8c2413a")),
        (b"IDAT", zlib.compress(b"".join(rows))),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in [*parts, (b"IEND", b"")])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _timeouts(now: int) -> Iterator[Log]:
    log = Log(ADS, now - 3 * 3_600_000, agentPreset="standard")
    log.ask(
        "广告SDK 偶尔会超时，帮我看看 `fetch_ads` 的重试逻辑，然后补一个测试。",
        "修复广告SDK超时重试",
        picture=_chart(),
    )
    log.add(
        "todo/write",
        {
            "todos": [
                {"content": "找到超时的原因", "status": "completed"},
                {"content": "改用指数退避", "status": "in_progress"},
                {"content": "补充测试", "status": "pending"},
            ]
        },
    )
    log.call(
        "bash",
        {"command": "grep -rn 'timeout' ads/", "description": "找出所有超时设置"},
        "ads/client.py:12:    timeout=1.0,\nads/client.py:31:    # TODO: 超时后没有退避\n",
        reasoning="先看看超时是在哪里设置的。",
    )
    log.call(
        "edit",
        {
            "file_path": "ads/client.py",
            "old_string": "    for _ in range(3):\n        response = get(url, timeout=1.0)\n",
            "new_string": "    for attempt in range(5):\n"
            "        response = get(url, timeout=3.0)\n        sleep(0.2 * 2**attempt)\n",
        },
        "The file ads/client.py was edited.",
        meta={"operation": "edit", "path": "ads/client.py", "diffs": []},
    )
    log.call(
        "bash",
        {"command": "pytest -q tests/test_client.py", "description": "跑测试"},
        "\x1b[31mF\x1b[0m\x1b[32m..\x1b[0m\nE   TimeoutError: 广告接口 3.0 s 内没有响应\n"
        "1 failed, 2 passed\n[exit code: 1]",
        took=9100,
    )
    child = Log(
        ADS,
        log.time + 1000,
        id=str(uuid.UUID(int=_random.getrandbits(128), version=4)),
        parentSession=log.id,
        origin="subagent",
    )
    child.add("subagent/descriptor", {"version": 3, "mode": "one-shot", "provider": "spawn", "label": "查日志"})
    child.ask("在最近的日志里统计广告接口的超时次数。")
    child.call("bash", {"command": "grep -c TimeoutError logs/ads.log", "description": "统计"}, "17\n")
    child.answer("最近的日志里有 **17** 次超时，都发生在上游切换节点之后的两分钟内。")
    log.add(
        "subagent/catalog",
        {"version": 0, "childId": child.id, "childCreatedAt": child.time, "mode": "one-shot", "label": "查日志"},
    )
    log.call(
        "bash",
        {"command": "pytest -q tests/test_client.py", "description": "再跑一次"},
        "\x1b[32m...\x1b[0m\n3 passed in 0.41s\n",
    )
    log.answer(
        "原因是重试之间**没有退避**：上游切换节点时，三次请求都在一秒内失败。\n\n"
        "| 改动 | 之前 | 之后 |\n|---|---|---|\n| 次数 | 3 | 5 |\n| 超时 | 1 s | 3 s |\n"
        "| 退避 | 无 | 0.2 s 起，每次加倍 |\n\n"
        "```python\nfor attempt in range(5):\n    response = get(url, timeout=3.0)\n"
        "    sleep(0.2 * 2**attempt)\n```\n"
    )
    fork = Log(ADS, log.time + DAY_MS // 12, parentSession=log.id, seed=log)
    fork.ask("如果改成熔断，而不是重试呢？先只说方案，不改代码。")
    fork.answer(
        "可以用一个三态熔断器：\n\n1. **关闭**：正常请求，统计失败率；\n2. **打开**：直接返回缓存的广告；\n"
        "3. **半开**：放一个请求试探。\n"
    )
    yield from (log, child, fork)


def _checkout(now: int) -> Iterator[Log]:
    log = Log(SHOP, now - DAY_MS - 5 * 3_600_000)
    log.ask("The checkout test is flaky on CI. Find out why and fix it.", "Fix the flaky checkout test")
    log.call(
        "bash",
        {"command": "pytest -q tests/test_checkout.py --count 50", "description": "Reproduce"},
        "E   AssertionError: expected 2 items, got 1\n3 failed, 47 passed in 21.9s\n[exit code: 1]",
        took=22_400,
        reasoning="Run it often enough to see it fail here.",
    )
    log.call(
        "read",
        {"file_path": "shop/fixtures.py"},
        "/home/you/work/shop/shop/fixtures.py: no such file",
        failed="FS_NOT_FOUND",
    )
    log.call(
        "edit",
        {
            "file_path": "tests/conftest.py",
            "old_string": '@pytest.fixture(scope="session")\ndef cart():\n',
            "new_string": "@pytest.fixture\ndef cart():\n",
        },
        "The file tests/conftest.py was edited.",
    )
    log.call(
        "bash",
        {"command": "pytest -q tests/test_checkout.py --count 200", "description": "Verify"},
        "200 passed in 84.0s\n",
        took=84_300,
    )
    log.answer(
        "The `cart` fixture had **session** scope, so tests shared one cart and their order mattered. With"
        " function scope, 200 of 200 runs pass. See [pytest's notes on scopes](https://docs.pytest.org/)."
    )
    log.ask("Great. Also write down in CONTRIBUTING.md how to run a test many times.")
    yield log


def _migration(now: int) -> Iterator[Log]:
    log = Log(BLOG, now - 12 * DAY_MS)
    log.ask("Move the posts from Markdown files into SQLite, keep the URLs.", "Move posts into SQLite")
    for number in range(1, 9):
        log.call(
            "bash",
            {"command": f"python import.py posts/2025-{number:02d}", "description": f"Import month {number}"},
            f"imported {number * 3} posts\n",
        )
    surface = [line["seq"] for line in log.lines[1:] if line.get("surfaceOp") == "append"]
    compaction = {"compactionId": "c1", "turn": log.turn}
    log.add("compaction/start", compaction)
    summary = [{"type": "text", "text": "Eight months of posts were imported; URLs kept by a redirect table."}]
    log.add("compaction/summary", {**compaction, "summary": summary})
    log.add(
        "user/message",
        {
            "content": summary,
            "source": {"kind": "compact-checkpoint", "compactionId": "c1"},
            "role": "user",
            "id": _message_id(),
        },
        sourceEventSeqs=surface,
        surfaceOp={"op": "replace", "startSeq": surface[0], "endSeq": surface[-1]},
    )
    log.add("compaction/end", compaction)
    log.answer("All 108 posts are in `blog.db`; every old URL answers with its post.")
    yield log


_TOPICS: Final = (
    (SHOP, "Add a dark theme to the dashboard", "Added custom properties for both themes.", "Dark theme"),
    (SHOP, "给登录页加上验证码", "已经加上了验证码，并补充了测试。", "登录页验证码"),
    (
        SHOP,
        "Prices are rounded twice, find where",
        "`Money.total` rounds, and so does the template.",
        "Rounding twice",
    ),
    (SHOP, "Review my retry helper", "It retries on 4xx, and it never gives up.", "Review the retry helper"),
    (
        SHOP,
        "Speed up the product list",
        "One query for each row became one join: 840 ms to 31 ms.",
        "N+1 queries",
    ),
    (ADS, "把日志格式改成 JSON", "日志现在是一行一个 JSON 对象。", "日志改为 JSON"),
    (ADS, "数据库连接池耗尽怎么排查？", "根因是事务没有关闭，连接没有归还。", "排查连接池耗尽"),
    (ADS, "投放报表的时区不对", "报表按 UTC 聚合，改成了按广告主的时区。", "修正报表时区"),
    (ADS, "给竞价服务写一个压测脚本", "脚本在 `bench/bid.py`，4 个进程下 2,300 次/秒。", "竞价压测"),
    (INFRA, "Why is the image build slow?", "The cache key changed on every commit.", "Speed up the image build"),
    (INFRA, "Rotate the staging certificates", "Rotated; the old ones end on Friday.", "Rotate certificates"),
    (INFRA, "Nightly backups fail since Tuesday", "The disk was full of core dumps.", "Failing backups"),
    (BLOG, "Write an RSS feed", "`/feed.xml` has the last twenty posts.", "RSS feed"),
    (BLOG, "Some images have no alt text", "Eleven had none; each has one now.", "Alt texts"),
    (NOTES, "把会议记录整理成待办事项", "整理出 9 项，其中 3 项本周到期。", "整理会议记录"),
    (NOTES, "用一段话解释什么是布隆过滤器", "它用几个哈希回答“一定不在”或“可能在”。", "布隆过滤器"),
)
_LOOKS: Final = (
    ("git status --short", "Look", " M app.py\n"),
    ("rg -n TODO --stats", "What is left", "src/app.py:41: # TODO\n1 match\n"),
    ("pytest -q", "Run the tests", "\x1b[32m................\x1b[0m\n16 passed in 1.2s\n"),
    ("git log --oneline -3", "What came last", "4f1c2ab Fix the build\n91be0d7 Tidy up\n0aa31fe Add a test\n"),
)


def _small(now: int) -> Iterator[Log]:
    """Yield short sessions: of working days mostly, and of working hours."""
    for number in range(SMALL_SESSIONS):
        cwd, prompt, answer, title = _TOPICS[number % len(_TOPICS)]
        days = int(2 + 7 * BUSY_WEEKS * _random.random() ** 1.6)
        weekday = time.gmtime((now - days * DAY_MS) // 1000).tm_wday
        days += max(0, weekday - 4) if _random.random() < 0.8 else 0
        log = Log(cwd, now - days * DAY_MS - _random.randrange(9) * HOUR_MS - _random.randrange(HOUR_MS))
        log.model = _random.choice(MODELS)
        for asked in (prompt, *(["Thanks. Anything else that I should look at?"] if number % 4 == 0 else [])):
            log.ask(asked, title if asked == prompt else None)
            for command, about, output in _random.sample(_LOOKS, _random.randrange(len(_LOOKS))):
                failed = "exit 1" if _random.random() < 0.04 else ""
                log.call("bash", {"command": command, "description": about}, output, failed=failed)
            log.answer(answer if asked == prompt else "No: the rest is as it should be.")
        yield log


def _message_id() -> str:
    return f"m{_random.getrandbits(48):012x}"
