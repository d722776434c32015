"""Whether anything may have changed since a run that had nothing to do: in the store, or in the index itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sessiongraph_web import generation, schema, soundness
from sessiongraph_web.generation import Generation
from sessiongraph_web.sight import Sight
from sessiongraph_web.soundness import Identity


@dataclass(frozen=True, slots=True)
class Standstill:
    """A store and an index that were found to agree: what was seen of both."""

    sight: Sight
    target: Generation
    files: tuple[tuple[Path, Identity | None], ...]

    @classmethod
    def of(cls, sight: Sight, target: Generation, names: Iterable[str]) -> Self:
        """Note how the databases of a generation lie there; nothing may write meanwhile."""
        paths = [target.catalog, *map(target.file, names)]
        return cls(sight, target, tuple((path, soundness.identity(path)) for path in paths))

    def holds(self, index: Path) -> bool:
        """Say whether a run would find nothing to do, without opening or locking anything."""
        return (
            generation.live(index) == self.target
            and all(soundness.identity(path) == identity for path, identity in self.files)
            and not any(schema.has_wal(path) for path, _ in self.files)
            and self.sight.holds()
        )
