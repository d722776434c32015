"""Makes attachment stores for tests, as dsh lays them out."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any


def put_attachment(root: Path, content: bytes, *, kind: str = "file", sha256: str | None = None) -> str:
    """Store bytes under their hash (or under a false one) and return it."""
    digest = sha256 or hashlib.sha256(content).hexdigest()
    path = root / "v1" / ("objects" if kind == "image" else "file-objects") / digest[:2] / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return digest


def image_block(sha256: str, media_type: str = "image/png") -> dict[str, Any]:
    """Return the content block that cites an image."""
    return {"type": "image", "attachment": {"attachmentId": f"sha256:{sha256}", "mediaType": media_type}}


def file_block(sha256: str, name: str | None = "notes.txt") -> dict[str, Any]:
    """Return the content block that cites a file."""
    attachment = {"attachmentId": f"sha256:{sha256}", "bytes": 4} | ({"name": name} if name is not None else {})
    return {"type": "file", "attachment": attachment}
