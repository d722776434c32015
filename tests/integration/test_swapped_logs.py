"""Logs that change hands: whatever lies under a path by now, only the session that was authorized is answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from sessiongraph_web import access
from sessiongraph_web.corpus import View
from sessiongraph_web.filters import StatusRequest
from tests import products, scopes
from tests.builders import Log
from tests.scopes import ABOUT_A_SESSION, MAIN, SECRET, SHOP, outcome

CALLER: Final = access.workspaces(SHOP)
READS: Final = (
    *("session", "session, last page", "event", "written", "event_trace", "follow", "attachment"),
    *("export", "export md", "export json", "export ndjson", "export_set of it", "turns"),
)


def _own(store: Path) -> Path:
    """Write the caller's session and what it cites; return its log."""
    scopes.put_images(store)
    return scopes.own_logs(SHOP)[MAIN].write(store)


def _other(cwd: str | None, session_id: str) -> bytes:
    return scopes.foreign_logs(cwd)[0].to_bytes() if session_id != MAIN else _twin(cwd)


def _twin(cwd: str | None) -> bytes:
    log = Log(cwd, id=MAIN)
    for _ in range(9):
        log.turn(f"{scopes.ASKED} {SECRET}", SECRET)
    return log.to_bytes()


def _replace(path: Path, content: bytes) -> None:
    """Put other bytes under the name, as a program does that writes a file anew."""
    beside = path.with_name("beside")
    beside.write_bytes(content)
    beside.replace(path)


def _rewrite(path: Path, content: bytes) -> None:
    """Write other bytes into the very file."""
    path.write_bytes(content)


def _link(path: Path, content: bytes) -> None:
    """Put a link to another file under the name."""
    elsewhere = path.parents[3] / "elsewhere"
    elsewhere.write_bytes(content)
    path.unlink()
    path.symlink_to(elsewhere)


@pytest.mark.parametrize("other", ["/w", None], ids=["foreign", "no cwd"])
@pytest.mark.parametrize("session_id", [MAIN, scopes.ALONE], ids=["same id", "other id"])
@pytest.mark.parametrize("swap", [_replace, _rewrite, _link])
@pytest.mark.parametrize("name", READS)
def test_a_log_that_changes_hands_after_it_was_checked_is_not_answered(
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    swap: Callable[[Path, bytes], None],
    session_id: str,
    other: str | None,
) -> None:
    """Between the check of the header and the reading of events lies a moment: nothing foreign comes of it."""
    path = _own(store)
    content = _other(other, session_id)
    checks = iter([True])
    check = View.check_header

    def check_then_swap(view: View, located: Any) -> Any:
        header = check(view, located)
        if next(checks, False):
            swap(path, content)
        return header

    with products.indexed(store) as product:
        told = outcome(product, ABOUT_A_SESSION[name], CALLER, MAIN)
        assert SECRET not in told
        monkeypatch.setattr(View, "check_header", check_then_swap)
        told = outcome(product, ABOUT_A_SESSION[name], CALLER, MAIN)
    assert next(checks, None) is None, "the operation never checked"
    assert SECRET not in told
    assert told.startswith('{"code": "SESSION_QUERY_'), told


@pytest.mark.parametrize("name", ["session.jsonl", "session.v4.jsonl", "session.v4.jsonl.zstd"])
@pytest.mark.parametrize(
    "what", ["a secret", "a foreign log", "a log of this workspace", "the machine's", "nothing"]
)
def test_a_link_in_the_store_is_no_log(store: Path, tmp_path: Path, name: str, what: str) -> None:
    """Whatever it names is never opened, indexed or counted; the ledger says why."""
    secret = tmp_path / "secret"
    content = {
        "a secret": b'{"token": "quartzite"}\n{"type": "user/message", "seq": 0, "time": 1, "data": {}}\n',
        "a foreign log": _twin("/w"),
        "a log of this workspace": _twin(SHOP),
    }.get(what)
    if content is not None:
        secret.write_bytes(content)
    link = store / "--w-shop--" / "linked" / name
    link.parent.mkdir(parents=True)
    link.symlink_to("/etc/passwd" if what == "the machine's" else secret)
    _own(store)

    with products.indexed(store) as product:
        listed = {found.id for found in products.timeline(product).sessions}
        status = product.status(access.OWNER, StatusRequest(ledger=True))
        told = outcome(product, ABOUT_A_SESSION["session"], access.OWNER, "linked")

    noted = [(entry.state, entry.reason, entry.faults) for entry in status.ledger or [] if "linked" in entry.path]
    assert listed == {MAIN}
    assert noted == [("unreadable", "a link, not a log", [])]
    assert "SESSION_NOT_FOUND" in told
