"""Products over a store, with an index or without one, for tests of operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sessiongraph_web import config, filters, indexer
from sessiongraph_web.access import OWNER, Caller
from sessiongraph_web.answers import EventPage, SearchPage, SessionPage, TimelinePage
from sessiongraph_web.operations import SessionGraph


@contextmanager
def opened(store: Path, index: Path | None = None, **settings: Any) -> Iterator[SessionGraph]:
    """Open a product that answers from what there is and starts no index run."""
    where = {"sessions": store, "index": index or store.parent / "index"}
    product = SessionGraph(config.load({**where, "auto_build": False, "auto_refresh": False, **settings}))
    try:
        yield product
    finally:
        product.close()


@contextmanager
def indexed(store: Path, index: Path | None = None, **settings: Any) -> Iterator[SessionGraph]:
    """Index a store, and open a product on it."""
    with opened(store, index, **settings) as product:
        refresh(product)
        yield product


def refresh(product: SessionGraph) -> None:
    """Bring a product's index up to date."""
    report = indexer.Run(product.settings).execute()
    assert report.outcome == "complete"


def find(product: SessionGraph, q: str, caller: Caller = OWNER, **given: Any) -> SearchPage:
    """Search as a URL with these parameters would."""
    return product.search(caller, filters.parse_search(_texts(q=q, **given), product.settings))


def read(product: SessionGraph, session_id: str, caller: Caller = OWNER, **given: Any) -> SessionPage:
    """Read a session as a URL with these parameters would."""
    return product.session(caller, filters.parse_session(session_id, _texts(**given), product.settings))


def event(product: SessionGraph, session_id: str, caller: Caller = OWNER, **given: Any) -> EventPage:
    """Read an event as a URL with these parameters would."""
    return product.event(caller, filters.parse_event(session_id, _texts(**given), product.settings))


def timeline(product: SessionGraph, caller: Caller = OWNER, **given: Any) -> TimelinePage:
    """Ask for the timeline as a URL with these parameters would."""
    return product.timeline(caller, filters.parse_timeline(_texts(**given), product.settings))


def _texts(**given: Any) -> dict[str, list[str]]:
    many = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    return {name: [str(value) for value in values] for name, values in many.items()}
