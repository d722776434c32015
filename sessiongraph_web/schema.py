"""The databases of the index: their tables, what guards each file, and how one is opened."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sessiongraph_web.damage import translated
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.redact import REDACTION_VERSION
from sessiongraph_web.tokenizer import TOKENIZER_VERSION

SCHEMA_VERSION: Final = 5
# What a file's `user_version` must be: rows, tokens or masking of another make are never read.
FORMAT: Final = SCHEMA_VERSION * 1_000_000 + TOKENIZER_VERSION * 1_000 + REDACTION_VERSION
APPLICATION_ID: Final = 0x53475742  # "SGWB"
NO_CWD_DATABASE: Final = "ws_none"
CATALOG: Final = "catalog.db"
BUSY_TIMEOUT_MS: Final = 10_000
PAGE_BYTES: Final = 16 * 1024  # measured: texts fill such pages best, and nothing is slower for it
READER_CACHE_KIB: Final = 512  # of each; many are kept open, and the system caches the same pages once

WORKSPACE_DDL: Final = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,              -- sealed_cwd, revision
    value                              -- sealed_cwd is NULL for the sessions without one
) WITHOUT ROWID;

CREATE TABLE session (
    log_id INTEGER PRIMARY KEY,        -- first 48 bits of the sha256 of the log's path inside the store
    id TEXT NOT NULL,                  -- from the header; not unique: two logs may carry one id
    title TEXT NOT NULL,               -- last session/title, else the first human prompt, else 'untitled'
    created_at INTEGER,                -- Unix ms, from the header
    last_at INTEGER,                   -- Unix ms of the last event in the log
    parent_session TEXT,               -- only if that parent is in this workspace
    parent_elsewhere INTEGER NOT NULL, -- 1: there is a parent, but not in this workspace
    origin TEXT,                       -- 'subagent' or NULL
    agent_preset TEXT,
    delegation_depth INTEGER NOT NULL,
    is_seeded INTEGER NOT NULL,        -- 1: begins with a copy of its parent's events
    inherited_count INTEGER NOT NULL,  -- records before the last inherited session/end-seed
    version INTEGER NOT NULL,          -- generation of the log
    models TEXT NOT NULL,              -- JSON list, in order of first use
    events INTEGER NOT NULL,           -- events in the log, inherited ones included, synthetic ones not
    turns INTEGER NOT NULL,            -- this and what follows leave out inherited and synthetic events
    entries INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    tool_errors INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    damage INTEGER NOT NULL,           -- faults found while reading
    surface_fault TEXT,                -- why the surface fold stopped, else NULL
    surface_fault_ordinal INTEGER,     -- from this record on, `surface` is unknown
    open_turn INTEGER NOT NULL         -- 1: the stored log ends inside a turn
);
CREATE INDEX session_id ON session (id);
CREATE INDEX session_parent ON session (parent_session) WHERE parent_session IS NOT NULL;

CREATE TABLE entry (
    id INTEGER PRIMARY KEY,            -- the rowid of entry_fts
    log_id INTEGER NOT NULL REFERENCES session (log_id),
    ordinal INTEGER NOT NULL,          -- 0-based position of the event among the log's records
    seq INTEGER,                       -- the number the event carries
    time INTEGER,                      -- Unix ms
    turn INTEGER,
    kind TEXT NOT NULL,                -- user, assistant, tool_call, tool_result, title, todo, turn_end
    type TEXT NOT NULL,                -- event type
    surface TEXT NOT NULL,             -- current, shadowed, log-only, unknown
    tool TEXT,                         -- tool name of a call or of the call a result answers
    failed INTEGER NOT NULL,           -- 1: the result of a call that failed, and not its rewriting
    inherited INTEGER NOT NULL,        -- 1: copied from the parent
    synthetic INTEGER NOT NULL,        -- 1: a closer of an open turn, not in the stored log
    length INTEGER NOT NULL,           -- of text, in code points
    clipped INTEGER NOT NULL,          -- 1: text holds only a part of what the event says
    text TEXT NOT NULL                 -- with known secrets masked
);
CREATE INDEX entry_log ON entry (log_id, ordinal);

CREATE VIRTUAL TABLE entry_fts USING fts5 (
    tokens,                            -- tokenizer.index_text(entry.text)
    content='', detail=full, tokenize='unicode61'
);

CREATE TABLE log (
    log_id INTEGER PRIMARY KEY REFERENCES session (log_id),
    resume_offset INTEGER NOT NULL,    -- end of the last whole, newline-terminated frame
    resume_ordinal INTEGER NOT NULL,
    resume_line INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    exact INTEGER NOT NULL,            -- 1: nothing was read past resume_offset, so reading may go on there
    fingerprint TEXT NOT NULL,         -- sha256 of the first frame and of the last 64 KiB before resume_offset
    carried TEXT NOT NULL              -- JSON: what folding and totals carry over the border
);

CREATE TABLE frame (
    log_id INTEGER NOT NULL REFERENCES session (log_id),
    offset INTEGER NOT NULL,           -- stored bytes offset..end are a stretch of whole frames
    end INTEGER NOT NULL,
    first_ordinal INTEGER NOT NULL,
    last_ordinal INTEGER NOT NULL,
    first_seq INTEGER,
    last_seq INTEGER,
    first_turn INTEGER,
    last_turn INTEGER,
    line INTEGER NOT NULL,             -- lines of the log before `offset`
    PRIMARY KEY (log_id, offset)
) WITHOUT ROWID;

CREATE TABLE activity (
    log_id INTEGER NOT NULL REFERENCES session (log_id),
    quarter INTEGER NOT NULL,          -- Unix time in quarter hours, the finest border of any time zone
    entries INTEGER NOT NULL,          -- own entries in that quarter
    PRIMARY KEY (log_id, quarter)
) WITHOUT ROWID;

CREATE TABLE prompt (
    log_id INTEGER NOT NULL REFERENCES session (log_id),
    message INTEGER NOT NULL,          -- first 48 bits of the sha256 of the id of a person's message
    ordinal INTEGER NOT NULL,          -- of the event in which it ran, which the one that queued it does not tell
    PRIMARY KEY (log_id, message, ordinal)
) WITHOUT ROWID;

CREATE TABLE surface_node (
    log_id INTEGER NOT NULL REFERENCES session (log_id),
    ordinal INTEGER NOT NULL,
    position INTEGER NOT NULL,         -- orders the surface: the ordinal, or what the first replaced node had
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    digest TEXT,                       -- of a tool/result without its content: a rewrite may change nothing else
    PRIMARY KEY (log_id, ordinal)
) WITHOUT ROWID;

CREATE TABLE shadow (
    log_id INTEGER NOT NULL REFERENCES session (log_id),
    ordinal INTEGER NOT NULL,          -- of the event that was replaced
    seq INTEGER NOT NULL,
    by_ordinal INTEGER NOT NULL,       -- of the event that took its place
    by_seq INTEGER NOT NULL,
    place INTEGER NOT NULL,            -- rank among what was replaced at once, in surface order
    PRIMARY KEY (log_id, ordinal)
) WITHOUT ROWID;
CREATE INDEX shadow_by ON shadow (log_id, by_ordinal);

CREATE TABLE citation (
    log_id INTEGER NOT NULL REFERENCES session (log_id),
    source_seq INTEGER NOT NULL,       -- the event that is cited
    ordinal INTEGER NOT NULL,          -- of the event that cites it
    seq INTEGER NOT NULL,
    PRIMARY KEY (log_id, source_seq, ordinal)
) WITHOUT ROWID;
"""

CATALOG_DDL: Final = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,              -- epoch, store_problem
    value
) WITHOUT ROWID;

CREATE TABLE log (
    log_id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,                -- inside the store, made safe for display
    session_id TEXT,                   -- from the header, NULL where it could not be read
    cwd TEXT,
    version INTEGER,
    state TEXT NOT NULL,               -- one of models.LogState
    reason TEXT,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,            -- 0: read it again, whatever the next run finds
    seen_at INTEGER NOT NULL,          -- Unix ms of the run that last read it
    faults TEXT NOT NULL,              -- JSON list of code, message, offset, line, ordinal
    unreachable_since INTEGER          -- Unix ms
);
CREATE INDEX log_state ON log (state);
CREATE INDEX log_path ON log (path);

CREATE TABLE session (
    log_id INTEGER PRIMARY KEY REFERENCES log (log_id),
    id TEXT NOT NULL,
    cwd TEXT,
    title TEXT NOT NULL,
    created_at INTEGER,
    last_at INTEGER,
    parent_session TEXT,               -- as the header says it, wherever that parent is
    origin TEXT,
    agent_preset TEXT,
    delegation_depth INTEGER NOT NULL,
    is_seeded INTEGER NOT NULL,
    inherited_count INTEGER NOT NULL,
    version INTEGER NOT NULL,
    models TEXT NOT NULL,
    events INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    tool_errors INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    damage INTEGER NOT NULL,
    surface_fault TEXT,
    open_turn INTEGER NOT NULL
);
CREATE INDEX session_id ON session (id);
CREATE INDEX session_parent ON session (parent_session);
CREATE INDEX session_created ON session (created_at DESC, id);
CREATE INDEX session_cwd ON session (cwd, created_at DESC);

CREATE TABLE activity (
    log_id INTEGER NOT NULL REFERENCES log (log_id),
    quarter INTEGER NOT NULL,          -- Unix time in quarter hours, the finest border of any time zone
    entries INTEGER NOT NULL,
    PRIMARY KEY (log_id, quarter)
) WITHOUT ROWID;
CREATE INDEX activity_quarter ON activity (quarter);

CREATE TABLE workspace (
    database TEXT PRIMARY KEY,         -- ws_<first 32 hex of sha256(cwd)>, or ws_none
    cwd TEXT UNIQUE,                   -- NULL for the sessions without one
    file TEXT NOT NULL,                -- name of the file in this directory
    revision INTEGER NOT NULL,         -- meta.revision of that file when it was last written
    size INTEGER NOT NULL,             -- this and what follows: the file as a run left it; a file that
    mtime_ns INTEGER NOT NULL,         -- differs was written by a run that did not end, or by somebody else
    inode INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    report TEXT NOT NULL               -- JSON of reports.RunReport
);
"""


def database_name(cwd: str | None) -> str:
    """Return the Datasette name of a workspace's database; it is one-way, so it tells nobody a path."""
    if cwd is None:
        return NO_CWD_DATABASE
    return "ws_" + hashlib.sha256(cwd.encode()).hexdigest()[:32]


def log_id(relative_path: bytes) -> int:
    """Return the id of the log at a path inside the store."""
    return key(relative_path)


def key(content: bytes) -> int:
    """Return a number that stands for what may be of any length: 48 bits, exact in JSON and JavaScript."""
    return int.from_bytes(hashlib.sha256(content).digest()[:6])


def create(path: Path, ddl: str) -> sqlite3.Connection:
    """Make a new guarded database with mode 0600 and return a writer on it.

    Nobody sees the file yet, so it has no journal and is not synced before `settle`, and nothing can be rolled
    back: a build that fails or is killed leaves a file that nothing names.
    """
    path.touch(mode=0o600, exist_ok=False)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        f"PRAGMA page_size={PAGE_BYTES}; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
        f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT}; BEGIN; {ddl} COMMIT;"
    )
    _tune_writer(connection)
    return connection


def settle(connection: sqlite3.Connection, path: Path) -> None:
    """Make a new database safe to be seen: on disk, and in WAL mode from here on."""
    connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_writer(path: Path) -> sqlite3.Connection:
    """Open an existing database for writing; a foreign or outdated file is SESSIONGRAPH_CORRUPT."""
    _require(path)
    with translated():
        connection = sqlite3.connect(_uri(path, "mode=rw"), uri=True, isolation_level=None)
    with _closed_on_error(connection):
        _guard(connection)
        _tune_writer(connection)
        connection.execute("PRAGMA synchronous=NORMAL")
    return connection


class Reader(sqlite3.Connection):
    """A connection that reads. `immutable`: it will not see what others write, so it is good for once."""

    immutable = False


def open_reader(path: Path) -> Reader:
    """Open a database read only, for use from any one thread at a time; guarded as `open_writer` is.

    Where nothing can be written beside the file, it is read as one that nobody changes, but only if no `-wal`
    holds rows that would be missed.
    """
    _require(path)
    try:
        return _reader(path, "mode=ro")
    except SessionGraphError as error:
        if error.code == "SESSIONGRAPH_CORRUPT":
            raise
        if has_wal(path):
            raise SessionGraphError(
                "SESSION_QUERY_INDEX_FAILED",
                "The index was not closed and cannot be opened without write access; run `sessiongraph-web index`"
                " as the user who owns it.",
            ) from error
    reader = _reader(path, "mode=ro&immutable=1")
    reader.immutable = True
    return reader


def has_wal(path: Path) -> bool:
    """Say whether a `-wal` with content lies beside a database."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except OSError:
        return False


def check_seal(connection: sqlite3.Connection, cwd: str | None) -> None:
    """Raise SESSIONGRAPH_CORRUPT unless the database was sealed for exactly this cwd."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'sealed_cwd'").fetchone()
    if row is None or row[0] != cwd:
        raise SessionGraphError("SESSIONGRAPH_CORRUPT")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one immediate transaction, rolled back if it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _require(path: Path) -> None:
    """A file that the catalog names and that is gone is damage, not a matter of access."""
    with translated():
        if not path.exists():
            raise SessionGraphError("SESSIONGRAPH_CORRUPT")


def _reader(path: Path, mode: str) -> Reader:
    with translated():
        connection = sqlite3.connect(
            _uri(path, mode), uri=True, isolation_level=None, check_same_thread=False, factory=Reader
        )
    with _closed_on_error(connection):
        connection.row_factory = sqlite3.Row
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        connection.execute("PRAGMA query_only=1")
        connection.execute("PRAGMA trusted_schema=0")
        connection.execute(f"PRAGMA cache_size=-{READER_CACHE_KIB}")
        _guard(connection)
    return connection


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path))}?{mode}"


@contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        with translated():
            yield
    except BaseException:
        connection.close()
        raise


def _guard(connection: sqlite3.Connection) -> None:
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    user_version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application_id != APPLICATION_ID or user_version != FORMAT:
        raise SessionGraphError("SESSIONGRAPH_CORRUPT")


def _tune_writer(connection: sqlite3.Connection) -> None:
    connection.executescript(
        f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}; PRAGMA temp_store=MEMORY;"
        "PRAGMA cache_size=-32768; PRAGMA wal_autocheckpoint=4000; PRAGMA trusted_schema=0;"
    )
