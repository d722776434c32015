"""The command line in another language: whole outputs, other encodings, and what stays English."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from sessiongraph_web import cli, language
from tests.builders import Log

CHINESE: Final = {"LANG": "zh_CN.UTF-8", "LC_ALL": "", "LC_MESSAGES": "", "LANGUAGE": "", "COLUMNS": "80"}
ENGLISH: Final = {**CHINESE, "LANG": "C"}
HELP: Final = """\
用法： sessiongraph-web [OPTIONS] COMMAND [ARGS]...

  搜索、阅读、追溯和导出 DeepSeek Harness (dsh) 的会话日志。

选项：
  --version  显示版本并退出。
  --help     显示这段说明并退出。

命令：
  check       检查索引自身是否一致、与存储是否相符
  event       阅读一个完整的事件、它的相邻事件和关系
  export      把一个会话的日志写成 ZIP 归档，或把它的事件写成文本
  index       建立索引，或把它更新到最新
  mcp         把一个工作区的模型工具提供给使用 MCP 的代理
  search      在提示、回答、工具调用和标题中查找文本
  serve       把历史提供给本机的浏览器
  session     阅读一个会话，用完整的 ID 或唯一的开头
  status      说明索引的状况，以及哪些内容无法读取
  timeline    列出会话，最新的在前
  token       让他人访问确切的工作区或一个会话，也可以收回
  tool        调用一个模型工具，显示模型会读到的内容
  trace       显示一个会话的祖先和后代
  workspaces  列出有会话的工作目录
"""
EXPORT_HELP: Final = """\
用法： sessiongraph-web export [OPTIONS] SESSION_ID

  把一个会话的日志写成 ZIP 归档，或把它的事件写成文本。

  其中可能含有机密；--redact 会屏蔽已知的机密。

  示例：sessiongraph-web export 02b75564 --descendants

选项：
  --sessions PATH                 存储；默认 ~/.dsh/sessions。
  --index PATH                    索引所在的位置。
  -o, --output PATH               写到哪里；默认用归档自己的名称。
  --descendants                   连同分叉和子代理。
  --redact                        屏蔽已知的机密。
  --format [zip|raw|md|json|ndjson]
                                  `raw` 原样打包存储的文件；`md`、`json` 和
                                  `ndjson` 只是这个会话的文本。  [默认：zip]
  --log INTEGER                   有多个日志使用这个 ID 时，选哪一个。
  --workspace TEXT                只看这个确切的工作目录的会话；可重复。
  --json                          以 JSON 显示写了什么。
  --help                          显示这段说明并退出。
"""


class Terminal:
    """A store with an index beside it, and somebody who reads Chinese."""

    def __init__(self, store: Path, index: Path) -> None:
        self.places = ["--sessions", str(store), "--index", str(index)]
        self.log = Log("/w/广告", created_at=1_790_000_000_000).turn("fix the ad SDK", "广告 is fixed")
        self.log.title("About the 广告 SDK")
        self.log.write(store)
        damaged = Log("/w/other", created_at=1_780_000_000_000).turn("before", "it")
        damaged.raw(b"{broken\n")
        self.damaged = damaged.write(store).relative_to(store)
        self.store, self.index = store, index

    def type(self, command: str, *rest: str, env: dict[str, str] = CHINESE) -> Result:
        given = [command, *self.places, *rest] if command != "--help" else [command]
        return CliRunner(env=env).invoke(cli.main, given, prog_name="sessiongraph-web", catch_exceptions=False)


@pytest.fixture
def terminal(store: Path, tmp_path: Path) -> Terminal:
    return Terminal(store, tmp_path / "index")


def settled(text: str) -> str:
    """Return an output without what differs from run to run."""
    for found, said in ((r"(更新于：     ).*", r"\1…"), (r"（\d+ 毫秒）", "（… 毫秒）"), (r"字节 \d+", "字节 …")):
        text = re.sub(found, said, text)
    return text


def test_help_is_said_in_chinese_as_wide_as_the_terminal() -> None:
    """Commands, options and what click adds to them; examples and what is typed stay as they are."""
    runner = CliRunner(env=CHINESE)
    shown = runner.invoke(cli.main, ["--help"], prog_name="sessiongraph-web")
    options = runner.invoke(cli.main, ["export", "--help"], prog_name="sessiongraph-web")

    assert (shown.output, shown.exit_code) == (HELP, 0)
    assert (options.output, options.exit_code) == (EXPORT_HELP, 0)


def test_a_search_is_printed_in_chinese(terminal: Terminal) -> None:
    """What was found, and what is said of it; words of logs are not touched."""
    assert settled(terminal.type("search", "fixed").output) == (
        "1 个会话中有 1 处匹配（… 毫秒）\n"
        "\n"
        "1. About the 广告 SDK\n"
        f"   {terminal.log.id}\n"
        "   /w/广告\n"
        "   2026-09-21 14:13:20 UTC，1 轮\n"
        "   1 处匹配\n"
        "   seq 4 assistant: 广告 is fixed\n"
    )


def test_the_status_is_printed_in_chinese_with_what_an_index_keeps_in_english(terminal: Terminal) -> None:
    """Names of states stand as `--state` takes them; why a log was not read whole is said in Chinese."""
    assert settled(terminal.type("status").output) == (
        "2 个会话，5 个条目，2 个工作区\n"
        "   更新于：     …\n"
        "   纪元：       2\n"
        f"   存储：       {terminal.store}\n"
        f"   索引：       {terminal.index}\n"
        "   文件：       1 indexed, 1 partial\n"
        "   屏蔽：       索引中只有屏蔽后的文本。从日志读取的内容，除所有者外一律屏蔽。\n"
        f"partial: {terminal.damaged}（不是 JSON：此处应有双引号括起的属性名）\n"
        "   字节 …，第 9 行，bad_line：不是 JSON：此处应有双引号括起的属性名\n"
    )


def test_a_session_is_printed_in_chinese(terminal: Terminal) -> None:
    """Facts are named in columns that line up, since a Chinese character takes two."""
    assert terminal.type("session", terminal.log.id, "--limit", "1").output == (
        "About the 广告 SDK\n"
        f"   ID：         {terminal.log.id}\n"
        "   工作区：     /w/广告\n"
        "   创建：       2026-09-21 14:13:20 UTC\n"
        "   最后事件：   2026-09-21 14:13:28 UTC\n"
        "   计数：       8 个事件，1 轮，0 次工具调用（0 次失败），输入 100 token，输出 10 token\n"
        "   模型：       mock-1\n"
        "   父会话：     无\n"
        "   子会话：     无\n"
        "   损坏：       无\n"
        f"   继续：       cd '/w/广告' && dsh --profile tui --resume {terminal.log.id}\n"
        "\n"
        "seq 0 | agent/inbox/spliced | log-only | 2026-09-21 14:13:21 UTC\n"
        "   target: next-turn\n"
        "   start: 0\n"
        "   type: text\n"
        "   fix the ad SDK\n"
        "   kind: user\n"
        "   role: user\n"
        "   id: message-3\n"
        "\n"
        "更多：加上 --ordinal 1\n"
    )


@pytest.mark.parametrize(
    ("command", "expected", "code"),
    [
        (["session", "nowhere"], "sessiongraph-web: 这里没有这个会话。\n", 66),
        (
            ["search", "a", "--limit", "0"],
            "sessiongraph-web: `limit` 必须是 1 到 100 的整数\n  parameter: limit\n  maximum: 100\n",
            64,
        ),
        (["token", "list", "--nope"], "错误：没有选项 '--nope'。", 2),
        (["tool", "session_search", "--args", "[}"], "错误：--args 必须是 JSON 对象。\n", 2),
    ],
)
def test_failures_are_said_in_chinese(terminal: Terminal, command: list[str], expected: str, code: int) -> None:
    """The sentence follows the terminal; exit codes and the names of fields do not."""
    given = [command[0], *terminal.places, *command[1:]] if command[0] != "token" else command
    result = CliRunner(env=CHINESE).invoke(cli.main, given, prog_name="sessiongraph-web")

    assert (result.exit_code, result.stdout) == (code, "")
    assert expected in result.stderr
    assert code == 2 or result.stderr == expected


def test_what_programs_and_models_read_is_english(terminal: Terminal) -> None:
    """`--json`, and the text of a model tool, are the same in every language."""
    for command in (["search", "fixed", "--json"], ["status", "--ledger", "--json"], ["timeline", "--json"]):
        chinese, english = (json.loads(terminal.type(*command, env=env).stdout) for env in (CHINESE, ENGLISH))
        for answer in (chinese, english):
            answer["index"]["refreshed_at"] = answer["took_ms"] = None
        assert chinese == english
    terminal.type("token", env=CHINESE)
    tool = ["tool", "sessiongraph", "--workspace", "/w/广告", "--args", '{"command": "search", "query": "fixed"}']
    assert terminal.type(*tool, env=CHINESE).output == terminal.type(*tool, env=ENGLISH).output
    grants = [
        CliRunner(env=env).invoke(cli.main, ["token", "list", *terminal.places, "--json"]).stdout
        for env in (CHINESE, ENGLISH)
        if CliRunner(env=env).invoke(cli.main, ["token", "create", *terminal.places, "--owner"]).exit_code == 0
    ]
    assert [grant["opens"] for answer in grants for grant in json.loads(answer)] == ["everything"] * 3
    assert language.current() == language.ENGLISH


def test_a_terminal_without_a_locale_is_told_in_english(terminal: Terminal) -> None:
    """`LANG=C`, no locale at all, and a language that is not spoken; `LC_ALL` wins over `LANG`."""
    for env in (ENGLISH, {**CHINESE, "LANG": ""}, {**CHINESE, "LANG": "fr_FR.UTF-8"}, {**CHINESE, "LC_ALL": "C"}):
        assert terminal.type("timeline", env=env).output.startswith("2 sessions\n")
        assert (
            CliRunner(env=env).invoke(cli.main, ["search"]).stderr.endswith("Error: Missing argument 'TEXT'.\n")
        )
    assert terminal.type("timeline", env={**ENGLISH, "LC_ALL": "zh_TW.UTF-8"}).output.startswith("2 个会话\n")


@pytest.mark.parametrize(
    "given",
    [
        {"LANG": "C", "LC_ALL": "", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LANG": "C", "LC_ALL": "C"},
        {"LANG": "zh_CN.UTF-8", "LC_ALL": "", "PYTHONIOENCODING": "ascii"},
        {"LANG": "zh_CN.GBK", "LC_ALL": "", "PYTHONIOENCODING": "gbk"},
        {"LANG": "en_US.ISO-8859-1", "LC_ALL": "", "PYTHONIOENCODING": "latin-1"},
    ],
)
def test_no_encoding_of_an_output_ends_a_command(terminal: Terminal, given: dict[str, str]) -> None:
    """Titles are Chinese whatever a pipe can take; what it cannot is spelled out."""
    command = [sys.executable, "-m", "sessiongraph_web", "search", *terminal.places, "fixed"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, **given}, check=False)
    text = done.stdout.decode(given.get("PYTHONIOENCODING", "utf-8").replace("ascii", "utf-8"), "strict")

    assert (done.returncode, done.stderr) == (0, b"")
    assert "seq 4 assistant: 广告 is fixed" in text or "\\u5e7f\\u544a is fixed" in text
    assert ("处匹配" in text) == given["LANG"].startswith("zh")


def test_the_commands_under_datasette_speak_it_too(terminal: Terminal) -> None:
    """There our group is one command of another program."""
    command = [sys.executable, "-m", "datasette", "sessiongraph", "timeline", *terminal.places]
    done = subprocess.run(command, capture_output=True, env={**os.environ, **CHINESE}, check=True)
    helped = subprocess.run(
        [*command[:4], "--help"], capture_output=True, env={**os.environ, **CHINESE}, check=True
    )

    assert done.stdout.decode().startswith("2 个会话\n")
    assert "显示一个会话的祖先和后代" in helped.stdout.decode()
