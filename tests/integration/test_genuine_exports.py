"""Archives of genuine sessions: the entries that dsh's own export of them has, and our manifest behind."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import filters, logs
from sessiongraph_web.access import OWNER
from sessiongraph_web.entrynames import safe_id
from sessiongraph_web.models import Header
from tests import products
from tests.shared import SHARED, shared_folders

pytestmark = pytest.mark.shared

STORES = [path for path in shared_folders("genuine", "*") if logs.discover(path).logs]
# As dsh itself listed them; it writes a colon behind `sha256`, which Windows cannot unpack.
RECORDED = {
    "session-ad327bd21499497e908db773246c35a1": [
        "session.v4.jsonl",
        "subagents/91cfad82-2a8f-444a-b603-e9df4d2056e4/session.v4.jsonl",
    ],
}


@pytest.mark.parametrize("store", STORES, ids=lambda path: path.name)
def test_every_archive_has_the_entries_of_the_original(store: Path) -> None:
    """The root, descendants depth first, distinct images, distinct files; logs byte for byte as stored."""
    found = {log.log_id: (log, logs.peek_header(log.path)) for log in logs.discover(store).logs}
    headers = {key: header for key, (_, header) in found.items() if isinstance(header, Header)}
    with products.opened(store, attachments=attachments()) as product:
        for log_id, header in headers.items():
            request = filters.ExportRequest(id=header.id, log_id=log_id, descendants=True)
            archive = zipfile.ZipFile(io.BytesIO(b"".join(product.export(OWNER, request).chunks)))
            family = [log_id, *below(headers, log_id)]
            paths = [found[key][0].path for key in family]
            texts = [b"".join(logs.plain_text(path)) for path in paths]
            folders = ["", *(f"subagents/{safe_id(headers[key].id)}/" for key in family[1:])]
            names = [
                folder + path.name.removesuffix(".zstd") for folder, path in zip(folders, paths, strict=True)
            ]
            *entries, manifest = archive.namelist()
            media = [name for name in entries if name.startswith("media/")]
            files = [name for name in entries if name.startswith("files/")]

            assert (entries, manifest) == ([*names, *media, *files], "manifest.json")
            assert [archive.read(name) for name in names] == texts
            cited = list(citations(texts))
            assert set(media) == {name.replace(":", "-") for name in cited if name.startswith("media/")}
            assert set(files) == {name for name in cited if name.startswith("files/")}
            assert json.loads(archive.read(manifest))["missing"] == []
            assert names == RECORDED.get(header.id, names)


def attachments() -> Path:
    assert SHARED is not None
    return SHARED / "genuine" / "attachments"


def below(headers: dict[int, Header], log_id: int) -> Iterator[int]:
    """Yield the descendants of a log in its workspace, depth first, oldest first."""
    parent = headers[log_id]
    children = [
        (header.created_at or 0, header.id, key)
        for key, header in headers.items()
        if (header.parent_session, header.cwd) == (parent.id, parent.cwd)
    ]
    for _, _, key in sorted(children):
        yield key
        yield from below(headers, key)


def citations(texts: list[bytes]) -> Iterator[str]:
    """Yield the entry of every attachment block, wherever it stands in a log, as the original names it."""
    for text in texts:
        for line in text.splitlines():
            yield from _named(json.loads(line).get("data"))


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _named(item)
    if not isinstance(value, dict):
        return
    attachment = value.get("attachment")
    if value.get("type") in ("image", "file") and isinstance(attachment, dict):
        digest = attachment["attachmentId"].removeprefix("sha256:")
        suffix = {"image/jpeg": "jpg"}.get(attachment["mediaType"], attachment["mediaType"].partition("/")[2])
        image = f"media/sha256:{digest}.{suffix}"
        yield image if value["type"] == "image" else f"files/{digest[:2]}/{digest}/{attachment['name']}"
    for item in value.values():
        yield from _named(item)
