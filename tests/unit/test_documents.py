"""What events mean: searchable texts, and the facts of a session that add up event by event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import documents, logs, redact
from sessiongraph_web.documents import Digest, Pairs, extract
from sessiongraph_web.models import Event, Header, Text
from tests.builders import Log
from tests.summaries import summarise


def _event(kind: str, data: dict[str, Any]) -> Event:
    return Event(0, 0, kind, 1, data)


def _block(text: object) -> dict[str, object]:
    return {"type": "text", "text": text}


def _result(text: str, **beside: Any) -> Event:
    return _event("tool/result", {"message": {"role": "tool", "content": [_block(text)]}, **beside})


@pytest.mark.parametrize(
    ("kind", "data", "texts"),
    [
        (
            "user/message",
            {"source": {"kind": "user"}, "content": [_block(" a "), _block("b")]},
            [Text("user", "a\nb")],
        ),
        ("user/message", {"source": {"kind": "user"}, "content": "plain"}, [Text("user", "plain")]),
        ("user/message", {"source": {"kind": "runtime-context"}, "content": [_block("x")]}, []),
        ("user/message", {"source": {"kind": "plugin:x"}, "content": [_block("x")]}, []),
        ("user/message", {"source": None, "content": [_block("x")]}, []),
        ("user/message", {"source": {"kind": "user"}, "content": [{"type": "image"}]}, []),
        (
            "assistant/message",
            {
                "message": {
                    "content": [
                        {"type": "reasoning", "text": "hidden"},
                        _block("said"),
                        {"type": "tool-call", "id": "c", "name": "bash", "arguments": "{}"},
                    ]
                },
                "stream": [_block("said")],
            },
            [Text("assistant", "said")],
        ),
        ("tool/call", {"name": "bash", "arguments": '{"a": 1}'}, [Text("tool_call", 'bash\n{"a": 1}', "bash")]),
        ("tool/call", {"name": {"x": 1}, "arguments": [1]}, []),
        ("session/title", {"title": " A title "}, [Text("title", "A title")]),
        ("session/title", {"title": None}, []),
        (
            "todo/write",
            {"todos": [{"content": "one", "status": "pending"}, 3, {"content": "two"}]},
            [Text("todo", "pending\none\ntwo")],
        ),
        ("turn/end", {"reason": {"kind": "completed"}}, []),
        ("turn/end", {"reason": {"kind": "aborted", "reason": {"kind": "user"}}}, [Text("turn_end", "aborted")]),
        (
            "turn/end",
            {"reason": {"kind": "error", "error": {"message": "boom"}}},
            [Text("turn_end", "error\nboom")],
        ),
        ("turn/end", {"reason": {"kind": "error"}}, [Text("turn_end", "error")]),
        ("turn/end", {"reason": {"kind": "max-tokens"}}, [Text("turn_end", "max-tokens")]),
        ("turn/end", {}, []),
        ("system/message", {"message": {"content": [_block("prompt")]}}, []),
        ("request/header", {"header": {"system": "prompt"}}, []),
        ("agent/inbox/spliced", {"inserted": [{"content": [_block("queued")]}]}, []),
        ("never/heard", {"content": [_block("x")]}, []),
    ],
)
def test_texts_of_an_event(kind: str, data: dict[str, Any], texts: list[Text]) -> None:
    """Each event type has its searchable text, or none."""
    assert extract(_event(kind, data), tool_result_chars=100) == texts


@pytest.mark.parametrize("kind", ["user/message", "assistant/message", "tool/call", "tool/result", "todo/write"])
@pytest.mark.parametrize("value", [None, 3, "text", [], {}, [None, 3, []], {"content": {"text": "x"}}])
def test_odd_shapes_have_no_text(kind: str, value: object) -> None:
    """Whatever is not where it should be is no text and no error."""
    data = {"message": value, "content": value, "todos": value, "error": value, "source": value, "arguments": {}}
    assert extract(_event(kind, data), tool_result_chars=-1) == []


def test_a_result_holds_its_error() -> None:
    """The name and code of an error are searchable with the output."""
    event = _result("no such file", error={"name": "FsError", "code": "FS_NOT_FOUND"})
    assert extract(event, tool_result_chars=-1) == [Text("tool_result", "no such file\nFsError\nFS_NOT_FOUND")]


@pytest.mark.parametrize(
    ("limit", "length", "kept", "clipped"),
    [(-1, 5000, 5000, False), (100, 200, 200, False), (100, 201, 203, True), (0, 5, None, False)],
)
def test_long_results_keep_both_ends(limit: int, length: int, kept: int | None, clipped: bool) -> None:
    """A result beyond twice the limit keeps that much of each end, with a mark between."""
    text = "".join(chr(0x4E00 + at) for at in range(length))
    found = extract(_result(text), tool_result_chars=limit)
    if kept is None:
        assert found == []
        return
    assert [(len(each.text), each.clipped) for each in found] == [(kept, clipped)]
    assert found[0].text[:100] == text[:100]
    assert found[0].text[-100:] == text[-100:]


def test_long_arguments_are_clipped() -> None:
    """The first 2,048 characters of a call's arguments are searchable."""
    (text,) = extract(_event("tool/call", {"name": "write", "arguments": "x" * 2049}), tool_result_chars=0)
    assert text == Text("tool_call", "write\n" + "x" * 2048, "write", clipped=True)


def test_the_same_conversation_in_every_generation(store: Path) -> None:
    """Generations 0, 3 and 4 of one conversation have the same texts, totals and injected messages."""
    found = []
    for version in (0, 3, 4):
        log = Log(version=version, id=f"v{version}")
        log.system("you are a harness")
        log.user("sandbox snapshot", kind="runtime-context")
        log.turn(
            "请检查 the build", "好的, done", [("bash", '{"command":"make"}', "ok\n"), ("read", "{}", "文件")]
        )
        log.start_turn("and again")
        log.assistant("", [("c9", "bash", "{}")], reasoning="thinking")
        log.call("c9", "bash")
        log.result("c9", "failed", error=("ToolError", "E_TOOL"))
        log.title("Build check")
        log.end_turn(kind="aborted")
        summary = summarise(log.write(store))
        digest = summary.digest
        injected = [e.data["source"]["kind"] for e in summary.events if e.type == "user/message"]
        totals = (digest.title, digest.turns, digest.tool_calls, digest.tool_errors, digest.models)
        tokens = (digest.input_tokens, digest.output_tokens)
        texts = [(text, digest.tool(event)) for event, text in summary.texts]
        found.append((texts, injected, totals, tokens, len(summary.pairs), summary.codes, summary.fold.fault))
    assert found[0] == found[1] == found[2]
    assert found[0][1] == ["runtime-context", "user", "user"]
    assert found[0][2] == ("Build check", 2, 3, 1, ["mock-1"])
    assert found[0][4:] == (3, [], None)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_fork_counts_what_is_its_own(version: int, store: Path) -> None:
    """What was inherited is in no total; of a fork of a fork, the last border counts."""
    parent = Log(version=version).turn("one", "1", [("bash", "{}", "out")])
    parent.title("The parent's title")
    parent.event("session/end-seed", {})  # the parent was resumed: no border of ours
    child = Log(version=version, seeded_from=parent).turn("two", "2")
    grandchild = Log(version=version, seeded_from=child).turn("three", "3").turn("four", "4")
    for log, own in ((parent, (1, 1, 200)), (child, (1, 0, 100)), (grandchild, (2, 0, 200))):
        digest = summarise(log.write(store)).digest
        assert (digest.turns, digest.tool_calls, digest.input_tokens) == own
        assert digest.title == "The parent's title"
    summary = summarise(grandchild.write(store))
    border = summary.events[summary.digest.inherited_count]
    assert (border.type, border.ordinal) == ("session/end-seed", len(child.events))


def test_a_fork_closes_what_it_inherited_without_failing_itself(store: Path) -> None:
    """A call that was open where the fork was cut is closed after the border: it is in no total of the fork."""
    parent = Log()
    parent.start_turn("one")
    parent.assistant("", [("c1", "bash", "{}")])
    parent.call("c1", "bash")
    child = Log(seeded_from=parent)
    child.result("c1", "unknown", error=("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN"))
    child.end_turn(kind="forked")
    digest = summarise(child.write(store)).digest
    assert (digest.tool_calls, digest.tool_errors) == (0, 0)
    child.start_turn("two")
    child.call("c2", "bash")
    child.result("c2", "no", error=("ToolError", "E_TOOL"))
    digest = summarise(child.write(store)).digest
    assert (digest.tool_calls, digest.tool_errors) == (1, 1)


def test_titles(store: Path) -> None:
    """The last title counts, else the first human prompt on one line, else none."""
    log = Log()
    assert summarise(log.write(store)).digest.title == "untitled"
    log.user("injected", kind="time-context")
    assert summarise(log.write(store)).digest.title == "untitled"
    log.user("  the human\n question " + "x" * 100)
    log.user("another")
    shown = summarise(log.write(store)).digest.title
    assert shown == ("the human question " + "x" * 100)[:79] + "…"
    log.title("First")
    log.title("Second\nline", kind="user")
    log.title("   ")
    assert summarise(log.write(store)).digest.title == "Second line"


def test_a_log_without_turn_events_counts_its_prompts(store: Path) -> None:
    """Prompts stand for turns where no turn was recorded."""
    log = Log()
    log.user("one")
    log.user("injected", kind="goal")
    log.user("two")
    assert summarise(log.write(store)).digest.turns == 2


def test_the_turn_of_an_event(store: Path) -> None:
    """Events belong to the turn they name, else to the open one, else to none."""
    log = Log()
    log.event("permission/preset", {})
    log.turn("one", "1")
    log.title("T")
    log.start_turn("two")
    log.todo(("a", "pending"))
    digest, turns = Digest(), []
    for event in summarise(log.write(store)).events:
        digest.push(event)
        turns.append((event.type, digest.turn))
    assert [turn for kind, turn in turns if kind in ("permission/preset", "session/title")] == [None, None]
    assert [turn for kind, turn in turns if kind in ("user/message", "todo/write")] == [1, 2, 2]
    assert ("turn/end", 1) in turns


def test_a_digest_can_be_carried(store: Path) -> None:
    """Stored as JSON and restored between any two events, a digest ends the same."""
    for version in (0, 4):
        parent = Log(version=version).turn("one", "1", [("bash", "{}", "out")])
        log = Log(version=version, seeded_from=parent).turn("two", "2", [("read", "{}", "text")])
        log.title("T")
        units = list(logs.read(log.write(store)))
        header = next(unit for unit in units if isinstance(unit, Header))
        whole = carried = Digest(header)
        carried = Digest.from_carried(json.loads(json.dumps(Digest(header).to_carried())))
        for event in (unit for unit in units if isinstance(unit, Event)):
            whole.push(event)
            carried = Digest.from_carried(json.loads(json.dumps(carried.to_carried())))
            carried.push(event)
            assert carried.tool(event) == whole.tool(event)
        assert carried.to_carried() == whole.to_carried()
        assert (carried.title, carried.turns, carried.inherited_count > 0) == ("T", 1, True)


def test_synthetic_events_count_nowhere() -> None:
    """Closers that are not in the log change no total, not even the time of the last event."""
    digest = Digest()
    before = digest.to_carried()
    digest.push(Event(0, 0, "tool/result", 9, {"message": {"isError": True}}, "append", synthetic=True))
    assert digest.to_carried() == before


def test_a_pruned_failure_is_one_failure(store: Path) -> None:
    """A rewritten result does not fail twice."""
    log = Log()
    log.call("c", "bash")
    seq = log.result("c", "no", error=("E", "E"), message_id="m")
    log.result("c", "[gone]", error=("E", "E"), replaces=seq, message_id="m")
    summary = summarise(log.write(store))
    assert (summary.digest.tool_errors, summary.fold.fault) == (1, None)


def test_tools_are_remembered_within_bounds() -> None:
    """The newest calls are remembered; an answer to a forgotten one has no tool."""
    digest = Digest()
    for number in range(2000):
        digest.push(Event(number, number, "tool/call", 1, {"callId": f"c{number}", "name": f"t{number}"}))
    answers = [
        Event(0, 0, "tool/result", 1, {"message": {"toolCallId": name}}) for name in ("c1999", "c0", "none")
    ]
    assert [digest.tool(answer) for answer in answers] == ["t1999", None, None]
    assert len(digest.to_carried()["_tools"]) < 1000


def test_pairs_never_guess() -> None:
    """A result answers the one open call with its id; of two open calls with one id it answers neither."""

    def made(kind: str, identity: str) -> Event:
        data = {"callId": identity, "name": "t"} if kind == "tool/call" else {"message": {"toolCallId": identity}}
        return _event(kind, data)

    pairs, found = Pairs(), []
    sequence = [
        "call a",
        "result a",
        "call a",
        "result a",
        "call p",
        "call p",
        "result p",
        "result p",
        "result x",
    ]
    for ordinal, step in enumerate([*sequence, "call b", "turn", "result b"]):
        kind, _, identity = step.partition(" ")
        event = made(f"tool/{kind}", identity) if identity else _event("turn/start", {})
        event.ordinal = ordinal
        found.append(pairs.push(event))
    assert found == [None, 0, None, 2, None, None, None, None, None, None, None, None]


def test_js_white_space_is_trimmed() -> None:
    """What JavaScript trims is trimmed, what it keeps is kept."""
    assert documents.blocks_text(
        [_block("\ufeff\u00a0 x \u2028\u3000"), _block("\u200b"), _block("\x85\x1c")]
    ) == ("x\n\u200b\n\x85\x1c")


@pytest.mark.parametrize("offset", [-30, -12, -1, 0])
@pytest.mark.parametrize("kind", ["tool/call", "tool/result"])
def test_no_half_of_a_secret_stays_at_a_cut(kind: str, offset: int) -> None:
    """A secret that lies across a cut is masked before it is cut, at both ends of a long result."""
    secret = "ghp" + "_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    limit = documents.TOOL_ARGUMENT_CHARS
    before = "x" * (limit + offset - 1) + " "
    text = before + secret + " " + "y" * 9000 + " " + secret + before[::-1]
    data = {"name": "bash", "arguments": text, "message": {"content": [{"type": "text", "text": text}]}}
    event = Event(0, 0, kind, 1000, data)
    found = documents.extract(event, tool_result_chars=limit, mask=lambda t: redact.mask(t)[0])
    assert not any(secret[at : at + 6] in found[0].text for at in range(4, len(secret) - 6))
