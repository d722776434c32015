"""The faults of one log: the first of them, how many there are in all, and which take events away."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from sessiongraph_web.models import Fault

MOST_KEPT: Final = 100  # of one log; every line of one may be bad
# Damage that takes events away; other faults leave every event in its place.
LOSSES: Final = frozenset(
    {"damaged_frame", "window_too_large", "not_zstd", "padding", "bad_line", "line_too_long", "second_header"}
)
# With one of these and no event, a file is no session.
HEADLESS: Final = frozenset({"bad_header", "not_zstd", "empty_file", "not_readable"})


@dataclass(slots=True)
class Faults:
    """What was found wrong with a log, in the order of the file."""

    kept: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0

    def add(self, fault: Fault) -> None:
        """Count a fault, and keep it if it is one of the first."""
        self.count += 1
        if len(self.kept) < MOST_KEPT:
            self.kept.append(asdict(fault))

    def first(self, count: int) -> list[dict[str, Any]]:
        """Return what is kept of the first so many."""
        return self.kept[:count]
