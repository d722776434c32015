"""The one decoder of lines: what is an event, what is a bad line, and that text and numbers come out safe."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessiongraph_web import lines
from sessiongraph_web.models import Event, InvalidSurface, Replace

BOTH = pytest.mark.parametrize("narrow", [False, True])


def _user(text: str, **beside: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    data = {"content": content, "source": {"kind": "user"}, "role": "user", "id": "m"}
    return {"type": "user/message", "seq": 0, "time": 1, "data": data, "surfaceOp": "append", **beside}


def _decode(value: object, *, narrow: bool = False) -> Event:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return lines.decode_event(text, 7, narrow=narrow)


@BOTH
def test_an_event(narrow: bool) -> None:
    """A plain line becomes one event at the ordinal it was given."""
    given = _user("hello", sourceEventSeqs=[], ignorable=True)
    assert _decode(given, narrow=narrow) == Event(
        7, 0, "user/message", 1, given["data"], "append", [], 1, ignorable=True
    )


@BOTH
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"null", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"7", "not a JSON object"),
        (b"{", "not JSON"),
        (b"{}{}", "not JSON"),
        (b'{"type":"a","data":{}} x', "not JSON"),
        (b"\0\0\0\0", "not JSON"),
        (b'{"type":"turn/start","data":{}}\0\0', "not JSON"),
        (b'{"type":"turn/start","data":{"a":"\x01"}}', "not JSON"),
        (b'{"type":"turn/start","data":{"a":"\\q"}}', "not JSON"),
        (b'{"type":"turn/start","data":{"a":NaN}}', "not JSON"),
        (b'{"type":"request/header","data":{"a":Infinity}}', "not JSON"),
        (b'{"type":"request/header","data":{"a":-Infinity}}', "not JSON"),
        (b'{"type":"turn/start","data":{"a":"\xff"}}', "not UTF-8"),
        (b'{"type":"request/header","data":{"a":"\xed\xa0\x80"}}', "not UTF-8"),
        (b'{"type":"request/header","data":{"\xc3\x28":1}}', "not UTF-8"),
        (b"\xff\xfe{\0", "not UTF-8"),
        (b"{}", "without a type"),
        (b'{"data":{}}', "without a type"),
        (b'{"type":null,"data":{}}', "without a type"),
        (b'{"type":5,"seq":0,"data":{}}', "without a type"),
        (b'{"type":"","data":{}}', "without a type"),
        (b'{"type":"turn/start"}', "data is not an object"),
        (b'{"type":"turn/start","data":null}', "data is not an object"),
        (b'{"type":"request/header","data":[]}', "data is not an object"),
        (b'{"type":"never/heard","data":"x"}', "data is not an object"),
        (b'{"type":"session","id":"s","data":{}}', "second header"),
    ],
)
def test_a_bad_line_says_why(line: bytes, reason: str, narrow: bool) -> None:
    """Whatever is no event is refused with its reason, for the index as for pages."""
    with pytest.raises(lines.BadLine, match=reason):
        _decode(line, narrow=narrow)


def _nested(depth: int, kind: str, *, key: str) -> bytes:
    inner = "[" * depth + "]" * depth
    return f'{{"type":"{kind}","seq":0,"time":1,"data":{{"{key}":{inner}}}}}'.encode()


@BOTH
def test_of_a_repeated_key_the_last_counts(narrow: bool) -> None:
    """As in JavaScript, also for the type itself."""
    line = b'{"type":"turn/start","seq":1,"seq":2,"time":1,"data":3,"data":{"turn":1,"turn":2},"type":"turn/end"}'
    assert _decode(line, narrow=narrow) == Event(7, 2, "turn/end", 1, {"turn": 2})


@BOTH
@pytest.mark.parametrize("kind", ["user/message", "request/header", "assistant/message", "never/heard"])
@pytest.mark.parametrize("key", ["content", "stream"])
def test_depth_is_counted_not_tried(kind: str, key: str, narrow: bool) -> None:
    """256 levels are read, 257 are a bad line, wherever they are and however deep the caller's own stack is."""
    if not narrow or kind != "assistant/message":
        assert _decode(_nested(254, kind, key=key), narrow=narrow).type == kind
    for depth in (255, 20_000):
        with pytest.raises(lines.BadLine, match="deeper than 256"):
            _decode(_nested(depth, kind, key=key), narrow=narrow)


@BOTH
def test_brackets_in_strings_are_no_depth(narrow: bool) -> None:
    """Text full of brackets, with escaped quotes between them, nests nothing."""
    text = '[{"' * 500 + "\\" + '"]}' * 3
    event = _decode(_user(text), narrow=narrow)
    assert event.data["content"][0]["text"] == text


@BOTH
@pytest.mark.parametrize(
    ("stored", "read"),
    [
        (r"cut \ud83d", "cut \ufffd"),
        (r"\udc00 low", "\ufffd low"),
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d\ud83d\ude00", "\ufffd😀"),
        (r"a\u0000b", "a\ufffdb"),
        (r"\\u0000", r"\u0000"),
        (r"\\ud83d", r"\ud83d"),
        ("\u2028\u2029\x85", "\u2028\u2029\x85"),
        (r"\u000b\u000c\u001c", "\x0b\x0c\x1c"),
        ("é e\u0301 한 文", "é e\u0301 한 文"),
    ],
)
def test_text_is_made_safe_once(stored: str, read: str, narrow: bool) -> None:
    """Lone surrogates and NUL become U+FFFD; everything else is kept to the code point."""
    line = f'{{"type":"session/title","seq":0,"time":1,"data":{{"title":"{stored}"}}}}'.encode()
    assert _decode(line, narrow=narrow).data["title"] == read


@BOTH
@pytest.mark.parametrize("kind", ["session/title", "request/header"])
def test_a_surrogate_anywhere_costs_nothing_else(kind: str, narrow: bool) -> None:
    """Even in a part that the index skips, or in a key, a lone surrogate spoils no line."""
    line = rf'{{"type":"{kind}","seq":3,"time":1,"data":{{"a\ud800":"\udfff","b":[1]}}}}'.encode()
    event = _decode(line, narrow=narrow)
    assert (event.type, event.seq) == (kind, 3)
    assert event.data == {"a\ufffd": "\ufffd", "b": [1]}


@BOTH
@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775807", -(2**63) + 1),
        ("9223372036854775808", 2.0**63),
        ("123456789012345678901234567890", 123456789012345678901234567890.0),
        ("1" * 5000, None),
        ("1e999", None),
        ("-1e999", None),
        ("1.5e-400", 0.0),
        ("-0", 0),
        ("1e2", 100.0),
    ],
)
def test_numbers_stay_in_bounds(stored: str, read: float | None, narrow: bool) -> None:
    """Integers beyond 63 bits become doubles, as they were where they were written; infinities become null."""
    line = f'{{"type":"todo/write","seq":0,"time":1,"data":{{"n":{stored},"deep":[{{"n":{stored}}}]}}}}'
    data = _decode(line.encode(), narrow=narrow).data
    assert data == {"n": read, "deep": [{"n": read}]}
    assert type(data["n"]) is type(read)
    json.dumps(data, allow_nan=False)


@BOTH
@pytest.mark.parametrize("value", [-1, 2**53, 1.5, "1", None, True, [], 10**30, "absent"])
def test_an_unusable_seq_or_time_is_none(value: object, narrow: bool) -> None:
    """An event keeps its place though its number or time cannot be used."""
    given = {"type": "turn/start", "data": {"turn": 1}}
    if value != "absent":
        given |= {"seq": value, "time": value}
    event = _decode(given, narrow=narrow)
    assert event.seq is None
    assert event.time == (-1 if value == -1 else 1 if value == 1.5 else None)


@BOTH
@pytest.mark.parametrize(("kind", "key"), [("text-chunks", "texts"), ("tool-call-chunks", "args")])
def test_a_packed_row_stands_for_many_events(kind: str, key: str, narrow: bool) -> None:
    """A row of packed deltas has the number and time of the first and counts them all."""
    given = {"type": kind, "seq0": 13, "time0": 99, "data": {"dt": [1, 2], key: ["a", "b", "c"]}}
    event = _decode(given, narrow=narrow)
    assert (event.seq, event.time, event.count) == (13, 99, 3)


@BOTH
@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("append", "append"),
        ({"op": "replace", "start": 1, "end": 3}, Replace(1, 3)),
        ({"op": "replace", "startSeq": 1, "endSeq": 3}, Replace(1, 3)),
        ({"op": "replace", "startSeq": 1}, "replace"),
        ({"op": "replace", "start": 1, "endSeq": 3}, "replace"),
        ({"op": "replace", "start": 1, "end": 3, "x": 1}, "replace"),
        ({"op": "replace", "start": -1, "end": 3}, "replace"),
        ({"op": "insert", "start": 1, "end": 3}, "replace"),
        (None, "invalid"),
        ([], "invalid"),
        (3, "invalid"),
        ("prepend", "invalid"),
    ],
)
def test_surface_operations(value: object, read: object, narrow: bool) -> None:
    """Both spellings of a replacement are one; what is malformed keeps the fold's sentence."""
    found = _decode(_user("x", surfaceOp=value), narrow=narrow).surface_op
    if read in ("replace", "invalid"):
        middle = "an invalid replace surfaceOp" if read == "replace" else "an invalid surfaceOp"
        read = InvalidSurface(f'session event "user/message" carries {middle}')
    assert found == read


@BOTH
@pytest.mark.parametrize(
    ("value", "read"),
    [
        ([1, 2], [1, 2]),
        ([[12, 15]], [12, 13, 14, 15]),
        ([1, [3, 4], 9], [1, 3, 4, 9]),
        ([[4, 4]], [4]),
        ([], []),
        ([[5, 4]], None),
        ([[0, 10**15]], None),
        ([[0, 60_000], [0, 60_000]], None),
        ([1.5], None),
        (["1"], None),
        ([[1, 2, 3]], None),
        ({}, "array"),
        (None, "array"),
    ],
)
def test_sources(value: object, read: object, narrow: bool) -> None:
    """Numbers and inclusive ranges are one list; neither malformed ones nor endless ranges are taken."""
    found = _decode(_user("x", sourceEventSeqs=value), narrow=narrow).source_event_seqs
    if read is None:
        dense = 'session event "user/message" sourceEventSeqs must densely contain non-negative safe integers'
        read = InvalidSurface(dense)
    elif read == "array":
        read = InvalidSurface("sourceEventSeqs on event at seq 0 must be an array when present")
    assert found == read


@BOTH
def test_an_older_tool_result_has_the_newest_shape(narrow: bool) -> None:
    """A result that came as a block of a user-role message becomes a tool-role message with that content."""
    block = {
        "type": "tool-result",
        "toolCallId": "c",
        "content": [{"type": "text", "text": "out"}],
        "isError": True,
    }
    message = {"source": {"kind": "tool", "callId": "c"}, "content": [block], "role": "user", "id": "m"}
    given = {"type": "tool/result", "seq": 0, "time": 1, "data": {"message": message}, "surfaceOp": "append"}
    assert _decode(given, narrow=narrow).data["message"] == {
        "role": "tool",
        "source": {"kind": "tool", "callId": "c"},
        "toolCallId": "c",
        "content": [{"type": "text", "text": "out"}],
        "isError": True,
        "id": "m",
    }


@BOTH
@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"kind": "plugin", "plugin": "@deepseek-ai/dsh-system-prompt"}, "runtime-context"),
        ({"kind": "plugin", "plugin": "compact"}, "compact-checkpoint"),
        ({"kind": "plugin", "plugin": "somebody/else"}, "plugin:somebody/else"),
        ({"kind": "plugin"}, "plugin"),
        ({"kind": "user"}, "user"),
    ],
)
def test_older_sources_have_their_newest_names(source: dict[str, str], kind: str, narrow: bool) -> None:
    """What a plugin injected is named as generation 4 names it."""
    given = _user("x")
    given["data"]["source"] = source
    assert _decode(given, narrow=narrow).data["source"]["kind"] == kind


def test_narrow_reading_leaves_out_what_repeats() -> None:
    """The index gets neither the stream of an answer, nor its replay state, nor a request's tools."""
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "x"}],
        "source": {"kind": "model", "model": "m", "replayState": {"big": 1}},
    }
    data = {"turn": 1, "step": 2, "message": message, "usage": {"inputTokens": 5}, "stream": [{"type": "chunk"}]}
    event = _decode({"type": "assistant/message", "seq": 0, "time": 1, "data": data}, narrow=True)
    assert event.data == {
        "turn": 1,
        "step": 2,
        "message": {
            "role": "assistant",
            "id": None,
            "content": [{"type": "text", "text": "x"}],
            "source": {"kind": "model", "provider": None, "model": "m"},
        },
        "usage": {"inputTokens": 5},
    }
    header = {"type": "request/header", "seq": 0, "time": 1, "data": {"header": {"tools": [1]}}}
    assert _decode(header, narrow=True).data == {}


def _header(**changes: Any) -> bytes:
    header = {"type": "session", "version": 4, "id": "s", "createdAt": 5, "cwd": "/w", "isSeeded": False}
    return json.dumps({k: v for k, v in (header | changes).items() if v != "absent"}).encode()


def test_a_header() -> None:
    """All fields of a header are read."""
    line = _header(parentSession="p", isSeeded=True, origin="subagent", delegationDepth=2, agentPreset="std")
    assert lines.decode_header(line) == lines.Header(
        id="s",
        version=4,
        created_at=5,
        cwd="/w",
        parent_session="p",
        is_seeded=True,
        origin="subagent",
        delegation_depth=2,
        agent_preset="std",
    )


def test_a_seed_length_is_a_seed() -> None:
    """Generation 0 counts what it inherited instead of saying that it did."""
    header = lines.decode_header(_header(version=0, isSeeded="absent", seedLength=41))
    assert (header.is_seeded, header.seed_length) == (True, 41)


@pytest.mark.parametrize(
    ("stored", "cwd", "problem"),
    [
        ('"/w/项目 ☕"', "/w/项目 ☕", None),
        ('"relative"', "relative", None),
        ('"/w/a/"', "/w/a/", None),
        ('"\\ufffd"', "\ufffd", None),
        ("null", None, "no cwd"),
        ('""', None, "empty"),
        ("7", None, "not text"),
        (r'"/w/\ud800"', None, "lone surrogate or NUL"),
        (r'"/w/\u0000"', None, "lone surrogate or NUL"),
    ],
)
def test_the_cwd_is_exact_or_nobodys(stored: str, cwd: str | None, problem: str | None) -> None:
    """A cwd is taken to the code point; one that cannot be a workspace leaves the log to the owner."""
    line = f'{{"type":"session","version":4,"id":"s","createdAt":5,"cwd":{stored}}}'.encode()
    header = lines.decode_header(line)
    assert header.cwd == cwd
    assert (header.cwd_problem is None) == (problem is None)
    assert (problem or "") in (header.cwd_problem or "")


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"session","version":4',
        b'{"type":"user/message","data":{}}',
        b'{"type":"session","version":4,"createdAt":5}',
        b'{"type":"session","id":"","version":4}',
        b'{"type":"session","id":7,"version":4}',
        b"[]",
        b'{"type":"session","id":"\xff"}',
    ],
)
def test_what_is_no_header(line: bytes) -> None:
    """A first line without the type or an id is no header."""
    with pytest.raises(lines.BadLine):
        lines.decode_header(line)


@pytest.mark.parametrize(("stated", "read"), [(3, 3), (7, 7), ("4", 9), (None, 9), ("absent", 9), (-1, 9)])
def test_the_version_comes_from_the_name_where_the_header_has_none(stated: object, read: int) -> None:
    """An unusable version is replaced by that of the file's name."""
    assert lines.decode_header(_header(version=stated), named_version=9).version == read


def test_a_text_is_whole_lines_of_plain_records() -> None:
    """The lines of a text are decoded at once only if each of them is exactly one plain record."""
    record = json.dumps(_user("x")).encode() + b"\n"
    assert [len(lines.decode_text(record * times) or []) for times in (1, 3, 500)] == [1, 3, 500]
    inside = record.replace(b'"data": ', b'"data":\n')
    glued = record.rstrip() + record + b"\n"
    nested = json.dumps(_user("x", sourceEventSeqs=[{}, {}])).encode().replace(b"{}, {}", b"{}\n,{}") + b"\n"
    as_many = (glued[:-1] + inside, inside + glued[:-1], glued[:-1] + nested)  # values and newlines alike
    for odd in (b"\n" + record, record + b"\n", record[:-1], inside, glued, nested, *as_many, b"null\n"):
        assert lines.decode_text(record + odd) is None
