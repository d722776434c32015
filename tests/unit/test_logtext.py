"""The text of a log on its way out, one piece ahead of what is taken."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from sessiongraph_web.logtext import ahead


class Pieces:
    """Pieces that know how many were made, and whether they were closed."""

    def __init__(self, count: int) -> None:
        self.made = 0
        self.closed = False
        self._count = count

    def stream(self) -> Generator[bytes, None, None]:
        try:
            while self.made < self._count:
                self.made += 1
                yield b"%d" % self.made
            raise OSError("the disk went away")
        finally:
            self.closed = True


def test_one_piece_is_made_ahead_and_closing_ends_it() -> None:
    """What is not taken is not made, but for one piece; whoever closes leaves nothing open."""
    pieces = Pieces(10)
    stream = ahead(pieces.stream())
    taken = [next(stream), next(stream)]
    stream.close()
    assert (taken, pieces.made in (2, 3), pieces.closed) == ([b"1", b"2"], True, True)


def test_many_streams_share_the_threads() -> None:
    """More streams than threads, taken in turn, each come whole: none waits for another to be taken."""
    streams = [ahead(Pieces(4).stream()) for _ in range(10)]
    assert [[next(stream) for stream in streams] for _ in range(4)] == [
        [b"%d" % number] * 10 for number in (1, 2, 3, 4)
    ]
    for stream in streams:
        stream.close()


def test_a_failure_comes_behind_the_pieces_before_it() -> None:
    """A log that fails while a piece is taken fails where it would without the thread."""
    pieces = Pieces(2)
    taken = []
    with pytest.raises(OSError, match="the disk went away"):
        for piece in ahead(pieces.stream()):
            taken.append(piece)
    assert (taken, pieces.closed) == ([b"1", b"2"], True)
