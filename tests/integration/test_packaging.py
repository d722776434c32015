"""What is built and shipped serves the same product, whichever way it was installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from sessiongraph_web.access import OWNER
from tests.integration.test_entrypoint import BARE, FLAGS, PLUGINS, ROOT, environment, running
from tests.world import home_only


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the source archive, unpacked as an installer does."""
    tmp_path = tmp_path_factory.mktemp("packaging")
    _build(ROOT, "sdist", tmp_path / "built")
    (archive,) = (tmp_path / "built").glob("*.tar.gz")
    with tarfile.open(archive) as source:
        source.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        source.extractall(tmp_path / "source")  # noqa: S202 - just built
    (folder,) = (tmp_path / "source").iterdir()
    _build(folder, "wheel", tmp_path / "built")
    (wheel,) = (tmp_path / "built").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")  # noqa: S202 - just built
    return tmp_path / "site"


def test_every_way_of_installing_serves_the_same_pages(tmp_path: Path, site: Path) -> None:
    """A wheel, an editable install, a wheel beside a checkout's plugins, a bare Datasette in a checkout: the page
    before signing in and those after are the same, in both languages, and every plugin is there once."""
    world = home_only(tmp_path / "home")
    world.index = tmp_path / "home" / "sessiongraph"
    token = world.build().token(OWNER)
    session = f"/sessions/{world.ids['home']}"
    paths = [
        "/",
        "/search?q=amberfish",
        session,
        f"{session}/events/0",
        f"/trace/{world.ids['home']}",
        "/timeline",
    ]
    ways: dict[str, tuple[list[str], Path | None]] = {
        "wheel": ([], site),
        "editable": ([], None),
        "wheel and plugins-dir": (FLAGS, site),
        "bare": (BARE, None),
    }
    with ExitStack() as stack:
        addresses = {
            name: stack.enter_context(running(tmp_path / "home", tmp_path / f"{name}.log", arguments, where))
            for name, (arguments, where) in ways.items()
        }
        outside = {name: _get(address, "/") for name, address in addresses.items()}
        inside = {
            (path, language): [_get(address, path, token, language) for address in addresses.values()]
            for path in paths
            for language in ("en", "zh")
        }
        listed = {name: _get(address, "/-/plugins.json", token) for name, address in addresses.items()}

    assert {status for status, _ in outside.values()} == {401}
    assert len(set(outside.values())) == 1
    for shown in inside.values():
        assert {status for status, _ in shown} == {200}
        assert len({_less_time(body) for _, body in shown}) == 1
    assert b"About the amberfish" in inside["/", "en"][0][1]
    assert inside["/", "en"][0][1] != inside["/", "zh"][0][1]
    for name, (status, body) in listed.items():
        found = json.loads(body)
        names = [plugin["name"] for plugin in (found if isinstance(found, list) else found["plugins"])]
        ours = sorted(plugin for plugin in names if plugin.startswith("sessiongraph"))
        assert (status, name, ours) == (200, name, ["sessiongraph-web", *PLUGINS])


def test_a_wheel_brings_its_types_and_its_data(site: Path) -> None:
    """Programs that import it are type-checked against it; what it serves is inside."""
    package = site / "sessiongraph_web"
    shipped = ["py.typed", "metadata.yml", "static/style.css", "templates/sessiongraph/base.html"]
    shipped += ["locales/zh/LC_MESSAGES/sessiongraph.mo"]
    assert [name for name in shipped if not (package / name).is_file()] == []
    assert sorted(path.name for path in (package / "plugins").glob("*.py")) == PLUGINS
    assert not list(site.glob("tests")) + list(site.glob("bench"))
    done = subprocess.run(
        [sys.executable, "-c", "import sessiongraph_web; print(sessiongraph_web.__file__)"],
        cwd=site.parent,
        env=environment(site.parent, site),
        check=True,
        capture_output=True,
        text=True,
    )
    assert Path(done.stdout.strip()) == package / "__init__.py"


def _less_time(page: bytes) -> bytes:
    """Return a page without what depends on when it was asked for, and how long its search took."""
    page = re.sub(rb"<local-time.*?</local-time>", b"", page)
    return re.sub(rb'(<p class="quiet" role="status">[^<]*\xc2\xb7)[^<]*', rb"\1", page)


def _build(source: Path, kind: str, target: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)],
        cwd=source,
        check=True,
        capture_output=True,
    )


def _get(address: str, path: str, token: str | None = None, language: str = "en") -> tuple[int, bytes]:
    headers = {"accept-language": language} | ({"authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(address + path, headers=headers)  # noqa: S310 - our own address
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
