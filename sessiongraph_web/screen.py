"""Text on a terminal: how wide it is, and with everything visible that would act on the terminal."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

MOST_SCANNED: Final = 100_000  # characters of a text that one line is made of
# DEL, C1 controls, the soft hyphen, marks of direction, joining, lines and byte order; JSON escapes C0 itself.
_ACTING: Final = re.compile(
    rb"\x7f|\xc2[\x80-\x9f\xad]|\xd8\x9c|\xe2(?:\x80[\x8b-\x8f\xa8-\xae]|\x81[\xa0-\xaf])|\xef\xbb\xbf"
)
_REPLACED: Final = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True, slots=True)
class Screen:
    """Where text goes: its width in columns, and how to emphasise (or not). `again` returns the command that was
    typed with some options changed, fit to be pasted; there is none where nobody typed one."""

    width: int = 80
    bold: Callable[[str], str] = str
    faint: Callable[[str], str] = str
    again: Callable[..., str] | None = None


def safe(text: str, *, keep: str = "\n\t") -> str:
    """Make text harmless to a terminal: control, format and bidi characters become visible code points."""
    return "".join(c if c in keep or unicodedata.category(c) not in _REPLACED else _visible(c) for c in text)


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(map(_width, text))


def safe_json(encoded: bytes) -> bytes:
    """Escape in JSON what acts on a terminal, or ends a line for some readers; its values stay what they are."""
    return _ACTING.sub(lambda found: f"\\u{ord(found[0].decode()):04x}".encode(), encoded)


def one_line(text: str, width: int) -> str:
    """Return text as one line of at most `width` columns, cut with an ellipsis."""
    flat = safe(" ".join(text[:MOST_SCANNED].split()), keep="")
    ends = list(accumulate(map(_width, flat)))
    if not ends or ends[-1] <= width:
        return flat
    return flat[: bisect_right(ends, width - 1)] + "…"


def _visible(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
