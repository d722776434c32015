"""The excerpt of a text that shows where it matched: a window in code points, white space collapsed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sessiongraph_web import literal

ELLIPSIS: Final = "…"

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A window on a text, with the matches inside it as code points from its beginning."""

    text: str
    matches: tuple[Span, ...]


def snippet(text: str, spans: Sequence[Span], limit: int) -> Excerpt:
    """Return at most `limit` code points of a text, placed round the first of its sorted spans."""
    collapsed, matches, hit = _surroundings(text, spans, limit)
    if len(collapsed) <= limit:
        return Excerpt(collapsed, tuple(matches))
    if limit == 1:
        return Excerpt(ELLIPSIS, ())
    start, end, prefix, suffix = _window(len(collapsed), hit, limit)
    shift = len(prefix) - start
    inside = ((max(first, start) + shift, min(last, end) + shift) for first, last in matches)
    shown = tuple((first, last) for first, last in inside if first < last)
    return Excerpt(prefix + collapsed[start:end] + suffix, shown)


def _surroundings(text: str, spans: Sequence[Span], limit: int) -> tuple[str, list[Span], int]:
    """Collapse as much of the text as the window can touch, so that a snippet costs the same in any text.

    The window reaches less than `limit` to either side of the hit; one character more tells that it was cut.
    """
    middle = spans[0][0] if spans else 0
    reach = limit + 32
    while True:
        first, last = max(0, middle - reach), min(len(text), middle + reach)
        near = spans[: bisect_left(spans, (last, last))]
        cuts = [min(cut, last) - first for span in near for cut in span]
        collapsed, places = _collapse(text[first:last], cuts or [middle])
        if last == len(text) and collapsed.endswith(" "):
            collapsed = collapsed[:-1]
            places = [min(place, len(collapsed)) for place in places]
        is_left_enough = first == 0 or places[0] > limit
        is_right_enough = last == len(text) or len(collapsed) - places[0] > limit + 1
        if is_left_enough and is_right_enough:
            matches = list(zip(places[::2], places[1::2], strict=True)) if near else []
            return collapsed, matches, places[0]
        reach *= 2


def _collapse(text: str, cuts: Sequence[int]) -> tuple[str, list[int]]:
    """Return the text with each run of white space as one space (none at the start), and where the cuts went."""
    written: list[str] = []
    places: list[int] = []
    length, before = 0, 0
    ends_in_space = True
    for cut in [*cuts, len(text)]:
        piece = literal.collapse(text[before:cut])
        if ends_in_space:
            piece = piece.removeprefix(" ")
        if piece:
            written.append(piece)
            length += len(piece)
            ends_in_space = piece.endswith(" ")
        places.append(length)
        before = cut
    return "".join(written), places[:-1]


def _window(length: int, hit: int, limit: int) -> tuple[int, int, str, str]:
    """Place a window of `limit`, ellipses included, on a longer text: start, end, what precedes and follows."""
    hit = min(hit, length - 1)
    start = max(0, hit - limit // 3)
    prefix, suffix = ELLIPSIS if start else "", ELLIPSIS
    room = limit - len(prefix) - len(suffix)
    if room < 1:
        start, suffix = hit, ""
        room = limit - len(prefix)
    elif hit >= start + room:
        start = hit - room + 1
    end = min(length, start + room)
    if end == length:
        suffix = ""
        room = limit - len(prefix)
        start = max(0, end - room)
    return start, min(length, start + room), prefix, suffix
