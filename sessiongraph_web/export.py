"""The downloads that are archives: of a session with what belongs to it, and of a whole set of sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from sessiongraph_web import logs, logtext
from sessiongraph_web.answers import SessionSummary
from sessiongraph_web.entrynames import Folders, download_name
from sessiongraph_web.errors import invalid_parameter
from sessiongraph_web.packing import Bytes, Packer
from sessiongraph_web.packing import Download as Download
from sessiongraph_web.packing import Source as Source
from sessiongraph_web.redact import mask

MEDIA_TYPE: Final = "application/zip"
SET_NAME: Final = "dsh-sessions.zip"
STYLE: Final = "style.css"
INDEX: Final = "index.html"
TRANSCRIPT: Final = "transcript.html"


@dataclass(frozen=True, slots=True)
class Member:
    """One session of a set: its log, what lists say of it, and its folder in the archive."""

    source: Source
    summary: SessionSummary
    folder: str = ""


class Pages(Protocol):
    """What makes the pages of an archive that are read without a server."""

    def style(self) -> bytes:
        """Return the one stylesheet."""

    def index(self, members: Sequence[Member], *, redact: bool) -> Iterator[bytes]:
        """Yield the list of the sessions."""

    def transcript(
        self, member: Member, members: Sequence[Member], *, redact: bool, cited_as: Callable[[str], str | None]
    ) -> Iterator[bytes]:
        """Yield a session as it is read on its page; `cited_as` tells the entry that holds an attachment."""


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
        raise invalid_parameter(
            "format", "`%(parameter)s`: `raw` cannot be masked, so it is for the owner, without `redact`"
        )
    logtext.require(root.path)
    sources = list({source.log_id: source for source in (root, *descendants)}.values())
    packer = Packer(attachments, limits, redact=redact, raw=raw)
    folders = ["", *_folders("subagents", sources[1:], redact=redact)]
    parts = (packer.log(source, folder) for source, folder in zip(sources, folders, strict=True))
    about = {"session_id": root.session_id}
    return Download(download_name(root.session_id), MEDIA_TYPE, packer.pack(parts, about))


def set_download(
    members: Sequence[Member],
    pages: Pages,
    *,
    about: Mapping[str, Any],
    attachments: Path,
    redact: bool,
    limits: logs.Limits,
) -> Download:
    """Return the archive of a set of sessions: each log beside its transcript, and a list of all of them.

    `about` is what the manifest says of the set as a whole.
    """
    folders = _folders("sessions", [member.source for member in members], redact=redact)
    placed = [Member(m.source, m.summary, folder) for m, folder in zip(members, folders, strict=True)]
    packer = Packer(attachments, limits, redact=redact)
    parts = _set_parts(packer, placed, pages, redact=redact)
    return Download(SET_NAME, MEDIA_TYPE, packer.pack(parts, {"sessions": len(placed), **about}))


def _set_parts(packer: Packer, members: Sequence[Member], pages: Pages, *, redact: bool) -> Iterator[Bytes]:
    yield packer.page(INDEX, pages.index(members, redact=redact))
    yield packer.page(STYLE, [pages.style()])
    for member in members:
        yield packer.log(member.source, member.folder)
        told = pages.transcript(member, members, redact=redact, cited_as=packer.cited_as)
        yield packer.page(member.folder + TRANSCRIPT, told, member.source.session_id)


def _folders(above: str, sources: Sequence[Source], *, redact: bool) -> list[str]:
    folders = Folders()
    ids = (mask(source.session_id)[0] if redact else source.session_id for source in sources)
    return [f"{above}/{folders.add(session_id)}/" for session_id in ids]
