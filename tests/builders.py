"""The only way tests make logs: one set of calls, written as generation 0, 3 or 4 would write them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import zstandard

from sessiongraph_web.logs import folder_name, project_key

START_MS: Final = 1_790_000_000_000
_COMPRESSOR: Final = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)
_NUMBERS: Final = itertools.count(1)
_SYSTEM_PLUGIN: Final = {"kind": "plugin", "plugin": "@deepseek-ai/dsh-system-prompt"}
_MODEL: Final = {"kind": "model", "provider": "mock", "model": "mock-1"}


def compress(text: bytes, *, content_size: bool = False, checksum: bool = True, window_log: int = 0) -> bytes:
    """Return one frame, by default as dsh writes it: with a checksum, without a content size."""
    if not content_size and checksum and not window_log:
        return _COMPRESSOR.compress(text)
    parameters = zstandard.ZstdCompressionParameters(
        write_checksum=checksum, write_content_size=content_size, window_log=window_log
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(text)


def blocks(*parts: bytes | tuple[int, int], content_size: int | None = None, window: int = 0x58) -> bytes:
    """Return a frame of hand-made blocks: stored bytes, or (byte, count) for a run of one byte; no checksum."""
    size = b"" if content_size is None else content_size.to_bytes(4, "little")
    made = [b"\x28\xb5\x2f\xfd", bytes([0x00 if content_size is None else 0x80, window]), size]
    for number, part in enumerate(parts, 1):
        last = number == len(parts)
        length, kind, body = (part[1], 1, bytes([part[0]])) if isinstance(part, tuple) else (len(part), 0, part)
        made.append((last | kind << 1 | length << 3).to_bytes(3, "little") + body)
    return b"".join(made)


def with_dictionary(text: bytes) -> bytes:
    """Return a frame that only its own dictionary decodes."""
    samples = [
        line({"type": "user/message", "seq": number, "data": {"x": number**2}}) * 5 for number in range(400)
    ]
    return zstandard.ZstdCompressor(dict_data=zstandard.train_dictionary(2048, samples)).compress(text)


def skippable(payload: bytes) -> bytes:
    """Return a skippable frame."""
    return b"\x50\x2a\x4d\x18" + len(payload).to_bytes(4, "little") + payload


def line(value: object) -> bytes:
    """Return a value as one line of a log, non-ASCII characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


class Log:
    """A log in the making. Calls append events; `frame` ends the current append; `write` puts it into a store."""

    def __init__(
        self,
        cwd: str | None = "/w/a",
        *,
        id: str | None = None,  # noqa: A002 - as the header spells it
        version: int = 4,
        created_at: int | None = None,
        parent: str | None = None,
        seeded_from: Log | None = None,
        origin: str | None = None,
        preset: str | None = None,
    ) -> None:
        self.cwd = cwd
        self.id = id or f"session-{next(_NUMBERS):032x}"
        self.version = version
        self.created_at = START_MS if created_at is None else created_at
        self.time = self.created_at
        self.seq = 0
        self.turns = 0
        self.events: list[dict[str, Any]] = []
        self.frames: list[bytes] = []
        self._pending: list[bytes] = []
        self._written = 0
        self._calls: dict[str, int] = {}
        if seeded_from is not None:
            assert seeded_from.version == version, "a fork has the generation of its parent"
            parent = parent or seeded_from.id
        self._head(parent, seeded_from, origin, preset)
        if seeded_from is not None:
            self._inherit(seeded_from)

    @classmethod
    def verbatim(cls, header: dict[str, Any], events: Sequence[Any]) -> Log:
        """Return a log of exactly this header and these event lines, whatever they say."""
        cwd, identity, version = (header.get(key) for key in ("cwd", "id", "version"))
        made = cls(
            cwd if isinstance(cwd, str) else None,
            id=identity if isinstance(identity, str) else None,
            version=version if isinstance(version, int) else 0,
        )
        made.frames = [line(header)]
        for event in events:
            made.raw(line(event))
        return made

    def _head(self, parent: str | None, seed: Log | None, origin: str | None, preset: str | None) -> None:
        header: dict[str, Any] = {"type": "session", "version": self.version, "id": self.id}
        header |= {"createdAt": self.created_at}
        optional = {"cwd": self.cwd, "parentSession": parent, "origin": origin, "agentPreset": preset}
        header |= {key: value for key, value in optional.items() if value is not None}
        if self.version >= 2:
            header["isSeeded"] = seed is not None
        elif seed is not None:
            header["seedLength"] = seed.seq
        header["delegationDepth"] = 1 if origin == "subagent" else 0
        self.header = header
        self.raw(line(header))
        self.frame()

    def _inherit(self, parent: Log) -> None:
        """Copy the parent's events verbatim into one frame, then set the border."""
        for event in parent.events:
            self.events.append(event)
            self._pending.append(line(event))
        self.seq, self.turns, self._calls = parent.seq, parent.turns, dict(parent._calls)
        self.time = max(self.time, parent.time)
        self.event("session/end-seed", {"inherited": True} if self.version >= 2 else {})
        self.frame()

    def event(self, kind: str, data: Any, **envelope: Any) -> int:
        """Append an event and return its seq. `envelope` adds or overrides keys beside `data`."""
        seq = envelope.pop("seq", self.seq)
        self.time = envelope.pop("time", self.time + 1000)
        self._push({"type": kind, "seq": seq, "time": self.time, "data": data, **envelope})
        self.seq = seq + 1
        return int(seq)

    def raw(self, line_bytes: bytes) -> None:
        """Append bytes as they are; a line needs its own newline."""
        self._pending.append(line_bytes)

    def frame(self) -> None:
        """End the current append: what was added since the last one becomes one frame."""
        if self._pending:
            self.frames.append(b"".join(self._pending))
            self._pending = []

    def user(self, text: str, kind: str = "user") -> int:
        """Append a user-role message: a human's, or one injected by the harness (any other `kind`)."""
        source: dict[str, Any] = {"kind": kind}
        if self.version < 4 and kind == "runtime-context":
            source = {**_SYSTEM_PLUGIN, "form": "snapshot", "sections": []}
        message = {"content": [_text(text)], "source": source, "role": "user", "id": self._message_id()}
        return self.event("user/message", message, surfaceOp="append")

    def system(self, text: str) -> int:
        """Append the system prompt; generation 0 has it in the request header, off the surface."""
        if self.version == 0:
            return self.event("request/header", {"header": {"system": text}, "reason": "initial"})
        source = {"kind": "system-prompt"} if self.version >= 4 else dict(_SYSTEM_PLUGIN)
        message = {"role": "system", "content": [_text(text)], "source": source, "id": self._message_id()}
        return self.event("system/message", self._step() | {"message": message}, surfaceOp="append")

    def assistant(
        self,
        text: str,
        calls: Sequence[tuple[str, str, str]] = (),
        reasoning: str | None = None,
        usage: tuple[int, int] | None = (100, 10),
    ) -> int:
        """Append an answer: `calls` holds (call id, tool name, arguments as JSON text)."""
        content = [{"type": "reasoning", "text": reasoning}] if reasoning else []
        content += [_text(text)] if text else []
        content += [{"type": "tool-call", "id": i, "name": n, "arguments": a} for i, n, a in calls]  # type: ignore[misc]
        message = {"role": "assistant", "content": content, "source": _MODEL, "id": self._message_id()}
        data: dict[str, Any] = self._step() | {"message": message}
        if usage:
            data["usage"] = {"inputTokens": usage[0], "outputTokens": usage[1], "totalTokens": sum(usage)}
        if self.version >= 2:
            data["stream"] = _stream(text, self.time)
            return self.event("assistant/message", data, surfaceOp="append")
        first = self._chunk_rows(text)
        return self.event("assistant/message", data, sourceEventSeqs=[[first, self.seq - 1]], surfaceOp="append")

    def _chunk_rows(self, text: str) -> int:
        """Append what generation 0 writes while an answer streams; return the seq of its first event."""
        chunk = {"type": "block-start", "index": 0, "blockType": "text"}
        first = self.event("assistant/chunk", self._step() | {"chunk": chunk})
        texts = [text[at : at + 8] for at in range(0, len(text), 8)] or [""]
        data = self._step() | {"index": 0, "dt": [1] * (len(texts) - 1), "texts": texts}
        self._push({"type": "text-chunks", "seq0": self.seq, "time0": self.time, "data": data})
        self.seq += len(texts)
        finish = {"type": "finish", "reason": {"kind": "stop"}}
        self.event("assistant/chunk", self._step() | {"chunk": finish})
        return first

    def call(self, call_id: str, name: str, arguments: str = "{}") -> int:
        """Append the record that a tool was called."""
        data = self._step() | {"callId": call_id, "name": name, "arguments": arguments}
        self._calls[call_id] = self.event("tool/call", data)
        return self._calls[call_id]

    def result(
        self,
        call_id: str,
        text: str,
        error: tuple[str, str] | None = None,
        *,
        replaces: int | None = None,
        message_id: str | None = None,
    ) -> int:
        """Append a tool's result; `error` is (name, code). `replaces` prunes the result with that seq."""
        data = self._step() | {"message": self._result_message(call_id, text, error is not None, message_id)}
        if error:
            data["error"] = {"name": error[0], "code": error[1]}
        if replaces is not None:
            return self.replace("tool/result", data, replaces, replaces)
        envelope = {"sourceEventSeqs": [self._calls[call_id]]} if call_id in self._calls else {}
        return self.event("tool/result", data, **envelope, surfaceOp="append")

    def _result_message(self, call_id: str, text: str, failed: bool, message_id: str | None) -> dict[str, Any]:
        source = {"kind": "tool", "callId": call_id}
        identity = {"id": message_id or self._message_id()}
        if self.version >= 4:
            body = {"role": "tool", "source": source, "toolCallId": call_id, "content": [_text(text)]}
            return body | {"isError": failed} | identity
        block = {"type": "tool-result", "toolCallId": call_id, "content": [_text(text)], "isError": failed}
        return {"source": source, "content": [block], "role": "user"} | identity

    def replace(self, kind: str, data: Any, start: int, end: int, sources: Sequence[int] | None = None) -> int:
        """Append an event that takes the place of the surface nodes from `start` to `end`."""
        keys = ("start", "end") if self.version == 0 else ("startSeq", "endSeq")
        operation = {"op": "replace", keys[0]: start, keys[1]: end}
        cited = list(sources) if sources is not None else list(range(start, end + 1))
        return self.event(kind, data, sourceEventSeqs=cited, surfaceOp=operation)

    def compact(self, summary: str, start: int, end: int, sources: Sequence[int]) -> int:
        """Append a compaction checkpoint in place of the nodes from `start` to `end`."""
        kind = "compact-checkpoint"
        message = {
            "content": [_text(summary)],
            "source": {"kind": kind},
            "role": "user",
            "id": self._message_id(),
        }
        return self.replace("user/message", message, start, end, sources)

    def title(self, text: str, kind: str = "fallback") -> int:
        """Append a title."""
        return self.event("session/title", {"title": text, "messageSeqs": [], "source": {"kind": kind}})

    def todo(self, *todos: tuple[str, str]) -> int:
        """Append the whole list of todos: (content, status) each."""
        return self.event("todo/write", {"todos": [{"content": c, "status": s} for c, s in todos]})

    def turn(self, prompt: str, answer: str, tools: Sequence[tuple[str, str, str]] = ()) -> Log:
        """Append a whole turn, its frames cut as dsh does; `tools` holds (name, arguments as JSON, output)."""
        self.start_turn(prompt)
        if tools:
            calls = [(f"call_{self.seq}_{n}", name, args) for n, (name, args, _) in enumerate(tools)]
            self.assistant("", calls)
            for (call_id, name, args), (_, _, output) in zip(calls, tools, strict=True):
                self.call(call_id, name, args)
                self.frame()
                self.result(call_id, output)
            self.event("step/end", self._step())
            self.frame()
            self.event("step/start", {"turn": self.turns, "step": 2})
        self.assistant(answer)
        self.event("step/end", self._step() | ({"step": 2} if tools else {}))
        self.end_turn()
        return self

    def start_turn(self, prompt: str) -> None:
        """Append the beginning of a turn: the queued prompt, the turn, its first step, the human's message."""
        self.turns += 1
        runs_as = f"message-{self.seq + 3}"  # of the prompt below
        queued = {"content": [_text(prompt)], "source": {"kind": "user"}, "role": "user", "id": runs_as}
        self.event("agent/inbox/spliced", {"target": "next-turn", "start": 0, "inserted": [queued]})
        self.event("turn/start", {"turn": self.turns})
        self.frame()
        self.event("step/start", self._step())
        self.user(prompt)
        self.frame()

    def end_turn(self, **reason: Any) -> int:
        """Append the end of a turn, completed unless a `kind` says otherwise."""
        seq = self.event("turn/end", {"turn": self.turns, "reason": reason or {"kind": "completed"}})
        self.frame()
        return seq

    def to_bytes(self, compressed: bool = True, *, first: int = 0) -> bytes:
        """Return the stored bytes of the frames from number `first` on."""
        self.frame()
        return b"".join(compress(text) if compressed else text for text in self.frames[first:])

    def folder(self, store: Path) -> Path:
        """Return where dsh puts this log."""
        project = project_key(self.cwd) if self.cwd else "_no-cwd"
        return store / project / folder_name(self.id)

    def write(self, store: Path, compressed: bool = True) -> Path:
        """Write everything into the store and return the path."""
        base = "session.jsonl" if self.version == 0 else f"session.v{self.version}.jsonl"
        path = self.folder(store) / (base + (".zstd" if compressed else ""))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.to_bytes(compressed))
        self._written = len(self.frames)
        return path

    def append(self, path: Path) -> None:
        """Append to the file the frames since the last `write` or `append`."""
        with path.open("ab") as file:
            file.write(self.to_bytes(path.suffix == ".zstd", first=self._written))
        self._written = len(self.frames)

    def store(self, store: Path, stored: bytes, name: str = "session.v4.jsonl.zstd") -> Path:
        """Write these very bytes where the log belongs and return the path."""
        path = self.folder(store) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(stored)
        return path

    def _push(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        self._pending.append(line(event))

    def _step(self) -> dict[str, Any]:
        return {"turn": self.turns, "step": 1}

    def _message_id(self) -> str:
        return f"message-{self.seq}"


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _stream(text: str, time: int) -> list[dict[str, Any]]:
    """The timed chunks that repeat the text of an answer from generation 2 on."""
    start = {"type": "chunk", "time": time, "chunk": {"type": "block-start", "index": 0, "blockType": "text"}}
    end = {"type": "chunk", "time": time, "chunk": {"type": "block-end", "index": 0, "block": _text(text)}}
    return [start, {"type": "text-chunks", "time0": time, "index": 0, "dt": [], "texts": [text]}, end]
