"""`serve` as a process: how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from sessiongraph_web import access, config, indexer
from tests.builders import Log
from tests.world import HOME, World


def test_a_server_that_stops_does_not_wait_for_its_followers(tmp_path: Path) -> None:
    """`serve` ends promptly and without complaint though a page follows."""
    log = Log(HOME).turn("first", "answer")
    log.write(tmp_path / "sessions")
    options = {"sessions": str(tmp_path / "sessions"), "index": str(tmp_path / "index")}
    indexer.Run(config.load(options)).execute()
    world = World(tmp_path / "sessions", tmp_path / "index")
    token = world.token(access.OWNER)
    command = [sys.executable, "-m", "sessiongraph_web", "serve", "--port", "0"]
    for name, value in options.items():
        command += [f"--{name}", value]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        port = _port(process)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            request = (
                f"GET /sessions/{log.id}/live HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n"
            )
            client.sendall(request.encode() + b"\r\n")
            assert b"text/event-stream" in client.recv(4096)
            os.kill(process.pid, signal.SIGTERM)
            said = process.communicate(timeout=10)[1]
    finally:
        process.kill()
    assert "Cancel" not in said, said


def _port(process: subprocess.Popen[Any]) -> int:
    for line in process.stdout or ():
        if found := re.search(r"is at http://127\.0\.0\.1:(\d+)", line):
            return int(found[1])
    raise AssertionError("the server ended without saying where it is")
