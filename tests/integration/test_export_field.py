"""Archives of sessions that broke other exporters, opened by the tools people have."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import zipfile
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest

from sessiongraph_web import logs
from sessiongraph_web.export import Source, zip_download
from sessiongraph_web.models import Header
from tests.attachments import file_block, put_attachment
from tests.builders import Log
from tests.shared import shared_folders

_STORES = [
    *shared_folders("field-cases", "*/sessions"),
    *shared_folders("field-cases", "*/step*/sessions"),
    *shared_folders("genuine", "sessions*"),
]
_TOOLS = {
    "unzip": ["unzip", "-tq"],
    "7zz": ["7zz", "t", "-bso0"],
    "zipinfo": ["zipinfo", "-t"],
}


def _sources(store: Path) -> list[Source]:
    found = []
    for log in logs.discover(store).logs:
        header = logs.peek_header(log.path)
        session_id, cwd = (header.id, header.cwd) if isinstance(header, Header) else (log.folder, None)
        found.append(Source(log.log_id, log.path, session_id, cwd, log.version))
    return found


def _pack(sources: list[Source], attachments: Path, *, redact: bool = False) -> bytes:
    download = zip_download(sources[0], sources[1:], attachments=attachments, redact=redact, limits=logs.Limits())
    return b"".join(download.chunks)


def _check_names(names: list[str]) -> None:
    """Every name is relative, portable and unique where case is ignored."""
    assert len({name.casefold() for name in names}) == len(names)
    for name in names:
        assert len(name.encode()) <= 240
        assert not name.startswith("/")
        for part in PurePosixPath(name).parts:
            assert part not in ("", ".", "..")
            assert not PureWindowsPath(part).is_reserved()
            assert not set(part) & set('<>:"\\|?*')
            assert part == part.rstrip(". ")
            assert part.isprintable()


def _check_manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    """The manifest comes last and describes every other entry."""
    manifest: dict[str, Any] = json.loads(archive.read("manifest.json"))
    assert archive.namelist() == [*(entry["name"] for entry in manifest["entries"]), "manifest.json"]
    for entry in manifest["entries"]:
        content = archive.read(entry["name"])
        assert (entry["size"], entry["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    return manifest


@pytest.mark.shared
@pytest.mark.parametrize("store", _STORES, ids=lambda path: "/".join(path.parts[-3:]))
@pytest.mark.parametrize("redact", [False, True])
def test_a_whole_store_makes_one_sound_archive(store: Path, redact: bool, shared: Path) -> None:
    """Whatever a store holds, its logs pack into an archive that opens, with safe names and a true manifest."""
    sources = _sources(store)
    if not sources:
        pytest.skip("no log in this store")

    archive = zipfile.ZipFile(io.BytesIO(_pack(sources, shared / "genuine" / "attachments", redact=redact)))

    assert archive.testzip() is None
    _check_names(archive.namelist())
    manifest = _check_manifest(archive)
    packed = [entry for entry in manifest["entries"] if entry["kind"] == "log"]
    assert len(packed) == len(sources)
    if not redact:
        assert [entry["session_id"] for entry in packed] == [source.session_id for source in sources]
        assert [archive.read(entry["name"]) for entry in packed] == [
            b"".join(logs.plain_text(source.path)) for source in sources
        ]


@pytest.mark.shared
@pytest.mark.parametrize("store", shared_folders("field-cases", "W15/sessions"))
def test_the_secrets_of_the_field_case_do_not_leave_masked(store: Path, tmp_path: Path) -> None:
    """Each of the seven secrets, and the one in a command, is masked and counted."""
    sources = _sources(store)
    archive = zipfile.ZipFile(io.BytesIO(_pack(sources, tmp_path, redact=True)))

    texts = [
        block["text"].removeprefix("cat .env\n")
        for line in archive.read("session.v4.jsonl").splitlines()
        for block in json.loads(line).get("data", {}).get("message", {}).get("content", [])
    ]
    assert texts == [
        "[masked:aws-key-id]",
        "[masked:github-token]",
        "[masked:model-key]",
        "[masked:private-key]",
        "postgres://app:[masked:password]@db.example/app",
        "Authorization: Bearer [masked:bearer-token]",
        "API_KEY=[masked:assignment]",
    ]
    assert json.loads(archive.read("manifest.json"))["masked"] == 8


@pytest.mark.parametrize("tool", _TOOLS)
def test_other_tools_open_the_archive(tool: str, store: Path, tmp_path: Path) -> None:
    """Names in any script, streamed sizes and the ZIP64 marks are understood by what people have."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    file = put_attachment(tmp_path / "attachments", b"data")
    root = Log(id="root").turn("你好", "x" * 300_000)
    root.event("user/message", {"content": [file_block(file, "报告 report.txt")]}, surfaceOp="append")
    children = [Log(id=name) for name in ("con", "a/b", "a_b", "../../x", "A", "a", "日本", "x" * 200)]
    for log in (root, *children):
        log.write(store)
    sources = sorted(_sources(store), key=lambda source: source.session_id != "root")
    path = tmp_path / "archive.zip"
    path.write_bytes(_pack(sources, tmp_path / "attachments"))

    done = subprocess.run([*_TOOLS[tool], str(path)], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
def test_an_archive_that_was_cut_is_seen_to_be_cut(store: Path, tmp_path: Path) -> None:
    """Every beginning of an archive is refused: nobody takes a part for the whole."""
    Log().turn("a", "b" * 1000).write(store)
    whole = _pack(_sources(store), tmp_path)
    path = tmp_path / "cut.zip"

    for length in range(0, len(whole), len(whole) // 10):
        path.write_bytes(whole[:length])
        done = subprocess.run(["unzip", "-tq", str(path)], capture_output=True, check=False)
        assert done.returncode != 0
