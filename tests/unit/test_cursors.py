"""Cursors: what they hold, and what they refuse."""

from __future__ import annotations

import pytest

from sessiongraph_web.cursors import MAX_CURSOR_CHARACTERS, open_cursor, sign
from sessiongraph_web.errors import SessionGraphError

KEY = b"k" * 32
PAYLOAD = {"offset": 20, "request": "广告", "epochs": ["1.2.3", None]}
CURSOR = sign(PAYLOAD, KEY)


def test_cursor_gives_back_its_payload() -> None:
    """What was signed is what is read, and the text is safe in a URL."""
    assert open_cursor(CURSOR, KEY) == PAYLOAD
    assert set(CURSOR) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_equal_payloads_give_equal_cursors() -> None:
    """The order of keys does not matter, so that a page's links do not change between two visits."""
    assert sign(dict(reversed(PAYLOAD.items())), KEY) == CURSOR


@pytest.mark.parametrize("position", range(len(CURSOR)))
def test_any_altered_character_is_refused(position: int) -> None:
    """Whichever character is changed, the cursor is invalid: the last one too, whose low bits mean nothing."""
    for other in "AB":
        altered = CURSOR[:position] + other + CURSOR[position + 1 :]
        if altered != CURSOR:
            assert _code(altered) == "SESSION_QUERY_INVALID_CURSOR"


FOREIGN = ["", "A", "null", "=", "====", "é", "\ud800", "\0", "广告", "+/+/", "A" * (MAX_CURSOR_CHARACTERS + 1)]
DAMAGED = [CURSOR + "=", CURSOR + "A", CURSOR[:-1], f" {CURSOR}", f"{CURSOR}\n", CURSOR * 2]


@pytest.mark.parametrize("text", FOREIGN + DAMAGED)
def test_what_was_never_signed_is_refused(text: str) -> None:
    """Empty, foreign, padded, truncated, doubled and non-ASCII texts are invalid cursors, never another error."""
    assert _code(text) == "SESSION_QUERY_INVALID_CURSOR"


def test_another_key_is_refused() -> None:
    """A cursor of one installation means nothing in another."""
    assert _code(CURSOR, b"x" * 32) == "SESSION_QUERY_INVALID_CURSOR"


def _code(text: str, key: bytes = KEY) -> str:
    with pytest.raises(SessionGraphError) as caught:
        open_cursor(text, key)
    return caught.value.code
