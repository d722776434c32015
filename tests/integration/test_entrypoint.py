"""Datasette finds the product however it was installed, and each plugin once."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = sorted(path.name for path in (ROOT / "plugins").glob("*.py"))
FLAGS = ["--plugins-dir", str(ROOT / "plugins")]
BARE = ["-m", str(ROOT / "metadata.yml"), *FLAGS, "--template-dir", str(ROOT / "templates")]

SCRIPT = """
import asyncio, json, sys
from datasette.app import Datasette
from datasette.plugins import pm

async def main():
    datasette = Datasette(plugins_dir=sys.argv[1] or None, template_dir=sys.argv[2] or None)
    await datasette.invoke_startup()
    names = [name for name, plugin in pm.list_name_plugin() if name.endswith(".py") and plugin]
    page = datasette.get_jinja_environment().get_template("sessiongraph/login.html")
    starts = [hook.plugin_name for hook in pm.hook.startup.get_hookimpls()]
    print(json.dumps({
        "plugins": sorted(names),
        "plugin": pm.get_plugin("sessiongraph_scope.py").__file__,
        "template": page.filename,
        "startups": starts.count("sessiongraph_security.py"),
    }))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which the wheel was unpacked, as an installer does."""
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "-q", "-w", directory],
        check=True,
        capture_output=True,
    )
    (built,) = directory.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(directory / "site")
    return directory / "site"


def environment(home: Path, site: Path | None = None) -> dict[str, str]:
    """Return the environment of a process whose store and index are under `home`."""
    dropped = {"PYTHONPATH", "DATASETTE_LOAD_PLUGINS", "DATASETTE_SECRET"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"DSH_HOME": str(home), "PYTHONUNBUFFERED": "1"} | ({"PYTHONPATH": str(site)} if site else {})


def what_datasette_found(home: Path, site: Path | None, plugins: str, templates: str) -> dict[str, Any]:
    """Ask a fresh process what Datasette loaded."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, plugins, templates],
        cwd=home,
        env=environment(home, site),
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("plugins", ["", str(ROOT / "plugins")], ids=["alone", "plugins-dir"])
@pytest.mark.parametrize("templates", ["", str(ROOT / "templates")], ids=["alone", "template-dir"])
def test_an_editable_install_serves_the_checkout(tmp_path: Path, plugins: str, templates: str) -> None:
    """Plugins and templates come from beside the package; naming those folders again changes nothing."""
    assert what_datasette_found(tmp_path, None, plugins, templates) == {
        "plugins": PLUGINS,
        "plugin": str(ROOT / "plugins" / "sessiongraph_scope.py"),
        "template": str(ROOT / "templates" / "sessiongraph" / "login.html"),
        "startups": 1,
    }


@pytest.mark.parametrize("plugins", ["", str(ROOT / "plugins")], ids=["alone", "plugins-dir"])
def test_a_wheel_serves_what_it_brought(tmp_path: Path, wheel: Path, plugins: str) -> None:
    """Plugins and templates come out of the package; a checkout's `--plugins-dir` beside it is a no-op."""
    assert what_datasette_found(tmp_path, wheel, plugins, "") == {
        "plugins": PLUGINS,
        "plugin": str(wheel / "sessiongraph_web" / "plugins" / "sessiongraph_scope.py"),
        "template": str(wheel / "sessiongraph_web" / "templates" / "sessiongraph" / "login.html"),
        "startups": 1,
    }


def test_no_template_is_served_by_its_name() -> None:
    """Datasette hands whatever lies in `templates/pages` to anybody, so there is no such folder."""
    assert not (ROOT / "templates" / "pages").exists()


@pytest.mark.parametrize("from_wheel", [False, True], ids=["editable", "wheel"])
def test_a_page_renders_with_what_it_extends(tmp_path: Path, wheel: Path, from_wheel: bool) -> None:
    """The sign-in page, which extends the base of all pages, comes out whole through Datasette's own command."""
    arguments = [] if from_wheel else BARE
    done = subprocess.run(
        [sys.executable, "-m", "datasette", *arguments, "--get", "/-/login"],
        cwd=tmp_path,
        env=environment(tmp_path, wheel if from_wheel else None),
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<!doctype html>")
    assert 'action="/-/login"' in done.stdout


@contextmanager
def running(home: Path, printed: Path, arguments: list[str], site: Path | None = None) -> Iterator[str]:
    """Run Datasette on the store under `home`, yield its address once it listens; its output goes to a file."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with printed.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "datasette", *arguments, "-p", str(port)],
            cwd=home,
            env=environment(home, site),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            for _ in range(600):
                if "Uvicorn running" in printed.read_text():
                    break
                assert process.poll() is None, printed.read_text()
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(10)


def test_a_bare_datasette_prints_a_link_that_its_log_does_not_repeat(tmp_path: Path) -> None:
    """The link works on the address that was asked for; its token is in the output once, where it was given."""
    printed = tmp_path / "printed"
    with running(tmp_path, printed, BARE) as address:
        found = re.search(r"Sign in: (\S+)", printed.read_text())
        assert found is not None
        link = found[1]
        assert link.startswith(f"{address}/-/login?token=sg_")
        with urllib.request.urlopen(link) as page:  # noqa: S310 - our own address
            body = page.read().decode()
    token = link.partition("token=")[2]

    assert f'value="{token}"' in body
    assert "GET /-/login?token=" in printed.read_text()
    assert printed.read_text().count(token) == 1


def test_a_bare_datasette_does_not_listen_beyond_this_machine_unasked(tmp_path: Path) -> None:
    """It ends with the sentence that says what it would have exposed, and no traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "datasette", *BARE, "-h", "0.0.0.0", "-p", "0"],  # noqa: S104 - refused
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("Error: Listening on 0.0.0.0 would offer every session")
