"""The index directory: which generation is live, where its files lie, and who is using it."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sessiongraph_web import schema
from sessiongraph_web.errors import SessionGraphError

_CURRENT: Final = "current"
_IN_USE: Final = "in-use"
_NAME: Final = re.compile(r"g\d{6,}")
_WORKSPACE_FILE: Final = re.compile(r"(ws_[0-9a-f]{32}|ws_none)(?:\.(\d+))?\.db")


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation directory: `catalog.db` and a database for each workspace."""

    directory: Path

    @property
    def catalog(self) -> Path:
        return self.directory / schema.CATALOG

    def file(self, name: str) -> Path:
        """Return the path of a workspace file that the catalog names; any other name is a damaged catalog."""
        if not _WORKSPACE_FILE.fullmatch(name):
            raise SessionGraphError("SESSIONGRAPH_CORRUPT")
        return self.directory / name


def live(index: Path) -> Generation | None:
    """Return the generation that `current` names, or None before the first build."""
    try:
        name = (index / _CURRENT).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    generation = Generation(index / name)
    return generation if _NAME.fullmatch(name) and generation.catalog.is_file() else None


def start(index: Path) -> Generation:
    """Make a new empty generation beside the live one; `publish` makes it live."""
    make_private(index)
    numbers = [int(path.name[1:]) for path in index.iterdir() if _NAME.fullmatch(path.name)]
    directory = index / f"g{max(numbers, default=0) + 1:06d}"
    directory.mkdir(mode=0o700)
    generation = Generation(directory)
    catalog = schema.create(generation.catalog, schema.CATALOG_DDL)
    schema.settle(catalog, generation.catalog)
    catalog.close()
    return generation


def publish(index: Path, generation: Generation) -> None:
    """Make a generation the live one, atomically."""
    temporary = index / f"{_CURRENT}.tmp"
    temporary.write_text(generation.directory.name + "\n", "ascii")
    temporary.chmod(0o600)
    temporary.replace(index / _CURRENT)


def next_file(generation: Generation, database: str) -> str:
    """Return an unused file name for a workspace's database: the old one may still be open somewhere."""
    taken = [_WORKSPACE_FILE.fullmatch(path.name) for path in generation.directory.iterdir()]
    numbers = [int(match[2] or 1) for match in taken if match and match[1] == database]
    return f"{database}.{max(numbers) + 1}.db" if numbers else f"{database}.db"


def sweep(index: Path, *, keep: Generation) -> None:
    """Delete the generations that nobody uses any more."""
    for path in index.iterdir():
        if _NAME.fullmatch(path.name) and path != keep.directory and _is_idle(path):
            shutil.rmtree(path, ignore_errors=True)


def discard(generation: Generation, name: str) -> None:
    """Delete a workspace file with its `-wal` and `-shm`."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        (generation.directory / (name + suffix)).unlink(missing_ok=True)


@contextmanager
def using(generation: Generation) -> Iterator[None]:
    """Hold the generation's shared lock, so that no sweeper deletes it; without write access, go on without."""
    try:
        descriptor = os.open(generation.directory / _IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def make_private(directory: Path) -> None:
    """Make a directory that only its owner can enter."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SessionGraphError(
            "SESSION_QUERY_INDEX_FAILED", "The index directory cannot be made; choose another with --index."
        ) from error


def _is_idle(directory: Path) -> bool:
    try:
        descriptor = os.open(directory / _IN_USE, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
