"""The literal text filter: a phrase found anywhere, whatever its case and white space."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache, lru_cache
from itertools import chain
from typing import Final

# What JavaScript calls white space, which is neither Python's nor Unicode's notion of it.
SPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_DISPUTED: Final = "\x1c\x1d\x1e\x1f\x85\ufeff"  # white space to Python or to JavaScript, not to both
_SPACES: Final = re.compile(f"[{SPACE}]+")
# The blocks that hold letters with a case; a test looks at all the others.
_CASED: Final = (
    *((0x0000, 0x0590), (0x10A0, 0x1100), (0x13A0, 0x1400), (0x1C80, 0x1CC0), (0x1D00, 0x2200), (0x2400, 0x2500)),
    *((0x2C00, 0x2E00), (0xA640, 0xA800), (0xAB30, 0xABC0), (0xFB00, 0xFB20), (0xFF20, 0xFF60)),
    *((0x10400, 0x10600), (0x10C80, 0x10D90), (0x118A0, 0x118E0), (0x16E40, 0x16EE0), (0x1E900, 0x1E950)),
)


def collapse(text: str) -> str:
    """Return the text with each run of white space as one space."""
    if any(character in text for character in _DISPUTED):
        return _SPACES.sub(" ", text)
    words = text.split()  # four times as fast as the pattern
    if not words:
        return " " if text else ""
    return f"{' ' if text[0].isspace() else ''}{' '.join(words)}{' ' if text[-1].isspace() else ''}"


@lru_cache(maxsize=64)
def pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of a text that is not blank; JavaScript's flags `iu` do the same."""
    words = collapse(text.strip(SPACE)).split(" ")
    return re.compile(f"[{SPACE}]+".join("".join(map(_any_case, word)) for word in words))


def _any_case(character: str) -> str:
    variants = _variants().get(_fold(character))
    return f"[{re.escape(variants)}]" if variants else re.escape(character)


@cache
def _variants() -> dict[str, str]:
    """Return, for every folded character that several fold to, all of those."""
    groups: dict[str, list[str]] = defaultdict(list)
    for code in chain.from_iterable(range(first, end) for first, end in _CASED):
        groups[_fold(chr(code))].append(chr(code))
    return {folded: "".join(members) for folded, members in groups.items() if len(members) > 1}


def _fold(character: str) -> str:
    """Fold one character to one character: Unicode simple case folding, which Python does not have."""
    for folded in (character.casefold(), character.lower()):
        if len(folded) == 1:
            return folded
    return character
