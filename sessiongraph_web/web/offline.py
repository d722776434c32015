"""The pages inside an archive: transcripts and their list as files that need no server, no script, no network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from sessiongraph_web import language, logs, presentation, reading, redact
from sessiongraph_web.answers import DamageNote, EventView, Relative, SessionPage, SessionSummary, instant
from sessiongraph_web.export import STYLE, TRANSCRIPT, Member
from sessiongraph_web.exporttext import Reading, Standing, Told, standing
from sessiongraph_web.surface import classify
from sessiongraph_web.web import render

FEW_EVENTS: Final = 30  # told together at least, so that calls meet their results
MOST_EVENTS: Final = 120  # told together at most: a part has as much room as a page
_END: Final = b"</main>\n</body>\n</html>\n"


class OfflineLinks:
    """Addresses inside an archive, as seen from a transcript, under the names that templates know from `Links`.

    What is not in the archive leads nowhere; an event on its own is in the log beside.
    """

    def __init__(self, member: Member, members: Sequence[Member], cited_as: Callable[[str], str | None]) -> None:
        self._log = member.source.path.name.removesuffix(".zstd")
        self._folders = {other.source.session_id: other.folder for other in members}
        self._cited_as = cited_as

    def path(self, *_: object, **__: object) -> str:
        return "#"

    def session(self, _session: SessionSummary, tail: str = "", **_: object) -> str:
        name = self._cited_as(tail.rpartition("/")[2]) if tail.startswith("/attachments/") else None
        return f"../../{quote(name)}" if name else "#"

    def session_id(self, session_id: str, **_: object) -> str:
        folder = self._folders.get(session_id)
        return f"../../{quote(folder)}{TRANSCRIPT}" if folder else "#"

    def event(self, *_: object, **__: object) -> str:
        return self._log

    def place(self, _session: SessionSummary, ordinal: int) -> str:
        return f"#e{ordinal}"


class OfflinePages:
    """Makes the pages of one archive from the templates of the served ones, in the language of its reader."""

    def __init__(self, limits: logs.Limits) -> None:
        self._limits = limits
        self._language = language.current()  # pages are made after the request was answered, in other threads

    def style(self) -> bytes:
        return (render.STATIC / STYLE).read_bytes()

    def index(self, members: Sequence[Member], *, redact: bool) -> Iterator[bytes]:
        rows = [(_shown(member.summary, redact), member.folder + TRANSCRIPT) for member in members]
        yield self._file("offline_index.html", {"rows": rows, "style": STYLE})

    def transcript(
        self, member: Member, members: Sequence[Member], *, redact: bool, cited_as: Callable[[str], str | None]
    ) -> Iterator[bytes]:
        session = _shown(member.summary, redact)
        links = OfflineLinks(member, members, cited_as)
        context = {"links": links, "session": session, "style": f"../../{STYLE}"}
        yield self._file("offline_head.html", context)
        known = [_shown(other.summary, redact) for other in members if other is not member]
        told = Reading(member.source, member.summary, redact=redact, limits=self._limits)
        for part in _parts(_blank(session, known), told.units(), standing(member.source, self._limits)):
            yield self._turns(part, links)
        yield _END

    def _turns(self, part: SessionPage, links: OfflineLinks) -> bytes:
        with language.spoken(self._language):
            turns = presentation.transcript(part)
        return self._file("offline_turns.html", {"links": links, "answer": part, "turns": turns, "offline": True})

    def _file(self, template: str, context: Mapping[str, object]) -> bytes:
        with language.spoken(self._language):
            return render.file(template, context).encode()


def _shown(summary: SessionSummary, masked: bool) -> SessionSummary:
    """Return a summary with what of it is text of a log masked where it has to be."""
    texts = {"id": summary.id, "title": summary.title, "cwd": summary.cwd}
    if not masked:
        return summary
    return msgspec.structs.replace(
        summary, **{name: redact.mask(text)[0] if text else text for name, text in texts.items()}
    )


def _blank(session: SessionSummary, known: Sequence[SessionSummary]) -> SessionPage:
    """Return the page of a session without its events; its relatives are those of `known` that lie beside it."""
    beside = {
        other.id: Relative(
            id=other.id,
            log_id=other.log_id,
            title=other.title,
            created_at=other.created_at,
            link="subagent" if other.origin == "subagent" else "fork",
        )
        for other in known
    }
    return SessionPage(
        session=session,
        parent=beside.get(session.parent_session or ""),
        children=[],
        named=list(beside.values()),
        damage=[],
        events=[],
        first_ordinal=0,
        next_ordinal=None,
        previous_ordinal=None,
        last_ordinal=-1,
    )


def _parts(blank: SessionPage, units: Iterable[Told | DamageNote], stands: Standing) -> Iterator[SessionPage]:
    """Cut a session into parts of bounded size, between turns where they are short enough."""
    events: list[EventView] = []
    damage: list[DamageNote] = []
    size = 0
    for unit in units:
        if isinstance(unit, DamageNote):
            damage.append(unit)
            continue
        shown = _view(unit, stands)
        begins = bool(events) and shown.turn != events[-1].turn and len(events) >= FEW_EVENTS
        if begins or len(events) >= MOST_EVENTS or size > reading.PAGE_CHARS:
            yield _part(blank, events, damage, is_last=False)
            events, damage, size = [], [], 0
        events.append(shown)
        size += reading.measure(shown.data)
    yield _part(blank, events, damage, is_last=True)


def _part(blank: SessionPage, events: list[EventView], damage: list[DamageNote], *, is_last: bool) -> SessionPage:
    last = events[-1].ordinal if events else -1
    return msgspec.structs.replace(
        blank,
        damage=damage,
        events=events,
        first_ordinal=events[0].ordinal if events else 0,
        next_ordinal=None if is_last else last + 1,
        last_ordinal=last,
    )


def _view(told: Told, stands: Standing) -> EventView:
    """Return an event as cards are made of it."""
    event = told.event
    data, clipped = reading.clip_strings(event.data)
    replaced_by = stands.replaced_by
    return EventView(
        ordinal=event.ordinal,
        seq=event.seq,
        type=event.type,
        time=instant(event.time),
        turn=told.turn,
        surface=classify(event.type, event.ordinal, shadowed=replaced_by, fault_ordinal=stands.fault_ordinal),
        inherited=told.inherited,
        synthetic=False,
        replaced_by=replaced_by.get(event.ordinal),
        partner=None,
        data=data,
        clipped=clipped,
    )
