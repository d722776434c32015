"""Checks an index against itself, its ledger and the store: what a run takes on trust is looked at here."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sessiongraph_web import generation, logs, schema, soundness, tokenizer
from sessiongraph_web.answers import Answer
from sessiongraph_web.config import Settings
from sessiongraph_web.damage import is_damage, translated
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.generation import Generation
from sessiongraph_web.jobs import Job, LogTask
from sessiongraph_web.models import Header
from sessiongraph_web.recorder import Recorder

SAMPLE_SESSIONS: Final = 25
SAMPLE_TERMS: Final = 200  # of each workspace, whose entries are compared one by one
MOST_FINDINGS: Final = 100
_SAME_IN_CATALOG: Final = (
    "log_id, id, title, created_at, last_at, origin, version, models, events, turns, entries, tool_calls,"
    " tool_errors, input_tokens, output_tokens, damage, inherited_count, open_turn"
)
_REREAD: Final = {
    "session": f"{_SAME_IN_CATALOG}, agent_preset, delegation_depth, is_seeded, surface_fault",
    "entry": (
        "log_id, ordinal, seq, time, turn, kind, type, surface, tool, failed, inherited, synthetic, clipped, text"
    ),
    "surface_node": "log_id, ordinal, position, seq, type, digest",
    "shadow": "log_id, ordinal, by_ordinal, place",
    "citation": "log_id, source_seq, ordinal",
    "prompt": "log_id, message, ordinal",
    "log": "log_id, resume_offset, resume_ordinal, fingerprint",
}


class Finding(Answer, frozen=True, kw_only=True):
    """One thing that is wrong with the index."""

    workspace: str | None
    check: str  # file, terms, ledger, store
    detail: str


class CheckReport(Answer, frozen=True, kw_only=True):
    """What a check looked at, and what it found."""

    sound: bool
    workspaces: int
    sessions: int
    entries: int
    reread: int  # sessions that were read from the store again
    findings: list[Finding]


class Check:
    """One check of the live generation; nothing may write meanwhile."""

    def __init__(self, settings: Settings, *, sample: int = SAMPLE_SESSIONS) -> None:
        self.settings, self.sample = settings, sample
        self.sessions = self.entries = self.reread = 0

    def perform(self) -> CheckReport:
        """Look at every workspace; `sample` sessions are read from the store again (0: every one)."""
        live = generation.live(self.settings.index)
        if live is None:
            raise SessionGraphError("SESSION_QUERY_INDEX_FAILED")
        with generation.using(live), translated(), closing(schema.open_reader(live.catalog)) as catalog:
            places = catalog.execute("SELECT cwd, file FROM workspace ORDER BY cwd").fetchall()
            findings = list(islice(self._findings(live, catalog), MOST_FINDINGS))
        return CheckReport(
            sound=not findings,
            workspaces=len(places),
            sessions=self.sessions,
            entries=self.entries,
            reread=self.reread,
            findings=findings,
        )

    def _findings(self, live: Generation, catalog: sqlite3.Connection) -> Iterator[Finding]:
        due = self._sampled(catalog)
        for cwd, name in catalog.execute("SELECT cwd, file FROM workspace ORDER BY cwd").fetchall():
            path = live.file(name)
            try:
                soundness.logs_of(path, cwd, probe=False)
                with closing(schema.open_reader(path)) as connection:
                    connection.row_factory = None
                    connection.execute(
                        "PRAGMA query_only=0"
                    )  # the file stays read only; vocabularies are temporary
                    self._count(connection)
                    found = [
                        *(("terms", detail) for detail in _terms(connection)),
                        *(("ledger", detail) for detail in _ledger(connection, catalog, cwd)),
                        *(("store", detail) for detail in self._store(connection, cwd, due.get(cwd, []))),
                    ]
            except SessionGraphError as error:
                if not is_damage(error):
                    raise
                found = [("file", error.detail)]
            yield from (Finding(workspace=cwd, check=check, detail=detail) for check, detail in found)

    def _count(self, connection: sqlite3.Connection) -> None:
        self.sessions += connection.execute("SELECT count(*) FROM session").fetchone()[0]
        self.entries += connection.execute("SELECT count(*) FROM entry").fetchone()[0]

    def _sampled(self, catalog: sqlite3.Connection) -> dict[str | None, list[LogTask]]:
        """Choose the logs to read again, spread evenly over all that have not changed since they were read."""
        known = {
            row["log_id"]: (row["size"], row["mtime_ns"], row["inode"])
            for row in catalog.execute(
                "SELECT log_id, size, mtime_ns, inode FROM log JOIN session USING (log_id)"
            )
        }
        found = [
            log
            for log in logs.discover(self.settings.sessions).logs
            if known.get(log.log_id) == (log.size, log.mtime_ns, log.inode)
        ]
        step = max(1, len(found) // self.sample) if self.sample else 1
        made: dict[str | None, list[LogTask]] = {}
        for log in found[::step]:
            header = logs.peek_header(log.path, self._limits)
            if isinstance(header, Header):
                task = LogTask(log.log_id, log.path, header, log.size, log.mtime_ns)
                made.setdefault(header.cwd, []).append(task)
        return made

    @property
    def _limits(self) -> logs.Limits:
        return logs.Limits(self.settings.max_line_bytes, self.settings.max_window_bytes)

    def _store(self, connection: sqlite3.Connection, cwd: str | None, tasks: list[LogTask]) -> Iterator[str]:
        """Read some logs again, into a database of their own, and compare what came of them."""
        self.reread += len(tasks)
        with tempfile.TemporaryDirectory(prefix="sessiongraph-check-") as folder:
            job = Job(
                file=Path(folder) / "again.db",
                cwd=cwd,
                fresh=True,
                tasks=tuple(tasks),
                remove=(),
                parents={},
                tool_result_chars=self.settings.tool_result_chars,
                limits=self._limits,
            )
            with Recorder(job) as recorder:
                for task in tasks:
                    recorder.record(task, lambda _: None)
                    yield from _differences(connection, recorder.connection, task)


def _terms(connection: sqlite3.Connection) -> Iterator[str]:
    """Compare the full-text index with one that is made anew from the stored texts."""
    with closing(sqlite3.connect("", isolation_level=None)) as again:
        again.executescript(
            "CREATE VIRTUAL TABLE entry_fts USING fts5 (tokens, content='', detail=full, tokenize='unicode61');"
            "INSERT INTO entry_fts (entry_fts, rank) VALUES ('hashsize', 16777216); BEGIN;"
        )
        again.executemany(
            "INSERT INTO entry_fts (rowid, tokens) VALUES (?, ?)",
            (
                (row_id, tokenizer.index_text(text))
                for row_id, text in connection.execute("SELECT id, text FROM entry")
            ),
        )
        counts = []
        for each in (connection, again):
            each.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, entry_fts, row)")
            counts.append({row[0]: row[1:] for row in each.execute("SELECT term, doc, cnt FROM temp.vocabulary")})
        held, right = counts
        wrong = sorted(term for term in held.keys() | right.keys() if held.get(term) != right.get(term))
        if wrong:
            yield f"{len(wrong)} terms are counted wrongly, the first is {wrong[0]!r}"
        step = max(1, len(right) // SAMPLE_TERMS)
        for term in sorted(right)[::step]:
            if _entries_with(connection, term) != _entries_with(again, term):
                yield f"the entries with {term!r} are not those that hold it"


def _entries_with(connection: sqlite3.Connection, term: str) -> list[Any]:
    quoted = '"' + term.replace('"', '""') + '"'
    return connection.execute("SELECT rowid FROM entry_fts WHERE entry_fts MATCH ?", (quoted,)).fetchall()


def _ledger(connection: sqlite3.Connection, catalog: sqlite3.Connection, cwd: str | None) -> Iterator[str]:
    """Compare a workspace's sessions with what the catalog says of them, and their entries with their counts."""
    held = _by_id(connection.execute(f"SELECT {_SAME_IN_CATALOG} FROM session"))  # noqa: S608 - ours
    known = _by_id(catalog.execute(f"SELECT {_SAME_IN_CATALOG} FROM session WHERE cwd IS ?", (cwd,)))  # noqa: S608
    for log_id in sorted(held.keys() | known.keys()):
        if held.get(log_id) != known.get(log_id):
            yield f"log {log_id} is not what the ledger says"
    counted = connection.execute(
        """
        SELECT log_id, entries, (SELECT count(*) FROM entry WHERE entry.log_id = session.log_id
                                 AND NOT inherited AND NOT synthetic) AS found
        FROM session WHERE entries != found
        """
    )
    for log_id, entries, found in counted:
        yield f"log {log_id} has {found} entries of its own, not {entries}"


def _differences(held: sqlite3.Connection, again: sqlite3.Connection, task: LogTask) -> Iterator[str]:
    for table, columns in _REREAD.items():
        query = f"SELECT {columns} FROM {table} WHERE log_id = ?"  # noqa: S608 - names of ours
        if _rows(held, query, task.log_id) != _rows(again, query, task.log_id):
            yield f"session {task.header.id} differs from its log in `{table}`"


def _rows(connection: sqlite3.Connection, query: str, log_id: int) -> list[Any]:
    return sorted(connection.execute(query, (log_id,)), key=repr)


def _by_id(rows: Iterable[Any]) -> dict[int, tuple[Any, ...]]:
    return {row[0]: tuple(row) for row in rows}
