"""Tells a page of a session's events as turns of cards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sessiongraph_web import bodies, eventtypes, facts, loose, markup, outcomes, reasons, toolcards, wording
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
    Turn,
    place,
)
from sessiongraph_web.language import gettext, ngettext

FOCUSED: Final = frozenset({"summary", "seed", "descriptor", "end", "border"})
MAX_NOTES: Final = 2  # of damage at one place; the rest is counted

Maker = Callable[[EventView], Iterator[Card]]


def tell(page: SessionPage, *, focused: bool = False) -> list[Turn]:
    """Return the turns of a page. `focused` keeps prompts, the last answer of each turn, and borders."""
    return list(_Teller(page, focused=focused).turns())


class _Teller:
    """Walks a page once, with tables of what belongs together."""

    def __init__(self, page: SessionPage, *, focused: bool) -> None:
        self._page = page
        self._focused = focused
        events = page.events
        self._last_answers = {
            e.turn: e.ordinal for e in events if e.type == "assistant/message" and facts.says_something(e)
        }
        self._by_ordinal = {event.ordinal: event for event in events}
        self._calls = {facts.call_id(e): e for e in events if e.type == "tool/call" and facts.call_id(e)}
        self._results = {facts.call_id(e): e for e in events if e.type == "tool/result" and facts.call_id(e)}
        self._prompted = {loose.string(e.data.get("id")) for e in events if e.type == "user/message"}
        self._attempted = {e.turn for e in events if e.type == "assistant/attempt"}
        self._pieces = facts.unfinished(events)
        self._done = {loose.string(e.data.get("commandId")): e for e in events if e.type == "command/done"}
        self._children = {child.id: child for child in (*page.children, *page.named) if child.id}
        self._ran = {loose.string(e.data.get("commandId")) for e in events if e.type == "command/run"}
        self._allowance = Allowance(sum(1 for e in events if self._is_kept(e)))
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
            "done": self._command_done,
            "summary": self._summary,
            "seed": self._seed,
            "descriptor": self._descriptor,
            "subagent": self._subagent,
            "end": self._end,
            "border": self._border,
            "note": self._note,
            "retry": self._retry,
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
            kept = self._is_kept(event)
            made = list(self._makers[eventtypes.shown(event.type).how](event)) if kept else []
            cards += made
            if not made and not self._focused and not self._is_told(event):
                plumbing.append(place(event))
        if not events or events[-1] is self._page.events[-1]:
            cards += self._damage(None)
        return self._summed(events, cards, plumbing)

    def _is_kept(self, event: EventView) -> bool:
        """Say whether an event may have a card in this view."""
        how = eventtypes.shown(event.type).how
        if not self._focused:
            return how != "plumbing"
        if how == "answer":
            return self._last_answers.get(event.turn) == event.ordinal
        return facts.is_prompt(event) or how in FOCUSED

    def _damage(self, ordinal: int | None) -> Iterator[Card]:
        """Yield the damage just before an event; None: what lies after the last one, or nowhere."""
        here = [
            note
            for note in self._page.damage
            if (note.ordinal == ordinal if ordinal is not None else self._is_homeless(note))
        ]
        for note in here[:MAX_NOTES]:
            yield Border(None, "damage", gettext("Damaged here"), _damaged(note))
        if len(here) > MAX_NOTES:
            more = ngettext(
                "%(num)s more damaged part; Status lists them",
                "%(num)s more damaged parts; Status lists them",
                len(here) - MAX_NOTES,
            )
            yield Border(None, "damage", gettext("Damaged here"), more)

    def _is_homeless(self, note: DamageNote) -> bool:
        if self._page.next_ordinal is not None:
            return False
        last = self._page.events[-1].ordinal if self._page.events else -1
        return note.ordinal is None or note.ordinal > last

    def _is_told(self, event: EventView) -> bool:
        """Say whether another card already shows this event."""
        if event.type == "tool/result":
            return facts.call_id(event) in self._calls or event.partner in self._by_ordinal
        return event.type == "command/done" and loose.string(event.data.get("commandId")) in self._ran

    def _summed(self, events: list[EventView], cards: list[Card], plumbing: list[Place]) -> Turn:
        ends = [event for event in events if event.type == "turn/end"]
        told = facts.ending(ends[-1]) if ends else None
        calls = [event for event in events if event.type == "tool/call"]
        results = [self._results.get(facts.call_id(call)) for call in calls]
        first, last = (events[0], (ends or events)[-1]) if events else (None, None)
        kind, opening = facts.opening(events)
        return Turn(
            number=_number(events),
            key=f"t{first.ordinal}" if first else "t-",
            cards=cards,
            plumbing=plumbing,
            started=first.time if first else None,
            took=wording.between(first.time, last.time) if first and last else None,
            calls=len(calls),
            failures=sum(outcomes.has_failed(result.data) for result in results if result),
            ended_badly=told[0] if told else None,
            kind=kind,
            opening=opening,
            inherited=bool(events) and all(event.inherited for event in events),
        )

    def _message(self, event: EventView) -> Iterator[Card]:
        content = event.data.get("content")
        source = loose.mapping(event.data.get("source"))
        kind = loose.string(source.get("kind")) or "user"
        if kind == "user":
            told = bodies.plain(loose.texts(content), self._allowance)
            yield Prompt(place(event), told, cited(content), by_parent=self._is_by_parent(event, source))
            return
        known_source = eventtypes.SOURCES.get(kind)
        injected = gettext("Injected: %(source)s", source=markup.clip(kind, facts.ABOUT_CHARS))
        label = gettext(known_source) if known_source else injected
        sender = loose.string(source.get("senderSessionId"))
        summary = loose.string(source.get("summary"))
        yield self._folded(event, "context", label, loose.texts(content), about=summary, sender=sender)

    def _is_by_parent(self, event: EventView, source: Mapping[str, Any]) -> bool:
        """Say whether a subagent was asked by its parent: a person's prompt came through a client."""
        is_own = self._page.session.origin == "subagent" and not event.inherited
        return is_own and loose.string(source.get("rpcId")) is None

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
        first = " ".join((about or text)[: facts.ABOUT_CHARS * 4].split())
        body = (
            bodies.markdown(text, self._allowance) if kind == "reasoning" else bodies.plain(text, self._allowance)
        )
        attached = cited(event.data.get("content")) if kind == "context" else []
        return Folded(place(event), kind, label, markup.clip(first, facts.ABOUT_CHARS), body, attached, known)

    def _context(self, event: EventView) -> Iterator[Card]:
        content = loose.at(event.data, "message.content")
        changes = [
            f"{'+' if block.get('type') == 'tool-addition' else '−'} {loose.said(block.get('toolName'))}"
            for block in map(loose.mapping, loose.items(content))
            if block.get("type") in ("tool-addition", "tool-removal")
        ]
        text = "\n".join(filter(None, [loose.texts(content), *changes])) or gettext("(empty)")
        yield self._folded(event, "context", eventtypes.shown(event.type).said, text)

    def _answer(self, event: EventView) -> Iterator[Card]:
        message = loose.mapping(event.data.get("message"))
        for block in map(loose.mapping, loose.items(message.get("content") if not self._focused else [])):
            if block.get("type") == "reasoning" and (thought := loose.string(block.get("text"))):
                yield self._folded(event, "reasoning", gettext("Reasoning"), thought)
        text = loose.texts(message.get("content"))
        interrupted = event.data.get("interrupted") is True
        if text.strip() or interrupted:
            yield Answer(
                place(event),
                bodies.markdown(text, self._allowance),
                facts.brief(loose.at(message, "source.model")),
                facts.usage(event.data.get("usage")),
                interrupted,
            )
        if not self._focused:
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
            yield toolcards.tool(facts.unrecorded_call(event, data), result, self._allowance, recorded=False)

    def _attempt(self, event: EventView) -> Iterator[Card]:
        text, failure = facts.streamed(event.data.get("stream"))
        about = loose.string(failure.get("message")) or gettext("ended without an answer")
        yield self._folded(event, "attempt", gettext("Failed attempt"), text or about, about=about)

    def _partial(self, event: EventView) -> Iterator[Card]:
        """Yield an answer that never came whole, where its first piece stands."""
        text = self._pieces.get(event.ordinal)
        if text:
            yield self._folded(event, "attempt", gettext("Unfinished answer"), text)

    def _call(self, event: EventView) -> Iterator[Card]:
        result = self._results.get(facts.call_id(event))
        if result is None and event.partner is not None:
            result = self._by_ordinal.get(event.partner)
        waiting = self._page.session.live is True and self._page.next_ordinal is None
        yield toolcards.tool(event, result, self._allowance, waiting=waiting)

    def _result(self, event: EventView) -> Iterator[Card]:
        if not self._is_told(event) and not self._was_asked(event):
            yield toolcards.tool(None, event, self._allowance)

    def _was_asked(self, event: EventView) -> bool:
        """Say whether an answer on this page asked for this result without a recorded call."""
        wanted = facts.call_id(event)
        return any(
            loose.mapping(block).get("id") == wanted
            for other in self._page.events
            if other.type == "assistant/message"
            for block in loose.items(loose.at(other.data, "message.content"))
        )

    def _todo(self, event: EventView) -> Iterator[Card]:
        todos = [loose.mapping(item) for item in loose.items(event.data.get("todos"))]
        shown = bodies.tasks([facts.task(todo) for todo in todos], self._allowance)
        done = sum(todo.get("status") == "completed" for todo in todos)
        yield Checklist(place(event), shown, done, len(todos) - len(shown))

    def _queue(self, event: EventView) -> Iterator[Card]:
        """Yield queued prompts that never ran, or wait for it in a session that is live."""
        for message in map(loose.mapping, loose.items(event.data.get("inserted"))):
            identity = loose.string(message.get("id"))
            ran = identity is None or identity in self._prompted or identity in self._page.ran_later
            if loose.at(message, "source.kind") != "user" or ran:
                continue
            label = gettext("Queued, waiting") if self._page.session.live else gettext("Queued, never ran")
            yield Queued(place(event), label, bodies.plain(loose.texts(message.get("content")), self._allowance))

    def _command(self, event: EventView) -> Iterator[Card]:
        name, given = loose.string(event.data.get("name")) or "", loose.said(event.data.get("args") or "")
        done = self._done.get(loose.string(event.data.get("commandId")))
        text = loose.string(done.data.get("text")) if done else None
        body = bodies.plain(text, self._allowance) if text else None
        bad = bool(done) and loose.at(done.data if done else {}, "kind") in ("error", "failure")
        yield Note(
            place(event),
            gettext("Command"),
            markup.clip(f"/{name} {given.strip()}".strip(), facts.LABEL_CHARS),
            bad=bad,
            body=body,
            partner=done.ordinal if done else None,
        )

    def _command_done(self, event: EventView) -> Iterator[Card]:
        """Yield what a command said whose beginning is on an earlier page."""
        if not self._is_told(event):
            bad = event.data.get("kind") in ("error", "failure")
            yield Note(place(event), gettext("Command done"), facts.brief(event.data.get("text")) or "", bad=bad)

    def _summary(self, event: EventView) -> Iterator[Card]:
        replaced = len(loose.items(event.data.get("shadowedSeqs")))
        label = gettext("Compacted: a summary took the place of what came before")
        if replaced:
            label = ngettext(
                "Compacted: a summary took the place of %(num)s event",
                "Compacted: a summary took the place of %(num)s events",
                replaced,
            )
        tokens = loose.integer(event.data.get("shadowedTokenCount"))
        text = gettext("%(usage)s tokens", usage=wording.compact(tokens)) if tokens else ""
        body = bodies.markdown(loose.texts(event.data.get("summary")), self._allowance)
        yield Border(place(event), "compaction", label, text, body)

    def _seed(self, event: EventView) -> Iterator[Card]:
        session = self._page.session
        is_fork = session.is_seeded and event.ordinal <= session.inherited_count
        if event.data.get("inherited") is True or event.inherited or is_fork:
            yield Border(place(event), "fork", gettext("Forked here: all above was inherited"), parent=True)
        else:
            yield Border(place(event), "resume", gettext("Resumed here"))

    def _descriptor(self, event: EventView) -> Iterator[Card]:
        names = ("label", "mode", "agentModel", "agentReasoningEffort")
        told = [facts.worded(event, name) for name in names]
        yield Border(place(event), "subagent", gettext("Subagent"), " · ".join(filter(None, told)), parent=True)

    def _subagent(self, event: EventView) -> Iterator[Card]:
        child_id = loose.string(event.data.get("childId"))
        child = self._children.get(child_id or "")
        yield Subagent(
            place(event),
            facts.brief(event.data.get("label")) or gettext("unnamed"),
            child_id if child else None,
            facts.worded(event, "mode"),
            known=child is not None,
            title=markup.clip(child.title, facts.LABEL_CHARS) if child and child.title else None,
            said=bodies.markdown(child.said, self._allowance) if child and child.said else None,
        )

    def _end(self, event: EventView) -> Iterator[Card]:
        told = facts.ending(event)
        if told:
            yield Border(place(event), "end", *told)

    def _border(self, event: EventView) -> Iterator[Card]:
        shown = eventtypes.shown(event.type)
        yield Border(place(event), "directory", shown.said, facts.note(event, shown))

    def _note(self, event: EventView) -> Iterator[Card]:
        shown = eventtypes.shown(event.type)
        yield Note(place(event), shown.said, facts.note(event, shown), bad=shown.bad)

    def _retry(self, event: EventView) -> Iterator[Card]:
        """Yield why a request is tried again: the failure itself, where no failed attempt has told it."""
        message = None if event.turn in self._attempted else facts.brief(loose.at(event.data, "failure.message"))
        said = " · ".join(filter(None, [message, facts.retry(event)]))
        yield Note(place(event), eventtypes.shown(event.type).said, said, bad=True)

    def _raw(self, event: EventView) -> Iterator[Card]:
        yield Raw(place(event), bodies.data(event.data, self._allowance))


def _damaged(note: DamageNote) -> str:
    message = markup.clip(reasons.said(note.message), facts.LABEL_CHARS)
    if note.line is None:
        return gettext("%(problem)s (byte %(offset)s)", problem=message, offset=note.offset)
    return gettext(
        "%(problem)s (byte %(offset)s, line %(line)s)", problem=message, offset=note.offset, line=note.line
    )


def _number(group: list[EventView]) -> int | None:
    return next((event.turn for event in reversed(group) if event.turn is not None), None)


def _is_lead_in(group: list[EventView]) -> bool:
    """Say whether events before a turn's start belong to it: what was queued just before it began."""
    return all(event.type == "agent/inbox/spliced" for event in group)
