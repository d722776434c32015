"""axe-core, which finds what keeps people out of a page; it is got from npm, and never kept in the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

VARIABLE: Final = "SESSIONGRAPH_AXE"  # where axe.min.js lies already
PACKAGE: Final = "axe-core@4"
INSTALL_SECONDS: Final = 60
SERIOUS: Final = ("serious", "critical")


def script(directory: Path) -> Path:
    """Return axe.min.js, installed into a directory if need be; where it cannot be had the test is skipped."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"there is no npm to install {PACKAGE}, and {VARIABLE} names no copy")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(directory), PACKAGE]
    try:
        subprocess.run(command, check=True, timeout=INSTALL_SECONDS, capture_output=True)
    except (subprocess.SubprocessError, OSError):
        pytest.skip(f"npm could not install {PACKAGE}, and {VARIABLE} names no copy")
    return directory / "node_modules/axe-core/axe.min.js"


def findings(page: Any, rules: Sequence[str] = ()) -> list[str]:
    """Return what is serious or critical on a page that axe-core was put into, by some of its rules or by all."""
    options: dict[str, Any] = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    report = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{page.url}: {found['id']}: {node['target']} {node['html'][:160]}"
        for found in report["violations"]
        if found["impact"] in SERIOUS
        for node in found["nodes"][:3]
    ]
