"""Reads facts out of single events: what transcripts say of them, whatever their data hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sessiongraph_web import eventtypes, loose, markup, wording
from sessiongraph_web.answers import EventView
from sessiongraph_web.language import gettext
from sessiongraph_web.models import Kind

LABEL_CHARS: Final = 300
ABOUT_CHARS: Final = 140
TASK_CHARS: Final = 400
MOST_WAIT_MS: Final = 86_400_000  # a longer wait before a retry is none that anybody wrote


def says_something(event: EventView) -> bool:
    """Say whether an answer holds words."""
    return bool(loose.texts(loose.at(event.data, "message.content")).strip())


def is_prompt(event: EventView) -> bool:
    """Say whether a person said this."""
    return event.type == "user/message" and (loose.at(event.data, "source.kind") or "user") == "user"


def opening(events: Sequence[EventView]) -> tuple[Kind | None, str]:
    """Return the line that a turn begins with, and its kind: the first prompt, else the first answer or call."""
    prompt = next((event for event in events if is_prompt(event)), None)
    if prompt is not None:
        return "user", _line(loose.texts(prompt.data.get("content")))
    for event in events:
        if event.type == "assistant/message" and says_something(event):
            return "assistant", _line(loose.texts(loose.at(event.data, "message.content")))
        if event.type == "tool/call":
            return "tool_call", _line(f"{loose.said(event.data.get('name'))} {event.data.get('arguments') or ''}")
    return None, ""


def _line(text: str) -> str:
    return markup.clip(" ".join(text[: ABOUT_CHARS * 2].split()), ABOUT_CHARS // 2)


def ending(event: EventView) -> tuple[str, str] | None:
    """Return how a turn that did not simply complete ended: a label and a detail."""
    reason = loose.mapping(event.data.get("reason"))
    kind = loose.string(reason.get("kind")) or "completed"
    if kind == "completed":
        return None
    known = eventtypes.TURN_ENDS.get(kind)
    label = gettext(known) if known else gettext("Ended: %(reason)s", reason=markup.clip(kind, ABOUT_CHARS))
    by = loose.string(loose.at(reason, "reason.kind"))
    if kind == "aborted" and by:
        label = gettext("Stopped by the %(cause)s", cause=_cause(by))
    why = [brief(loose.at(reason, "error.message")), brief(loose.at(reason, "error.code"))]
    return label, " · ".join(filter(None, why))


def _cause(by: str) -> str:
    known = eventtypes.CAUSES.get(by)
    return gettext(known) if known else markup.clip(by, ABOUT_CHARS)


def task(todo: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text and the status of an item of a to-do list."""
    text = markup.clip(loose.said(todo.get("content") or ""), TASK_CHARS)
    return text, loose.string(todo.get("status")) or "pending"


def call_id(event: EventView) -> str | None:
    """Return the id that ties a call and its result together."""
    if event.type == "tool/call":
        return loose.string(event.data.get("callId"))
    message = loose.mapping(event.data.get("message"))
    return loose.string(message.get("toolCallId")) or loose.string(loose.at(message, "source.callId"))


def unrecorded_call(event: EventView, data: dict[str, Any]) -> EventView:
    """Return a call that was never recorded, at the place of the answer that asked for it."""
    return EventView(
        ordinal=event.ordinal,
        seq=event.seq,
        type="tool/call",
        time=None,
        turn=event.turn,
        surface=event.surface,
        inherited=event.inherited,
        synthetic=event.synthetic,
        replaced_by=None,
        partner=None,
        data=data,
    )


def streamed(stream: object) -> tuple[str, Mapping[str, Any]]:
    """Return the text that a failed attempt had streamed, and its failure."""
    pieces: list[str] = []
    failure: Mapping[str, Any] = {}
    for item in map(loose.mapping, loose.items(stream)):
        if item.get("type") == "text-chunks":
            pieces += [piece for piece in loose.items(item.get("texts")) if isinstance(piece, str)]
        failure = loose.mapping(loose.at(item, "chunk.reason.failure")) or failure
    return "".join(pieces), failure


def unfinished(events: Sequence[EventView]) -> dict[int, str]:
    """Join the pieces of each answer that has no message, by the ordinal of the first one that holds text."""
    answered = {_step(event) for event in events if event.type == "assistant/message"}
    first: dict[tuple[int | None, int | None], int] = {}
    found: dict[int, str] = {}
    for event in events:
        text = _piece(event) if eventtypes.shown(event.type).how == "partial" else ""
        if text and _step(event) not in answered:
            ordinal = first.setdefault(_step(event), event.ordinal)
            found[ordinal] = found.get(ordinal, "") + text
    return found


def usage(value: object) -> str | None:
    """Return what an answer cost in tokens."""
    used = loose.mapping(value)
    into, out = loose.integer(used.get("inputTokens")), loose.integer(used.get("outputTokens"))
    if into is None or out is None:
        return None
    return gettext("%(into)s in, %(out)s out", into=wording.compact(into), out=wording.compact(out))


def brief(value: object) -> str | None:
    """Return a string of a bearable length."""
    text = loose.string(value)
    return markup.clip(text, LABEL_CHARS) if text else None


def worded(event: EventView, path: str) -> str | None:
    """Return a string of an event; a word that dsh has for something is said in the reader's language."""
    text = brief(loose.at(event.data, path))
    return _told(path, text) if text else None


def _told(path: str, value: object) -> str:
    text = loose.said(value)[:LABEL_CHARS]
    known = eventtypes.WORDS.get(text) if path in eventtypes.WORDED else None
    return gettext(known) if known else text


def retry(event: EventView) -> str:
    """Say which of how many tries comes next, when, and why."""
    tries, most = loose.integer(event.data.get("retry")), loose.integer(event.data.get("maxRetries"))
    counted = gettext("try %(number)s of %(most)s", number=tries, most=most) if tries and most else None
    wait = event.data.get("delayMs")
    waited = None
    if isinstance(wait, int | float) and 0 < wait < MOST_WAIT_MS:
        waited = gettext("after %(duration)s", duration=wording.duration(int(wait)))
    return " · ".join(filter(None, [counted, waited, brief(loose.at(event.data, "failure.code"))]))


def note(event: EventView, shown: eventtypes.Shown) -> str:
    """Return the fields of an event that its type's note says, on one line."""
    values = [(path, loose.at(event.data, path)) for path in shown.fields]
    said = [_told(path, value) for path, value in values if value is not None and value != ""]
    return markup.clip(" · ".join(" ".join(text.split()) for text in said), LABEL_CHARS)


def _piece(event: EventView) -> str:
    """Return the text of one piece of an answer, as generation 0 logs it."""
    packed = "".join(text for text in loose.items(event.data.get("texts")) if isinstance(text, str))
    names = ("chunk.text", "chunk.delta")
    return packed or next(filter(None, (loose.string(loose.at(event.data, name)) for name in names)), "")


def _step(event: EventView) -> tuple[int | None, int | None]:
    return event.turn, loose.integer(event.data.get("step"))
