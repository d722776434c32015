"""The command that resumes a session: what a shell makes of it is what was meant, whatever a log says."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from sessiongraph_web import resuming

HOSTILE = (
    "/w/it's",
    '/w/"$(touch /tmp/x)"',
    "/w/`id`; rm -rf ~ #",
    "/w/{id} {cwd} {0}",
    "/w/a b\\",
    "~/x",
    "$HOME",
    "/w/项目 (v2)&&|",
    "!!",
    "/w/*",
)


@pytest.mark.parametrize("value", HOSTILE)
def test_a_shell_reads_back_what_the_log_says(value: str) -> None:
    """Whatever the characters, each value is one word of the command, by the letter."""
    made = resuming.command(resuming.COMMAND, cwd=value, id=value)
    assert made is not None
    assert shlex.split(made) == ["cd", value, "&&", "dsh", "--profile", "tui", "--resume", value]
    said = resuming.command("printf '%s|' {cwd} {id}", cwd=value, id="session-1")
    assert said is not None
    ran = subprocess.run(["/bin/sh", "-c", said], capture_output=True, check=True)
    assert ran.stdout.decode() == f"{value}|session-1|"


@pytest.mark.parametrize(
    "value", ["", "a\nb", "a\rb", "\x1b[2J", "a\x00", "a\x7f", "a\u202eb", "a\u2028b", "-x", "--yolo", "a\ufffdb"]
)
def test_what_could_deceive_is_not_offered(value: str) -> None:
    """Controls, line ends, directions of writing, what dsh would take for an option, what is not the original."""
    assert resuming.command(resuming.COMMAND, cwd=value, id="session-1") is None
    assert resuming.command(resuming.COMMAND, cwd="/w", id=value) is None


def test_without_a_directory_or_a_template_there_is_none() -> None:
    """dsh has to be started where the session was; and who sets the command to nothing wants none."""
    assert resuming.command(resuming.COMMAND, cwd=None, id="session-1") is None
    assert resuming.command("", cwd="/w", id="session-1") is None


@pytest.mark.parametrize(
    "template",
    ["dsh {cwd} {session}", "dsh {}", "dsh {0}", "dsh {cwd!r}", "dsh {id:>9}", "{cwd.x}", "{id", "a}b"],
)
def test_a_template_holds_known_placeholders_alone(template: str) -> None:
    """Any other one, and any trick of formats, is a problem that names what may stand there."""
    assert resuming.problem(template)


@pytest.mark.parametrize("template", ["dsh {id}\n", "dsh\t{id}", "dsh \u202e{id}"])
def test_a_template_is_one_plain_line(template: str) -> None:
    """What is set is pasted too."""
    assert resuming.problem(template) == "must be one line of visible characters"


def test_a_brace_that_is_meant_is_doubled() -> None:
    """A shell's own braces can be written."""
    template = "cd {cwd} && X=${{X}} dsh -r {id}"
    assert resuming.problem(template) is None
    assert resuming.command(template, cwd="/w", id="s") == "cd /w && X=${X} dsh -r s"
