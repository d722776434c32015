"""A store in which every field that reaches a reader tries to act: scripts, links, terminals, spreadsheets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.attachments import file_block, image_block, put_attachment
from tests.builders import Log

# What would be there if one of them acted.
FLAG: Final = "pwned"
ELSEWHERE: Final = "evil.example"
WORD: Final = "heron"  # in every text, to be searched for
_RUN: Final = f"window.{FLAG}=1"
MARKUP: Final = (
    f"</script><script>{_RUN}</script>",
    f"<img src=x onerror={_RUN}>",
    f'"autofocus onfocus="{_RUN}" onmouseover=\'{_RUN}\' x="',
    f"<svg/onload={_RUN}><iframe srcdoc='<script>parent.{FLAG}=1</script>'></iframe>",
    f"[a](javascript:{_RUN}) [b](data:text/html,<script>{_RUN}</script>) <javascript:{_RUN}>",
    f"![c](https://{ELSEWHERE}/c.png) <img src=//{ELSEWHERE}/d.png> <link rel=prefetch href=//{ELSEWHERE}/e>",
    f"<style>@import '//{ELSEWHERE}/f.css';@font-face{{font-family:x;src:url(//{ELSEWHERE}/g)}}</style>",
    f"<base href=//{ELSEWHERE}/><form action=//{ELSEWHERE}>",
    f"<meta http-equiv=refresh content='0;url=//{ELSEWHERE}/h'>",
    "<!-- --><![CDATA[ ]]> {{ 7*7 }} {% raw %} ${7*7} &lt;script&gt; </title></textarea></details></template>",
    "<mark>forged</mark> \ue000forged\ue001 \x02forged\x03 **forged** <b class=hit>forged</b>",
    "\u202egnp.exe\u202c \u2066\u2069 \u200b\u2028\u2029 \ufeff",
    "\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x1b]8;;https://evil.example\x07link\x1b]8;;\x07 \x9b31m \x1bc \b\b \r",
)
TEXT: Final = '=HYPERLINK("http://evil.example";"x") ' + WORD + " " + " ".join(MARKUP)
SHORT: Final = f"=1+1</script><img src=x onerror={_RUN}>\u202e\x1b[31m"  # where little fits


@dataclass(frozen=True)
class HostileStore:
    """Where it lies, and the ids in it."""

    store: Path
    ids: tuple[str, ...]


def write(directory: Path) -> HostileStore:
    """Write the store, with attachments beside it."""
    store = directory / "sessions"
    picture = put_attachment(directory / "attachments", b"\x89PNG\r\n\x1a\n" + bytes(16), kind="image")
    drawing = put_attachment(directory / "attachments", f"<svg onload={_RUN}>".encode(), kind="image")
    document = put_attachment(directory / "attachments", f"<script>{_RUN}</script>".encode())
    parent = _everything("/w/" + TEXT, "session-" + SHORT, picture, drawing, document)
    fork = Log(parent.cwd, id=f"session-fork-{SHORT}", seeded_from=parent).turn(TEXT, TEXT)
    subagent = Log(parent.cwd, id=f"agent{SHORT}", parent=parent.id, origin="subagent", preset=TEXT)
    subagent.turn(TEXT, TEXT)
    stray = Log(TEXT, id=f"stray{SHORT}", parent=TEXT, origin=TEXT).turn(TEXT, TEXT)
    old = Log("/w/old" + SHORT, id=f"old{SHORT}", version=0).turn(TEXT, TEXT, [(SHORT, TEXT, TEXT)])
    third = Log("/w/third" + SHORT, id=f"third{SHORT}", version=3).turn(TEXT, TEXT, [(SHORT, TEXT, TEXT)])
    made = (parent, fork, subagent, stray, old, third)
    for log in made:
        log.write(store)
    _leave_strange_files(store)
    return HostileStore(store, tuple(log.id for log in made))


def _everything(cwd: str, session_id: str, picture: str, drawing: str, document: str) -> Log:
    """A session with every type of event we know, and some that nobody does, hostile in every field."""
    log = Log(cwd, id=session_id, preset=TEXT)
    log.system(TEXT)
    log.title(TEXT, kind=TEXT)
    log.start_turn(TEXT)
    log.user(TEXT, kind=TEXT)
    log.user(TEXT, kind="runtime-context")
    arguments = json.dumps({"command": TEXT, "file_path": TEXT, "url": f"javascript:{_RUN}", TEXT: TEXT})
    edits = json.dumps({"file_path": SHORT, "old_string": TEXT, "new_string": TEXT, "edits": [{TEXT: TEXT}]})
    calls = [
        (f"{SHORT}-1", TEXT, arguments),
        (f"{SHORT}-2", "bash", arguments),
        (f"{SHORT}-3", "edit", edits),
        (f"{SHORT}-4", "write", edits),
        (f"{SHORT}-5", "task", arguments),
        (f"{SHORT}-6", "bash", TEXT),
    ]
    log.assistant(TEXT, calls, reasoning=TEXT)
    for call_id, name, given in calls:
        log.call(call_id, name, given)
        log.result(call_id, TEXT, (TEXT, TEXT) if call_id.endswith("1") else None)
    log.result("unknown" + SHORT, TEXT)
    log.todo((TEXT, TEXT), (TEXT, "completed"), (SHORT, "in_progress"))
    log.event(TEXT, {TEXT: TEXT, "message": {"content": [{"type": TEXT, TEXT: TEXT}], "role": TEXT}})
    log.event("error", {"message": TEXT, "name": TEXT, "code": TEXT, "stack": TEXT})
    blocks: list[dict[str, Any]] = [
        image_block(picture, "image/png"),
        image_block(drawing, "image/svg+xml"),
        image_block(document, f"text/html{SHORT}"),
        file_block(document, f"../../{SHORT}.html"),
        file_block("f" * 64, TEXT),
        {"type": "image", "url": f"https://{ELSEWHERE}/i.png", "source": {"url": f"https://{ELSEWHERE}/j.png"}},
        {"type": "image", "attachment": {"attachmentId": TEXT, "mediaType": TEXT}},
        {"type": TEXT, "text": TEXT},
    ]
    log.event("user/message", {"content": blocks, "source": {"kind": "user"}, "role": "user"}, surfaceOp="append")
    log.event("agent/inbox/spliced", {"target": TEXT, "start": 0, "inserted": [{"content": TEXT, "id": TEXT}]})
    model = {"kind": "model", "provider": TEXT, "model": TEXT}
    message = {"role": "assistant", "content": [{"type": "text", "text": TEXT}], "source": model, "id": TEXT}
    log.event("assistant/message", {"turn": 1, "step": 1, "message": message, TEXT: TEXT}, surfaceOp="append")
    log.compact(TEXT, 1, 2, [1, 2])
    log.end_turn(kind=TEXT, error={"name": TEXT, "message": TEXT, "code": TEXT})
    log.start_turn(TEXT)
    log.end_turn(kind="error", message=TEXT, error={"name": TEXT, "message": TEXT})
    return log


def _leave_strange_files(store: Path) -> None:
    """Files whose names and contents are hostile, and which are no logs."""
    folder = store / f"--{SHORT.replace('/', '_')}--"
    for name, content in (
        (f"{SHORT.replace('/', '_')}", b"{not json"),
        ("unreadable", b"\x28\xb5\x2f\xfd" + TEXT.encode()),
        ("newer", json.dumps({"type": "session", "version": TEXT, "id": TEXT, "cwd": TEXT}).encode() + b"\n"),
    ):
        path = folder / name / "session.v4.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / "unreadable" / f"session.v9{SHORT.replace('/', '_')}.jsonl").write_bytes(b"x")
