"""What a terminal showed, without what it was told to do."""

from __future__ import annotations

import pytest

from sessiongraph_web.terminal import Piece, pieces, plain


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("\x1b[31mred needle\x1b[0m", "red needle"),
        ("\x1b]0;new window title\x07after", "after"),
        ("\x1b]52;c;ZXZpbA==\x07after", "after"),
        ("\x1b]8;;http://evil.example\x1b\\benign\x1b]8;;\x1b\\", "benign"),
        ("\x1b[2J\x1b[H forged", " forged"),
        ("\x9b31m c1", " c1"),
        ("\x9d0;title\x9cafter", "after"),
        ("progress 10%\rprogress 100%", "progress 100%"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("a\b\b\bxyz", "xyz"),
        ("\x1bP+q544e\x1b\\after", "after"),
        ("\x1b[201~paste", "paste"),
        ("plain\x07bell", "plainbell"),
        ("\x1b[1A\x1b[2Koverwritten", "overwritten"),
        ("\x1b[31", ""),
        ("\x1b", ""),
        ("中文 \x1b[1m粗体\x1b[0m", "中文 粗体"),
    ],
)
def test_plain_text_is_what_was_seen(written: str, seen: str) -> None:
    """Every escape sequence goes, whole or cut off, and so does what a terminal would have written over."""
    assert plain(written) == seen


@pytest.mark.parametrize(
    ("codes", "classes"),
    [
        ("31", "t-f1"),
        ("91", "t-f9"),
        ("44", "t-b4"),
        ("1;4;32", "t-f2 t-bold t-underline"),
        ("38;5;9", "t-f9"),
        ("38;5;196", "t-f1"),
        ("38;5;240", "t-f8"),
        ("38;2;0;255;0", "t-f2"),
        ("48;2;0;0;170", "t-b4"),
        ("7", "t-inverse"),
        ("31;39", ""),
        ("31;0", ""),
        ("", ""),
        ("38;5", ""),
        ("38;5;999", ""),
        ("99999999999999999999", ""),
    ],
)
def test_colours_become_classes(codes: str, classes: str) -> None:
    """The sixteen colours and the nearest of them to any other are classes; nonsense is no colour."""
    assert list(pieces(f"\x1b[{codes}mx")) == [Piece("x", classes)]


def test_looks_last_until_they_are_changed() -> None:
    """A look goes on over lines until the next change of it."""
    assert list(pieces("a\x1b[31mb\nc\x1b[22;39md")) == [Piece("a", ""), Piece("b\nc", "t-f1"), Piece("d", "")]
