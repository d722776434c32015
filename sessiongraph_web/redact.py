"""Masking: known secrets in text, and in every string of decoded JSON, become the name of their kind."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import Any, Final

from sessiongraph_web import assignments
from sessiongraph_web.assignments import MAX_KEYS, is_real, secret_name
from sessiongraph_web.secretrules import RULES, Rule, is_suspect, private_keys

REDACTION_VERSION: Final = 2
WITHHELD: Final = "[masked:withheld]"  # stands for a text that could not be masked
MAX_ROUNDS: Final = 8
MIN_CHARS: Final = 7  # nothing shorter holds both a secret and what tells it


def mask(text: str) -> tuple[str, int]:
    """Return the text with every known secret replaced by `[masked:<kind>]`, and how many were.

    Masking twice changes nothing more. If masking fails, the whole text is withheld and counts as one.
    """
    try:
        if len(text) < MIN_CHARS or not is_suspect(text):
            return text, 0
        return _mask(text)
    except Exception:  # noqa: BLE001 - whatever went wrong, nothing unmasked may leave
        return WITHHELD, 1


def mask_value(value: Any) -> tuple[Any, int]:
    """Return decoded JSON with every string in it masked, keys too, and how many secrets were replaced.

    A string under a key like `password` is masked for its key. The pieces of a streamed text may each hold a part
    of a secret: they are withheld where their whole holds one, and where their neighbours are in other records.
    """
    try:
        return _mask_value(value)
    except Exception:  # noqa: BLE001 - as above
        return WITHHELD, 1


def _mask(text: str) -> tuple[str, int]:
    """Apply the rules until they find nothing: where one secret ran into another, masking one bares the other."""
    total = 0
    for _ in range(MAX_ROUNDS):
        text, count = _mask_once(text)
        total += count
        if not count:
            break
    return text, total


def _mask_once(text: str) -> tuple[str, int]:
    total = 0
    for rule in RULES:
        for needle in rule.needles:
            if needle in text:
                text, count = _apply(rule, text)
                total += count
                break
    for name, find in (("private-key", private_keys), ("assignment", assignments.find)):
        text, count = _replace(text, list(find(text)), name)
        total += count
    return text, total


def _apply(rule: Rule, text: str) -> tuple[str, int]:
    group = "secret" if "secret" in rule.pattern.groupindex else 0
    matches = rule.pattern.finditer(text)
    spans = [m.span(group) for m in matches if rule.is_secret is None or rule.is_secret(m)]
    return _replace(text, spans, rule.name)


def _replace(text: str, spans: list[tuple[int, int]], name: str) -> tuple[str, int]:
    if not spans:
        return text, 0
    pieces, done = [], 0
    for start, end in spans:
        pieces += [text[done:start], f"[masked:{name}]"]
        done = end
    return "".join([*pieces, text[done:]]), len(spans)


def _mask_value(value: Any) -> tuple[Any, int]:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return _mask_object(value)
    if isinstance(value, list):
        masked = [_mask_value(item) for item in value]
        return [item for item, _ in masked], sum(count for _, count in masked)
    return value, 0


def _mask_object(value: dict[Any, Any]) -> tuple[dict[Any, Any], int]:
    result: dict[Any, Any] = {}
    total = 0
    for key, item in value.items():
        shown, count = _mask_key(key) if isinstance(key, str) else (key, 0)
        while count and shown in result:
            shown += "*"
        total += count
        if isinstance(item, str | dict | list):
            item, count = _mask_member(value, key, item)
            total += count
        result[shown] = item
    return result, total


@lru_cache(MAX_KEYS)
def _mask_key(key: str) -> tuple[str, int]:
    return mask(key)


def _mask_member(parent: dict[Any, Any], key: Any, item: Any) -> tuple[Any, int]:
    if isinstance(item, str):
        if key != "type" and str(parent.get("type")).endswith("-delta") and item:
            return WITHHELD, 1
        name = secret_name(key) if isinstance(key, str) else None
        if name and not any(c.isspace() for c in item) and is_real(name, item, "quoted"):
            return "[masked:assignment]", 1
    if isinstance(item, list) and item:
        if key == "stream":
            return ([], 1) if _hides_secret(item) else (item, 0)
        if key in _PIECES and "dt" in parent:
            return [WITHHELD], 1
    return _mask_value(item)


def _hides_secret(stream: list[Any]) -> bool:
    """Say whether a stream, its pieces joined or each alone, holds a secret."""
    pieces: dict[str, list[str]] = defaultdict(list)
    _collect(pieces, "", stream)
    return any(mask("".join(texts))[1] or mask("\n".join(texts))[1] for texts in pieces.values())


def _collect(pieces: dict[str, list[str]], key: str, values: list[Any]) -> None:
    """Add every string inside the values, in order, to the pieces under its key."""
    for value in values:
        if isinstance(value, str):
            pieces[key].append(value)
        elif isinstance(value, list):
            _collect(pieces, key, value)
        elif isinstance(value, dict):
            for name, item in value.items():
                if isinstance(item, str | dict):
                    _collect(pieces, name, [item])
                elif isinstance(item, list):
                    _collect(pieces, name, item)


_PIECES: Final = ("texts", "args")  # of a packed row: the pieces of one text that goes on in other rows
