"""The index directory: which generation is live, where its files lie, and who is using it."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sessiongraph_web import schema
from sessiongraph_web.damage import is_damage
from sessiongraph_web.errors import SessionGraphError

_CURRENT: Final = "current"
_IN_USE: Final = "in-use"
_WRITING: Final = "writing"
_LOOKED: Final = "looked"
_DAMAGED: Final = ".damaged"
_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
_POLL_SECONDS: Final = 0.02
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


def unfinished(index: Path) -> Generation | None:
    """Return the generation that a build was interrupted in: newer than the live one, and fit to go on with."""
    published, newest = live(index), _newest(index)
    if newest is None or (published and _number(newest.directory) <= _number(published.directory)):
        return None
    return newest if is_sound(newest) else None


def is_sound(generation: Generation) -> bool:
    """Say whether the catalog can be opened and is of this make."""
    try:
        schema.open_writer(generation.catalog).close()
    except SessionGraphError as error:
        if is_damage(error):
            return False
        raise
    return True


def start(index: Path) -> Generation:
    """Make a new empty generation beside the live one; `publish` makes it live."""
    make_private(index)
    newest = _newest(index)
    directory = index / f"g{_number(newest.directory) + 1 if newest else 1:06d}"
    directory.mkdir(mode=0o700)
    generation = Generation(directory)
    catalog = schema.create(generation.catalog, schema.CATALOG_DDL)
    schema.settle(catalog, generation.catalog)
    catalog.close()
    return generation


def publish(index: Path, generation: Generation) -> None:
    """Make a generation the live one, atomically."""
    temporary = index / f"{_CURRENT}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, generation.directory.name.encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(index / _CURRENT)


def next_file(generation: Generation, database: str, *, before: str | None = None) -> str:
    """Return an unused file name for a workspace's database: `before` may still be open somewhere."""
    names = [path.name for path in generation.directory.iterdir()]
    taken = [_WORKSPACE_FILE.fullmatch(name) for name in [*names, before or ""]]
    numbers = [int(match[2] or 1) for match in taken if match and match[1] == database]
    return f"{database}.{max(numbers) + 1}.db" if numbers else f"{database}.db"


def sweep(index: Path, *, keep: Generation) -> bool:
    """Delete the generations that nobody uses any more, but not a newer one that waits to be finished.

    Say whether nothing is left that is to be deleted.
    """
    newest = _newest(index)
    kept = {keep.directory, newest.directory if newest else keep.directory}
    for path in index.iterdir():
        if _NAME.fullmatch(path.name) and path not in kept and _is_idle(path):
            shutil.rmtree(path, ignore_errors=True)
    return len(kept) == sum(bool(_NAME.fullmatch(path.name)) for path in index.iterdir())


def discard(generation: Generation, name: str) -> None:
    """Delete a workspace file with its `-wal` and `-shm`."""
    for suffix in _SUFFIXES:
        (generation.directory / (name + suffix)).unlink(missing_ok=True)


def set_aside(generation: Generation, name: str) -> None:
    """Put a damaged workspace file, with its `-wal` and `-shm`, where nothing opens it; the last one is kept."""
    for suffix in _SUFFIXES:
        path = generation.directory / (name + suffix)
        if path.exists():
            path.replace(generation.directory / f"{name.partition('.')[0]}{suffix}{_DAMAGED}")


@contextmanager
def writing(generation: Generation, timeout: float) -> Iterator[None]:
    """Wait until the workers of a run that was killed are gone, so that no two write one file."""
    deadline = time.monotonic() + timeout
    with _opened(generation, _WRITING) as descriptor:
        while descriptor is not None and not _locks(descriptor, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                raise SessionGraphError(
                    "SESSION_QUERY_INDEX_FAILED", "Another index run is still ending; try again."
                )
            time.sleep(_POLL_SECONDS)
    yield


def hold_for_writing(directory: Path) -> None:
    """Hold the lock that `writing` waits for until this process ends."""
    descriptor = os.open(directory / _WRITING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)


@contextmanager
def using(generation: Generation) -> Iterator[None]:
    """Hold the generation's shared lock, so that no sweeper deletes it; without any access, go on without."""
    with _opened(generation, _IN_USE) as descriptor:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield


def look(generation: Generation, now: int) -> None:
    """Note when the store was last looked at whole (Unix ms): a file's time costs no write to a database."""
    path = generation.directory / _LOOKED
    path.touch(mode=0o600)
    os.utime(path, ns=(now * 1_000_000, now * 1_000_000))


def looked_at(generation: Generation) -> int | None:
    """Return when the store was last looked at whole (Unix ms), or None while the first build goes on."""
    try:
        return (generation.directory / _LOOKED).stat().st_mtime_ns // 1_000_000
    except OSError:
        return None


def make_private(directory: Path) -> None:
    """Make a directory that only its owner can enter."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SessionGraphError(
            "SESSION_QUERY_INDEX_FAILED", "The index directory cannot be made; choose another with --index."
        ) from error


@contextmanager
def _opened(generation: Generation, name: str) -> Iterator[int | None]:
    """Open a file that only its lock matters of; read only where nothing can be written."""
    path = generation.directory / name
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            yield None
            return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_idle(directory: Path) -> bool:
    with _opened(Generation(directory), _IN_USE) as descriptor:
        return descriptor is not None and _locks(descriptor, fcntl.LOCK_EX)


def _locks(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _newest(index: Path) -> Generation | None:
    found = [path for path in index.iterdir() if _NAME.fullmatch(path.name)]
    return Generation(max(found, key=_number)) if found else None


def _number(directory: Path) -> int:
    return int(directory.name[1:])
