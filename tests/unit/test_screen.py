"""Text for a terminal: harmless, and as wide as it says."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiongraph_web import screen


def columns(text: str) -> int:
    """Return the width of text on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def is_harmless(text: str) -> bool:
    return not any(c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


@given(st.text())
def test_no_text_reaches_a_terminal_with_a_control_in_it(text: str) -> None:
    """Whatever a log holds, what is printed has no control, format or bidi character but line ends and tabs."""
    assert is_harmless(screen.safe(text).replace("\t", ""))


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])))
def test_harmless_text_is_printed_as_it_is(text: str) -> None:
    """Letters of every script, marks, symbols and spaces are left alone."""
    assert screen.safe(text) == text


@given(st.text(), st.integers(2, 60))
def test_a_line_is_never_wider_than_asked(text: str, width: int) -> None:
    """A line fits its columns, wide characters counted as two, whatever it holds."""
    line = screen.one_line(text, width)
    assert columns(line) <= width
    assert "\n" not in line


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("short", 10, "short"),
        ("exactly ten", 11, "exactly ten"),
        ("one too many", 11, "one too ma…"),
        ("广告广告广告", 12, "广告广告广告"),
        ("广告广告广告", 11, "广告广告广…"),
        ("广告广告广告", 10, "广告广告…"),
        ("two\nlines\tand  spaces", 40, "two lines and spaces"),
        ("e\u0301" * 5, 5, "e\u0301" * 5),
    ],
)
def test_lines_are_cut_at_columns(text: str, width: int, expected: str) -> None:
    """A text that does not fit ends with an ellipsis in the last columns it has."""
    assert screen.one_line(text, width) == expected
