"""No file of the index holds a known secret, nor the half of one, wherever in a log it stood."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from sessiongraph_web import access
from sessiongraph_web.filters import StatusRequest
from tests import products
from tests.attachments import image_block
from tests.builders import Log

SECRET: Final = "gh" + "p_" + "a1B2c3D4" * 5
HALF: Final = SECRET[:10].lower().encode()  # of a token so cut no pattern knows any more
CWD: Final = "/w/a"


def _titled(log: Log) -> None:
    log.turn("a", "b").title(f"{'about ' * 11}{SECRET}")


def _prompted(log: Log) -> None:
    log.turn(f"{'please ' * 10}{SECRET} and go on", f"so {SECRET}")


def _called(log: Log) -> None:
    log.turn("a", "b", [(SECRET, json.dumps({SECRET: SECRET}), f"{SECRET}: {'x' * 20_000}{SECRET}")])


def _long(log: Log) -> None:
    log.turn(
        "a",
        "b",
        [("bash", json.dumps({"a": "x" * 2030 + " " + SECRET}), "y" * 16_370 + " " + SECRET + "z" * 40_000)],
    )


def _modelled(log: Log) -> None:
    source = {"kind": "model", "provider": "p", "model": SECRET}
    message = {"role": "assistant", "content": [{"type": "text", "text": SECRET}], "source": source}
    log.event("assistant/message", {"message": message}, surfaceOp="append")


def _damaged(log: Log) -> None:
    log.raw(b'{"type": "user/message", "seq": "%s", "data": %s\n' % (SECRET.encode(), SECRET.encode()))
    log.raw(b'{"%s": 1}\n' % SECRET.encode())
    log.event("user/message", SECRET)


def _unfinished(log: Log) -> None:
    log.start_turn(SECRET)
    log.assistant(SECRET, [("call-1", SECRET, "{}")])
    log.call("call-1", SECRET, json.dumps({"key": SECRET}))
    log.todo((SECRET, "pending"))


def _attached(log: Log) -> None:
    block = image_block("0" * 64)
    block["attachment"]["name"] = SECRET
    log.event("user/message", {"content": [block], "source": {"kind": "user"}}, surfaceOp="append")


def _replaced(log: Log) -> None:
    log.turn("a", "b")
    log.compact(SECRET, 3, 4, [3, 4])


PLACES: Final = (_titled, _prompted, _called, _long, _modelled, _damaged, _unfinished, _attached, _replaced)


@pytest.mark.parametrize("put", PLACES)
def test_no_file_of_the_index_holds_a_secret(store: Path, put: Callable[[Log], None]) -> None:
    """Neither after a first run nor after one that went on where that ended, case and tokens aside."""
    log = Log(CWD, id="session-1", preset=SECRET, origin=SECRET)
    put(log)
    path = log.write(store)
    with products.indexed(store) as product:
        assert _holding(store.parent / "index") == []
        put(log)
        log.append(path)
        products.refresh(product)
        assert _holding(store.parent / "index") == []
        listed = products.timeline(product, access.workspaces(CWD)).sessions
        assert SECRET[:10] not in repr([listed, product.status(access.OWNER, StatusRequest(ledger=True))])


def _holding(index: Path) -> list[str]:
    return [path.name for path in index.rglob("*") if path.is_file() and HALF in path.read_bytes().lower()]
