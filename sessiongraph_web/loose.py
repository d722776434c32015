"""Reads values out of JSON that may have any shape: what is not as expected is as good as absent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec


def mapping(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def string(value: object) -> str | None:
    """Return the value if it is a string that is not empty."""
    return value if isinstance(value, str) and value else None


def integer(value: object) -> int | None:
    """Return the value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def at(value: object, path: str) -> Any:
    """Follow a dotted path through objects; None where it ends early."""
    for name in path.split("."):
        value = mapping(value).get(name)
    return value


def decoded(text: object) -> Any:
    """Decode JSON from a string; None for what is not JSON."""
    try:
        return msgspec.json.decode(text) if isinstance(text, str) else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def said(value: object) -> str:
    """Write a value on one line: strings as they are, all else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)


def texts(content: object) -> str:
    """Join the text blocks of a message's content."""
    if isinstance(content, str):
        return content
    blocks = (mapping(block) for block in items(content))
    return "\n".join(
        text for block in blocks if block.get("type") == "text" and (text := string(block.get("text")))
    )
