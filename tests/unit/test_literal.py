"""The literal text filter: case, white space, and nothing else."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiongraph_web.literal import SPACE, collapse, pattern

SAME = ["kK\u212a", "sSſ", "σςΣ", "ßẞ", "µμΜ", "ᾳᾼ", "\u13a0\uab70", "åÅ\u212b", "жЖ", "𐐨𐐀", "ǆǅǄ", "θϑΘϴ"]


@pytest.mark.parametrize("letters", SAME)
def test_letters_that_fold_to_one_match_each_other(letters: str) -> None:
    """Unicode's simple case folding, in every direction."""
    for one in letters:
        assert pattern(one).findall(letters) == list(letters)


@pytest.mark.parametrize(
    ("text", "other"),
    [("i", "İ"), ("i", "ı"), ("ß", "SS"), ("é", "e\u0301"), ("cafe", "café"), ("ŉ", "ʼn"), ("ﬁ", "fi")],
)
def test_what_simple_folding_keeps_apart_does_not_match(text: str, other: str) -> None:
    """No letter becomes two, no accent is dropped, and the dotless i is a letter of its own."""
    assert not pattern(text).search(other)
    assert not pattern(other).search(text)


def test_every_letter_matches_its_other_case() -> None:
    """No letter of any script is missing from the table of cased blocks."""
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        for other in (letter.lower(), letter.casefold()):
            if len(other) == 1 and other != letter:
                assert pattern(other).fullmatch(letter), hex(code)


@pytest.mark.parametrize("space", ["\t", "\n\n", "\u00a0", "\u2003 ", "\ufeff", "\u2028", "\u3000"])
def test_any_white_space_matches_any_other(space: str) -> None:
    """JavaScript's white space, runs of it, and U+FEFF."""
    assert pattern(" a b ").fullmatch(f"A{space}B")
    assert collapse(f"a{space}b") == "a b"


@pytest.mark.parametrize("character", ["\u0085", "\u001c", "\u200b", "_", ""])
def test_what_javascript_does_not_call_white_space_is_none(character: str) -> None:
    """Python's own notion of white space is wider."""
    assert not pattern("a b").search(f"a{character}b")


def test_signs_of_patterns_are_literal() -> None:
    """Every ASCII sign stands for itself."""
    signs = ".*+?^${}()|[]\\/-#&~\"'"
    assert pattern(signs).findall(f"x{signs}x") == [signs]


@given(
    st.text(st.sampled_from([*"ab \t\n", "\x1c", "\x1f", "\x85", "\ufeff", "\u00a0", "\u3000", "\u200b", "字"]))
)
@settings(deadline=None)
def test_collapsing_is_what_the_pattern_does(text: str) -> None:
    """The fast way and the pattern agree, at the ends too."""
    assert collapse(text) == re.sub(f"[{SPACE}]+", " ", text)
