"""The events of a session as JSON, NDJSON and Markdown."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from sessiongraph_web import exporttext, filters, logs
from sessiongraph_web.access import OWNER, Caller, workspaces
from sessiongraph_web.answers import SessionSummary
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.export import Download, Source
from sessiongraph_web.models import Event, Instant
from sessiongraph_web.schema import log_id
from tests import products
from tests.attachments import image_block
from tests.builders import Log
from tests.shared import shared_folders

SECRET = "gh" + "p_" + "a1B2c3D4" * 5
MARKER = "[masked:github-token]"


def download(log: Log, path: Path, form: exporttext.Format, *, redact: bool = False) -> Download:
    source = Source(log_id(os.fsencode(path)), path, log.id, log.cwd, log.version)
    summary = SessionSummary(
        log_id=source.log_id,
        id=log.id,
        title="A <title>",
        cwd=log.cwd,
        created_at=Instant(0),
        last_at=None,
        version=log.version,
        inherited_count=2,
    )
    return exporttext.text_download(source, summary, form, redact=redact, limits=logs.Limits())


def text(log: Log, path: Path, form: exporttext.Format, *, redact: bool = False) -> str:
    return b"".join(download(log, path, form, redact=redact).chunks).decode()


def records(ndjson: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ndjson.splitlines()]


def small(store: Path) -> tuple[Log, Path]:
    """Write a session of four events and a damaged line."""
    log = Log(id="s/1", created_at=0)
    log.event("turn/start", {"turn": 1})
    asked = log.user(f"key {SECRET}")
    log.raw(b"{broken\n")
    log.assistant("an answer", usage=None)
    log.replace("user/message", {"content": []}, asked, asked)
    return log, log.write(store)


def test_json_is_one_object_of_normalised_events(store: Path) -> None:
    """Times are ISO 8601, surface operations are spelled alike for all generations, damage is told."""
    log, path = small(store)

    found = download(log, path, "json")
    value = json.loads(b"".join(found.chunks))

    assert (found.filename, found.media_type) == ("dsh-session-s_1.json", "application/json; charset=utf-8")
    assert list(value) == ["ok", "session", "events", "damage", "counts"]
    assert (value["session"]["id"], value["session"]["created_at"]) == ("s/1", "1970-01-01T00:00:00.000Z")
    last = value["events"][-1]
    assert last == {
        "ordinal": 3,
        "seq": 3,
        "type": "user/message",
        "time": "1970-01-01T00:00:04.000Z",
        "turn": 1,
        "inherited": False,
        "surface_op": {"op": "replace", "start_seq": 1, "end_seq": 1},
        "source_event_seqs": [1],
        "data": {"content": []},
    }
    assert [(event["seq"], event["inherited"]) for event in value["events"]] == [
        (0, True),
        (1, True),
        (2, False),
        (3, False),
    ]
    assert [(note["code"], note["ordinal"]) for note in value["damage"]] == [("bad_line", 2)]
    assert value["counts"] == {"events": 4, "damaged": 1, "masked": 0}


def test_ndjson_has_the_same_in_log_order(store: Path) -> None:
    """Each line is told apart by `record`; damage stands where it is, and the end proves that nothing was cut."""
    log, path = small(store)

    found = records(text(log, path, "ndjson"))
    whole = json.loads(text(log, path, "json"))

    kinds = ["session", "event", "event", "damage", "event", "event", "end"]
    assert [record.pop("record") for record in found] == kinds
    assert found[0] == whole["session"]
    assert [record for record, kind in zip(found, kinds, strict=True) if kind == "event"] == whole["events"]
    assert (found[3], found[-1]) == (whole["damage"][0], whole["counts"])


@pytest.mark.parametrize("form", ["md", "json", "ndjson"])
def test_secrets_are_masked_in_every_form(store: Path, form: exporttext.Format) -> None:
    """What is masked is counted; without masking the log says what it says."""
    log, path = small(store)

    masked = text(log, path, form, redact=True)

    assert SECRET not in masked
    assert SECRET in text(log, path, form)
    told = MARKER.replace("[", "\\[").replace("]", "\\]") if form == "md" else MARKER
    assert told in masked
    assert ("were masked: 1" if form == "md" else '"masked":1') in masked


def test_a_transcript_holds_prompts_answers_and_folded_tools(store: Path) -> None:
    """Context and reasoning stay out; calls are told with their results, unanswered ones without."""
    log = Log(id="s1", created_at=0)
    log.turn("Do <b>it</b>", "# Done\n\n**well**", [("bash", '{"command":"ls -l"}', "a\n```\n</details>\nb")])
    log.start_turn("again")
    log.user("injected", kind="runtime-context")
    log.assistant("", [("c9", "read", '{"path":"x"}')], reasoning="hidden thought")
    log.call("c9", "read", '{"path":"x"}')
    log.todo(("write *tests*", "completed"), ("ship", "pending"))
    log.event(
        "user/message", {"content": [image_block("a" * 64)], "source": {"kind": "user"}}, surfaceOp="append"
    )
    log.end_turn(kind="aborted")
    path = log.write(store)

    written = text(log, path, "md")

    assert written.partition("## Turn 1")[0] == (
        "# A \\<title\\>\n\n- Session: `s1`\n- Workspace: `/w/a`\n- Begun: 1970-01-01T00:00:00.000Z\n"
        "- Last activity: unknown\n- Models: none\n- Turns, tool calls: 0, 0 (0 failed)\n\n"
        "Reasoning and what the harness injected are left out, attachments are only named: "
        "the ZIP has everything.\n\n"
    )
    assert written.partition("## Turn 1")[2].partition("\n\n")[2] == (
        "### Prompt\n\nDo \\<b\\>it\\</b\\>\n\n"
        "<details><summary>bash ls -l — done</summary>\n\n```bash\nls -l\n```\n\nOutput:\n\n"
        "````\na\n```\n</details>\nb\n````\n\n</details>\n\n"
        "### Answer (mock-1)\n\n#### Done\n\n**well**\n\n"
        "## Turn 2 (1970-01-01T00:00:16.000Z)\n\n### Prompt\n\nagain\n\n"
        "To do:\n\n- [x] write \\*tests\\*\n- [ ] ship\n\n"
        f"### Prompt\n\n\n\n> **Image:** `sha256:{'a' * 64}`\n\n"
        '<details><summary>read x — no result</summary>\n\n```json\n{"path":"x"}\n```\n\n</details>\n\n'
        "> **The turn ended:** aborted\n\n---\n\nEnd of the transcript.\n\n"
    )


HOSTILE = (
    "</details>\n\n# x\n\n## Turn 9\n\n### Prompt\n<script>a</script> ![](http://e/x.png)\n```\n~~~\n    - [ ] z"
)


def test_a_hostile_session_writes_no_structure_of_its_own(store: Path) -> None:
    """Whatever a log says, and wherever: headings, folds and HTML of the document are ours alone."""
    log = Log(id="</details>\n# `x", cwd="/w/\n\n## `y", created_at=0)
    log.turn(HOSTILE, HOSTILE, [(HOSTILE, HOSTILE, HOSTILE), ("bash", json.dumps({"command": HOSTILE}), HOSTILE)])
    log.todo((HOSTILE, HOSTILE))
    log.event("subagent/catalog", {"label": HOSTILE, "childId": HOSTILE})
    log.event("compaction/summary", {"summary": [{"type": "text", "text": HOSTILE}]})
    log.assistant("", [("c", HOSTILE, HOSTILE)])
    log.call("c", HOSTILE, HOSTILE)
    log.result("c", HOSTILE, error=(HOSTILE, HOSTILE))
    block = image_block(HOSTILE)
    block["attachment"]["name"] = HOSTILE
    log.event("user/message", {"content": [block], "source": {"kind": "user"}}, surfaceOp="append")
    log.end_turn(kind=HOSTILE)
    path = log.write(store)

    tokens = MarkdownIt("commonmark", {"html": True}).parse(text(log, path, "md"))

    spans = [child for token in tokens for child in token.children or []]
    assert not [token for token in spans if token.type in ("html_inline", "image", "link_open")]
    blocks = [token.content.strip() for token in tokens if token.type == "html_block"]
    folds = [block for block in blocks if block != "</details>"]
    assert len(blocks) == 2 * len(folds) == 8
    assert all(block.startswith("<details><summary>") and block.count("<") == 3 for block in folds)
    headings = [
        tokens[at + 1].content
        for at, token in enumerate(tokens)
        if token.tag in ("h1", "h2", "h3") and token.nesting == 1
    ]
    assert headings[0] == "A \\<title\\>"
    assert {heading.split(" (")[0] for heading in headings[1:]} == {"Turn 1", "Prompt", "Answer"}


@pytest.mark.parametrize("form", ["md", "json", "ndjson"])
def test_a_log_that_goes_away_cuts_the_stream(store: Path, form: exporttext.Format) -> None:
    """The head is sent before the log is opened; what comes then is a failure, never an end."""
    log, path = small(store)
    chunks = download(log, path, form).chunks
    assert b"s/1" in next(chunks)
    path.unlink()

    with pytest.raises(SessionGraphError, match="PERSISTENCE_FAILED"):
        next(chunks)


def test_another_session_in_the_same_place_cuts_the_stream(store: Path) -> None:
    """What is read is checked to be what was authorized."""
    log, path = small(store)
    chunks = download(log, path, "ndjson").chunks
    next(chunks)
    path.write_bytes(Log("/w/b", id="s/1").turn("foreign", "text").to_bytes())

    with pytest.raises(SessionGraphError, match="SOURCE_CONFLICT"):
        list(chunks)


@pytest.mark.parametrize("form", ["md", "json", "ndjson"])
def test_a_long_session_is_told_in_constant_memory(store: Path, form: exporttext.Format) -> None:
    """Six megabytes pass through three."""
    log = Log()
    for _ in range(60):
        log.turn("x" * 1000, "y" * 1000, [("bash", "{}", "output\n" * 14_000)])
    path = log.write(store)
    log.frames.clear()
    tracemalloc.start()
    try:
        size = sum(len(chunk) for chunk in download(log, path, form, redact=True).chunks)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 5_500_000
    assert peak < 3_000_000


@pytest.mark.parametrize(
    ("caller", "masked"), [(OWNER, False), (workspaces("/w/a"), True)], ids=["owner", "scoped"]
)
def test_everyone_but_the_owner_gets_secrets_masked(store: Path, caller: Caller, masked: bool) -> None:
    """The operation decides, not the request."""
    log, _ = small(store)
    with products.indexed(store) as product:
        for form in ("md", "json", "ndjson"):
            request = filters.ExportRequest(id=log.id, format=form)
            body = b"".join(product.export(caller, request).chunks)
            assert (SECRET.encode() in body) is not masked


def test_texts_hold_one_session(store: Path) -> None:
    """Descendants are for the archive; asking for both is a 400 that names the parameter."""
    log, _ = small(store)
    with products.indexed(store) as product, pytest.raises(SessionGraphError) as caught:
        product.export(OWNER, filters.ExportRequest(id=log.id, format="md", descendants=True))
    assert (caught.value.meaning.status, caught.value.fields) == (400, {"parameter": "descendants"})


@pytest.mark.shared
@pytest.mark.parametrize("store", shared_folders("genuine", "*sessions*"), ids=lambda path: path.name)
def test_genuine_sessions_are_told_whole(store: Path) -> None:
    """Every event of every genuine log is in its JSON and NDJSON; its transcript does nothing."""
    with products.opened(store) as product:
        for found in logs.discover(store).logs:
            header = logs.peek_header(found.path)
            session_id = getattr(header, "id", None)
            if session_id is None:
                continue
            stored = [unit for unit in logs.read(found.path) if isinstance(unit, Event)]
            chunks = {}
            for form in ("json", "ndjson", "md"):
                request = filters.ExportRequest(id=session_id, log_id=found.log_id, format=form)
                chunks[form] = b"".join(product.export(OWNER, request).chunks)
            value = json.loads(chunks["json"])
            assert [(event["seq"], event["type"]) for event in value["events"]] == [
                (e.seq, e.type) for e in stored
            ]
            kinds = [record["record"] for record in records(chunks["ndjson"].decode())]
            assert kinds.count("event") == len(stored)
            tokens = MarkdownIt("commonmark", {"html": True}).parse(chunks["md"].decode())
            spans = [child for token in tokens for child in token.children or []]
            assert not [token for token in spans if token.type in ("html_inline", "image")]
