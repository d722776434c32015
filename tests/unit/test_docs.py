"""The README says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import click

from sessiongraph_web import cli, config, errors

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table that has this heading row."""
    lines = README.split(heading + "\n", 1)[1].split("\n")[1:]
    table = lines[: next(n for n, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_the_first_lines_are_one_sentence_and_the_two_commands() -> None:
    """A reader meets what it is, how to run it and how to test it before anything else."""
    blocks = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert blocks[:2] == [
        "pip install -e . && sessiongraph-web serve",
        "pip install -e '.[test]' && pytest",
    ]


def test_every_setting_is_in_the_table_with_its_default() -> None:
    """The settings table is config.SETTINGS, row for row."""

    def default(setting: config.Setting) -> str:
        if setting.default is None:
            return "see right"
        return str(setting.default).lower() if isinstance(setting.default, bool) else str(setting.default)

    expected = [[f"`{s.name}`", default(s), s.help] for s in config.SETTINGS]
    assert rows("| setting | default | what it is |") == expected


def test_every_error_code_is_in_the_table() -> None:
    """The table of codes is errors.CODES, row for row."""
    expected = [[f"`{code}`", str(m.status), str(m.exit_code)] for code, m in errors.CODES.items()]
    assert rows("| code | HTTP | exit |") == expected


def test_every_command_is_in_the_table() -> None:
    """No command is undocumented, and none is promised that is not there."""
    documented = {row[0].strip("`") for row in rows("| command | what it does |")}
    assert documented == set(cli.main.commands)


def test_every_command_shows_an_example() -> None:
    """`--help` of a command ends with a line that can be copied."""
    for name, command in cli.main.commands.items():
        if not isinstance(command, click.Group):
            assert f"Example: sessiongraph-web {name}" in (command.help or ""), name
