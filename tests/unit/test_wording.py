"""How numbers and times are said."""

from __future__ import annotations

import pytest

from sessiongraph_web import wording
from sessiongraph_web.models import Instant


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (-5, "0 ms"),
        (40, "40 ms"),
        (3_240, "3.2 s"),
        (60_000, "1 min"),
        (250_000, "4 min 10 s"),
        (3_600_000, "1 h"),
        (7_500_000, "2 h 5 min"),
        (273_600_000, "3 d 4 h"),
    ],
)
def test_durations_have_two_units_at_most(milliseconds: int, said: str) -> None:
    """A duration is as exact as one wants to know."""
    assert wording.duration(milliseconds) == said


@pytest.mark.parametrize(
    ("size", "said"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (190_000, "186 KiB"), (5 * 2**40, "5.0 TiB")],
)
def test_sizes_have_binary_units(size: int, said: str) -> None:
    """A size is said in the largest unit that it fills."""
    assert wording.byte_size(size) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (950, "950"), (1_234, "1.2k"), (18_250, "18k"), (1_400_000, "1.4M"), (2 * 10**9, "2.0G")],
)
def test_compact_numbers(value: int, said: str) -> None:
    """A large number is said in two or three digits."""
    assert wording.compact(value) == said


def test_time_between_moments() -> None:
    """A time that is unknown or runs backwards is not said."""
    first, second = Instant(1000), Instant(3500)
    assert wording.between(first, second) == "2.5 s"
    assert wording.between(second, first) is None
    assert wording.between(None, second) is None
