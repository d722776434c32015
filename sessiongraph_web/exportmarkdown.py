"""A session told in Markdown: prompts, answers, and tool calls with their output folded away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sessiongraph_web import attachments, documents, inert, loose, markup, terminal
from sessiongraph_web.answers import DamageNote, instant
from sessiongraph_web.models import Event, Replace

MAX_OPEN_CALLS: Final = 64  # calls that wait for their result; the oldest is told without one
SUMMARY_CHARS: Final = 160
MAX_DAMAGE: Final = 1000  # notes of damage that are told; the rest is counted
_LEFT_OUT: Final = (
    "Reasoning and what the harness injected are left out, attachments are only named: the ZIP has everything."
)
_MAIN_ARGUMENTS: Final = (
    *("command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt"),
)
_SHELLS: Final = frozenset({"bash", "shell", "sh"})

Teller = Callable[[Event], Iterator[str]]


class Markdown:
    """A transcript in the making: blocks of Markdown, in the order of the events that are pushed."""

    def __init__(self) -> None:
        self._turn: int | None = None
        self._headed: int | None = None  # the last turn that has its heading
        self._calls: dict[str, Event] = {}
        self._damaged = 0
        self._tellers: dict[str, Teller] = {
            "user/message": _prompt,
            "assistant/message": _answer,
            "tool/call": self._call,
            "tool/result": self._result,
            "todo/write": _todo,
            "compaction/summary": _compaction,
            "subagent/catalog": _subagent,
            "session/end-seed": _seed,
            "turn/end": self._end_turn,
        }

    def head(self, session: Mapping[str, Any]) -> str:
        """Return what stands above the first turn."""
        facts = [
            ("Session", inert.code(session["id"])),
            ("Workspace", inert.code(session["cwd"]) if session["cwd"] is not None else "none recorded"),
            ("Begun", session["created_at"] or "unknown"),
            ("Last activity", session["last_at"] or "unknown"),
            ("Models", ", ".join(map(inert.code, session["models"])) or "none"),
            (
                "Turns, tool calls",
                f"{session['turns']}, {session['tool_calls']} ({session['tool_errors']} failed)",
            ),
        ]
        lines = "\n".join(f"- {name}: {value}" for name, value in facts)
        return f"# {inert.line(session['title']) or 'untitled'}\n\n{lines}\n\n{_LEFT_OUT}\n\n"

    def event(self, event: Event, turn: int | None) -> Iterator[str]:
        """Yield what an event adds."""
        tell = self._tellers.get(event.type)
        if tell is None:
            return
        if turn != self._turn:
            yield from map(_block, self._unanswered())
            self._turn = turn
        told = list(tell(event))
        if told and turn is not None and turn != self._headed:
            self._headed = turn
            moment = instant(event.time)
            yield _block(f"## Turn {turn}" + (f" ({moment.iso})" if moment else ""))
        yield from map(_block, told)

    def damage(self, note: DamageNote) -> Iterator[str]:
        """Yield a line about what could not be read here."""
        self._damaged += 1
        if self._damaged <= MAX_DAMAGE:
            yield _block(f"> **Damaged here:** {inert.line(note.message)} (byte {note.offset})")

    def end(self, masked: int) -> Iterator[str]:
        """Yield what stands below the last turn."""
        yield from map(_block, self._unanswered())
        if self._damaged > MAX_DAMAGE:
            yield _block(f"> {self._damaged - MAX_DAMAGE} more damaged places are not told here.")
        secrets = f" Known secrets were masked: {masked}." if masked else ""
        yield _block(f"---\n\nEnd of the transcript.{secrets}")

    def _call(self, event: Event) -> Iterator[str]:
        if event.call_id is None:
            yield _tool(event, None)
            return
        self._calls[event.call_id] = event
        if len(self._calls) > MAX_OPEN_CALLS:
            yield _tool(self._calls.pop(next(iter(self._calls))), None)

    def _result(self, event: Event) -> Iterator[str]:
        if not isinstance(event.surface_op, Replace):  # that one only shortens a result already told
            yield _tool(self._calls.pop(event.call_id or "", None), event)

    def _end_turn(self, event: Event) -> Iterator[str]:
        yield from self._unanswered()
        kind = loose.string(loose.at(event.data, "reason.kind")) or "completed"
        if kind != "completed":
            yield f"> **The turn ended:** {inert.line(markup.clip(kind, SUMMARY_CHARS))}"

    def _unanswered(self) -> Iterator[str]:
        calls, self._calls = self._calls, {}
        for call in calls.values():
            yield _tool(call, None)


def _prompt(event: Event) -> Iterator[str]:
    if documents.is_human(event):
        yield "### Prompt"
        yield inert.literal(loose.texts(event.data.get("content")))
        yield from _attached(event)


def _answer(event: Event) -> Iterator[str]:
    message = loose.mapping(event.data.get("message"))
    text = loose.texts(message.get("content"))
    if not text.strip():
        return
    model = loose.string(loose.at(message, "source.model"))
    yield "### Answer" + (f" ({inert.line(markup.clip(model, SUMMARY_CHARS))})" if model else "")
    yield inert.rewrite(text)
    if event.data.get("interrupted") is True:
        yield "> **Interrupted here.**"


def _tool(call: Event | None, result: Event | None) -> str:
    """Return a call and its result, folded behind a line that says what came of it."""
    name = (loose.string(call.data.get("name")) if call else None) or "tool"
    arguments = loose.decoded(call.data.get("arguments")) if call else None
    blocks = [*_input(name, call, arguments), *(_output(result) if result else ())]
    about = " ".join(filter(None, [name, _main(arguments)]))
    return inert.folded(f"{markup.clip(about, SUMMARY_CHARS)} — {_outcome(result)}", blocks)


def _input(name: str, call: Event | None, arguments: object) -> Iterator[str]:
    if call is None:
        return
    command = loose.mapping(arguments).get("command")
    if name in _SHELLS and isinstance(command, str):
        yield inert.fence(command, "bash")
    elif given := loose.string(call.data.get("arguments")):
        yield inert.fence(given, "" if arguments is None else "json")


def _output(result: Event) -> Iterator[str]:
    text = terminal.plain(loose.texts(loose.at(result.data, "message.content")))
    if text.strip():
        yield "Output:"
        yield inert.fence(text)
    yield from _attached(result)


def _main(arguments: object) -> str:
    fields = loose.mapping(arguments)
    value = next((fields[name] for name in _MAIN_ARGUMENTS if isinstance(fields.get(name), str)), "")
    return " ".join(terminal.plain(value[: SUMMARY_CHARS * 2]).split())


def _outcome(result: Event | None) -> str:
    if result is None:
        return "no result"
    error = loose.mapping(result.data.get("error"))
    if error or loose.at(result.data, "message.isError") is True:
        return markup.clip(f"failed {loose.string(error.get('code')) or ''}".strip(), SUMMARY_CHARS)
    return "done"


def _todo(event: Event) -> Iterator[str]:
    todos = [loose.mapping(todo) for todo in loose.items(event.data.get("todos"))]
    marks = ("x" if todo.get("status") == "completed" else " " for todo in todos)
    texts = (inert.line(loose.said(todo.get("content") or "")) for todo in todos)
    lines = [f"- [{mark}] {text}" for mark, text in zip(marks, texts, strict=True)]
    if lines:
        yield "To do:"
        yield "\n".join(lines)


def _compaction(event: Event) -> Iterator[str]:
    yield "> **Compacted here:** a summary took the place of what the model had seen."
    text = loose.texts(event.data.get("summary"))
    if text.strip():
        yield inert.folded("What the summary says", [inert.rewrite(text)])


def _subagent(event: Event) -> Iterator[str]:
    label = loose.string(event.data.get("label")) or "unnamed"
    child = loose.string(event.data.get("childId"))
    named = f" {inert.code(markup.clip(child, SUMMARY_CHARS))}" if child else ""
    yield f"> **Subagent:** {inert.line(markup.clip(label, SUMMARY_CHARS))}{named}"


def _seed(event: Event) -> Iterator[str]:
    inherited = event.data.get("inherited") is True
    yield "> **Forked here:** all above was inherited." if inherited else "> **Resumed here.**"


def _attached(event: Event) -> Iterator[str]:
    for reference in attachments.cited(event):
        name = f" {inert.code(reference.name)}" if reference.name else ""
        yield f"> **{reference.kind.capitalize()}:**{name} {inert.code(reference.original)}"


def _block(text: str) -> str:
    return f"{text}\n\n"
