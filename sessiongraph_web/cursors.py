"""Cursors: where a page ended, signed so that nobody else can say so."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import Any, Final

from sessiongraph_web.errors import SessionGraphError

MAX_CURSOR_CHARACTERS: Final = 4096
_SIGNATURE_BYTES: Final = 16
_PURPOSE: Final = b"sessiongraph cursor 1\0"


def sign(payload: dict[str, Any], key: bytes) -> str:
    """Return the cursor that holds a JSON-able payload; equal payloads give equal cursors."""
    written = json.dumps(payload, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()
    return _encode(_signature(written, key) + written)


def open_cursor(text: str, key: bytes) -> dict[str, Any]:
    """Return the payload of a cursor that `sign` made; anything else is SESSION_QUERY_INVALID_CURSOR."""
    if len(text) > MAX_CURSOR_CHARACTERS:
        raise _invalid()
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid() from error
    signature, written = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _signature(written, key)) or _encode(raw) != text:
        raise _invalid()
    payload: dict[str, Any] = json.loads(written)
    return payload


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _signature(written: bytes, key: bytes) -> bytes:
    return hmac.digest(key, _PURPOSE + written, hashlib.sha256)[:_SIGNATURE_BYTES]


def _invalid() -> SessionGraphError:
    return SessionGraphError("SESSION_QUERY_INVALID_CURSOR")
