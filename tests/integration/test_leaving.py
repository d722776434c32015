"""What leaves through operations: to whom, under which name, and with what is said about damage."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import filters
from sessiongraph_web.access import OWNER, Caller, workspaces
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.export import Download
from sessiongraph_web.operations import SessionGraph
from tests import products
from tests.attachments import file_block, image_block, put_attachment
from tests.builders import Log

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
SCOPED = workspaces("/w/a")


def download(product: SessionGraph, session_id: str, caller: Caller = OWNER, **given: str) -> Download:
    """Export as a URL with these parameters would."""
    parameters = {name: [value] for name, value in given.items()}
    return product.export(caller, filters.parse_export(session_id, parameters, product.settings))


def archive(found: Download) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(b"".join(found.chunks)))


@pytest.mark.parametrize("open_product", [products.indexed, products.opened], ids=["index", "no index"])
def test_the_manifest_says_what_the_ledger_knows(store: Path, open_product: Callable[..., Any]) -> None:
    """Every packed log carries its own damage as sentences, with and without an index."""
    root, child = Log(id="root").turn("a", "b"), Log(id="child", parent="root").turn("c", "d")
    child.raw(b"{broken\n")
    root.write(store)
    path = child.write(store)
    path.write_bytes(path.read_bytes() + b"\x28\xb5\x2f\xfdtorn")
    torn = len(path.read_bytes()) - 8

    with open_product(store) as product:
        packed = archive(download(product, "root", descendants="1"))

    entries = json.loads(packed.read("manifest.json"))["entries"]
    assert [(entry["session_id"], entry["state"]) for entry in entries] == [
        ("root", "complete"),
        ("child", "damaged"),
    ]
    assert entries[0]["damage"] == []
    line = packed.read("subagents/child/session.v4.jsonl").count(b"\n")
    broken, tail = entries[1]["damage"]
    assert broken.endswith(f", line {line})")
    assert tail.endswith(f"(byte {torn})")


def test_stored_files_are_the_owners(store: Path) -> None:
    """Raw files cannot be masked: for others, and with `redact`, asking for them is a 400 that names `format`."""
    log = Log(id="session-1").turn("a", "b")
    path = log.write(store)

    with products.indexed(store) as product:
        mine = archive(download(product, log.id, format="raw"))
        with pytest.raises(SessionGraphError) as others:
            download(product, log.id, SCOPED, format="raw")
        with pytest.raises(SessionGraphError) as masked:
            download(product, log.id, format="raw", redact="1")

    assert mine.read("session.v4.jsonl.zstd") == path.read_bytes()
    for refused in (others.value, masked.value):
        assert (refused.meaning.status, refused.fields) == (400, {"parameter": "format"})


NAMES = [
    ("报告.png", "报告.png"),
    ("photo.html", "photo.html.png"),
    ("PHOTO.PNG", "PHOTO.PNG"),
    (None, "sha256-{}.png"),
]


@pytest.mark.parametrize("caller", [OWNER, SCOPED], ids=["owner", "scoped"])
@pytest.mark.parametrize(("claimed", "saved"), NAMES)
def test_an_image_goes_to_who_sees_the_session(
    store: Path, caller: Caller, claimed: str | None, saved: str
) -> None:
    """It has the name the log gives it, with the suffix of what its bytes are."""
    sha256 = put_attachment(store.parent / "attachments", PNG, kind="image")
    block = image_block(sha256)
    block["attachment"] |= {"name": claimed} if claimed else {}

    with products.indexed(store_with(store, block)) as product:
        found = product.attachment(caller, filters.SessionRequest(id="session-1"), sha256)

        assert (found.filename, found.media_type) == (saved.format(sha256), "image/png")
        assert b"".join(found.chunks) == PNG


def test_a_file_goes_to_the_owner_alone(store: Path) -> None:
    """Nothing in it can be masked, whatever the log calls it; to others it is as if it were not there."""
    sha256 = put_attachment(store.parent / "attachments", b"<script>", kind="file")

    with products.indexed(store_with(store, file_block(sha256, "notes.png"))) as product:
        mine = product.attachment(OWNER, filters.SessionRequest(id="session-1"), sha256)
        with pytest.raises(SessionGraphError) as refused:
            product.attachment(SCOPED, filters.SessionRequest(id="session-1"), sha256)
        with pytest.raises(SessionGraphError) as missing:
            product.attachment(SCOPED, filters.SessionRequest(id="session-1"), "0" * 64)

        assert (mine.filename, mine.media_type) == ("notes.png", "application/octet-stream")
        assert b"".join(mine.chunks) == b"<script>"
    assert (refused.value.code, refused.value.detail) == (missing.value.code, missing.value.detail)


def test_a_name_with_a_secret_is_masked_for_others(store: Path) -> None:
    """The log gives the name, so it is text of a log."""
    secret = "gh" + "p_" + "a1B2c3D4" * 5
    sha256 = put_attachment(store.parent / "attachments", PNG, kind="image")
    block = image_block(sha256)
    block["attachment"]["name"] = f"{secret}.png"

    with products.indexed(store_with(store, block)) as product:
        request = filters.SessionRequest(id="session-1")
        names = [product.attachment(caller, request, sha256).filename for caller in (OWNER, SCOPED)]

    assert names == [f"{secret}.png", "[masked:github-token].png"]


def store_with(store: Path, block: dict[str, Any]) -> Path:
    """Write one session whose prompt cites something."""
    log = Log("/w/a", id="session-1").turn("look", "at this")
    log.event("user/message", {"content": [block], "source": {"kind": "user"}}, surfaceOp="append")
    log.write(store)
    return store
