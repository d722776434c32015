"""The cards a transcript is made of: what a template needs to draw each, and nothing to decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from markupsafe import Markup

from sessiongraph_web.answers import EventView
from sessiongraph_web.models import Instant, Kind

Outcome = Literal["ok", "failed", "exit", "waiting", "missing"]


@dataclass(frozen=True, slots=True)
class Place:
    """Which event a card shows, and how that event stands in the log."""

    ordinal: int
    seq: int | None
    type: str
    time: Instant | None
    inherited: bool
    synthetic: bool
    shadowed: bool
    replaced_by: int | None


def place(event: EventView) -> Place:
    """Return where a card of this event stands."""
    return Place(
        event.ordinal,
        event.seq,
        event.type,
        event.time,
        event.inherited,
        event.synthetic,
        event.surface == "shadowed",
        event.replaced_by,
    )


@dataclass(frozen=True, slots=True)
class Body:
    """A text made ready to be shown. `left_out` characters of it are on the event's own page only."""

    html: Markup
    style: Literal["plain", "markdown", "code", "terminal", "diff"] = "plain"
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Attached:
    """An image or a file that a message cites."""

    sha256: str
    name: str
    is_image: bool
    size: int | None = None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a person asked, or a parent its subagent."""

    shape: ClassVar[str] = "prompt"
    place: Place
    body: Body
    attached: list[Attached]
    by_parent: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said."""

    shape: ClassVar[str] = "answer"
    place: Place
    body: Body
    model: str | None
    usage: str | None
    interrupted: bool


@dataclass(frozen=True, slots=True)
class Folded:
    """A text that most readers skip; `about` tells what is in it."""

    shape: ClassVar[str] = "folded"
    place: Place
    kind: Literal["reasoning", "context", "attempt"]
    label: str
    about: str
    body: Body
    attached: list[Attached]
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a tool card."""

    title: str
    body: Body


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool call and its result in one."""

    shape: ClassVar[str] = "tool"
    place: Place
    name: str
    argument: str
    outcome: Outcome
    outcome_text: str
    took: str | None
    sections: list[Section]
    attached: list[Attached]
    partner: int | None
    has_both: bool = False  # the result is on this page, in this card
    result_alone: bool = False  # the call is not on this page
    recorded: bool = True  # False: only the answer says that it was asked for
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class Checklist:
    """A to-do list as it was written."""

    shape: ClassVar[str] = "checklist"
    place: Place
    tasks: list[tuple[str, str]]
    done: int
    left_out: int


@dataclass(frozen=True, slots=True)
class Border:
    """A line across the transcript: where something about the session changed."""

    shape: ClassVar[str] = "border"
    place: Place | None
    kind: Literal["fork", "resume", "compaction", "directory", "end", "subagent", "damage"]
    label: str
    text: str = ""
    body: Body | None = None
    parent: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """One line about the session."""

    shape: ClassVar[str] = "note"
    place: Place
    label: str
    text: str
    bad: bool = False
    body: Body | None = None
    partner: int | None = None  # the event that ends what this one begins, told here too


@dataclass(frozen=True, slots=True)
class Subagent:
    """A child session. `known` says that the caller may see it."""

    shape: ClassVar[str] = "subagent"
    place: Place
    label: str
    child_id: str | None
    mode: str | None
    known: bool
    title: str | None = None
    said: Body | None = None  # the child's last answer


@dataclass(frozen=True, slots=True)
class Queued:
    """A prompt that was queued and never ran, or was taken back."""

    shape: ClassVar[str] = "queued"
    place: Place
    label: str
    body: Body


@dataclass(frozen=True, slots=True)
class Raw:
    """An event of a type that nobody told us about."""

    shape: ClassVar[str] = "raw"
    place: Place
    body: Body


Card = Prompt | Answer | Folded | Tool | Checklist | Border | Note | Subagent | Queued | Raw


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a session, as far as this page holds it. `number` is None before the first."""

    number: int | None
    key: str
    cards: list[Card]
    plumbing: list[Place]
    started: Instant | None
    took: str | None
    calls: int
    failures: int
    ended_badly: str | None
    kind: Kind | None  # of the opening: a prompt, else the first answer or call
    opening: str
    inherited: bool
