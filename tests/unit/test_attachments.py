"""Attachments: what events cite, and what the attachment store gives out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import attachments, logs
from sessiongraph_web.attachments import UNKNOWN_TYPE, Attachment, Reference, cited, find, references
from sessiongraph_web.models import Event
from tests.attachments import put_attachment

_HASHES = ["a" * 64, "b" * 64, "c" * 64, "d" * 64]
_PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def _image(digest: str, media_type: object = "image/png") -> dict[str, Any]:
    return {"type": "image", "attachment": {"attachmentId": f"sha256:{digest}", "mediaType": media_type}}


def _found(data: object) -> list[str | None]:
    return [reference.sha256 for reference in references(data)]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda block: {"content": [block]},
        lambda block: {"message": {"content": [block]}},
        lambda block: {"inserted": [{"content": []}, {"content": [block]}]},
        lambda block: {"chunk": {"type": "block-end", "block": block}},
        lambda block: {"content": [{"type": "tool-result", "content": [{"type": "x", "content": [block]}]}]},
    ],
)
def test_every_place_that_can_cite_is_looked_at(wrap: Callable[[Any], Any]) -> None:
    """Messages of all generations, queued prompts, streamed blocks and nested contents cite."""
    event = Event(0, 0, "user/message", None, wrap(_image(_HASHES[0])))

    assert cited(event) == [Reference("image", f"sha256:{_HASHES[0]}", _HASHES[0], "image/png")]


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"content": _image(_HASHES[0])},
        {"content": [[_image(_HASHES[0])]]},
        {"chunk": {"type": "block-start", "block": _image(_HASHES[0])}},
        {"other": [_image(_HASHES[0])]},
        {"content": [{"type": "image"}, {"type": "image", "attachment": "sha256:" + _HASHES[0]}]},
        {"content": [{"type": "image", "attachment": {"attachmentId": 7}}]},
        {"content": [{"type": "text", "attachment": {"attachmentId": f"sha256:{_HASHES[0]}"}}]},
    ],
)
def test_what_is_no_citation_cites_nothing(data: object) -> None:
    """A hash in any other place, or in a malformed block, gives no right to the attachment."""
    assert references(data) == []


def test_contents_are_listed_from_their_end() -> None:
    """The order is the original exporter's: the last block first, a block's own content next."""
    nested = {"type": "tool-result", "content": [_image(_HASHES[1]), _image(_HASHES[2])]}

    assert _found({"content": [_image(_HASHES[0]), nested, _image(_HASHES[3])]}) == [
        _HASHES[3],
        _HASHES[2],
        _HASHES[1],
        _HASHES[0],
    ]


def test_content_nested_without_end_is_followed_a_bounded_way() -> None:
    """Deep nesting neither recurses nor runs forever."""
    content: list[Any] = [_image(_HASHES[0])]
    for _ in range(5000):
        content = [{"type": "tool-result", "content": content}]

    assert references({"content": content}) == []


def test_a_file_is_cited_with_the_name_the_log_gives_it() -> None:
    """Name and size are the log's claims; a media type outside the whitelist is unknown."""
    attachment = {
        "attachmentId": f"sha256:{_HASHES[0]}",
        "name": "报告.txt",
        "bytes": 5,
        "mediaType": "text/html",
    }

    assert references({"content": [{"type": "file", "attachment": attachment}]}) == [
        Reference("file", f"sha256:{_HASHES[0]}", _HASHES[0], UNKNOWN_TYPE, "报告.txt", 5)
    ]


@pytest.mark.parametrize(
    "original", ["sha256:" + "A" * 64, "sha256:" + "a" * 63, "a" * 64, "sha256:../" + "a" * 61, ""]
)
def test_an_id_that_is_no_hash_is_cited_without_one(original: str) -> None:
    """Only 64 lower-case hex digits behind `sha256:` are a hash."""
    block = {"type": "image", "attachment": {"attachmentId": original}}

    assert references({"content": [block]}) == [Reference("image", original, None)]


@pytest.mark.parametrize(
    ("content", "kind", "media_type", "extension"),
    [
        (_PNG, "image", "image/png", "png"),
        (b"\xff\xd8\xff\xe0rest", "image", "image/jpeg", "jpg"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image", "image/webp", "webp"),
        (b"GIF89a....", "image", "image/gif", "gif"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image", UNKNOWN_TYPE, "bin"),
        (b"hello", "file", UNKNOWN_TYPE, "bin"),
        (b"", "file", UNKNOWN_TYPE, "bin"),
    ],
)
def test_an_attachment_is_what_its_bytes_say(
    tmp_path: Path, content: bytes, kind: str, media_type: str, extension: str
) -> None:
    """The media type comes from the first bytes and is one of four, or unknown: never SVG or HTML."""
    digest = put_attachment(tmp_path, content, kind=kind)

    found = find(tmp_path, digest)

    assert found is not None
    assert (found.sha256, found.size, found.media_type) == (digest, len(content), media_type)
    assert found.filename == f"sha256-{digest}.{extension}"
    assert b"".join(found.chunks) == content


@pytest.mark.parametrize(
    "sha256", ["", "..", "../../../../etc/passwd", "A" * 64, "a" * 63, "a" * 65, "a" * 63 + "\n", "٣" * 64]
)
def test_only_a_hash_is_looked_up(tmp_path: Path, sha256: str) -> None:
    """Anything else never becomes a path."""
    assert find(tmp_path, sha256) is None


def _link_to_file(path: Path) -> None:
    target = path.parent / "secret"
    target.write_text("secret")
    path.symlink_to(target)


@pytest.mark.parametrize("make", [_link_to_file, Path.mkdir, os.mkfifo, lambda path: path.symlink_to(path)])
def test_only_a_regular_file_is_opened(tmp_path: Path, make: Callable[[Path], object]) -> None:
    """Links, folders and pipes in the store are as good as missing, and are not waited for."""
    path = tmp_path / "v1" / "objects" / "aa" / _HASHES[0]
    path.parent.mkdir(parents=True)
    make(path)

    assert find(tmp_path, _HASHES[0]) is None


def test_a_file_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    """What is read later is checked again."""
    digest = put_attachment(tmp_path, b"data", kind="file")
    found = find(tmp_path, digest)
    assert found is not None
    found.path.unlink()
    found.path.symlink_to("/etc/hostname")

    with pytest.raises(OSError, match=r"symbolic links|not a regular file"):
        list(found.chunks)


@pytest.mark.shared
def test_the_genuine_logs_cite_the_genuine_attachments(shared: Path) -> None:
    """All that real logs cite is found whole; files that no log cites are not among it."""
    genuine = shared / "genuine"
    wanted = {
        reference.sha256
        for log in logs.discover(genuine / "sessions").logs
        for unit in logs.read(log.path)
        if isinstance(unit, Event)
        for reference in cited(unit)
    }
    found = [find(genuine / "attachments", sha256) for sha256 in wanted if sha256]

    assert {path.name for path in (genuine / "attachments").glob("v1/objects/*/*")} == wanted
    assert all(_is_whole(attachment) for attachment in found)


def _is_whole(found: Attachment | None) -> bool:
    return found is not None and hashlib.sha256(b"".join(found.chunks)).hexdigest() == found.sha256


def test_the_store_is_never_listed(tmp_path: Path) -> None:
    """Nothing but the two folders of a hash's own is looked into."""
    digest = put_attachment(tmp_path, b"data", kind="file")
    (tmp_path / "v1" / "file-objects").chmod(0o100)
    try:
        assert find(tmp_path, digest) is not None
    finally:
        (tmp_path / "v1" / "file-objects").chmod(0o700)
    assert set(attachments.EXTENSIONS) == {"image/png", "image/jpeg", "image/webp", "image/gif"}
