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
from sessiongraph_web.sight import Sight

_NAME: Final = re.compile(r"session(?:\.v([1-9][0-9]*))?\.jsonl(\.zstd)?", re.ASCII)
_LOG_LIKE: Final = re.compile(r".+\.jsonl(\..+)?", re.ASCII | re.IGNORECASE | re.DOTALL)
_MAX_VERSION: Final = 2**53 - 1  # a greater one can be named, and neither stored nor stated by a header
LOCK: Final = "session.lock"
_TRANSIENT: Final = ".tmp"
_SPELLED: Final = "\\x"  # how a byte that is no text begins in a path as it is shown


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
    `problem` says why the store itself could not be listed; `sight` is everything that it went by."""

    logs: list[LogFile] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    ignored: list[SkippedFile] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    problem: str | None = None
    sight: Sight = field(default_factory=Sight, compare=False)


def discover(store: Path) -> Discovery:
    """List the store's logs by one stat walk that opens nothing; in each folder the highest generation wins."""
    walk = _Walk(store)
    try:
        walk.store()
    except OSError as error:
        return Discovery(problem=error.strerror or "it cannot be listed", sight=walk.sight)
    return walk.found


def locate(store: Path, relative: str, log_id: int) -> Path:
    """Return where the log is that `relative` shows; one whose name is no text is looked for by its id."""
    if _SPELLED not in relative or schema.log_id(relative.encode()) == log_id:
        return store / relative
    found = [os.fsencode(store)]
    for part in relative.split("/"):
        found = [
            os.path.join(folder, name)  # noqa: PTH118 - bytes
            for folder in found
            for name in _names(folder)
            if _shown(os.fsdecode(name)) == part
        ]
    inside = len(os.path.join(os.fsencode(store), b""))  # noqa: PTH118 - bytes
    matches = [path for path in found if schema.log_id(path[inside:]) == log_id]
    return Path(os.fsdecode(matches[0])) if matches else store / relative


def named_version(name: str) -> int | None:
    """Return the generation that a log's file name states, or None for a name that is none of a log."""
    found = _NAME.fullmatch(name)
    return min(int(found[1] or 0), _MAX_VERSION) if found else None


class _Walk:
    """One walk: what it finds, and what it saw on the way."""

    def __init__(self, store: Path) -> None:
        self.root = str(store)
        self.inside = len(os.path.join(self.root, ""))  # noqa: PTH118 - a listing joins with just that
        self.found = Discovery()
        self.sight = self.found.sight

    def store(self) -> None:
        """Walk all of it; OSError if the store itself cannot be listed."""
        for project in self._listed(self.root):
            if project.name.startswith(".") or not _is_folder(project):
                self._skip_stray(project)
                continue
            try:
                folders = self._listed(project.path)
            except OSError:
                self.found.unreachable.append(_shown(project.name))
                continue
            for folder in folders:
                self._visit(project.name, folder)

    def _visit(self, project: str, folder: os.DirEntry[str]) -> None:
        if not _is_folder(folder):
            self._skip_stray(folder)
            return
        try:
            entries = self._listed(folder.path)
        except OSError:
            self.found.unreachable.append(_shown(f"{project}/{folder.name}"))
            return
        candidates = []
        for entry in entries:
            version = named_version(entry.name)
            if version is None:
                self._skip_stray(entry)
                continue
            facts = self._candidate(entry)
            if facts is not None:
                candidates.append((version, entry.name.endswith(".zstd"), entry, facts))
        candidates.sort(key=lambda candidate: candidate[:2])
        for version, compressed, entry, facts in candidates[-1:]:
            relative, log_id = self._place(entry.path)
            self.found.logs.append(
                LogFile(
                    path=Path(entry.path),
                    relative=relative,
                    log_id=log_id,
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
            self._skip(entry, facts, "superseded", reason)

    def _candidate(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        """Return the facts of a file that is named like a log, unless it is no regular file."""
        try:
            facts = entry.stat(follow_symlinks=False)
        except OSError as error:
            self.sight.lose()
            self._skip(entry, None, "unreadable", error.strerror or "no facts")
            return None
        self.sight.see_file(entry.path, facts)
        if stat.S_ISREG(facts.st_mode):
            return facts
        # whatever a link names was not written here as a log
        reason = "a link, not a log" if stat.S_ISLNK(facts.st_mode) else "not a regular file"
        self._skip(entry, facts, "unreadable", reason)
        return None

    def _skip_stray(self, entry: os.DirEntry[str]) -> None:
        """Record a file that is no log by its name or place; what a stray folder holds is merely ignored."""
        if entry.name == LOCK:
            return
        if entry.is_dir(follow_symlinks=False):
            for inside in self._below(entry.path):
                self._skip(inside, self._facts(inside), "ignored", "it is no session log")
            return
        facts = self._facts(entry)
        looks_like_log = _LOG_LIKE.fullmatch(entry.name) and (facts is None or stat.S_ISREG(facts.st_mode))
        if entry.name.endswith(_TRANSIENT) or not looks_like_log:
            self._skip(entry, facts, "ignored", "it is no session log")
        else:
            self._skip(entry, facts, "unreadable", "the name or place is not one of a session log")

    def _below(self, folder: str) -> Iterator[os.DirEntry[str]]:
        """Yield the files at any depth of a folder, as far as it can be listed; links are not followed."""
        try:
            entries = self._listed(folder)
        except OSError:
            return
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(entry.path)
            elif entry.name != LOCK:
                yield entry

    def _listed(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except OSError:
            self.sight.lose()
            raise
        self.sight.see_folder(folder, [entry.name for entry in found])
        return sorted(found, key=lambda entry: entry.name)

    def _facts(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        """Return the facts of a stray file, or of what a link names, if anything."""
        try:
            facts = entry.stat()
        except OSError:
            facts = None
        if entry.is_symlink():
            self.sight.see_link(entry.path, facts)
        elif facts is None:
            self.sight.lose()
        else:
            self.sight.see_file(entry.path, facts)
        return facts

    def _skip(self, entry: os.DirEntry[str], facts: os.stat_result | None, state: LogState, reason: str) -> None:
        size, mtime_ns, inode = (facts.st_size, facts.st_mtime_ns, facts.st_ino) if facts else (0, 0, 0)
        relative, log_id = self._place(entry.path)
        skipped = SkippedFile(
            path=Path(entry.path),
            relative=relative,
            log_id=log_id,
            state=state,
            reason=reason,
            size=size,
            mtime_ns=mtime_ns,
            inode=inode,
        )
        (self.found.ignored if state == "ignored" else self.found.skipped).append(skipped)

    def _place(self, path: str) -> tuple[str, int]:
        """Return a listed path as the ledger shows it, and its id."""
        relative = path[self.inside :]
        return _shown(relative), schema.log_id(os.fsencode(relative))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _names(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - bytes
    except OSError:
        return []


def _shown(name: str) -> str:
    """Return a file name as text that can be encoded: a byte that is not UTF-8 becomes `\\xff`."""
    if name.isascii():
        return name
    return os.fsencode(name).decode("utf-8", "backslashreplace")
