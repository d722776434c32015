"""The recorded archives of the original exporter: the same entries in the same order, apart from what the design
changes (`SKIPPED`), and with our manifest behind them."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from sessiongraph_web import logs
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.export import Source, zip_download
from sessiongraph_web.models import Header
from tests.attachments import put_attachment
from tests.builders import Log
from tests.shared import shared_folders

pytestmark = pytest.mark.shared

LONGEST_TEXT: Final = 5000  # longer entries were recorded without their text

_EDGE: Final = "parameters, methods and status texts are the HTTP edge's, which has routes of its own"
# Cases that cannot hold here, by name, with the reason.
SKIPPED: Final = {
    "unknown media type extension": "an unknown type is `.bin` here; `.undefined` was an accident",
    "media ids are not sanitized": "only a hash is looked up; any other id is listed as missing",
    "surrogate pair across 64Ki code unit boundary": "a last line without its newline is a write in progress",
    "compression level 9": "the level is no setting here",
    "image failure fails stream": "what the store has lost is listed in the manifest, and the rest is packed",
    "HEAD ok": _EDGE,
    "HEAD invalid params": _EDGE,
    "empty sessionId": _EDGE,
    "bad includeDescendants": _EDGE,
    "TRUE upper case": _EDGE,
    "POST is an unknown method": _EDGE,
    "trailing slash 404": _EDGE,
    "no query service": "there are no services that could be missing",
    "no attachments": "there are no services that could be missing",
    "raw artifacts unsupported": "there is one kind of store",
    "root flush failure hides detail": "nothing can be flushed from outside dsh",
}


def _cases() -> list[Any]:
    return [
        pytest.param(case, id=case["name"])
        for path in shared_folders("vectors/cases", "zip_export.json")
        for case in json.loads(path.read_text("utf-8"))
    ]


@pytest.mark.parametrize("case", _cases())
def test_recorded_archive(case: dict[str, Any], tmp_path: Path) -> None:
    """The archive has the recorded entries; a recorded failure is a failure at the same moment."""
    if case["name"] in SKIPPED:
        pytest.skip(SKIPPED[case["name"]])
    given, expected = case["input"], case["expected"]["ok"]
    sources = _jsonl_sources(given, tmp_path) if given["op"] == "zip_jsonl" else _sources(given, tmp_path)
    if expected["status"] != 200:
        with pytest.raises(SessionGraphError):
            _chunks(sources, tmp_path)
        return
    filename, chunks = _chunks(sources, tmp_path)
    assert f'attachment; filename="{filename}"' == expected["contentDisposition"]
    if "streamError" in expected:
        with pytest.raises(SessionGraphError):
            list(chunks)
        return
    archive = zipfile.ZipFile(io.BytesIO(b"".join(chunks)))
    assert _described(archive) == [_expected(entry) for entry in expected["entries"]]


def _chunks(sources: list[Source], tmp_path: Path) -> tuple[str, Iterator[bytes]]:
    download = zip_download(
        sources[0], sources[1:], attachments=tmp_path / "attachments", redact=False, limits=logs.Limits()
    )
    return download.filename, download.chunks


def _described(archive: zipfile.ZipFile) -> list[tuple[str, int, int, bytes]]:
    *infos, manifest = archive.infolist()
    assert manifest.filename == "manifest.json"
    return [(i.filename, i.compress_type, i.flag_bits & 8, _recordable(archive.read(i))) for i in infos]


def _expected(entry: dict[str, Any]) -> tuple[str, int, int, bytes]:
    """Return a recorded entry with ids of images made hashes; without text, its size stands for it."""
    path, text = entry["path"], entry.get("text")
    if path.startswith("media/"):
        name, _, extension = path.removeprefix("media/").rpartition(".")
        path = f"media/sha256-{_hash(name)}.{extension}"
    content = _size(entry["size"]) if text is None else _recordable(_with_hashes(text).encode())
    return path, entry["method"], entry["flags"] & 8, content


def _recordable(content: bytes) -> bytes:
    """Return what can be compared: the order of keys is not significant in the records."""
    if len(content) > LONGEST_TEXT:
        return _size(len(content))
    try:
        lines = [_less_id(json.loads(line)) for line in content.splitlines()]
    except ValueError:
        return content
    return "\n".join(json.dumps(line, sort_keys=True) for line in lines).encode()


def _less_id(line: Any) -> Any:
    """Return a header without its id (see `_named`), and any other line as it is."""
    is_header = isinstance(line, dict) and line.get("type") == "session"
    return {key: value for key, value in line.items() if key != "id"} if is_header else line


def _size(size: int) -> bytes:
    return f"<{size} bytes>".encode()


def _hash(image_id: str) -> str:
    return hashlib.sha256(f"bytes:{image_id}".encode()).hexdigest()


def _sources(given: dict[str, Any], tmp_path: Path) -> list[Source]:
    """Write the artifacts of a case, and return the root and its descendants in pre-order, each id once."""
    asked = parse_qs(urlsplit(given["request"]["path"]).query)
    root = asked["sessionId"][-1]
    wanted = asked.get("includeDescendants") == ["true"]
    ids = list(_preorder(given.get("descendants", []) if wanted else [], {root}))
    unreadable = given.get("services", {}).get("readError")
    sources = []
    for number, session_id in enumerate([root, *ids]):
        path = tmp_path / str(number) / "session.jsonl"
        path.parent.mkdir()
        if session_id in given["artifacts"] and session_id != unreadable:
            content = _unfolded(given["artifacts"][session_id]["content"])
            for image_id in _image_ids(content):
                put_attachment(tmp_path / "attachments", f"bytes:{image_id}".encode(), kind="image")
            path.write_text(_named(_with_hashes(content), session_id), "utf-8")
        sources.append(Source(number, path, session_id, _cwd(path), 0))
    return sources


def _named(content: str, session_id: str) -> str:
    """Give an artifact's header the id that it is asked under: in two records they differ, as no store's do."""
    first, newline, rest = content.partition("\n")
    try:
        header = json.loads(first)
    except ValueError:
        return content
    if header.get("type") != "session" or header["id"] == session_id:
        return content
    return json.dumps(header | {"id": session_id}, separators=(",", ":")) + newline + rest


def _cwd(path: Path) -> str | None:
    """Return what the header of an artifact says, as the catalog would."""
    header = logs.peek_header(path) if path.exists() else None
    return header.cwd if isinstance(header, Header) else None


def _preorder(branches: list[dict[str, Any]], seen: set[str]) -> Iterator[str]:
    for branch in branches:
        if branch["id"] not in seen:
            seen.add(branch["id"])
            yield branch["id"]
            yield from _preorder(branch.get("descendants", []), seen)


def _unfolded(content: Any) -> str:
    if isinstance(content, str):
        return content
    piece, count, tail = [*content["$repeat"], ""][:3]
    return str(piece * count + tail)


def _with_hashes(content: str) -> str:
    for image_id in _image_ids(content):
        content = content.replace(f'"attachmentId":"{image_id}"', f'"attachmentId":"sha256:{_hash(image_id)}"')
    return content


def _image_ids(content: str) -> list[str]:
    return [part.partition('"')[0] for part in content.split('"attachmentId":"')[1:]]


def _jsonl_sources(given: dict[str, Any], tmp_path: Path) -> list[Source]:
    """Write the sessions of a case as logs of generation 0; the rows are packed as dsh packs them."""
    entries = {}
    sources = []
    compressed = given["compression"] == "zstd"
    for number, session in enumerate(given["sessions"]):
        meta = session["meta"]
        log = Log.verbatim({"type": "session", **meta}, _packed(session["events"]))
        path = log.write(tmp_path / str(number), compressed)
        entries[meta["id"]] = path
        sources.append(Source(number, path, meta["id"], meta["cwd"], 0))
    return sources


def _packed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for event in events:
        chunk = event["data"].get("chunk", {})
        if chunk.get("type") != "text-delta":
            rows.append(event)
        elif rows and rows[-1]["type"] == "text-chunks":
            row = rows[-1]["data"]
            row["dt"].append(event["time"] - rows[-1]["time0"] - sum(row["dt"]))
            row["texts"].append(chunk["text"])
        else:
            data = event["data"]
            packed = {"turn": data["turn"], "step": data["step"], "index": chunk["index"]}
            packed |= {"dt": [], "texts": [chunk["text"]]}
            rows.append({"type": "text-chunks", "seq0": event["seq"], "time0": event["time"], "data": packed})
    return rows
