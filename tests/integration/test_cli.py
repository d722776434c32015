"""The command line: what each command prints, as text and as JSON, and how it ends."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sessiongraph_web import cli, errors
from tests.builders import Log

WORKSPACE = "/w/广告"


class Terminal:
    """A store with an index beside it, and somebody who types commands."""

    def __init__(self, store: Path, index: Path) -> None:
        self.store, self.index = store, index
        self.main = Log(WORKSPACE).turn(
            "fix the ad SDK", "广告 is fixed", [("bash", '{"command": "ls"}', "sdk.py")]
        )
        self.main.title("About the 广告 SDK")
        self.fork = Log(WORKSPACE, seeded_from=self.main).turn("go on", "went on")
        self.other = Log("/w/other", id="session-" + "feedbeef" * 4, created_at=1_700_000_000_000).turn(
            "another thing", "广告 elsewhere"
        )
        for log in (self.main, self.fork, self.other):
            log.write(store)

    @property
    def places(self) -> list[str]:
        return ["--sessions", str(self.store), "--index", str(self.index)]

    def type(self, command: str, *rest: str) -> Result:
        return CliRunner().invoke(cli.main, [command, *self.places, *rest], catch_exceptions=False)

    def json(self, command: str, *rest: str) -> Any:
        result = self.type(command, *rest, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def terminal(store: Path, tmp_path: Path) -> Terminal:
    return Terminal(store, tmp_path / "index")


def ids(answer: Any) -> list[str]:
    """Return the ids of the sessions of an answer."""
    return [hit["session"]["id"] if "session" in hit else hit["id"] for hit in answer["sessions"]]


def test_search_prints_sessions_with_their_best_match(terminal: Terminal) -> None:
    """A hit shows title, id, working directory and the excerpt, without any escape where there is no terminal."""
    lines = terminal.type("search", "fixed").stdout.splitlines()

    assert lines[0].startswith("1 matches in 1 sessions")
    assert lines[2:5] == ["1. About the 广告 SDK", f"   {terminal.main.id}", f"   {WORKSPACE}"]
    assert lines[-1].endswith("assistant: 广告 is fixed")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["main", "other"]),
        (["--workspace", WORKSPACE], ["main"]),
        (["--session", "{other}"], ["other"]),
        (["--after", "2026-01-01"], ["main"]),
        (["--created-before", "2024-01-01"], ["other"]),
        (["--created-after", "2024-01-01", "--created-before", "2027-01-01"], ["main"]),
        (["--kinds", "title"], ["main"]),
        (["--kinds", "assistant", "--model", "mock-1"], ["main", "other"]),
        (["--model", "unheard-of"], []),
        (["--tool", "bash"], []),
        (["--types", "session/title"], ["main"]),
        (["--surfaces", "shadowed"], []),
        (["--parent", "{main}"], []),
        (["--parent", "{main}", "--inherited"], ["fork"]),
        (["--roots", "--inherited"], ["main", "other"]),
        (["--live"], []),
        (["--seq-to", "3"], []),
        (["--sort", "oldest", "--limit", "1"], ["other"]),
        (["--match", "text", "--tz", "Asia/Shanghai"], ["main", "other"]),
    ],
)
def test_every_filter_of_a_search_is_an_option(
    terminal: Terminal, options: list[str], expected: list[str]
) -> None:
    """What the API can be asked, the command can be asked."""
    logs = {"main": terminal.main.id, "fork": terminal.fork.id, "other": terminal.other.id}
    given = [option.format(**logs) for option in options]

    assert sorted(ids(terminal.json("search", "广告", *given))) == sorted(logs[name] for name in expected)


def test_entries_can_be_listed_alone(terminal: Terminal) -> None:
    """`--group none` answers entries instead of sessions, and pages on with the cursor it prints."""
    first = terminal.json("search", "广告", "--group", "none", "--limit", "2")
    second = terminal.json("search", "广告", "--group", "none", "--limit", "2", "--cursor", first["next_cursor"])
    shown = terminal.type("search", "广告", "--group", "none", "--limit", "2").stdout

    assert [len(first["entries"]), len(second["entries"])] == [2, 1]
    again = next(line for line in shown.splitlines() if first["next_cursor"] in line).partition("search ")[2]
    assert shlex.split(again)[-1] == "广告"
    assert terminal.json("search", *shlex.split(again))["entries"] == second["entries"]


def test_what_other_kinds_hold_can_be_asked_for_as_it_is_printed(terminal: Terminal) -> None:
    """Where kinds that were not searched hold hits, the line below names the command that shows them."""
    shown = terminal.type("search", "SDK", "--roots").stdout.splitlines()
    again = shlex.split(next(line for line in shown if "--kinds" in line).partition("search ")[2])

    assert (again[-1], "--roots" in again) == ("SDK", True)
    assert {hit["best"]["kind"] for hit in terminal.json("search", *again)["sessions"]} <= set(
        again[again.index("--kinds") + 1].split(",")
    )


def test_session_prints_its_head_and_events(terminal: Terminal) -> None:
    """A session shows its facts, then its events; a unique beginning of its id is enough."""
    lines = terminal.type("session", terminal.fork.id, "--limit", "1").stdout.splitlines()

    assert lines[0] == "About the 广告 SDK"
    assert f"   parent:      {terminal.main.id}" in lines
    assert lines[-1] == "More: add --ordinal 1"
    assert terminal.json("session", "feedbeef")["session"]["id"] == terminal.other.id


def test_a_session_says_how_to_go_on_with_it(terminal: Terminal) -> None:
    """The command of dsh, as text and in the JSON, for the owner of the machine; not for who sees a workspace."""
    command = f"cd /w/other && dsh --profile tui --resume {terminal.other.id}"
    assert f"   resume:      {command}" in terminal.type("session", terminal.other.id).stdout.splitlines()
    assert terminal.json("session", terminal.other.id)["resume_command"] == command
    scoped = terminal.json("session", terminal.other.id, "--workspace", "/w/other")
    assert scoped["resume_command"] is None


def test_an_event_is_printed_whole(terminal: Terminal) -> None:
    """An event shows its text and its relations."""
    answer = terminal.json("event", terminal.main.id, "3", "--before", "1")
    shown = terminal.type("event", terminal.main.id, "3").stdout

    assert (answer["target"]["seq"], [event["seq"] for event in answer["before"]]) == (3, [2])
    assert "   fix the ad SDK" in shown.splitlines()
    assert "replaced by: none" in shown


def test_trace_timeline_and_workspaces(terminal: Terminal) -> None:
    """Relatives are a tree, sessions a list by time, workspaces a list by activity; each also as JSON."""
    assert [b["session"]["id"] for b in terminal.json("trace", terminal.main.id)["descendants"]] == [
        terminal.fork.id
    ]
    assert f"  {terminal.fork.id}" in terminal.type("trace", terminal.main.id).stdout
    assert ids(terminal.json("timeline", "--roots")) == [terminal.main.id, terminal.other.id]
    assert ids(terminal.json("timeline", "--day", "2023-11-14")) == [terminal.other.id]
    assert terminal.type("timeline", "--limit", "1").stdout.splitlines()[0] == "3 sessions"
    assert [w["cwd"] for w in terminal.json("workspaces")["workspaces"]] == [WORKSPACE, "/w/other"]
    assert WORKSPACE in terminal.type("workspaces").stdout.splitlines()


def test_a_workspace_is_all_that_its_caller_sees(terminal: Terminal) -> None:
    """`--workspace` limits every command to that exact directory."""
    scope = ("--workspace", WORKSPACE)
    assert [w["cwd"] for w in terminal.json("workspaces", *scope)["workspaces"]] == [WORKSPACE]
    assert set(ids(terminal.json("timeline", *scope))) == {terminal.main.id, terminal.fork.id}
    status = terminal.json("status", *scope)
    assert (status["sessions"], status["states"], status["sessions_path"]) == (2, None, None)
    for command in ("session", "trace", "export"):
        assert terminal.type(command, terminal.other.id, *scope).exit_code == 66


def test_status_says_what_could_not_be_read(terminal: Terminal) -> None:
    """The ledger names the file, its state, and the byte and line of each fault."""
    damaged = Log("/w/other")
    damaged.turn("before", "it")
    damaged.raw(b"{broken\n")
    path = damaged.write(terminal.store)
    shown = terminal.type("status").stdout
    answer = terminal.json("status", "--ledger", "--state", "partial")

    assert f"partial: {path.relative_to(terminal.store)}" in shown
    assert "bad_line at byte" in shown
    assert [entry["session_id"] for entry in answer["ledger"]] == [damaged.id]
    assert answer["ledger"][0]["faults"][0]["line"] == len(damaged.events) + 2


def test_index_reports_and_export_writes(terminal: Terminal, tmp_path: Path) -> None:
    """`index` says what it did; `export` writes a whole archive and says where."""
    report = terminal.json("index")
    again = terminal.type("index").stdout
    target = tmp_path / "out.zip"
    exported = terminal.json("export", terminal.main.id, "--output", str(target))

    assert (report["discovered"], report["indexed"], report["outcome"]) == (3, 3, "complete")
    assert again.startswith("3 logs found, 0 indexed, 0 extended, 3 unchanged")
    assert exported == {"path": str(target), "media_type": "application/zip", "bytes": target.stat().st_size}
    assert "session.v4.jsonl" in zipfile.ZipFile(target).namelist()


def test_tokens_are_made_listed_and_revoked(terminal: Terminal) -> None:
    """An empty list says how to begin; a secret is shown once; a list shows what it opens; revoking ends it."""
    assert "`sessiongraph-web token create --help`" in _token(terminal, "list")
    secret = _token(terminal, "create", "--workspace", WORKSPACE)
    (listed,) = json.loads(_token(terminal, "list", "--json"))
    _token(terminal, "revoke", listed["id"])

    assert secret.strip() and secret.strip() not in str(listed)
    assert listed["opens"] == WORKSPACE
    assert json.loads(_token(terminal, "list", "--json"))[0]["state"] == "revoked"


def _token(terminal: Terminal, *given: str) -> str:
    result = CliRunner().invoke(
        cli.main, ["token", given[0], *terminal.places, *given[1:]], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["session", "nowhere-to-be-found"], "SESSION_QUERY_SESSION_NOT_FOUND"),
        (["trace", "nowhere-to-be-found"], "SESSION_QUERY_SESSION_NOT_FOUND"),
        (["export", "nowhere-to-be-found"], "SESSION_QUERY_SESSION_NOT_FOUND"),
        (["event", "{main}", "99999"], "SESSION_QUERY_EVENT_NOT_FOUND"),
        (["event", "{main}", "1", "--before", "51"], "SESSION_QUERY_INVALID_WINDOW"),
        (["search", "  "], "SESSION_QUERY_INVALID_QUERY"),
        (["search", "a", "--limit", "0"], "SESSION_QUERY_INVALID_LIMIT"),
        (["search", "a", "--after", "yesterday"], "SESSION_QUERY_INVALID_FILTER"),
        (["search", "a", "--cursor", "forged"], "SESSION_QUERY_INVALID_CURSOR"),
        (["timeline", "--tz", "Mars/Olympus"], "SESSION_QUERY_INVALID_FILTER"),
        (["session", "000000"], "SESSIONGRAPH_AMBIGUOUS_ID"),
    ],
)
def test_errors_end_with_their_exit_code(terminal: Terminal, command: list[str], code: str) -> None:
    """A failure is one sentence on stderr and the exit code of the README's table."""
    given = [part.format(main=terminal.main.id) for part in command]
    result = terminal.type(given[0], *given[1:])

    assert result.exit_code == errors.CODES[code].exit_code
    assert result.stdout == ""
    assert result.stderr.startswith("sessiongraph-web: ")


def test_nothing_of_a_hostile_log_commands_a_terminal(terminal: Terminal) -> None:
    """No control byte of a log is printed: not in lists, sessions, events, status or errors."""
    hostile = Log("/w/\x1b[31m\x07", id="session-\x1b]0;evil\x07")
    hostile.turn(
        "needle \x1b[31mred\x1b[0m \u202eevil", "\x9b2J gone", [("\x1b[1mtool", '{"a": "\x1b"}', "\x00")]
    )
    hostile.title("\x1b[5m needle \x07")
    hostile.raw(b'{"type": "\x1b[31m')
    hostile.write(terminal.store)
    commands = (
        ["search", "needle"],
        ["timeline"],
        ["workspaces"],
        ["status", "--ledger"],
        ["trace", hostile.id],
        ["session", hostile.id],
        ["event", hostile.id, "3"],
        ["session", "\x1b[31mnowhere"],
    )
    for command in commands:
        result = terminal.type(command[0], *command[1:])
        odd = {c for c in result.output if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"}
        assert odd == set(), command


@pytest.mark.shared
def test_the_hostile_field_case_is_printed_harmlessly(shared: Path, tmp_path: Path) -> None:
    """The recorded case of a log that draws on the terminal draws on no terminal of ours."""
    store = shared / "field-cases" / "W08" / "sessions"
    for command in (["timeline"], ["search", "needle"], ["search", "red"], ["status", "--ledger"]):
        places = ["--sessions", str(store), "--index", str(tmp_path / "index")]
        result = CliRunner().invoke(cli.main, [command[0], *places, *command[1:]], catch_exceptions=False)
        assert result.exit_code == 0
        assert not any(unicodedata.category(c) in ("Cc", "Cf") and c != "\n" for c in result.output)


def test_the_same_commands_are_under_datasette(terminal: Terminal) -> None:
    """`datasette sessiongraph …` is this command line."""
    ours = [sys.executable, "-m", "sessiongraph_web", "timeline", *terminal.places, "--json"]
    theirs = [sys.executable, "-m", "datasette", "sessiongraph", *ours[3:]]
    outputs = [
        json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for command in (ours, theirs)
    ]
    for output in outputs:
        output["index"]["refreshed_at"] = None

    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("command", [("index",), ("timeline",), ("search", "x"), ("export", "0" * 8)])
def test_a_store_that_is_not_there_is_said(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Where sessions were looked for in vain is said beside the empty answer, or the error, not instead of it."""
    places = ["--sessions", str(tmp_path / "nowhere"), "--index", str(tmp_path / "index")]
    result = CliRunner().invoke(cli.main, [command[0], *places, *command[1:]])
    assert f"there is no such directory ({tmp_path / 'nowhere'})" in result.stderr
    assert (bool(result.stdout), result.exit_code) == ((False, 66) if command[0] == "export" else (True, 0))


def test_reads_need_no_index_that_can_be_written(terminal: Terminal, tmp_path: Path) -> None:
    """Where no index can be made, sessions and exports are still read; a search says what is missing."""
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    terminal.index = blocked / "index"

    assert terminal.json("session", terminal.main.id)["session"]["turns"] == 1
    assert terminal.type("search", "广告").exit_code == 74


def test_an_interrupted_index_run_leaves_a_usable_index(tmp_path: Path) -> None:
    """Ctrl-C ends `index` with 130 and a word on how to go on; what was read is found, the rest follows."""
    store = tmp_path / "sessions"
    for number in range(120):
        log = Log(f"/w/{number % 40}")
        for _ in range(12):
            log.turn(f"needle {number} " + "words " * 300, "answer " * 300)
        log.write(store)
    places = ["--sessions", str(store), "--index", str(tmp_path / "index")]
    command = [sys.executable, "-m", "sessiongraph_web", "index", *places]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        deadline = time.monotonic() + 30
        while not (tmp_path / "index" / "current").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=60)

    if running.returncode == 0:
        pytest.skip("the run was over before it could be interrupted")
    assert running.returncode == 130
    assert "run it again to go on" in out
    assert "press Ctrl-C again" in err
    found = CliRunner().invoke(cli.main, ["search", *places, "needle", "--json"], catch_exceptions=False)
    assert json.loads(found.stdout)["session_count"] == 120
