"""Children of a test: code that runs without the rights of root, and runs of the index that can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

NOBODY = 65534

_INDEX = """
import sys
from pathlib import Path
from sessiongraph_web import config, indexer, workers
workers.INLINE_BYTES = 0
print("ready", flush=True)
indexer.Run(config.load({"sessions": Path(sys.argv[1]), "index": Path(sys.argv[2])})).execute(
    indexer.Wish(force="force" in sys.argv, verify="verify" in sys.argv)
)
"""


def unprivileged(action: Callable[[], object]) -> None:
    """Run in a child that may read what everybody may, and write what everybody may; raise if it raised."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, "see the traceback above"
        return
    code = 1
    try:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        action()
        code = 0
    except BaseException:  # noqa: BLE001 - the parent is told by the exit code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def let_everybody(path: Path, *, write: bool = False) -> None:
    """Let anybody read a tree, and the folders above it be passed through."""
    for parent in path.parents:
        if parent.stat().st_uid == os.getuid() and parent != Path("/tmp"):  # noqa: S108 - compared
            parent.chmod(parent.stat().st_mode | 0o011)
    for found in (path, *path.rglob("*")):
        if not found.is_symlink():
            wanted = 0o777 if found.is_dir() else 0o666
            found.chmod(wanted if write else wanted & 0o555)


def start_index(store: Path, index: Path, *wishes: str) -> subprocess.Popen[bytes]:
    """Start an index run that uses worker processes however little there is to do; return when it begins."""
    process = subprocess.Popen(
        [sys.executable, "-c", _INDEX, store, index, *wishes],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n", process.communicate()
    return process
