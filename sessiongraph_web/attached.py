"""Finds the images and files that a message's content cites."""

from __future__ import annotations

import re
from typing import Any, Final

from sessiongraph_web import loose, markup
from sessiongraph_web.cards import Attached
from sessiongraph_web.language import gettext

NAME_CHARS: Final = 120
MAX_PIXELS: Final = 100_000
_ID: Final = re.compile(r"sha256:([0-9a-f]{64})")


def cited(content: object) -> list[Attached]:
    """Return what the blocks of a content cite, in order; blocks of another shape are left out."""
    blocks = (loose.mapping(block) for block in loose.items(content))
    found = (_attached(block) for block in blocks if block.get("type") in ("image", "file"))
    return [one for one in found if one is not None]


def _attached(block: Any) -> Attached | None:
    attachment = loose.mapping(block.get("attachment"))
    match = _ID.fullmatch(loose.string(attachment.get("attachmentId")) or "")
    if match is None:
        return None
    is_image = block["type"] == "image"
    return Attached(
        sha256=match[1],
        name=markup.clip(
            loose.string(attachment.get("name")) or (gettext("image") if is_image else gettext("file")),
            NAME_CHARS,
        ),
        is_image=is_image,
        size=loose.integer(attachment.get("bytes")),
        width=_pixels(attachment.get("width")),
        height=_pixels(attachment.get("height")),
    )


def _pixels(value: object) -> int | None:
    number = loose.integer(value)
    return number if number is not None and 0 < number <= MAX_PIXELS else None
