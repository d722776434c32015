"""The demo: made-up sessions that show what the product can."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import pytest

from sessiongraph_web import access, attachments, demo
from tests.world import World


@pytest.mark.asyncio
async def test_the_demo_shows_an_image(tmp_path: Path) -> None:
    """A prompt has a picture that is in the attachment store, and the server hands it out as a PNG."""
    world = World(tmp_path / "sessions", tmp_path / "index")
    demo.write(world.store)
    owner = {"authorization": f"Bearer {world.build().token(access.OWNER)}"}
    datasette = world.serve()
    await datasette.invoke_startup()

    found = await datasette.client.get("/search.json?q=广告SDK", headers=owner)
    session = min((hit["session"] for hit in found.json()["sessions"]), key=lambda one: one["created_at"])
    page = await datasette.client.get(f"/sessions/{session['id']}", headers=owner)
    (address, width, height) = re.search(  # type: ignore[union-attr]
        r'<img src="([^"]+)" alt="超时次数.png" loading="lazy" width="(\d+)" height="(\d+)"', page.text
    ).groups()
    picture = await datasette.client.get(address, headers=owner)
    await datasette.invoke_shutdown()

    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    assert size(picture.content) == (int(width), int(height)) == (360, 140)


def size(png: bytes) -> tuple[int, int]:
    """Return width and height of a PNG of one byte a pixel, its checksums and its rows checked."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert png[at + 8 + length : at + 12 + length] == struct.pack(">I", zlib.crc32(kind + data))
        chunks[kind] = data
        at += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    assert len(zlib.decompress(chunks[b"IDAT"])) == (width + 1) * height
    assert list(chunks)[-1] == b"IEND"
    return width, height


def test_the_demo_has_its_own_attachments(tmp_path: Path) -> None:
    """It writes nowhere but where it is told."""
    demo.write(tmp_path / "s", tmp_path / "a")
    stored = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert [attachments.find(tmp_path / "a", path.name) is not None for path in stored] == [True]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "s"]
