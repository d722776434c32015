"""What must survive a rebuild of the index: the signing key, and who was given access, known by hash alone."""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from sessiongraph_web import access
from sessiongraph_web.access import Caller
from sessiongraph_web.errors import SessionGraphError, invalid_parameter
from sessiongraph_web.language import sentence

Kind = Literal["token", "link", "browser"]

FILE: Final = "private.db"
APPLICATION_ID: Final = 0x53475056  # "SGPV"
VERSION: Final = 1
SECRET_BYTES: Final = 32
PREFIX: Final = "sg_"  # so that no secret begins with a dash on a command line
SECRET_LENGTH_MAX: Final = 100  # characters; nothing longer was ever ours
LABEL_LENGTH_MAX: Final = 200
BUSY_TIMEOUT_SECONDS: Final = 10
LINK_SECONDS: Final = 15 * 60
BROWSER_SECONDS: Final = 30 * 24 * 3600
FORGET_SECONDS: Final = 24 * 3600  # how long an expired link or browser sign-in stays listed

DDL: Final = """
CREATE TABLE IF NOT EXISTS secret (
    name TEXT PRIMARY KEY,             -- signing_key
    value BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS token (
    hash BLOB PRIMARY KEY,             -- sha256 of the secret, which is kept nowhere
    id TEXT NOT NULL UNIQUE,           -- names it in lists and to `revoke`
    kind TEXT NOT NULL,                -- token, link (good for one sign-in) or browser (a sign-in)
    label TEXT NOT NULL,
    grant_json TEXT NOT NULL,          -- access.to_grant
    origin TEXT,                       -- id of the token or link that a browser signed in with
    created_at INTEGER NOT NULL,       -- Unix ms, as are the two below
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER                 -- also when a link was used, or a browser signed out
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS token_origin ON token (origin);
"""


@dataclass(frozen=True, slots=True)
class Token:
    """One grant of access as lists show it. Times are Unix milliseconds."""

    id: str
    kind: Kind
    label: str
    caller: Caller
    created_at: int
    expires_at: int
    revoked_at: int | None


@dataclass(frozen=True, slots=True)
class SignIn:
    """A browser that has just signed in: the secret for its cookie, whom it acts for, until when (Unix ms)."""

    secret: str
    caller: Caller
    expires_at: int


class Tokens:
    """The private database. Every method may be called from any thread, and sees what other processes changed.

    Reading has a connection of its own: `redeem` never waits for a writer, here or in another process.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._writing, self._reading = threading.Lock(), threading.Lock()
        self._writer = _open(path)
        self._reader = _connect(path)
        self.signing_key: bytes = self._reader.execute(
            "SELECT value FROM secret WHERE name = 'signing_key'"
        ).fetchone()[0]

    def close(self) -> None:
        with self._writing, self._reading:
            self._reader.close()
            self._writer.close()

    def create(self, caller: Caller, label: str, expires_at: int, kind: Kind = "token") -> str:
        """Give access until `expires_at` (Unix ms) and return the secret, which can never be read again."""
        grant = access.to_grant(caller)
        if access.from_grant(grant) == access.NOBODY:
            raise invalid_parameter("workspace", "`%(parameter)s` is not something that access can be given to")
        if expires_at <= self._now():
            raise invalid_parameter("expires", "`%(parameter)s` must be in the future")
        if len(label) > LABEL_LENGTH_MAX:
            raise invalid_parameter(
                "label", "`%(parameter)s` must have at most %(maximum)s characters", maximum=LABEL_LENGTH_MAX
            )
        with self._transaction():
            self._forget()
            return self._insert(kind, label, grant, expires_at)

    def redeem(self, secret: str, kind: Kind = "token") -> Caller | None:
        """Return whom a secret of this kind acts for now, or None."""
        with self._reading, _translated():
            row = self._valid(self._reader, secret, kind)
        return _caller(row) if row else None

    def sign_in(self, secret: str) -> SignIn | None:
        """Turn a link (which is spent by it) or a token (which is not) into a browser's sign-in."""
        with self._transaction():
            row = self._valid(self._writer, secret, "link") or self._valid(self._writer, secret, "token")
            caller = _caller(row) if row else access.NOBODY
            if row is None or not caller.is_known:
                return None
            expires_at = self._now() + BROWSER_SECONDS * 1000
            if row["kind"] == "link":
                self._writer.execute("UPDATE token SET revoked_at = ? WHERE hash = ?", (self._now(), row["hash"]))
            else:
                expires_at = min(expires_at, row["expires_at"])
            grant = access.to_grant(caller)
            browser = self._insert("browser", row["label"], grant, expires_at, origin=row["id"])
        return SignIn(browser, caller, expires_at)

    def sign_out(self, secret: str) -> None:
        """End the browser sign-in that has this secret."""
        with self._transaction():
            self._writer.execute(
                "UPDATE token SET revoked_at = ? WHERE hash = ? AND kind = 'browser' AND revoked_at IS NULL",
                (self._now(), _hash(secret)),
            )

    def revoke(self, token_id: str) -> bool:
        """End a grant and every sign-in made with it; say whether there was anything to end."""
        with self._transaction():
            ended = self._writer.execute(
                "UPDATE token SET revoked_at = ?1 WHERE revoked_at IS NULL AND (id = ?2 OR origin = ?2)",
                (self._now(), token_id),
            )
            return ended.rowcount > 0

    def find(self, secret: str) -> Token | None:
        """Return the grant that has this secret, in force or not."""
        with self._reading, _translated():
            row = self._reader.execute("SELECT * FROM token WHERE hash = ?", (_hash(secret),)).fetchone()
        return _token(row) if row else None

    def list(self) -> list[Token]:
        """Return every grant, newest first."""
        with self._reading, _translated():
            rows = self._reader.execute("SELECT * FROM token ORDER BY created_at DESC, id").fetchall()
        return [_token(row) for row in rows]

    def _valid(self, connection: sqlite3.Connection, secret: str, kind: Kind) -> sqlite3.Row | None:
        if len(secret) > SECRET_LENGTH_MAX:
            return None
        row: sqlite3.Row | None = connection.execute(
            "SELECT * FROM token WHERE hash = ? AND kind = ? AND revoked_at IS NULL AND expires_at > ?",
            (_hash(secret), kind, self._now()),
        ).fetchone()
        return row

    def _insert(
        self, kind: Kind, label: str, grant: dict[str, Any], expires_at: int, *, origin: str | None = None
    ) -> str:
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        values = (_hash(secret), secrets.token_hex(6), kind, label, msgspec.json.encode(grant).decode(), origin)
        self._writer.execute(
            """
            INSERT INTO token (hash, id, kind, label, grant_json, origin, created_at, expires_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            (*values, self._now(), expires_at),
        )
        return secret

    def _forget(self) -> None:
        self._writer.execute(
            "DELETE FROM token WHERE kind IN ('link', 'browser') AND expires_at < ?",
            (self._now() - FORGET_SECONDS * 1000,),
        )

    def _now(self) -> int:
        return int(self._clock() * 1000)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._writing, _translated():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")


def _open(path: Path) -> sqlite3.Connection:
    """Open the database for writing, made if there is none, and readable for its owner alone."""
    with _translated():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
        connection = _connect(path)
        try:
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables and the signing key in one transaction, so that two processes agree on one key."""
    connection.execute("BEGIN IMMEDIATE")
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    is_new = not connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    if not is_new and (application_id, version) != (APPLICATION_ID, VERSION):
        raise _foreign()
    if is_new:
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        for statement in filter(str.strip, DDL.split(";")):
            connection.execute(statement)
        connection.execute("INSERT INTO secret VALUES ('signing_key', ?)", (secrets.token_bytes(32),))
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode=WAL")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _unusable() from error
    except sqlite3.DatabaseError as error:
        raise _foreign() from error
    except OSError as error:
        raise _unusable() from error


def _unusable() -> SessionGraphError:
    return SessionGraphError(
        "SESSION_QUERY_INVALID_CONFIG",
        "The index directory cannot be written, so no sign-in can be kept; choose another with --index.",
    )


def _foreign() -> SessionGraphError:
    return SessionGraphError(
        "SESSION_QUERY_INVALID_CONFIG",
        sentence(
            "`%(file)s` in the index directory is damaged or not ours; move it away, and every sign-in with it.",
            file=FILE,
        ),
    )


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


def _caller(row: sqlite3.Row) -> Caller:
    caller = access.from_grant(msgspec.json.decode(row["grant_json"]))
    return replace(caller, name=row["label"] or caller.name)


def _token(row: sqlite3.Row) -> Token:
    return Token(
        id=row["id"],
        kind=row["kind"],
        label=row["label"],
        caller=_caller(row),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
    )
