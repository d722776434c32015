"""The store and its logs: which files are logs, and what each holds, read once, in order, in bounded memory."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from sessiongraph_web import frames, schema
from sessiongraph_web.assembly import Assembler
from sessiongraph_web.config import MEBI
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.models import Fault, FrameEnd, Header, LogState, Resume, Unit
from sessiongraph_web.naming import folder_name as folder_name
from sessiongraph_web.naming import project_key as project_key

Detail = Literal["full", "index"]
_NAME: Final = re.compile(r"session(?:\.v([1-9][0-9]*))?\.jsonl(\.zstd)?", re.ASCII)
_LOG_LIKE: Final = re.compile(r".+\.jsonl(\..+)?", re.ASCII | re.IGNORECASE | re.DOTALL)
LOCK: Final = "session.lock"
_TRANSIENT: Final = ".tmp"
_STRETCH_BYTES: Final = 64 * 1024
_FINGERPRINT_BYTES: Final = 64 * 1024
_PIECE_BYTES: Final = MEBI
_FROM_START: Final = Resume()


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


@dataclass(frozen=True, slots=True)
class Limits:
    """What a single unit of a log may need before it counts as damaged."""

    max_line_bytes: int = 64 * MEBI
    max_window_bytes: int = 128 * MEBI


@dataclass(slots=True)
class Meter:
    """What reading cost: stored bytes read and bytes of text they decoded to."""

    bytes_read: int = 0
    text_bytes: int = 0


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
            folders = _listed(Path(project.path))
        except OSError:
            found.unreachable.append(_shown(project.name))
            continue
        for folder in folders:
            _visit(found, store, project.name, folder)
    return found


def _visit(found: Discovery, store: Path, project: str, folder: os.DirEntry[str]) -> None:
    if not _is_folder(folder):
        _skip_stray(found, store, folder)
        return
    try:
        entries = _listed(Path(folder.path))
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
            facts = entry.stat()
        except OSError as error:
            found.skipped.append(_skipped(store, entry, None, "unreadable", error.strerror or "no facts"))
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


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _relative(store: Path, path: str) -> str:
    return _shown(os.path.relpath(path, store))


def _log_id(store: Path, path: str) -> int:
    return schema.log_id(os.fsencode(os.path.relpath(path, store)))


def _shown(name: str) -> str:
    """Return a file name as text that can be encoded: bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace").replace("\0", "\ufffd")


def read(
    path: Path,
    *,
    resume: Resume = _FROM_START,
    version: int | None = None,
    detail: Detail = "full",
    limits: Limits = Limits(),
    meter: Meter | None = None,
    until: int | None = None,
) -> Generator[Unit, None, None]:
    """Yield what a log holds, in file order: header, events, faults, and the end of every whole frame.

    From the start the first unit is the header, or the fault that says why there is none. `until` ends reading
    after the frame that ends at or behind this stored offset. Content never raises; a file that cannot be read is
    SESSION_QUERY_PERSISTENCE_FAILED. Resume only from the `end` of a clean `FrameEnd`: faults at or behind it are
    reported again.
    """
    compressed = path.suffix == ".zstd"
    with _opened(path) as file:
        assembler = Assembler(
            path,
            resume,
            named_version=_named_version(path) if version is None else version,
            narrow=detail == "index",
            max_line_bytes=limits.max_line_bytes,
            compressed=compressed,
        )
        if file.size == 0 and resume.offset == 0:
            yield Fault("empty_file", "the file is empty", 0, ordinal=0)
            return
        try:
            for chunk in _chunks(file, resume.offset, limits, compressed=compressed, batched=detail == "index"):
                units = assembler.take(chunk)
                if until is None:
                    yield from units
                    continue
                for unit in units:
                    yield unit
                    if isinstance(unit, FrameEnd) and unit.end >= until:
                        return
            yield from assembler.finish()
        finally:
            if meter is not None:
                meter.bytes_read += file.bytes_read
                meter.text_bytes += assembler.text_bytes


def _named_version(path: Path) -> int | None:
    name = _NAME.fullmatch(path.name)
    return int(name[1] or 0) if name else None


def _chunks(
    file: frames.File, offset: int, limits: Limits, *, compressed: bool, batched: bool
) -> Iterator[list[frames.Chunk] | frames.Chunk | frames.Damage]:
    if not compressed:
        return frames.stretches(file, offset, length=_STRETCH_BYTES)
    if batched:
        return frames.batches(file, offset, max_window=limits.max_window_bytes)
    return frames.frames(file, offset, max_window=limits.max_window_bytes)


def peek_header(path: Path, limits: Limits = Limits()) -> Header | Fault:
    """Read the first frame only and return the header, or the fault that says why there is none."""
    with closing(read(path, limits=limits, until=1)) as units:
        for unit in units:
            if isinstance(unit, Header | Fault):
                return unit
    return Fault("bad_header", "the first frame holds no header", 0)


def fingerprint(path: Path, offset: int) -> str:
    """Return the sha256 of the first frame and of the last 64 KiB before `offset`."""
    digest = hashlib.sha256()
    with _opened(path) as file:
        first = frames.first_end(file) if path.suffix == ".zstd" else min(_STRETCH_BYTES, offset)
        digest.update(file.at(0, min(first, offset)))
        begin = max(0, offset - _FINGERPRINT_BYTES)
        digest.update(file.at(begin, offset - begin))
    return digest.hexdigest()


def plain_text(path: Path, *, limits: Limits = Limits()) -> Iterator[bytes]:
    """Yield the decompressed text as stored, in pieces of at most 1 MiB: whole frames only, damage left out.

    A plain log is given up to its last newline.
    """
    with _opened(path) as file:
        if path.suffix != ".zstd":
            file.size = frames.last_newline(file)
        for chunk in _chunks(file, 0, limits, compressed=path.suffix == ".zstd", batched=False):
            if isinstance(chunk, frames.Chunk):
                for at in range(0, len(chunk.text), _PIECE_BYTES):
                    yield chunk.text[at : at + _PIECE_BYTES]


def is_live(path: Path) -> bool | None:
    """Say whether a process holds the session's lock now, without taking it; None where that cannot be known."""
    try:
        descriptor = os.open(path.parent / "session.lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        inode = os.fstat(descriptor).st_ino
        devices = _devices(descriptor)
        table = Path("/proc/locks").read_text("ascii", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)
    held = {f"{os.major(device):02x}:{os.minor(device):02x}:{inode}" for device in devices}
    return any(not held.isdisjoint(row.split()) for row in table.splitlines() if "->" not in row)


def _devices(descriptor: int) -> list[int]:
    """Return the devices by which the kernel may name a file's place: its own, and that of its mount.

    They differ on btrfs and overlays, where a stat names a part and `/proc/locks` the whole.
    """
    devices = [os.fstat(descriptor).st_dev]
    facts = Path(f"/proc/self/fdinfo/{descriptor}").read_text("ascii", "replace").split()
    mount = facts[facts.index("mnt_id:") + 1] if "mnt_id:" in facts else ""
    for row in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        identity, _, device, *_ = row.split()
        if identity == mount:
            devices.append(os.makedev(*map(int, device.split(":"))))
    return devices


@contextmanager
def _opened(path: Path) -> Iterator[frames.File]:
    """Open a log for reading: once, never waiting for a pipe, never anything but a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _unreadable(error) from error
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise SessionGraphError("SESSION_QUERY_PERSISTENCE_FAILED", "This log is not a regular file.")
        yield frames.File(descriptor, facts.st_size)
    except OSError as error:
        raise _unreadable(error) from error
    finally:
        os.close(descriptor)


def _unreadable(error: OSError) -> SessionGraphError:
    reason = error.strerror or type(error).__name__
    return SessionGraphError("SESSION_QUERY_PERSISTENCE_FAILED", f"This log cannot be read: {reason}.")
