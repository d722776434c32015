"""Workspaces beside near misses of their names, and everything that may be asked about a session in them."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from sessiongraph_web import corpus, filters, presentation
from sessiongraph_web.access import Caller
from sessiongraph_web.agents import Agent
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.export import Download
from sessiongraph_web.filters import EventRequest, ExportRequest, SessionRequest, ShareRequest
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.tools import Toolbox
from sessiongraph_web.web.offline import OfflinePages
from tests.attachments import image_block, put_attachment
from tests.builders import Log

SHOP: Final = "/w/shop"
LONG: Final = "/w/" + "d" * 260
ASKED: Final = "heron"  # in every session, own or foreign
SECRET: Final = "quartzite"  # in every text of a foreign session, and in the ids of all but one
TWIN: Final = "session-common-twin"  # an id that occurs in both workspaces
MAIN: Final = "session-common-own-main"
FORK: Final = "session-common-own-fork"
SUBAGENT: Final = "session-common-own-subagent"
STRAY: Final = "session-common-own-stray"  # its parent is foreign
ORPHAN: Final = "session-common-own-orphan"  # its parent was never there
OWN: Final = (MAIN, FORK, SUBAGENT, STRAY, ORPHAN, TWIN)
ALONE: Final = f"session-common-{SECRET}-alone"
CHILD: Final = f"session-common-{SECRET}-child"  # its parent is the caller's
MISSING: Final = f"session-common-{SECRET[::-1]}-alone"  # of no session, and as long as the foreign one
PNG: Final = b"\x89PNG\r\n\x1a\n" + bytes(16)
OWN_IMAGE: Final = hashlib.sha256(PNG + b"own").hexdigest()
FOREIGN_IMAGE: Final = hashlib.sha256(PNG + b"foreign").hexdigest()

# {what the near miss is: (the caller's own directory, the one beside it)}; `real` and `link` are one directory.
TARGETS: Final[Mapping[str, tuple[str, str | None]]] = {
    "parent folder": (SHOP, "/w"),
    "child folder": (SHOP, f"{SHOP}/api"),
    "longer name": (SHOP, f"{SHOP}2"),
    "trailing slash": (SHOP, f"{SHOP}/"),
    "other case": (SHOP, "/w/Shop"),
    "dots": (SHOP, "/w/./shop"),
    "white space": (SHOP, f"{SHOP} "),
    "no cwd": (SHOP, None),
    "NFC and NFD": ("/w/caf\u00e9", "/w/cafe\u0301"),
    "look-alike": ("/w/a", "/w/\u0430"),
    "pattern": ("/w/%", "/w/shop"),
    "link": ("{root}/link/app", "{root}/real/app"),
    "linked": ("{root}/real/app", "{root}/link/app"),
    "same folder": ("/w/client-app", "/w/client/app"),
    "same folder, cut": (f"{LONG}/one", f"{LONG}/two"),
}


def workspaces(name: str, root: Path) -> tuple[str, str | None]:
    """Return the caller's directory of a row of the table, and the one beside it."""
    if "link" in name:
        (root / "real" / "app").mkdir(parents=True, exist_ok=True)
        if not (root / "link").exists():
            (root / "link").symlink_to(root / "real")
    own, beside = TARGETS[name]
    return own.format(root=root), beside and beside.format(root=root)


def own_logs(cwd: str | None) -> dict[str, Log]:
    """Return what a caller may see, by id."""
    main = _talk(cwd, MAIN, f"{ASKED} mine")
    main.title(f"About the {ASKED}")
    main.event(
        "user/message", {"content": [image_block(OWN_IMAGE)], "source": {"kind": "user"}}, surfaceOp="append"
    )
    made = [
        main,
        Log(cwd, id=FORK, seeded_from=main).turn("go on", f"with the {ASKED}"),
        Log(cwd, id=SUBAGENT, parent=MAIN, origin="subagent").turn(f"find the {ASKED}", "found"),
        Log(cwd, id=STRAY, parent=ALONE).turn(f"a stray {ASKED}", "here"),
        Log(cwd, id=ORPHAN, parent="session-never-there").turn(f"an orphaned {ASKED}", "here"),
        Log(cwd, id=TWIN).turn(f"the {ASKED}", "mine"),
    ]
    return {log.id: log for log in made}


def foreign_logs(cwd: str | None) -> list[Log]:
    """Return what lies beside: a session, its fork, a child of the caller's session, and a twin of one id."""
    said = f"{ASKED} {SECRET}"
    alone = _talk(cwd, ALONE, said)
    alone.title(said)
    image = {"content": [image_block(FOREIGN_IMAGE)], "source": {"kind": "user"}}
    alone.event("user/message", image, surfaceOp="append")
    fork = Log(cwd, id=f"session-common-{SECRET}-fork", seeded_from=alone).turn(said, said)
    child = Log(cwd, id=CHILD, parent=MAIN, origin="subagent").turn(said, said)
    twin = Log(cwd, id=TWIN).turn(said, SECRET)
    twin.title(said)
    below = Log(cwd, id=f"session-common-{SECRET}-below", parent=TWIN).turn(said, said)
    return [alone, fork, child, twin, below]


def write(store: Path, logs: Iterable[Log]) -> None:
    """Write logs into a store; one whose folder another workspace took lies elsewhere."""
    for log in logs:
        folder = log.folder(store)
        if folder.exists():
            folder = store / "--elsewhere--" / folder.name
        folder.mkdir(parents=True)
        (folder / "session.v4.jsonl.zstd").write_bytes(log.to_bytes())


def put_images(store: Path) -> None:
    """Store the images that own and foreign sessions cite."""
    for whose in (b"own", b"foreign"):
        put_attachment(store.parent / "attachments", PNG + whose, kind="image")


Operation = Callable[[SessionGraph, Caller, str], Any]


def _search(**given: Any) -> Operation:
    """Return a search; `{id}` in a value stands for the session that is asked about."""

    def ask(product: SessionGraph, caller: Caller, session_id: str) -> Any:
        values = {"q": ASKED, "limit": 100, "kinds": "", **given}
        texts = {name: [str(value).format(id=session_id)] for name, value in values.items()}
        return product.search(caller, filters.parse_search(texts, product.settings))

    return ask


def _timeline(**given: Any) -> Operation:
    def ask(product: SessionGraph, caller: Caller, _id: str) -> Any:
        texts = {name: [str(value)] for name, value in given.items()}
        return product.timeline(caller, filters.parse_timeline(texts, product.settings))

    return ask


def _set(*, download: bool, **given: Any) -> Operation:
    """Return the choice of a set of sessions, or its download."""

    def ask(product: SessionGraph, caller: Caller, session_id: str) -> Any:
        texts = {name: [str(value).format(id=session_id)] for name, value in given.items()}
        request = filters.parse_set(texts, product.settings)
        if not download:
            return product.selection(caller, request)
        return product.export_set(caller, request, OfflinePages(corpus.log_limits(product.settings)))

    return ask


def _export(**given: Any) -> Operation:
    return lambda product, caller, session_id: product.export(caller, ExportRequest(id=session_id, **given))


def _tool(name: str, **given: Any) -> Operation:
    """Return a call of a model tool, for the first workspace that the caller sees."""

    def ask(product: SessionGraph, caller: Caller, session_id: str) -> Any:
        agent = Agent(min(caller.cwds, default=None))
        called = Toolbox(product, agent).call(name, {"session_id": session_id, **given})
        return {"text": called.text, "code": called.code}

    return ask


ABOUT_A_SESSION: Final[Mapping[str, Operation]] = {
    "session": lambda product, caller, id_: product.session(caller, SessionRequest(id=id_)),
    "session by prefix": lambda product, caller, id_: product.session(caller, SessionRequest(id=id_[:-2])),
    "session by its bare id": lambda product, caller, id_: product.session(
        caller, SessionRequest(id=id_.removeprefix("session-"))
    ),
    "session, last page": lambda product, caller, id_: product.session(
        caller, SessionRequest(id=id_, last=True, limit=2)
    ),
    "session by log": lambda product, caller, id_: product.session(caller, SessionRequest(id=id_, log_id=7)),
    "event": lambda product, caller, id_: product.event(caller, EventRequest(id=id_, seq=3, before=5, after=50)),
    "event that is not there": lambda product, caller, id_: product.event(caller, EventRequest(id=id_, seq=9999)),
    "written": lambda product, caller, id_: product.written(caller, EventRequest(id=id_, seq=3)),
    "event_trace": lambda product, caller, id_: product.event_trace(caller, EventRequest(id=id_, seq=3)),
    "trace": lambda product, caller, id_: product.trace(caller, SessionRequest(id=id_)),
    "follow": lambda product, caller, id_: {
        "records": product.follow(caller, SessionRequest(id=id_)).records,
    },
    "export": _export(),
    "export raw": _export(format="raw"),
    "export descendants": _export(descendants=True),
    "export md": _export(format="md"),
    "export json": _export(format="json"),
    "export ndjson": _export(format="ndjson"),
    "attachment": lambda product, caller, id_: product.attachment(caller, SessionRequest(id=id_), OWN_IMAGE),
    "foreign attachment": lambda product, caller, id_: product.attachment(
        caller, SessionRequest(id=id_), FOREIGN_IMAGE
    ),
    "offer": lambda product, caller, id_: product.offer(caller, ShareRequest(session=id_)),
    "share": lambda product, caller, id_: product.share(caller, ShareRequest(session=id_)),
    "turns": lambda product, caller, id_: product.turns(caller, SessionRequest(id=id_)),
    "find": lambda product, caller, id_: product.find(caller, SessionRequest(id=id_), ASKED),
    "selection of it": _set(download=False, q=ASKED, session="{id}"),
    "export_set of it": _set(download=True, q=ASKED, session="{id}"),
    "search in it": _search(session="{id}"),
    "search below it": _search(parent="{id}"),
    "tool session_event_search": _tool("session_event_search", query=ASKED),
    "tool session_trace": _tool("session_trace"),
    "tool session_event_trace": _tool("session_event_trace", seq=3),
    "tool session_event_read": _tool("session_event_read", seq=3, before=3, after=3),
}
LISTS: Final[Mapping[str, Operation]] = {
    "search terms": _search(),
    "search phrase": _search(match="phrase"),
    "search text": _search(match="text"),
    "search entries": _search(group="none", sort="newest"),
    "search everything": _search(kinds="user,assistant,tool_call,tool_result,title,todo,turn_end", inherited=1),
    "search widened": _search(q=f"{ASKED}s noted"),
    "search loosely": _search(q="她广告"),
    "search roots": _search(roots=1),
    "search a model": _search(model="mock-1"),
    "search a tool": _search(tool="bash", kinds="tool_call,tool_result"),
    "search a foreign word": _search(q=SECRET),
    "search a foreign substring": _search(q=SECRET[2:6], match="text"),
    "search a workspace": _search(workspace="/w"),
    "timeline": _timeline(limit=100),
    "timeline by activity": _timeline(limit=2, sort="activity"),
    "timeline roots": _timeline(roots=1),
    "timeline of a day": _timeline(day="2026-09-21", tz="Asia/Shanghai"),
    "timeline of a workspace": _timeline(workspace="/w"),
    "selection": _set(download=False),
    "export_set": _set(download=True),
    "export_set of a search": _set(download=True, q=ASKED, inherited=1),
    "workspaces": lambda product, caller, _id: product.workspaces(caller),
    "status": lambda product, caller, _id: product.status(caller, filters.StatusRequest(ledger=True)),
    "note": lambda product, caller, _id: product.note(caller),
    "grants": lambda product, caller, _id: product.grants(caller),
    "revoke": lambda product, caller, _id: product.revoke(caller, "000000000000"),
    "databases": lambda product, caller, _id: {name: cwd for name, (_, cwd) in product.databases(caller).items()},
}
_VOLATILE: Final = frozenset({"took_ms", "refreshed_at", "query"})  # the query is the asker's own


def outcome(product: SessionGraph, operation: Operation, caller: Caller, session_id: str = "") -> str:
    """Return all that an operation answers or refuses with, less the id asked about and the time it took."""
    try:
        answer: Any = _told(operation(product, caller, session_id))
    except SessionGraphError as error:
        answer = {"code": error.code, "detail": error.detail, "fields": error.fields}
    told = json.dumps(_settled(answer), ensure_ascii=False, sort_keys=True, default=str)
    return told.replace(session_id, "<id>") if session_id else told


def _told(answer: Any) -> Any:
    if not isinstance(answer, Download):
        return presentation.encode(answer) if hasattr(answer, "__struct_fields__") else answer
    body = b"".join(answer.chunks)
    if not body.startswith(b"PK"):
        return {"filename": answer.filename, "body": body.decode("utf-8", "replace")}
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        return {name: archive.read(name).decode("utf-8", "replace") for name in archive.namelist()}


def _settled(value: Any) -> Any:
    """Return a value less what differs from moment to moment, and between two indexes of one state."""
    if isinstance(value, dict):
        return {
            name: "a cursor" if name == "next_cursor" and item else _settled(item)
            for name, item in value.items()
            if name not in _VOLATILE
        }
    if isinstance(value, list):
        return [_settled(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"cursor \S+|as of \S+ \S+", "", value)
    return value


def _talk(cwd: str | None, session_id: str, said: str) -> Log:
    log = Log(cwd, id=session_id)
    log.turn(
        f"where is the {said}?", f"The {said} is 广告 here.", [("bash", '{"command": "ls"}', f"{said}s noted")]
    )
    return log
