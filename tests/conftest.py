"""Fixtures that every test may use."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from tests.shared import MISSING, SHARED

settings.register_profile("untimed", deadline=None)  # how long an example takes is the machine's matter
settings.load_profile("untimed")

# Among what comes last these begin, so that workers which share the files end at about the same time.
LONG: Final = ("test_hostile_fields", "test_pages", "test_accessibility", "test_reading", "test_hostile")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The shared corpus; the test is skipped, with the reason, where it is missing."""
    if SHARED is None:
        pytest.skip(MISSING)
    return SHARED


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """An empty session store."""
    path = tmp_path / "sessions"
    path.mkdir()
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `shared` where the corpus is missing, and put browser tests last.

    Playwright keeps an event loop running in its process, and no other test can run one of its own there then.
    """
    items.sort(key=_turn)
    if SHARED is None:
        for item in items:
            if item.get_closest_marker("shared"):
                item.add_marker(pytest.mark.skip(reason=MISSING))


def _turn(item: pytest.Item) -> tuple[bool, int]:
    """Return when a test's file has its turn."""
    is_last = item.path.parent.name == "browser"
    return is_last, LONG.index(item.path.stem) if is_last and item.path.stem in LONG else len(LONG)
