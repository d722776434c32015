"""Workspace databases filled by hand, for tests of what is found in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessiongraph_web import config, schema, tokenizer
from sessiongraph_web.answers import IndexNote, SearchPage
from sessiongraph_web.filters import SearchRequest
from sessiongraph_web.search import Source, search

NOTE = IndexNote(epoch=1, refreshed_at=None, indexing=False)
SETTINGS = config.load({}, environ={}, home=Path("/nowhere"))


def everything(_cwd: str | None, _log_id: int) -> bool:
    """Let the caller see every session."""
    return True


def nothing_runs(_cwd: str | None, _log_id: int) -> bool:
    """Say that no log is being written."""
    return False


@dataclass
class Workspace:
    """One workspace's database: sessions and entries are added, and it is searched."""

    folder: Path
    cwd: str | None = "/w/a"
    log_ids: dict[str, int] = field(default_factory=dict)
    entries: int = 0

    def __post_init__(self) -> None:
        self.path = self.folder / f"{schema.database_name(self.cwd)}.db"
        self.writer = schema.create(self.path, schema.WORKSPACE_DDL)
        self.writer.execute("INSERT INTO meta VALUES ('sealed_cwd', ?)", [self.cwd])

    def session(self, id: str, log_id: int | None = None, **columns: Any) -> Workspace:  # noqa: A002
        """Add a session; the columns that are not given are empty."""
        self.log_ids[id] = schema.log_id(f"{self.cwd}/{id}".encode()) if log_id is None else log_id
        given = {"log_id": self.log_ids[id], "id": id, "title": id, "version": 4, "models": "[]", **columns}
        described = self.writer.execute("SELECT name, [notnull] FROM pragma_table_info('session')").fetchall()
        row = [given.get(name, 0 if needed else None) for name, needed in described]
        self.writer.execute(f"INSERT INTO session VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
        return self

    def entry(self, id: str, text: str, ordinal: int | None = None, **columns: Any) -> Workspace:  # noqa: A002
        """Add an entry to a session (made on first use), and its tokens to the full-text index."""
        if id not in self.log_ids:
            self.session(id)
        self.entries += 1
        place = self.entries if ordinal is None else ordinal
        given = {
            "id": self.entries,
            "log_id": self.log_ids[id],
            "ordinal": place,
            "seq": place,
            "time": self.entries,
            "kind": "user",
            "type": "user/message",
            "surface": "current",
            "failed": 0,
            "inherited": 0,
            "synthetic": 0,
            "clipped": 0,
            **columns,
            "length": len(text),
            "text": text,
        }
        names = ", ".join(given)
        marks = ", ".join("?" * len(given))
        sql = f"INSERT INTO entry ({names}) VALUES ({marks})"  # noqa: S608
        self.writer.execute(sql, list(given.values()))
        self.writer.execute(
            "INSERT INTO entry_fts (rowid, tokens) VALUES (?, ?)", [self.entries, tokenizer.index_text(text)]
        )
        return self

    def many(self, id: str, texts: Iterable[str], **columns: Any) -> Workspace:  # noqa: A002
        """Add many entries to a session in one transaction."""
        with schema.transaction(self.writer):
            for text in texts:
                self.entry(id, text, **columns)
        return self

    def source(self) -> Source:
        """Return the database as a search reads it."""
        return Source(self.cwd, schema.open_reader(self.path), 1)


def find(
    *workspaces: Workspace,
    offset: int = 0,
    deadline: float = math.inf,
    visible: Callable[[str | None, int], bool] = everything,
    running: Callable[[str | None, int], bool | None] = nothing_runs,
    settings: config.Settings = SETTINGS,
    **request: Any,
) -> tuple[SearchPage, int | None]:
    """Search some workspaces, and give back the connections."""
    sources = [workspace.source() for workspace in workspaces]
    try:
        return search(
            sources,
            SearchRequest(**request),
            settings=settings,
            offset=offset,
            deadline=deadline,
            index=NOTE,
            visible=visible,
            live=running,
        )
    finally:
        for source in sources:
            source.connection.close()


def texts(page: SearchPage) -> list[str]:
    """Return the snippets of a page's hits, of grouped ones the best."""
    return [hit.snippet.text for hit in [*(session.best for session in page.sessions), *page.entries]]
