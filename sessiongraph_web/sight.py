"""What one walk over the store went by, kept so that another look can tell cheaply whether it still holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, cast

Facts = tuple[int, int, int, int]

_facts: Final = cast(
    "Callable[[os.stat_result], Facts]", attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ino")
)


@dataclass(slots=True)
class Sight:
    """Every folder that was listed with its names, and every file with the facts that changes are told by.

    `whole` is false if something could not be looked at: its return would not show here.
    """

    whole: bool = True
    folders: list[str] = field(default_factory=list)
    names: list[list[str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    facts: list[Facts] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    named: list[Facts | None] = field(default_factory=list)

    def see_folder(self, path: str, names: list[str]) -> None:
        """Note a folder and its names, in the order of the listing."""
        self.folders.append(path)
        self.names.append(names)

    def see_file(self, path: str, facts: os.stat_result) -> None:
        """Note a file; of a link, itself."""
        self.files.append(path)
        self.facts.append(_facts(facts))

    def see_link(self, path: str, facts: os.stat_result | None) -> None:
        """Note what a link names, None if nothing is there."""
        self.links.append(path)
        self.named.append(facts and _facts(facts))

    def lose(self) -> None:
        """Note that something could not be looked at."""
        self.whole = False

    def holds(self) -> bool:
        """Look again at every folder and file, and say whether a walk would see the same.

        All of it is calls from C into the kernel, which let other threads go on: measured, it takes less than a
        bare walk that stats every file.
        """
        if not self.whole:
            return False
        try:
            return (
                list(map(os.listdir, self.folders)) == self.names
                and list(map(_facts, map(os.lstat, self.files))) == self.facts
                and list(map(_named, self.links)) == self.named
            )
        except OSError:
            return False


def _named(link: str) -> Any:
    try:
        return _facts(os.stat(link))  # noqa: PTH116 - the link is text, as all paths here
    except OSError:
        return None
