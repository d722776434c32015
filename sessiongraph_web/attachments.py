"""Attachments: which images and files an event cites, and how one is found and read in the attachment store."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from sessiongraph_web.models import Event

Kind = Literal["image", "file"]

UNKNOWN_TYPE: Final = "application/octet-stream"
EXTENSIONS: Final = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}
MAX_CLAIM_CHARS: Final = 1000  # of an id or a name that a log claims
MAX_NESTING: Final = 256  # levels of content inside content that are followed
_FOLDERS: Final = ("objects", "file-objects")  # of images, of files
_CHUNK_BYTES: Final = 256 * 1024
_HEAD_BYTES: Final = 16
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_PREFIX: Final = "sha256:"


@dataclass(frozen=True, slots=True)
class Reference:
    """An image or file as an event cites it.

    `original` is the id as written, and `sha256` the hash in it, None where it holds none. `media_type` is one of
    `EXTENSIONS` or `UNKNOWN_TYPE`, whatever the log says; `name` and `size` are the log's claims.
    """

    kind: Kind
    original: str
    sha256: str | None
    media_type: str = UNKNOWN_TYPE
    name: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A regular file of the attachment store. `media_type` comes from its first bytes, never from a log."""

    sha256: str
    path: Path
    size: int
    mtime: float
    media_type: str

    @property
    def filename(self) -> str:
        """A name to save it under."""
        return f"sha256-{self.sha256}.{EXTENSIONS.get(self.media_type, 'bin')}"

    @property
    def chunks(self) -> Iterator[bytes]:
        """The bytes, in pieces of at most 256 KiB."""
        with _open(self.path) as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk


def cited(event: Event) -> list[Reference]:
    """Return what an event cites, in the order the exporter lists it."""
    return references(event.data)


def references(data: object) -> list[Reference]:
    """Return what the `data` of a decoded event cites, of any generation; anything malformed cites nothing.

    Each content list is walked from its end, and a block's own content before the blocks ahead of it: so does
    the original, whose archives list media in this order.
    """
    return [
        reference
        for content in _contents(data)
        for block in _blocks(content)
        if (reference := _reference(block)) is not None
    ]


def find(root: Path, sha256: str) -> Attachment | None:
    """Return the attachment with this hash, or None if the store has no regular file for it.

    Only the log that cites an attachment gives a right to it: ask `cited` first.
    """
    if not _SHA256.fullmatch(sha256):
        return None
    for folder in _FOLDERS:
        path = root / "v1" / folder / sha256[:2] / sha256
        try:
            with _open(path) as file:
                facts = os.fstat(file.fileno())
                return Attachment(
                    sha256, path, facts.st_size, facts.st_mtime, _media_type(file.read(_HEAD_BYTES))
                )
        except OSError:
            continue
    return None


def _open(path: Path) -> BinaryIO:
    """Open a regular file; a link, a folder, a pipe or a device is an OSError and is never waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _contents(data: object) -> Iterator[list[Any]]:
    """Yield the content lists of an event's data: its own, its message's, its queued messages', its chunk's."""
    if not isinstance(data, dict):
        return
    message, inserted, chunk = data.get("message"), data.get("inserted"), data.get("chunk")
    holders = [data, message, *(inserted if isinstance(inserted, list) else [])]
    for holder in holders:
        if isinstance(holder, dict) and isinstance(holder.get("content"), list):
            yield holder["content"]
    if isinstance(chunk, dict) and chunk.get("type") == "block-end":
        yield [chunk.get("block")]


def _blocks(content: list[Any]) -> Iterator[dict[str, Any]]:
    stack = [(block, 0) for block in content]
    while stack:
        block, depth = stack.pop()
        if isinstance(block, dict):
            yield block
            nested = block.get("content")
            if isinstance(nested, list) and depth < MAX_NESTING:
                stack += [(inner, depth + 1) for inner in nested]


def _reference(block: dict[str, Any]) -> Reference | None:
    kind, attachment = block.get("type"), block.get("attachment")
    if kind not in ("image", "file") or not isinstance(attachment, dict):
        return None
    original, name, size = (attachment.get(key) for key in ("attachmentId", "name", "bytes"))
    if not isinstance(original, str):
        return None
    digest = original.removeprefix(_PREFIX)
    media_type = attachment.get("mediaType")
    return Reference(
        kind=kind,
        original=original[:MAX_CLAIM_CHARS],
        sha256=digest if original.startswith(_PREFIX) and _SHA256.fullmatch(digest) else None,
        media_type=media_type if isinstance(media_type, str) and media_type in EXTENSIONS else UNKNOWN_TYPE,
        name=name[:MAX_CLAIM_CHARS] if isinstance(name, str) and name else None,
        size=size if type(size) is int and size >= 0 else None,
    )


def _media_type(head: bytes) -> str:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return UNKNOWN_TYPE
