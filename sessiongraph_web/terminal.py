"""Reads what was written to a terminal: keeps colours as class names, drops every other escape sequence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

_ESCAPES: Final = re.compile(
    r"(?:\x1b\[|\x9b)(?P<codes>[0-?]*)(?P<gap>[ -/]*)(?P<final>[@-~]?)"  # CSI
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"  # any other escape
    r"|[\x07\x0e\x0f]"  # bell, shifts
)
_BACKSPACE: Final = re.compile(r"[^\n\x08]\x08")
_LEVELS: Final = (0, 95, 135, 175, 215, 255)
_BASIC: Final = (
    (0, 0, 0), (170, 0, 0), (0, 170, 0), (170, 85, 0), (0, 0, 170), (170, 0, 170), (0, 170, 170), (170, 170, 170),
    (85, 85, 85), (255, 85, 85), (85, 255, 85), (255, 255, 85), (85, 85, 255), (255, 85, 255), (85, 255, 255),
    (255, 255, 255),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """How text is drawn: colours are numbers 0-15, None for the terminal's own."""

    foreground: int | None = None
    background: int | None = None
    bold: bool = False
    faint: bool = False
    italic: bool = False
    underline: bool = False
    inverse: bool = False

    @property
    def classes(self) -> str:
        names = [] if self.foreground is None else [f"f{self.foreground}"]
        names += [] if self.background is None else [f"b{self.background}"]
        names += [name for name in ("bold", "faint", "italic", "underline", "inverse") if getattr(self, name)]
        return " ".join(f"t-{name}" for name in names)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text in one look, as class names."""

    text: str
    classes: str


PLAIN: Final = Look()
_SWITCHES: Final[dict[int, dict[str, bool]]] = {
    1: {"bold": True},
    2: {"faint": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"inverse": True},
    22: {"bold": False, "faint": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"inverse": False},
}


def pieces(text: str) -> Iterator[Piece]:
    """Yield the visible text in order, in runs of one look."""
    text = _overwritten(text)
    look = PLAIN
    position = 0
    for match in _ESCAPES.finditer(text):
        if match.start() > position:
            yield Piece(text[position : match.start()], look.classes)
        position = match.end()
        if match["final"] == "m" and not match["gap"]:
            look = _changed(look, match["codes"])
    if position < len(text):
        yield Piece(text[position:], look.classes)


def plain(text: str) -> str:
    """Return the visible text alone."""
    return "".join(piece.text for piece in pieces(text))


def _overwritten(text: str) -> str:
    """Apply returns and backspaces: of a line written over itself the last writing stays."""
    text = text.replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(_last_writing(line) for line in text.split("\n"))
    while "\x08" in text:
        shorter = _BACKSPACE.sub("", text)
        text = shorter if shorter != text else text.replace("\x08", "")
    return text


def _last_writing(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")


def _changed(look: Look, codes: str) -> Look:
    numbers = [int(code) if code.isdigit() and len(code) < 5 else 0 for code in re.split("[;:]", codes)]
    while numbers:
        number = numbers.pop(0)
        if number in (38, 48):
            colour = _extended(numbers)
            look = replace(look, foreground=colour) if number == 38 else replace(look, background=colour)
        else:
            look = _switched(look, number)
    return look


def _switched(look: Look, number: int) -> Look:
    if number == 0:
        return PLAIN
    if number in _SWITCHES:
        return replace(look, **_SWITCHES[number])
    if 30 <= number <= 37 or number == 39:
        return replace(look, foreground=None if number == 39 else number - 30)
    if 40 <= number <= 47 or number == 49:
        return replace(look, background=None if number == 49 else number - 40)
    if 90 <= number <= 97:
        return replace(look, foreground=number - 82)
    if 100 <= number <= 107:
        return replace(look, background=number - 92)
    return look


def _extended(numbers: list[int]) -> int | None:
    """Take a 256-colour or 24-bit colour off the front and return the nearest of the sixteen."""
    mode = numbers.pop(0) if numbers else None
    if mode == 5 and numbers:
        return _of_256(numbers.pop(0))
    if mode == 2 and len(numbers) >= 3:
        red, green, blue = numbers[:3]
        del numbers[:3]
        return _nearest(red, green, blue)
    numbers.clear()
    return None


def _of_256(index: int) -> int | None:
    if index < 16:
        return index
    if index < 232:
        index -= 16
        return _nearest(_LEVELS[index // 36], _LEVELS[index // 6 % 6], _LEVELS[index % 6])
    if index < 256:
        grey = 8 + 10 * (index - 232)
        return _nearest(grey, grey, grey)
    return None


def _nearest(red: int, green: int, blue: int) -> int:
    def distance(index: int) -> int:
        basic = _BASIC[index]
        return (basic[0] - red) ** 2 + (basic[1] - green) ** 2 + (basic[2] - blue) ** 2

    return min(range(16), key=distance)
