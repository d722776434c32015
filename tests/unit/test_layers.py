"""Layers point down: the import graph of the package, held to the table of rooms."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.rooms import ROOMS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "sessiongraph_web"
ALONE = {  # a library, and the modules that may know it
    "zstandard": {"frames"},
    "click": {"commands", "shell", "granting", "lending", "cli", "web.server"},
    "sqlite_utils": {"schema", "indexer", "ledger"},
    "jinja2": {"web.*"},
    "datasette": {"web.*"},
    "mcp": {"mcp"},
}
STATEMENT = re.compile(r"""["\n]\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE)\b""")


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in PACKAGE.rglob("*.py") if name_of(path) != "__init__"}


@cache
def imports(path: Path) -> frozenset[str]:
    """Return every module that a file imports, anywhere in it, as dotted names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return frozenset(found)


def neighbours(path: Path) -> set[str]:
    """Return the modules of the package that a file imports."""
    ours = {
        name.removeprefix("sessiongraph_web.") for name in imports(path) if name.startswith("sessiongraph_web.")
    }
    return {name for name in ours if name in MODULES}


def test_every_module_is_in_one_room() -> None:
    """The table of rooms names each module once, and none that is not there."""
    listed = [name for room in ROOMS.values() for name in room]
    assert sorted(listed) == sorted(MODULES)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_imports_from_its_room_or_a_lower_one(name: str) -> None:
    """Nothing looks up."""
    order = {module: number for number, room in enumerate(ROOMS.values()) for module in room}
    above = {other for other in neighbours(MODULES[name]) if order[other] > order[name]}
    assert above == set()


def test_no_modules_import_each_other() -> None:
    """The graph has no circle, inside a room either."""
    waiting = {name: neighbours(path) - {name} for name, path in MODULES.items()}
    while free := {name for name, needed in waiting.items() if not needed}:
        waiting = {name: needed - free for name, needed in waiting.items() if name not in free}
    assert waiting == {}


@pytest.mark.parametrize("library", sorted(ALONE))
def test_a_library_is_known_in_its_place_alone(library: str) -> None:
    """What could be replaced is imported in one place."""
    users = {
        name
        for name, path in MODULES.items()
        if any(found == library or found.startswith(f"{library}.") for found in imports(path))
    }
    allowed = ALONE[library]
    outside = {
        user for user in users if user not in allowed and not (user.startswith("web.") and "web.*" in allowed)
    }
    assert outside == set()
    assert users


def test_sql_lives_where_the_tables_are_known() -> None:
    """Statements on the index's tables are written in the rooms that own them."""
    rooms = ("secrets", "index files", "search", "index runs", "reading")
    owners = {name for room in rooms for name in ROOMS[room]} | {"sharing"}
    writers = {name for name, path in MODULES.items() if STATEMENT.search(path.read_text("utf-8"))}
    assert writers <= owners | {"web.databases", "web.permissions"}


def test_plugins_are_hooks_alone() -> None:
    """A plugin file imports Datasette's hook marker and our web modules, and each hook is a few lines."""
    for path in (ROOT / "plugins").glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno <= 6, f"{path.name}: {node.name}"
        ours = {name for name in imports(path) if name.startswith("sessiongraph_web")}
        assert all(name.startswith(("sessiongraph_web.web", "sessiongraph_web.cli")) for name in ours), path.name


def test_no_template_is_served_to_anybody() -> None:
    """Datasette serves whatever lies in `templates/pages` without asking who comes."""
    assert not (ROOT / "templates" / "pages").exists()


def test_the_readme_shows_the_rooms() -> None:
    """Who looks for the place of a change finds every module in the README's table."""
    readme = (ROOT / "README.md").read_text("utf-8")
    for room, modules in ROOMS.items():
        row = next(line for line in readme.split("\n") if line.startswith(f"| {room} |"))
        assert row.rstrip(" |").split(" | ")[-1] == ", ".join(f"`{module}`" for module in modules)
