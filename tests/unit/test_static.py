"""The weight of what every page loads."""

from __future__ import annotations

from sessiongraph_web.web import render

MOST_BYTES = 100_000


def test_style_and_scripts_stay_light() -> None:
    """All scripts and the one stylesheet together weigh less than 100 KB, uncompressed."""
    weights = {
        path.name: path.stat().st_size for path in render.STATIC.glob("*.*") if path.suffix in (".js", ".css")
    }
    assert len([name for name in weights if name.endswith(".css")]) == 1
    assert sum(weights.values()) < MOST_BYTES, weights
