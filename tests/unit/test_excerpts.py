"""Excerpts: the window round the first match, and where the matches are in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiongraph_web.excerpts import Excerpt, snippet

CUT: list[tuple[str, list[tuple[int, int]], int, Excerpt]] = [
    ("abcdefg", [(1, 3)], 7, Excerpt("abcdefg", ((1, 3),))),
    ("abcdefgh", [(1, 3)], 7, Excerpt("abcdef…", ((1, 3),))),
    ("ab cd ef gh ij kl", [(6, 8)], 9, Excerpt("…cd ef g…", ((4, 6),))),
    ("ab cd ef gh ij kl", [(6, 8), (9, 11), (15, 17)], 9, Excerpt("…cd ef g…", ((4, 6), (7, 8)))),
    ("ab cd ef gh ij kl", [(15, 17)], 9, Excerpt("…gh ij kl", ((7, 9),))),
    ("  a \n\t b  ", [(6, 8)], 9, Excerpt("a b", ((2, 3),))),
    ("a\u3000\u00a0\ufeffb", [(4, 5)], 9, Excerpt("a b", ((2, 3),))),
    ("𠮷𠮷𠮷needle", [(3, 9)], 240, Excerpt("𠮷𠮷𠮷needle", ((3, 9),))),
    ("abcdef", [(0, 6)], 4, Excerpt("abc…", ((0, 3),))),
    ("abcdef", [(3, 6)], 1, Excerpt("…", ())),
    ("abcdef", [(3, 6)], 2, Excerpt("…d", ((1, 2),))),
    ("abcdef", [], 4, Excerpt("abc…", ())),
    ("", [], 4, Excerpt("", ())),
    (" \n ", [], 4, Excerpt("", ())),
    ("e\u0301e\u0301", [(2, 4)], 3, Excerpt("…e…", ((1, 2),))),
    ("x" * 9 + " " * 5000 + "needle", [(5009, 5015)], 12, Excerpt("…xxxx needle", ((6, 12),))),
    ("needle" + " " * 5000, [(0, 6)], 6, Excerpt("needle", ((0, 6),))),
    ("needle" + " " * 5000 + "x", [(0, 6)], 7, Excerpt("needle…", ((0, 6),))),
]


@pytest.mark.parametrize(("text", "spans", "limit", "excerpt"), CUT)
def test_an_excerpt_is_a_window_round_the_first_match(
    text: str, spans: list[tuple[int, int]], limit: int, excerpt: Excerpt
) -> None:
    """White space is collapsed, the window is a third before the match, matches are cut at its borders."""
    assert snippet(text, spans, limit) == excerpt


texts = st.lists(st.sampled_from(["a", "bb", "字", "𠮷", " ", "  ", "\n", "\u3000", "needle"]), max_size=120).map(
    "".join
)


@settings(deadline=None)
@given(text=texts, limit=st.integers(1, 60))
def test_an_excerpt_is_the_same_as_that_of_the_whole_text(text: str, limit: int) -> None:
    """Looking only at what lies round the match gives what collapsing the whole text would give."""
    spans = [found.span() for found in re.finditer("needle", text)]
    excerpt = snippet(text, spans, limit)
    assert excerpt.text == _plainly(text, spans[0][0] if spans else 0, limit)
    assert all(excerpt.text[start:end] in "needle" and start < end for start, end in excerpt.matches)


def _plainly(text: str, first: int, limit: int) -> str:
    """The recorded algorithm, character by character over the whole text."""
    output: list[str] = []
    hit = 0
    for position, character in enumerate(text):
        if position == first:
            hit = len(output)
        if not character.isspace():
            output.append(character)
        elif output and output[-1] != " ":
            output.append(" ")
    if output and output[-1] == " ":
        output.pop()
    length = len(output)
    if length <= limit:
        return "".join(output)
    if limit == 1:
        return "…"
    hit = min(hit, length - 1)
    start = max(0, hit - limit // 3)
    prefix, suffix = "…" if start > 0 else "", "…"
    room = limit - len(prefix) - len(suffix)
    if room < 1:
        start, suffix = hit, ""
        room = limit - len(prefix)
    elif hit >= start + room:
        start = hit - room + 1
    end = min(length, start + room)
    if end == length:
        suffix, room = "", limit - len(prefix)
        start = max(0, end - room)
    return prefix + "".join(output[start : min(length, start + room)]) + suffix
