"""Which files of the store are logs, and why others are not: one stat walk that opens nothing."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sessiongraph_web import schema
from sessiongraph_web.models import LogState

_NAME: Final = re.compile(r"session(?:\.v([1-9][0-9]*))?\.jsonl(\.zstd)?", re.ASCII)
_LOG_LIKE: Final = re.compile(r".+\.jsonl(\..+)?", re.ASCII | re.IGNORECASE | re.DOTALL)
LOCK: Final = "session.lock"
_TRANSIENT: Final = ".tmp"


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log found in the store. `relative` is its path inside it, made safe for display."""

    path: Path
    relative: str
    log_id: int
    project_key: str
    folder: str
    version: int
    compressed: bool
    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """One file that is not read as a log, and why."""

    path: Path
    relative: str
    log_id: int
    state: LogState
    reason: str
    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a walk over the store found: `ignored` are files that do not look like logs, dsh's locks left aside;
    `problem` says why the store itself could not be listed."""

    logs: list[LogFile] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    ignored: list[SkippedFile] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    problem: str | None = None


def discover(store: Path) -> Discovery:
    """List the store's logs by one stat walk that opens nothing; in each folder the highest generation wins."""
    found = Discovery()
    try:
        projects = _listed(store)
    except OSError as error:
        return Discovery(problem=error.strerror or "it cannot be listed")
    for project in projects:
        if project.name.startswith(".") or not _is_folder(project):
            _skip_stray(found, store, project)
            continue
        try:
            folders = _listed(project.path)
        except OSError:
            found.unreachable.append(_shown(project.name))
            continue
        for folder in folders:
            _visit(found, store, project.name, folder)
    return found


def named_version(name: str) -> int | None:
    """Return the generation that a log's file name states, or None for a name that is none of a log."""
    found = _NAME.fullmatch(name)
    return int(found[1] or 0) if found else None


def _visit(found: Discovery, store: Path, project: str, folder: os.DirEntry[str]) -> None:
    if not _is_folder(folder):
        _skip_stray(found, store, folder)
        return
    try:
        entries = _listed(folder.path)
    except OSError:
        found.unreachable.append(_shown(f"{project}/{folder.name}"))
        return
    candidates = []
    for entry in entries:
        name = _NAME.fullmatch(entry.name)
        if name is None:
            _skip_stray(found, store, entry)
            continue
        try:
            facts = entry.stat(follow_symlinks=False)
        except OSError as error:
            found.skipped.append(_skipped(store, entry, None, "unreadable", error.strerror or "no facts"))
            continue
        if stat.S_ISLNK(facts.st_mode):  # whatever it names was not written here as a log
            found.skipped.append(_skipped(store, entry, facts, "unreadable", "a link, not a log"))
            continue
        if not stat.S_ISREG(facts.st_mode):
            found.skipped.append(_skipped(store, entry, facts, "unreadable", "not a regular file"))
            continue
        candidates.append((int(name[1] or 0), name[2] is not None, entry, facts))
    candidates.sort(key=lambda candidate: candidate[:2])
    for version, compressed, entry, facts in candidates[-1:]:
        found.logs.append(
            LogFile(
                path=Path(entry.path),
                relative=_relative(store, entry.path),
                log_id=_log_id(store, entry.path),
                project_key=_shown(project),
                folder=_shown(folder.name),
                version=version,
                compressed=compressed,
                size=facts.st_size,
                mtime_ns=facts.st_mtime_ns,
                inode=facts.st_ino,
            )
        )
    for *_, entry, facts in candidates[:-1]:
        reason = f"{_shown(candidates[-1][2].name)} beside it is newer"
        found.skipped.append(_skipped(store, entry, facts, "superseded", reason))


def _skip_stray(found: Discovery, store: Path, entry: os.DirEntry[str]) -> None:
    """Record a file that is no log by its name or place; what is in a folder of that kind is merely ignored."""
    if entry.name == LOCK:
        return
    if entry.is_dir(follow_symlinks=False):
        for inside in _below(Path(entry.path)):
            found.ignored.append(_skipped(store, inside, _facts(inside), "ignored", "it is no session log"))
        return
    facts = _facts(entry)
    looks_like_log = _LOG_LIKE.fullmatch(entry.name) and (facts is None or stat.S_ISREG(facts.st_mode))
    if entry.name.endswith(_TRANSIENT) or not looks_like_log:
        found.ignored.append(_skipped(store, entry, facts, "ignored", "it is no session log"))
    else:
        reason = "the name or place is not one of a session log"
        found.skipped.append(_skipped(store, entry, facts, "unreadable", reason))


def _below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files at any depth of a folder, as far as it can be listed; links are not followed."""
    try:
        entries = _listed(folder)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path))
        elif entry.name != LOCK:
            yield entry


def _facts(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat()
    except OSError:
        return None


def _skipped(
    store: Path, entry: os.DirEntry[str], facts: os.stat_result | None, state: LogState, reason: str
) -> SkippedFile:
    size, mtime_ns, inode = (facts.st_size, facts.st_mtime_ns, facts.st_ino) if facts else (0, 0, 0)
    return SkippedFile(
        path=Path(entry.path),
        relative=_relative(store, entry.path),
        log_id=_log_id(store, entry.path),
        state=state,
        reason=reason,
        size=size,
        mtime_ns=mtime_ns,
        inode=inode,
    )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _listed(folder: str | Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _relative(store: Path, path: str) -> str:
    return _shown(_inside(store, path))


def _log_id(store: Path, path: str) -> int:
    return schema.log_id(os.fsencode(_inside(store, path)))


def _inside(store: Path, path: str) -> str:
    """Return the part of a listed path that lies inside the store; `relpath` would cost more than the walk."""
    return path[len(os.path.join(store, "")) :]  # noqa: PTH118 - with the one separator that a listing puts there


def _shown(name: str) -> str:
    """Return a file name as text that can be encoded: bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace").replace("\0", "\ufffd")
