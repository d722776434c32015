"""Tells a page of a session's events as turns of cards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sessiongraph_web import bodies, eventtypes, loose, markup, toolcards, wording
from sessiongraph_web.answers import DamageNote, EventView, SessionPage
from sessiongraph_web.attached import cited
from sessiongraph_web.bodies import Allowance
from sessiongraph_web.cards import (
    Answer,
    Border,
    Card,
    Checklist,
    Folded,
    Note,
    Place,
    Prompt,
    Queued,
    Raw,
    Subagent,
    Tool,
    Turn,
    place,
)

LABEL_CHARS: Final = 300
ABOUT_CHARS: Final = 140
MAX_TASKS: Final = 100
TASK_CHARS: Final = 400

Maker = Callable[[EventView], Iterator[Card]]


def tell(page: SessionPage, *, focused: bool = False) -> list[Turn]:
    """Return the turns of a page. `focused` keeps prompts, the last answer of each turn, and borders."""
    turns = list(_Teller(page).turns())
    return [_focus(turn) for turn in turns] if focused else turns


def _focus(turn: Turn) -> Turn:
    last_answer = next((card for card in reversed(turn.cards) if isinstance(card, Answer)), None)
    kept: list[Card] = [c for c in turn.cards if isinstance(c, Prompt | Border) or c is last_answer]
    return Turn(
        turn.number,
        turn.key,
        kept,
        [],
        turn.started,
        turn.took,
        turn.calls,
        turn.failures,
        turn.ended_badly,
        turn.prompt,
        turn.inherited,
    )


class _Teller:
    """Walks a page once, with tables of what belongs together."""

    def __init__(self, page: SessionPage) -> None:
        self._page = page
        events = page.events
        self._by_ordinal = {event.ordinal: event for event in events}
        self._calls = {_call_id(e): e for e in events if e.type == "tool/call" and _call_id(e)}
        self._results = {_call_id(e): e for e in events if e.type == "tool/result" and _call_id(e)}
        self._prompted = {loose.string(e.data.get("id")) for e in events if e.type == "user/message"}
        self._answered = {e.turn for e in events if e.type == "assistant/message"}
        self._done = {loose.string(e.data.get("commandId")): e for e in events if e.type == "command/done"}
        self._children = {child.id: child for child in page.children if child.id}
        self._allowance = Allowance(sum(1 for e in events if eventtypes.shown(e.type).how != "plumbing"))
        self._makers: dict[str, Maker] = {
            "message": self._message,
            "context": self._context,
            "answer": self._answer,
            "attempt": self._attempt,
            "partial": self._partial,
            "call": self._call,
            "result": self._result,
            "todo": self._todo,
            "queue": self._queue,
            "command": self._command,
            "summary": self._summary,
            "seed": self._seed,
            "descriptor": self._descriptor,
            "subagent": self._subagent,
            "end": self._end,
            "border": self._border,
            "note": self._note,
            "raw": self._raw,
        }

    def turns(self) -> Iterator[Turn]:
        group: list[EventView] = []
        for event in self._page.events:
            begins = event.turn is not None and event.turn != _number(group)
            if group and begins and (_number(group) is not None or not _is_lead_in(group)):
                yield self._turn(group)
                group = []
            group.append(event)
        if group or self._page.damage:
            yield self._turn(group)

    def _turn(self, events: list[EventView]) -> Turn:
        cards: list[Card] = []
        plumbing: list[Place] = []
        for event in events:
            cards += self._damage(event.ordinal)
            made = list(self._makers.get(eventtypes.shown(event.type).how, _nothing)(event))
            cards += made
            if not made and not self._is_told(event):
                plumbing.append(place(event))
        if not events or events[-1] is self._page.events[-1]:
            cards += self._damage(None)
        return _summed(events, cards, plumbing)

    def _damage(self, ordinal: int | None) -> Iterator[Card]:
        """Yield the damage just before an event; None: what lies after the last one, or nowhere."""
        for note in self._page.damage:
            if note.ordinal == ordinal if ordinal is not None else self._is_homeless(note):
                line = f", line {note.line}" if note.line is not None else ""
                text = f"{markup.clip(note.message, LABEL_CHARS)} (byte {note.offset}{line})"
                yield Border(None, "damage", "Damaged here", text)

    def _is_homeless(self, note: DamageNote) -> bool:
        if self._page.next_ordinal is not None:
            return False
        last = self._page.events[-1].ordinal if self._page.events else -1
        return note.ordinal is None or note.ordinal > last

    def _is_told(self, event: EventView) -> bool:
        """Say whether another card already shows this event."""
        if event.type == "tool/result":
            return _call_id(event) in self._calls or event.partner in self._by_ordinal
        return event.type == "command/done"

    def _message(self, event: EventView) -> Iterator[Card]:
        content = event.data.get("content")
        source = loose.mapping(event.data.get("source"))
        kind = loose.string(source.get("kind")) or "user"
        if kind == "user":
            yield Prompt(place(event), bodies.plain(loose.texts(content), self._allowance), cited(content))
            return
        label = eventtypes.SOURCES.get(kind, f"Injected: {markup.clip(kind, ABOUT_CHARS)}")
        sender = loose.string(source.get("senderSessionId"))
        summary = loose.string(source.get("summary"))
        yield self._folded(event, "context", label, loose.texts(content), about=summary, sender=sender)

    def _folded(
        self,
        event: EventView,
        kind: Any,
        label: str,
        text: str,
        about: str | None = None,
        sender: str | None = None,
    ) -> Folded:
        known = sender if sender in self._children else None
        first = " ".join((about or text)[: ABOUT_CHARS * 4].split())
        body = (
            bodies.markdown(text, self._allowance) if kind == "reasoning" else bodies.plain(text, self._allowance)
        )
        attached = cited(event.data.get("content")) if kind == "context" else []
        return Folded(place(event), kind, label, markup.clip(first, ABOUT_CHARS), body, attached, known)

    def _context(self, event: EventView) -> Iterator[Card]:
        content = loose.at(event.data, "message.content")
        changes = [
            f"{'+' if block.get('type') == 'tool-addition' else '−'} {loose.said(block.get('toolName'))}"
            for block in map(loose.mapping, loose.items(content))
            if block.get("type") in ("tool-addition", "tool-removal")
        ]
        text = "\n".join(filter(None, [loose.texts(content), *changes]))
        yield self._folded(event, "context", eventtypes.shown(event.type).label, text)

    def _answer(self, event: EventView) -> Iterator[Card]:
        message = loose.mapping(event.data.get("message"))
        for block in map(loose.mapping, loose.items(message.get("content"))):
            if block.get("type") == "reasoning" and (thought := loose.string(block.get("text"))):
                yield self._folded(event, "reasoning", "Reasoning", thought)
        text = loose.texts(message.get("content"))
        interrupted = event.data.get("interrupted") is True
        if text.strip() or interrupted:
            yield Answer(
                place(event),
                bodies.markdown(text, self._allowance),
                _brief(loose.at(message, "source.model")),
                _usage(event.data.get("usage")),
                interrupted,
            )
        yield from self._never_begun(event, message)

    def _never_begun(self, event: EventView, message: Mapping[str, Any]) -> Iterator[Card]:
        """Yield calls that an answer asked for and the log holds no record of, where the log goes on."""
        for block in map(loose.mapping, loose.items(message.get("content"))):
            asked = loose.string(block.get("id"))
            if block.get("type") != "tool-call" or asked is None or asked in self._calls:
                continue
            result = self._results.get(asked)
            if result is None and self._page.next_ordinal is not None:
                continue
            data = {"name": block.get("name"), "arguments": block.get("arguments"), "callId": asked}
            yield toolcards.tool(_like(event, data), result, self._allowance, recorded=False)

    def _attempt(self, event: EventView) -> Iterator[Card]:
        text, failure = _streamed(event.data.get("stream"))
        about = loose.string(failure.get("message")) or "ended without an answer"
        yield self._folded(event, "attempt", "Failed attempt", text or about, about=about)

    def _partial(self, event: EventView) -> Iterator[Card]:
        if event.turn in self._answered:
            return
        text = "".join(piece for piece in loose.items(event.data.get("texts")) if isinstance(piece, str))
        chunk = loose.string(loose.at(event.data, "chunk.text")) or loose.string(
            loose.at(event.data, "chunk.delta")
        )
        if text or chunk:
            yield self._folded(event, "attempt", "Unfinished answer", text or chunk or "")

    def _call(self, event: EventView) -> Iterator[Card]:
        result = self._results.get(_call_id(event))
        if result is None and event.partner is not None:
            result = self._by_ordinal.get(event.partner)
        waiting = self._page.session.live is True and self._page.next_ordinal is None
        yield toolcards.tool(event, result, self._allowance, waiting=waiting)

    def _result(self, event: EventView) -> Iterator[Card]:
        if not self._is_told(event) and not self._was_asked(event):
            yield toolcards.tool(None, event, self._allowance)

    def _was_asked(self, event: EventView) -> bool:
        """Say whether an answer on this page asked for this result without a recorded call."""
        wanted = _call_id(event)
        return any(
            loose.mapping(block).get("id") == wanted
            for other in self._page.events
            if other.type == "assistant/message"
            for block in loose.items(loose.at(other.data, "message.content"))
        )

    def _todo(self, event: EventView) -> Iterator[Card]:
        tasks = [loose.mapping(item) for item in loose.items(event.data.get("todos"))]
        shown = [
            (
                markup.clip(loose.said(task.get("content") or ""), TASK_CHARS),
                loose.string(task.get("status")) or "pending",
            )
            for task in tasks[:MAX_TASKS]
        ]
        done = sum(task.get("status") == "completed" for task in tasks)
        yield Checklist(place(event), shown, done, max(0, len(tasks) - MAX_TASKS))

    def _queue(self, event: EventView) -> Iterator[Card]:
        """Yield queued prompts that never ran: only the last page can know that."""
        canceled = event.data.get("outcome") == "canceled"
        for message in map(loose.mapping, loose.items(event.data.get("inserted"))):
            ran = loose.string(message.get("id")) in self._prompted or self._page.next_ordinal is not None
            if loose.at(message, "source.kind") != "user" or (ran and not canceled):
                continue
            label = "Queued, taken back" if canceled else "Queued, never ran"
            yield Queued(place(event), label, bodies.plain(loose.texts(message.get("content")), self._allowance))

    def _command(self, event: EventView) -> Iterator[Card]:
        name, given = loose.string(event.data.get("name")) or "", loose.said(event.data.get("args") or "")
        done = self._done.get(loose.string(event.data.get("commandId")))
        text = loose.string(done.data.get("text")) if done else None
        body = bodies.plain(text, self._allowance) if text else None
        bad = bool(done) and loose.at(done.data if done else {}, "kind") in ("error", "failure")
        yield Note(
            place(event),
            "Command",
            markup.clip(f"/{name} {given.strip()}".strip(), LABEL_CHARS),
            bad=bad,
            body=body,
        )

    def _summary(self, event: EventView) -> Iterator[Card]:
        replaced = len(loose.items(event.data.get("shadowedSeqs")))
        label = f"Compacted: a summary took the place of {wording.count(replaced, 'event')}"
        tokens = loose.integer(event.data.get("shadowedTokenCount"))
        text = f"{wording.compact(tokens)} tokens" if tokens else ""
        body = bodies.markdown(loose.texts(event.data.get("summary")), self._allowance)
        yield Border(place(event), "compaction", label, text, body)

    def _seed(self, event: EventView) -> Iterator[Card]:
        session = self._page.session
        is_fork = session.is_seeded and event.ordinal <= session.inherited_count
        if event.data.get("inherited") is True or event.inherited or is_fork:
            yield Border(place(event), "fork", "Forked here: all above was inherited", parent=True)
        else:
            yield Border(place(event), "resume", "Resumed here")

    def _descriptor(self, event: EventView) -> Iterator[Card]:
        facts = [_brief(event.data.get(name)) for name in ("label", "mode", "agentModel", "agentReasoningEffort")]
        yield Border(place(event), "subagent", "Subagent", " · ".join(filter(None, facts)), parent=True)

    def _subagent(self, event: EventView) -> Iterator[Card]:
        child_id = loose.string(event.data.get("childId"))
        child = self._children.get(child_id or "")
        yield Subagent(
            place(event),
            _brief(event.data.get("label")) or "unnamed",
            child_id if child else None,
            _brief(event.data.get("mode")),
            known=child is not None,
            title=markup.clip(child.title, LABEL_CHARS) if child and child.title else None,
        )

    def _end(self, event: EventView) -> Iterator[Card]:
        told = _ending(event)
        if told:
            yield Border(place(event), "end", *told)

    def _border(self, event: EventView) -> Iterator[Card]:
        shown = eventtypes.shown(event.type)
        yield Border(place(event), "directory", shown.label, _fields(event, shown))

    def _note(self, event: EventView) -> Iterator[Card]:
        shown = eventtypes.shown(event.type)
        yield Note(place(event), shown.label, _fields(event, shown), bad=shown.bad)

    def _raw(self, event: EventView) -> Iterator[Card]:
        yield Raw(place(event), bodies.data(event.data, self._allowance))


def _nothing(_event: EventView) -> Iterator[Card]:
    return iter(())


def _number(group: list[EventView]) -> int | None:
    return next((event.turn for event in reversed(group) if event.turn is not None), None)


def _is_lead_in(group: list[EventView]) -> bool:
    """Say whether events before a turn's start belong to it: what was queued just before it began."""
    return all(event.type == "agent/inbox/spliced" for event in group)


def _summed(events: list[EventView], cards: list[Card], plumbing: list[Place]) -> Turn:
    number = _number(events)
    tools = [card for card in cards if isinstance(card, Tool)]
    prompt = next((event for event in events if _is_prompt(event)), None)
    ends = [event for event in events if event.type == "turn/end"]
    told = _ending(ends[-1]) if ends else None
    first, last = (events[0], events[-1]) if events else (None, None)
    return Turn(
        number=number,
        key=f"t{first.ordinal}" if first else "t-",
        cards=cards,
        plumbing=plumbing,
        started=first.time if first else None,
        took=wording.between(first.time, last.time) if first and last else None,
        calls=len(tools),
        failures=sum(card.outcome in ("failed", "exit") for card in tools),
        ended_badly=told[0] if told else None,
        prompt=_prompt_line(prompt),
        inherited=bool(events) and all(event.inherited for event in events),
    )


def _is_prompt(event: EventView) -> bool:
    return event.type == "user/message" and (loose.at(event.data, "source.kind") or "user") == "user"


def _prompt_line(event: EventView | None) -> str:
    text = loose.texts(event.data.get("content")) if event else ""
    return markup.clip(" ".join(text[: ABOUT_CHARS * 2].split()), ABOUT_CHARS // 2)


def _ending(event: EventView) -> tuple[str, str] | None:
    """Return how a turn that did not simply complete ended: a label and a detail."""
    reason = loose.mapping(event.data.get("reason"))
    kind = loose.string(reason.get("kind")) or "completed"
    if kind == "completed":
        return None
    label = eventtypes.TURN_ENDS.get(kind, f"Ended: {markup.clip(kind, ABOUT_CHARS)}")
    by = loose.string(loose.at(reason, "reason.kind"))
    if kind == "aborted" and by:
        label = f"Stopped by the {markup.clip(by, ABOUT_CHARS)}"
    facts = [_brief(loose.at(reason, "error.message")), _brief(loose.at(reason, "error.code"))]
    return label, " · ".join(filter(None, facts))


def _call_id(event: EventView) -> str | None:
    if event.type == "tool/call":
        return loose.string(event.data.get("callId"))
    message = loose.mapping(event.data.get("message"))
    return loose.string(message.get("toolCallId")) or loose.string(loose.at(message, "source.callId"))


def _like(event: EventView, data: dict[str, Any]) -> EventView:
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


def _streamed(stream: object) -> tuple[str, Mapping[str, Any]]:
    """Return the text that a failed attempt had streamed, and its failure."""
    pieces: list[str] = []
    failure: Mapping[str, Any] = {}
    for item in map(loose.mapping, loose.items(stream)):
        if item.get("type") == "text-chunks":
            pieces += [piece for piece in loose.items(item.get("texts")) if isinstance(piece, str)]
        failure = loose.mapping(loose.at(item, "chunk.reason.failure")) or failure
    return "".join(pieces), failure


def _usage(value: object) -> str | None:
    usage = loose.mapping(value)
    into, out = loose.integer(usage.get("inputTokens")), loose.integer(usage.get("outputTokens"))
    if into is None or out is None:
        return None
    return f"{wording.compact(into)} in, {wording.compact(out)} out"


def _brief(value: object) -> str | None:
    text = loose.string(value)
    return markup.clip(text, LABEL_CHARS) if text else None


def _fields(event: EventView, shown: eventtypes.Shown) -> str:
    values = [loose.at(event.data, path) for path in shown.fields]
    said = [loose.said(value)[:LABEL_CHARS] for value in values if value is not None and value != ""]
    return markup.clip(" · ".join(" ".join(text.split()) for text in said), LABEL_CHARS)
