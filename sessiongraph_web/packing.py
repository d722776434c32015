"""An archive in the making: logs, pages and what the logs cite, entry by entry, and the manifest behind them."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, cast

from sessiongraph_web import __version__, attachments, logs, logtext, zipstream
from sessiongraph_web.attachments import Attachment, Reference
from sessiongraph_web.config import MEBI
from sessiongraph_web.entrynames import MAX_NAME_BYTES, safe_name
from sessiongraph_web.redact import mask, mask_value

MANIFEST: Final = "manifest.json"
MAX_MASKED_FILE: Final = 8 * MEBI  # an attached text above this is left out of a masked export
MAX_CITATIONS: Final = 20_000  # different attachments of one archive
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


class Packer:
    """One archive in the making."""

    def __init__(self, store: Path, limits: logs.Limits, *, redact: bool, raw: bool = False) -> None:
        self._store, self._limits = store, limits
        self._redact, self._raw = redact, raw
        self._sink = zipstream.Sink()
        self._archive = zipfile.ZipFile(cast("IO[bytes]", self._sink), "w")
        self._cited: dict[str, _Cited] = {}
        self._entries: list[dict[str, Any]] = []
        self._missing: list[dict[str, Any]] = []
        self._unlisted = 0  # citations above MAX_CITATIONS

    def pack(self, parts: Iterable[Bytes], about: dict[str, Any]) -> Bytes:
        """Yield the archive's bytes: the parts, what they cite, and the manifest, which begins with what it is
        `about`. Closing the generator early closes whatever is open."""
        with self._archive:
            for part in parts:
                yield from part
            for kind in ("image", "file"):
                for cited in [cited for cited in self._cited.values() if cited.reference.kind == kind]:
                    yield from self._attachment(cited)
            yield from self._write(MANIFEST, 0, [self._manifest(about)])
        yield self._sink.take()

    def page(self, name: str, pieces: Iterable[bytes], session_id: str | None = None) -> Bytes:
        """Yield an entry that is made of the log of a session, or of what is known of all of them."""
        written = yield from self._write(name, 0, pieces)
        session = {} if session_id is None else {"session_id": session_id}
        self._entries.append(
            {"name": name, "kind": "page", **session, "size": written.size, "sha256": written.sha256}
        )

    def cited_as(self, sha256: str) -> str | None:
        """Return the name of the entry that will hold an attachment cited so far; None if it is lost."""
        cited = self._cited.get(sha256)
        found = attachments.find(self._store, sha256) if cited else None
        return self._attachment_name(cited.reference, found) if cited and found else None

    def log(self, source: Source, folder: str) -> Bytes:
        """Yield a log, under the base name of its generation in a folder ("" or one that ends in a slash)."""
        masking = _Masking()
        name = folder + (source.path.name if self._raw else source.path.name.removesuffix(".zstd"))
        if self._raw:
            pieces = logtext.stored(source.path)
        else:
            text = logs.plain_text(source.path, limits=self._limits)
            blocks = logtext.of_session(logtext.blocks(text), source.session_id, source.cwd)
            pieces = self._masked(blocks, source, masking) if self._redact else self._watched(blocks, source)
        with closing(logtext.ahead(pieces)) as pieces:
            written = yield from self._write(name, logtext.modified(source.path), pieces)
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

    def _attachment(self, cited: _Cited) -> Bytes:
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
        written = yield from self._write(name, found.mtime, pieces)
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

    def _write(self, name: str, mtime: float, pieces: Iterable[bytes]) -> Generator[bytes, None, _Written]:
        written, digest = _Written(), hashlib.sha256()
        with self._archive.open(zipstream.entry(name, mtime, stored=self._raw), "w", force_zip64=True) as member:
            for piece in pieces:
                written.size += len(piece)
                digest.update(piece)
                member.write(piece)
                yield self._sink.take()  # empty at times: whoever pulls can stop there
        written.sha256 = digest.hexdigest()
        yield self._sink.take()
        return written

    def _watched(self, blocks: Iterable[bytes], source: Source) -> Bytes:
        """Pass the text on, and note the attachments that its lines cite."""
        lines = logtext.Lines(self._limits.max_line_bytes)
        for block in blocks:
            yield block
            self._note(lines.feed(block), source)
        self._note(lines.rest(), source)

    def _note(self, text: bytes, source: Source) -> None:
        if _CITATION in text:
            for line in text.split(b"\n"):
                if _CITATION in line and isinstance(value := logtext.decoded(line), dict):
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

    def _masked(self, blocks: Iterable[bytes], source: Source, masking: _Masking) -> Bytes:
        """Yield the lines with every string in them masked; a line that cannot be decoded is left out."""
        lines = logtext.Lines(self._limits.max_line_bytes)
        for block in blocks:
            yield self._masked_lines(lines.feed(block), source, masking)
        yield self._masked_lines(lines.rest(), source, masking)
        masking.left_out += lines.too_long

    def _masked_lines(self, text: bytes, source: Source, masking: _Masking) -> bytes:
        shown = []
        for line in text.split(b"\n"):
            if not line or line.isspace():
                continue
            value = logtext.decoded(line)
            masked, count = mask_value(value) if isinstance(value, dict) else (None, 0)
            if not isinstance(value, dict) or not isinstance(masked, dict):
                masking.left_out += 1
                continue
            self._cite(value, source)
            masking.masked += count
            shown.append(logtext.encoded(masked) + b"\n")
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

    def _manifest(self, about: dict[str, Any]) -> bytes:
        manifest: dict[str, Any] = {
            "product": "sessiongraph-web",
            "product_version": __version__,
            "note": _MASKED_NOTE if self._redact else _PLAIN_NOTE,
            **about,
            "format": "raw" if self._raw else "text",
            "redacted": self._redact,
            "entries": self._entries,
            "missing": self._missing,
            "unlisted": self._unlisted,
        }
        if self._redact:
            manifest = mask_value(manifest)[0]
            for count in ("masked", "left_out"):
                manifest[count] = sum(entry.get(count, 0) for entry in self._entries)
        # Half a character in a name becomes an escape, which JSON has too.
        return json.dumps(manifest, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace") + b"\n"


def _masked_file(found: Attachment, masking: _Masking) -> list[bytes] | None:
    """Return an attached text masked, or None if it is too large or no text."""
    if found.size > MAX_MASKED_FILE:
        return None
    try:
        text, masking.masked = mask(b"".join(found.chunks).decode())
    except UnicodeDecodeError:
        return None
    return [text.encode()]
