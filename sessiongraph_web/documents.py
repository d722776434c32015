"""What events mean: their searchable texts, and the facts of a session that add up event by event."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Self

from sessiongraph_web import outcomes, redact, schema
from sessiongraph_web.models import Event, Header, Replace, Text

TOOL_ARGUMENT_CHARS: Final = 2048
TITLE_CHARS: Final = 80
UNTITLED: Final = "untitled"
_MAX_CALLS: Final = 512  # call ids whose tool is remembered, newest kept
_MAX_NAME_CHARS: Final = 256  # of a name that is remembered once it is masked
_SEAM_CHARS: Final = 8192  # beyond a cut, enough to see the whole of a secret that lies across it
_MAX_INT: Final = 2**63 - 1
# What the original trims: JavaScript's white space, which is not Python's.
_WHITE: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_CLIP_MARK: Final = "\n…\n"
Mask = Callable[[str], str]
TURN_BORDERS: Final = frozenset({"turn/start", "turn/end"})
_IN_TURN: Final = TURN_BORDERS | frozenset(
    {"step/start", "step/end", "assistant/message", "tool/call", "tool/result"}
)


def extract(event: Event, *, tool_result_chars: int, mask: Mask = str) -> list[Text]:
    """Return the searchable texts of an event, at most one of each kind.

    `tool_result_chars` keeps that much of each end of a tool result: 0 nothing, -1 all of it. A result's text has
    no tool: the `Digest` knows which call it answers. `mask` is put to what is clipped before it is clipped, so
    that no half of a secret stays at a cut.
    """
    extractor = _EXTRACTORS.get(event.type)
    return extractor(event.data, tool_result_chars, mask) if extractor else []


def is_human(event: Event) -> bool:
    """Say whether an event is a message that a person wrote; the harness injects others under the same role."""
    return event.type == "user/message" and _kind(event.data.get("source")) == "user"


def message_key(identity: str) -> int:
    """Return what stands for the id of a message in the index, since an id may be any text."""
    return schema.key(identity.encode())


def prompt_key(event: Event) -> int | None:
    """Return the key of the message that a person's prompt is."""
    identity = _string(event.data.get("id")) if is_human(event) else ""
    return message_key(identity) if identity else None


def is_failure(event: Event) -> bool:
    """Say whether an event is the result of a call that failed; one that is rewritten does not fail again."""
    if event.type != "tool/result" or isinstance(event.surface_op, Replace):
        return False
    return outcomes.has_failed(event.data)


def blocks_text(content: object) -> str:
    """Return the text of content blocks: texts, calls and results, in place, each trimmed, one a line."""
    parts: list[str] = []
    _collect(content, parts)
    return _join(parts)


def _join(parts: list[str]) -> str:
    if len(parts) == 1:
        return parts[0].strip(_WHITE)
    trimmed = [part.strip(_WHITE) for part in parts]
    return "\n".join([part for part in trimmed if part])


def _collect(content: object, parts: list[str]) -> None:
    if isinstance(content, str):
        parts.append(content)
        return
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind == "text":
            parts.append(_string(block.get("text")))
        elif kind == "tool-call":
            parts += [_string(block.get("name")), _string(block.get("arguments"))]
        elif kind == "tool-result":
            _collect(block.get("content"), parts)


def _user(data: dict[str, Any], _limit: int, _mask: Mask) -> list[Text]:
    if _kind(data.get("source")) != "user":
        return []
    return _texts("user", blocks_text(data.get("content")))


def _assistant(data: dict[str, Any], _limit: int, _mask: Mask) -> list[Text]:
    message = data.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else ()
    texts = [_string(b.get("text")) for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    return _texts("assistant", _join(texts))


def _tool_call(data: dict[str, Any], _limit: int, mask: Mask) -> list[Text]:
    name, arguments = _string(data.get("name")), _string(data.get("arguments"))
    clipped = len(arguments) > TOOL_ARGUMENT_CHARS
    text = _join([name, _head(arguments, TOOL_ARGUMENT_CHARS, mask) if clipped else arguments])
    return [Text("tool_call", text, mask(name) or None, clipped)] if text else []


def _tool_result(data: dict[str, Any], limit: int, mask: Mask) -> list[Text]:
    if limit == 0:
        return []
    message, error = data.get("message"), data.get("error")
    content = message.get("content") if isinstance(message, dict) else None
    text = blocks_text(content)
    if isinstance(error, dict):
        text = _join([text, _string(error.get("name")), _string(error.get("code"))])
    if limit > 0 and len(text) > 2 * limit:
        clipped = _head(text, limit, mask) + _CLIP_MARK + _tail(text, limit, mask)
        return [Text("tool_result", clipped, clipped=True)]
    return _texts("tool_result", text)


def _todo(data: dict[str, Any], _limit: int, _mask: Mask) -> list[Text]:
    todos = data.get("todos")
    items = [todo for todo in todos if isinstance(todo, dict)] if isinstance(todos, list) else []
    return _texts("todo", _join([_string(item.get(key)) for item in items for key in ("status", "content")]))


def _turn_end(data: dict[str, Any], _limit: int, _mask: Mask) -> list[Text]:
    reason = data.get("reason")
    kind = _kind(reason)
    if kind == "error" and isinstance(reason, dict):
        error = reason.get("error")
        message = _string(error.get("message")) if isinstance(error, dict) else ""
        return _texts("turn_end", _join(["error", message]))
    return _texts("turn_end", kind if kind in ("aborted", "max-tokens", "interrupted") else "")


def _title(data: dict[str, Any], _limit: int, _mask: Mask) -> list[Text]:
    return _texts("title", _string(data.get("title")).strip(_WHITE))


def _head(text: str, limit: int, mask: Mask) -> str:
    return mask(text[: limit + _SEAM_CHARS])[:limit]


def _tail(text: str, limit: int, mask: Mask) -> str:
    return mask(text[-limit - _SEAM_CHARS :])[-limit:]


def _texts(kind: Any, text: str) -> list[Text]:
    return [Text(kind, text)] if text else []


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _kind(value: object) -> str:
    return _string(value.get("kind")) if isinstance(value, dict) else ""


_EXTRACTORS: Final[dict[str, Callable[[dict[str, Any], int, Mask], list[Text]]]] = {
    "user/message": _user,
    "assistant/message": _assistant,
    "tool/call": _tool_call,
    "tool/result": _tool_result,
    "todo/write": _todo,
    "turn/end": _turn_end,
    "session/title": _title,
}


def turn_of(event: Event, open_turn: int | None) -> tuple[int | None, int | None]:
    """Return the turn that an event belongs to, and the one that is open after it."""
    if event.type not in _IN_TURN:
        return open_turn, open_turn
    stated = event.data.get("turn")
    turn = stated if type(stated) is int and 0 <= stated <= _MAX_INT else open_turn
    if event.type == "turn/start":
        return turn, turn
    return turn, None if event.type == "turn/end" else open_turn


class Digest:
    """The facts of a session so far, masked. What was inherited from a parent is in no count but `events`.

    Push every event in order; closers that are not in the stored log change nothing.
    """

    def __init__(self, header: Header | None = None) -> None:
        self.inherited_count = 0  # records before the last inherited border
        self.events = 0
        self.turns = 0
        self.tool_calls = 0
        self.tool_errors = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.models: list[str] = []
        self.last_at: int | None = None
        self.turn: int | None = None  # of the event that was pushed last
        self.failed = False  # whether that one tells of a failed call
        self._open_turn: int | None = None
        self._title: str | None = None
        self._prompt: str | None = None
        self._has_turns = False
        self._tools: dict[str, str] = {}
        self._inherited_calls: list[str] = []
        self._seed_length = header.seed_length if header else None

    @property
    def title(self) -> str:
        """The last title, else the first human prompt, shortened."""
        return self._title or self._prompt or UNTITLED

    def tool(self, event: Event) -> str | None:
        """Return the tool that a call names, or that a result's call named."""
        if event.type == "tool/call":
            return masked_name(event.data.get("name")) or None
        identity = event.call_id
        return self._tools.get(identity) if identity is not None else None

    def push(self, event: Event) -> None:
        """Take the next event into account."""
        self.turn, self._open_turn = turn_of(event, self._open_turn)
        self.failed = is_failure(event)
        if event.synthetic:
            return
        if self._seed_length is not None or event.type == "session/end-seed":
            self._cross_border(event)
        self.events += event.count
        if event.time is not None:
            self.last_at = event.time
        counter = _COUNTERS.get(event.type)
        if counter:
            counter(self, event)

    def _cross_border(self, event: Event) -> None:
        """Begin to count anew where what was inherited ends: at the last marker, or after `seedLength` events."""
        marked = event.type == "session/end-seed" and event.data.get("inherited") is True
        seeded = self._seed_length is not None and event.seq is not None and event.seq >= self._seed_length
        if not (marked or seeded):
            return
        self._seed_length = None
        self.inherited_count = event.ordinal
        self.turns = self.tool_calls = self.tool_errors = self.input_tokens = self.output_tokens = 0
        self._inherited_calls = list(self._tools)

    def _count_turn(self, _: Event) -> None:
        if not self._has_turns:
            self._has_turns, self.turns = True, 0
        self.turns += 1

    def _count_prompt(self, event: Event) -> None:
        if not is_human(event):
            return
        if not self._has_turns:  # a log without turn events: its prompts stand for them
            self.turns += 1
        if self._prompt is None:
            self._prompt = _shorten(blocks_text(event.data.get("content"))) or None

    def _count_answer(self, event: Event) -> None:
        message, usage = event.data.get("message"), event.data.get("usage")
        source = message.get("source") if isinstance(message, dict) else None
        model = masked_name(source.get("model")) if isinstance(source, dict) else ""
        if model and model not in self.models:
            self.models.append(model)
        if isinstance(usage, dict):
            self.input_tokens = _add(self.input_tokens, usage.get("inputTokens"))
            self.output_tokens = _add(self.output_tokens, usage.get("outputTokens"))

    def _count_call(self, event: Event) -> None:
        self.tool_calls += 1
        identity = event.call_id
        if identity is None:
            return
        self._tools.pop(identity, None)
        self._tools[identity] = masked_name(event.data.get("name"))
        if len(self._tools) > _MAX_CALLS:
            del self._tools[next(iter(self._tools))]

    def _count_result(self, event: Event) -> None:
        # A fork closes calls that it only inherited.
        if self.failed and event.call_id not in self._inherited_calls:
            self.tool_errors += 1

    def _take_title(self, event: Event) -> None:
        title = _shorten(_string(event.data.get("title")))
        if title:
            self._title = title

    def to_carried(self) -> dict[str, Any]:
        """Return the state as JSON values, to go on later."""
        return {name: value for name, value in vars(self).items() if name not in _OF_LAST_EVENT}

    @classmethod
    def from_carried(cls, carried: dict[str, Any]) -> Self:
        """Return the digest that `to_carried` described."""
        digest = cls()
        for name, value in carried.items():
            setattr(digest, name, value)
        return digest


_OF_LAST_EVENT: Final = frozenset({"turn", "failed"})
_COUNTERS: Final[dict[str, Callable[[Digest, Event], None]]] = {
    "turn/start": Digest._count_turn,
    "user/message": Digest._count_prompt,
    "assistant/message": Digest._count_answer,
    "tool/call": Digest._count_call,
    "tool/result": Digest._count_result,
    "session/title": Digest._take_title,
}


class Pairs:
    """Which result answers which call: by call id within a turn; where open calls share an id, none is paired."""

    def __init__(self) -> None:
        self._open: dict[str, list[int]] = {}

    def push(self, event: Event) -> int | None:
        """Take the next event; return the ordinal of the call that it answers, if it surely answers one."""
        if event.type == "turn/start":
            self._open.clear()
        identity = event.call_id
        if identity is None:
            return None
        if event.type == "tool/call":
            self._open.setdefault(identity, []).append(event.ordinal)
            return None
        if isinstance(event.surface_op, Replace):
            return None
        calls = self._open.pop(identity, [])
        return calls[0] if len(calls) == 1 else None


def masked_name(name: object) -> str:
    """Return the name of a tool, a model or the like with known secrets masked, "" for what is no text."""
    if not isinstance(name, str):
        return ""
    return _masked(name) if len(name) <= _MAX_NAME_CHARS else redact.mask(name)[0]


@lru_cache(maxsize=1024)
def _masked(name: str) -> str:
    return redact.mask(name)[0]


def _shorten(text: str) -> str:
    """Return a text on one line, at most `TITLE_CHARS` code points long; what it cuts is masked before."""
    line = " ".join(_head(text, 40 * TITLE_CHARS, lambda whole: redact.mask(whole)[0]).split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"


def _add(total: int, more: object) -> int:
    return min(total + more, _MAX_INT) if type(more) is int and more > 0 else total
