"""What leaves: the download of a session, and the images and files its log cites, for those who may have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, cast

from sessiongraph_web import attachments, corpus, lineage, redact
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import DamageNote, SessionSummary
from sessiongraph_web.attachments import EXTENSIONS, Attachment, Reference
from sessiongraph_web.config import MEBI
from sessiongraph_web.corpus import Located, View
from sessiongraph_web.errors import SessionGraphError, invalid_parameter, not_found
from sessiongraph_web.export import Download, Member, Pages, Source, set_download, zip_download
from sessiongraph_web.exporttext import Format as TextFormat
from sessiongraph_web.exporttext import text_download
from sessiongraph_web.filters import ExportRequest, SessionRequest
from sessiongraph_web.grants import Selection
from sessiongraph_web.language import Sentence, sentence
from sessiongraph_web.reading import LogReader

MOST_SESSIONS: Final = 200  # of one set
GIBI: Final = 1024 * MEBI
MOST_BYTES: Final = 2 * GIBI  # of the stored logs of one set
_SUFFIXES: Final = {media_type: (f".{suffix}",) for media_type, suffix in EXTENSIONS.items()} | {
    "image/jpeg": (".jpg", ".jpeg")
}


def export(view: View, caller: Caller, request: ExportRequest) -> Download:
    """Prepare the download of a session; nothing is produced before its chunks are taken."""
    root = _authorized(view, caller, request)
    if request.format in ("md", "json", "ndjson"):
        return _text(view, caller, root, request)
    descendants = lineage.preorder(view, caller, root) if request.descendants else []
    for located in descendants:
        view.check_header(located)
    return zip_download(
        source(view, root),
        [source(view, located) for located in descendants],
        attachments=view.settings.attachments,
        redact=request.redact or not caller.is_owner,
        raw=request.format == "raw",
        limits=corpus.log_limits(view.settings),
    )


@dataclass(frozen=True, slots=True)
class Chosen:
    """A set of sessions as it can be packed."""

    members: list[Member]
    size: int
    unreachable: list[str]
    complete: bool


def choose(view: View, caller: Caller, found: Sequence[SessionSummary], complete: bool) -> Chosen:
    """Find the logs of a set of sessions; one that cannot be read now is told, not fatal."""
    if len(found) > MOST_SESSIONS:
        raise _too_much(sentence("%(number)s sessions", number=MOST_SESSIONS))
    members, unreachable, size = [], [], 0
    for summary in found:
        try:
            located = view.find(caller, summary.id, summary.log_id)
            view.check_header(located)
            size += located.path.stat().st_size
        except (SessionGraphError, OSError):
            unreachable.append(summary.id)
        else:
            members.append(Member(source(view, located), summary))
    if size > MOST_BYTES:
        raise _too_much(sentence("%(number)s GiB of stored logs", number=MOST_BYTES // GIBI))
    return Chosen(members, size, unreachable, complete)


def selection(chosen: Chosen) -> Selection:
    """Say what a set comes to."""
    return Selection(
        sessions=[member.summary for member in chosen.members],
        bytes=chosen.size,
        most_sessions=MOST_SESSIONS,
        most_bytes=MOST_BYTES,
        unreachable=chosen.unreachable,
        complete=chosen.complete,
    )


def export_set(view: View, caller: Caller, chosen: Chosen, pages: Pages, *, redact: bool) -> Download:
    """Prepare the download of a set of sessions."""
    return set_download(
        chosen.members,
        pages,
        about={"unreachable": chosen.unreachable, "complete": chosen.complete},
        attachments=view.settings.attachments,
        redact=redact or not caller.is_owner,
        limits=corpus.log_limits(view.settings),
    )


def attachment(view: View, caller: Caller, request: SessionRequest, sha256: str) -> Download:
    """Return what this session's log cites under a hash, which alone opens nothing.

    Only what is an image by its first bytes goes to others than the owner: no secret can be masked in the rest.
    """
    for event in LogReader(view, _authorized(view, caller, request)).events():
        for reference in attachments.cited(event):
            if reference.sha256 == sha256:
                return _given(view, caller, reference, sha256)
    raise not_found()


def source(view: View, located: Located) -> Source:
    """Return a log as the exporter takes it, with what is known to be wrong with it."""
    damage = tuple(_sentence(note) for note in view.damage(located))
    return Source(located.log_id, located.path, located.id, located.cwd, located.row["version"], damage)


def _authorized(view: View, caller: Caller, request: ExportRequest | SessionRequest) -> Located:
    """Find the log that the caller may see under this id, and check that its header still says so."""
    located = view.find(caller, request.id, request.log_id)
    view.check_header(located)
    return located


def _too_much(bound: Sentence) -> SessionGraphError:
    detail = sentence("One archive holds at most %(bound)s; narrow the search or the time.", bound=bound)
    return SessionGraphError("SESSION_QUERY_INVALID_FILTER", detail)


def _text(view: View, caller: Caller, root: Located, request: ExportRequest) -> Download:
    if request.descendants:
        raise invalid_parameter("descendants", "`%(parameter)s` is for the ZIP; a text holds one session")
    return text_download(
        source(view, root),
        view.summary(caller, root),
        cast("TextFormat", request.format),
        redact=request.redact or not caller.is_owner,
        limits=corpus.log_limits(view.settings),
    )


def _given(view: View, caller: Caller, reference: Reference, sha256: str) -> Download:
    found = attachments.find(view.settings.attachments, sha256)
    if found is None or not (caller.is_owner or found.media_type in EXTENSIONS):
        raise not_found()
    name = _display_name(found, reference)
    return Download(name if caller.is_owner else redact.mask(name)[0], found.media_type, found.chunks)


def _display_name(found: Attachment, reference: Reference) -> str:
    """Return the name that the log gives, ending as its bytes demand: an image is never saved as a page."""
    name = reference.name or found.filename
    suffixes = _SUFFIXES.get(found.media_type)
    if suffixes is None or PurePath(name).suffix.lower() in suffixes:
        return name
    return name + suffixes[0]


def _sentence(note: DamageNote) -> str:
    line = f", line {note.line}" if note.line is not None else ""
    return f"{note.message} (byte {note.offset}{line})"
