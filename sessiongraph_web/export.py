"""The download of a session: a ZIP of its log, its descendants' logs and what they cite, made as it is sent."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
import zipfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, NoReturn, cast

import msgspec

from sessiongraph_web import __version__, attachments, logs
from sessiongraph_web.attachments import Attachment, Reference
from sessiongraph_web.config import KIBI, MEBI
from sessiongraph_web.entrynames import MAX_NAME_BYTES, Folders, download_name, safe_name
from sessiongraph_web.errors import SessionGraphError, invalid_parameter
from sessiongraph_web.redact import mask, mask_value

MEDIA_TYPE: Final = "application/zip"
MANIFEST: Final = "manifest.json"
LEVEL: Final = 1  # of DEFLATE: level 6 makes a seventh less of it and takes three times as long
MAX_MASKED_FILE: Final = 8 * MEBI  # an attached text above this is left out of a masked export
MAX_CITATIONS: Final = 20_000  # different attachments of one archive
BLOCK_BYTES: Final = 256 * KIBI  # text is compressed in blocks of about this size
_FIRST_YEAR, _LAST_YEAR = 1980, 2107  # what a ZIP can date
_MODE: Final = (stat.S_IFREG | 0o600) << 16
_CITATION: Final = b'"attachmentId"'

_PLAIN_NOTE: Final = (
    "Logs hold whatever tools printed, passwords and keys included. Look before you share this, "
    "or export again with redact=1."
)
_MASKED_NOTE: Final = (
    "Known kinds of secrets were masked. Unknown kinds may remain, and pictures are as they were."
)

Bytes = Generator[bytes, None, None]


@dataclass(frozen=True, slots=True)
class Source:
    """A log to be packed. `damage` holds what is known to be wrong with it, a sentence each."""

    log_id: int
    path: Path
    session_id: str
    cwd: str | None
    version: int
    damage: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Download:
    """Bytes for a client; nothing is produced, and no file opened, before `chunks` (some empty) are taken."""

    filename: str
    media_type: str
    chunks: Iterator[bytes]


def zip_download(
    root: Source,
    descendants: Sequence[Source],
    *,
    attachments: Path,
    redact: bool,
    limits: logs.Limits,
    raw: bool = False,
) -> Download:
    """Return the archive of a session and its descendants (in pre-order).

    Beside the logs it holds the media and files they cite, from the attachment store, and ends with the
    manifest. `redact` masks secrets, string by string; `raw` packs the stored files as they are, alone. A failure
    while chunks are taken raises: the archive is then cut, and cannot be taken for a whole one.
    """
    if raw and redact:
        raise invalid_parameter("format", "`raw` cannot be masked, so it is for the owner, without `redact`")
    require(root.path)
    sources = list({source.log_id: source for source in (root, *descendants)}.values())
    export = _Export(sources, attachments, limits, redact=redact, raw=raw)
    return Download(download_name(root.session_id), MEDIA_TYPE, export.chunks())


@dataclass(slots=True)
class _Cited:
    """An attachment that the packed logs cite: its last reference, and the sessions that cite it."""

    reference: Reference
    session_ids: dict[str, None]


@dataclass(slots=True)
class _Masking:
    """What masking did to one entry."""

    masked: int = 0
    left_out: int = 0


@dataclass(slots=True)
class _Written:
    size: int = 0
    sha256: str = ""


class _Export:
    """One archive in the making."""

    def __init__(
        self, sources: list[Source], store: Path, limits: logs.Limits, *, redact: bool, raw: bool
    ) -> None:
        self._sources, self._store, self._limits = sources, store, limits
        self._redact, self._raw = redact, raw
        self._sink = _Sink()
        self._folders = Folders()
        self._cited: dict[str, _Cited] = {}
        self._entries: list[dict[str, Any]] = []
        self._missing: list[dict[str, Any]] = []
        self._unlisted = 0  # citations above MAX_CITATIONS

    def chunks(self) -> Bytes:
        """Yield the archive's bytes. Closing the generator early closes whatever is open."""
        with zipfile.ZipFile(cast("IO[bytes]", self._sink), "w") as archive:
            for position, source in enumerate(self._sources):
                yield from self._log(archive, source, is_root=position == 0)
            for kind in ("image", "file"):
                for cited in [cited for cited in self._cited.values() if cited.reference.kind == kind]:
                    yield from self._attachment(archive, cited)
            yield from self._write(archive, MANIFEST, 0, [self._manifest()])
        yield self._sink.take()

    def _log(self, archive: zipfile.ZipFile, source: Source, *, is_root: bool) -> Bytes:
        masking = _Masking()
        base = source.path.name if self._raw else source.path.name.removesuffix(".zstd")
        shown = mask(source.session_id)[0] if self._redact else source.session_id
        name = base if is_root else f"subagents/{self._folders.add(shown)}/{base}"
        if self._raw:
            pieces = _stored(source.path)
        else:
            blocks = _blocks(logs.plain_text(source.path, limits=self._limits))
            pieces = self._masked(blocks, source, masking) if self._redact else self._watched(blocks, source)
        with closing(_ahead(pieces)) as pieces:
            written = yield from self._write(archive, name, _mtime(source.path), pieces)
        self._entries.append(
            {
                "name": name,
                "kind": "log",
                "original": source.path.name,
                "session_id": source.session_id,
                "cwd": source.cwd,
                "version": source.version,
                "size": written.size,
                "sha256": written.sha256,
                "state": "damaged" if source.damage or masking.left_out else "complete",
                "damage": list(source.damage),
                **self._counts(masking),
            }
        )

    def _attachment(self, archive: zipfile.ZipFile, cited: _Cited) -> Bytes:
        reference = cited.reference
        found = attachments.find(self._store, reference.sha256) if reference.sha256 else None
        if found is None:
            reason = "not in the attachment store" if reference.sha256 else "the log gives no usable hash"
            self._miss(cited, reason)
            return
        masking = _Masking()
        pieces: Iterable[bytes] | None = found.chunks
        if self._redact and found.media_type == attachments.UNKNOWN_TYPE:
            pieces = _masked_file(found, masking)
        if pieces is None:
            self._miss(cited, "it is no text of moderate size, so secrets in it cannot be masked")
            return
        name = self._attachment_name(reference, found)
        written = yield from self._write(archive, name, found.mtime, pieces)
        whole = masking.masked or written.sha256 == found.sha256
        self._entries.append(
            {
                "name": name,
                "kind": reference.kind,
                "original": reference.original,
                "original_name": reference.name,
                "session_ids": list(cited.session_ids),
                "size": written.size,
                "sha256": written.sha256,
                "state": "complete" if whole else "altered",
                **self._counts(masking),
            }
        )

    def _attachment_name(self, reference: Reference, found: Attachment) -> str:
        if reference.kind == "image":
            media_type = reference.media_type
            if media_type == attachments.UNKNOWN_TYPE:
                media_type = found.media_type
            return f"media/sha256-{found.sha256}.{attachments.EXTENSIONS.get(media_type, 'bin')}"
        folder = f"files/{found.sha256[:2]}/{found.sha256}/"
        name = reference.name or "file"
        return folder + safe_name(mask(name)[0] if self._redact else name, MAX_NAME_BYTES - len(folder))

    def _write(
        self, archive: zipfile.ZipFile, name: str, mtime: float, pieces: Iterable[bytes]
    ) -> Generator[bytes, None, _Written]:
        written, digest = _Written(), hashlib.sha256()
        with archive.open(_entry(name, mtime, stored=self._raw), "w", force_zip64=True) as member:
            for piece in pieces:
                written.size += len(piece)
                digest.update(piece)
                member.write(piece)
                yield self._sink.take()  # empty at times: whoever pulls can stop there
        written.sha256 = digest.hexdigest()
        yield self._sink.take()
        return written

    def _watched(self, blocks: Iterable[bytes], source: Source) -> Iterator[bytes]:
        """Pass the text on, and note the attachments that its lines cite."""
        lines = _Lines(self._limits.max_line_bytes)
        for block in blocks:
            yield block
            self._note(lines.feed(block), source)
        self._note(lines.rest(), source)

    def _note(self, text: bytes, source: Source) -> None:
        if _CITATION in text:
            for line in text.split(b"\n"):
                if _CITATION in line and isinstance(value := _decoded(line), dict):
                    self._cite(value, source)

    def _cite(self, value: dict[str, Any], source: Source) -> None:
        for reference in attachments.references(value.get("data")):
            key = reference.sha256 or reference.original
            cited = self._cited.get(key)
            if cited is None and len(self._cited) >= MAX_CITATIONS:
                self._unlisted += 1
                continue
            cited = self._cited.setdefault(key, _Cited(reference, {}))
            cited.reference = reference
            cited.session_ids[source.session_id] = None

    def _masked(self, blocks: Iterable[bytes], source: Source, masking: _Masking) -> Iterator[bytes]:
        """Yield the lines with every string in them masked; a line that cannot be decoded is left out."""
        lines = _Lines(self._limits.max_line_bytes)
        for block in blocks:
            yield self._masked_lines(lines.feed(block), source, masking)
        yield self._masked_lines(lines.rest(), source, masking)
        masking.left_out += lines.too_long

    def _masked_lines(self, text: bytes, source: Source, masking: _Masking) -> bytes:
        shown = []
        for line in text.split(b"\n"):
            if not line or line.isspace():
                continue
            value = _decoded(line)
            masked, count = mask_value(value) if isinstance(value, dict) else (None, 0)
            if not isinstance(value, dict) or not isinstance(masked, dict):
                masking.left_out += 1
                continue
            self._cite(value, source)
            masking.masked += count
            shown.append(_encoded(masked) + b"\n")
        return b"".join(shown)

    def _miss(self, cited: _Cited, reason: str) -> None:
        reference = cited.reference
        self._missing.append(
            {
                "kind": reference.kind,
                "original": reference.original,
                "original_name": reference.name,
                "session_ids": list(cited.session_ids),
                "size": reference.size,
                "reason": reason,
            }
        )

    def _counts(self, masking: _Masking) -> dict[str, int]:
        return {"masked": masking.masked, "left_out": masking.left_out} if self._redact else {}

    def _manifest(self) -> bytes:
        manifest: dict[str, Any] = {
            "product": "sessiongraph-web",
            "product_version": __version__,
            "note": _MASKED_NOTE if self._redact else _PLAIN_NOTE,
            "session_id": self._sources[0].session_id,
            "format": "raw" if self._raw else "text",
            "redacted": self._redact,
            "entries": self._entries,
            "missing": self._missing,
            "unlisted": self._unlisted,
        }
        if self._redact:
            manifest = mask_value(manifest)[0]
            for count in ("masked", "left_out"):
                manifest[count] = sum(entry[count] for entry in self._entries)
        # Half a character in a name becomes an escape, which JSON has too.
        return json.dumps(manifest, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace") + b"\n"


class _Sink:
    """What the ZIP writer writes to: bytes that wait to be sent. It cannot seek."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._waiting.append(data)
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        taken = b"".join(self._waiting)
        self._waiting.clear()
        return taken


@dataclass(slots=True)
class _Lines:
    """Cuts blocks of text after their last newline; a line longer than the limit is dropped and counted."""

    limit: int
    too_long: int = 0
    _open: list[bytes] = field(default_factory=list)
    _length: int = 0

    def feed(self, block: bytes) -> bytes:
        """Return the whole lines that end in this block."""
        cut = block.rfind(b"\n") + 1
        if not cut:
            self._keep(block)
            return b""
        begin = block.find(b"\n") + 1 if self._length > self.limit else 0
        whole = b"".join([*self._open, block[begin:cut]])
        self._open.clear()
        self._length = 0
        self._keep(block[cut:])
        return whole

    def rest(self) -> bytes:
        """Return the last line, if no newline ended it."""
        return b"".join(self._open)

    def _keep(self, piece: bytes) -> None:
        fitted = self._length <= self.limit
        self._length += len(piece)
        if self._length <= self.limit:
            self._open.append(piece)
        elif fitted:
            self._open.clear()
            self.too_long += 1


def _ahead(pieces: Iterator[bytes]) -> Generator[bytes, None, None]:
    """Yield the pieces, each made while the one before it is compressed."""
    with ThreadPoolExecutor(1) as executor:
        following = executor.submit(next, pieces, None)
        while (piece := following.result()) is not None:
            following = executor.submit(next, pieces, None)
            yield piece


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join small pieces: a log has a frame for every append."""
    waiting, size = [], 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= BLOCK_BYTES:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)


def _stored(path: Path) -> Iterator[bytes]:
    with _readable(path) as file:
        while block := file.read(BLOCK_BYTES):
            yield block


def _masked_file(found: Attachment, masking: _Masking) -> list[bytes] | None:
    """Return an attached text masked, or None if it is too large or no text."""
    if found.size > MAX_MASKED_FILE:
        return None
    try:
        text, masking.masked = mask(b"".join(found.chunks).decode())
    except UnicodeDecodeError:
        return None
    return [text.encode()]


def _entry(name: str, mtime: float, *, stored: bool) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _date(mtime))
    info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
    info._compresslevel = LEVEL  # type: ignore[attr-defined]  # no public name before Python 3.13
    info.external_attr = _MODE
    info.create_system = 3  # Unix, wherever this runs: the mode is one
    return info


def _date(mtime: float) -> tuple[int, int, int, int, int, int]:
    """Return a time as ZIP writes it, in UTC; what lies outside its range becomes the nearest it can hold."""
    try:
        moment = time.gmtime(mtime)[:6]
    except (OverflowError, OSError, ValueError):
        moment = (_FIRST_YEAR - 1 if mtime < 0 else _LAST_YEAR + 1, 1, 1, 0, 0, 0)
    if moment[0] < _FIRST_YEAR:
        return (_FIRST_YEAR, 1, 1, 0, 0, 0)
    return moment if moment[0] <= _LAST_YEAR else (_LAST_YEAR, 12, 31, 23, 59, 58)


def require(path: Path) -> None:
    """Raise now what would otherwise cut a download that has begun."""
    with _readable(path):
        pass


@contextmanager
def _readable(path: Path) -> Iterator[BinaryIO]:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError("not a regular file")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise SessionGraphError("SESSION_QUERY_PERSISTENCE_FAILED") from error


def _mtime(path: Path) -> float:
    with _readable(path) as file:
        return os.fstat(file.fileno()).st_mtime


def _decoded(line: bytes) -> Any:
    """Decode a line for what it says, or return None; `logs` alone judges what is an event."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(line.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(token: str) -> NoReturn:
    raise ValueError(token)


def _encoded(value: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):  # half a character, or a number beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode()
