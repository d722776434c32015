"""The README says what the code does."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import click

from sessiongraph_web import cli, config, errors
from sessiongraph_web.web import routes

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


def test_every_route_is_in_the_table() -> None:
    """The table of addresses is the registry of routes, row for row."""
    expected = [
        [f"`{route.template}`", "`.json`" if route.twin else "", ", ".join(route.methods), route.summary]
        for route in routes.ROUTES
    ]
    assert rows("| address | twin | methods | what it answers |") == expected


def test_every_command_is_in_the_table() -> None:
    """No command is undocumented, and none is promised that is not there."""
    documented = {row[0].strip("`") for row in rows("| command | what it does |")}
    assert documented == set(cli.main.commands)


def test_every_promise_of_security_names_tests_that_exist() -> None:
    """Each row of what holds is shown by at least one test file."""
    for promise, shown_by in rows("| what holds | shown by |"):
        names = re.findall(r"`([\w/]+\.py)`", shown_by)
        paths = [ROOT / (name if "/" in name else f"tests/integration/{name}") for name in names]
        assert paths, promise
        assert [path for path in paths if not path.is_file()] == []


def test_every_command_shows_an_example() -> None:
    """`--help` of a command ends with a line that can be copied."""
    for name, command in cli.main.commands.items():
        if not isinstance(command, click.Group):
            assert f"Example: sessiongraph-web {name}" in (command.help or ""), name


def licence(name: str) -> str:
    """Return all that an installed package says of its licence."""
    facts = distribution(name).metadata
    said = [facts.get("License-Expression"), facts.get("License"), *facts.get_all("Classifier", [])]
    return " ".join(text for text in said if text and ("::" not in text or text.startswith("License")))


def test_every_dependency_is_listed_with_its_licence() -> None:
    """The table names what pyproject.toml asks for, each under the licence that the installed package states."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["mcp"]]
    table = {row[0].split("`")[1]: row[1] for row in rows("| dependency | licence |")}
    assert list(table) == [re.split(r"[^A-Za-z0-9-]", requirement)[0] for requirement in asked]
    assert [name for name, stated in table.items() if stated.split("-")[0] not in licence(name)] == []


def test_nothing_it_brings_is_under_a_licence_that_would_bind_it() -> None:
    """No package that an install pulls in, directly or not, is under the GPL or one of its kin."""
    seen: set[str] = set()
    waiting = ["sessiongraph-web"]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        needed = [need for need in requires(name) or [] if "extra ==" not in need]
        waiting += [re.split(r"[^A-Za-z0-9._-]", need)[0].lower() for need in needed if is_installed(need)]
    assert len(seen) > 10
    assert [name for name in sorted(seen) if re.search(r"\bA?L?GPL|GNU", licence(name))] == []


def is_installed(requirement: str) -> bool:
    """Say whether a requirement is one of this platform."""
    try:
        return bool(distribution(re.split(r"[^A-Za-z0-9._-]", requirement)[0]))
    except PackageNotFoundError:
        return False


def test_every_picture_and_file_that_is_pointed_at_is_there() -> None:
    """No link of the README leads to a file that was moved."""
    targets = re.findall(r"\]\(([^)\s]+)\)", README)
    files = [target for target in targets if not target.startswith(("http://", "https://", "#"))]
    assert len([name for name in files if name.endswith(".png")]) == 3
    assert [name for name in files if not (ROOT / name).is_file()] == []
