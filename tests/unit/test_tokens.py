"""The private database: secrets known by hash, grants that end, a key that stays."""

from __future__ import annotations

import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from sessiongraph_web import access, tokens
from sessiongraph_web.access import Caller
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.tokens import Tokens

HOUR_MS = 3_600_000
START = 1_700_000_000


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = float(START)

    def __call__(self) -> float:
        return self.seconds

    @property
    def in_an_hour(self) -> int:
        return int(self.seconds * 1000) + HOUR_MS


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index" / tokens.FILE


@pytest.fixture
def private(path: Path, clock: Clock) -> Tokens:
    return Tokens(path, clock=clock)


CALLERS = [
    access.OWNER,
    access.workspaces("/w/a"),
    access.workspaces("/w/a", "/w/a/", "C:\\w", "/工作"),
    Caller("session", frozenset({"/w/a"}), 7, False),
    Caller("session", frozenset({"/w/a"}), 7, True),
]


@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.kind)
def test_a_token_acts_for_exactly_the_caller_it_was_made_for(
    private: Tokens, clock: Clock, caller: Caller
) -> None:
    """What is redeemed equals what was granted, whatever kind of caller it is."""
    secret = private.create(caller, "mine", clock.in_an_hour)

    assert private.redeem(secret) == caller


def test_a_token_ends_when_it_expires(private: Tokens, clock: Clock) -> None:
    """The last valid moment is the one before `expires_at`."""
    secret = private.create(access.OWNER, "", clock.in_an_hour)
    clock.seconds += 3599.999
    assert private.redeem(secret) == access.OWNER

    clock.seconds += 0.001
    assert private.redeem(secret) is None


def test_a_secret_serves_for_its_own_kind_only(private: Tokens, clock: Clock) -> None:
    """A sign-in link is no bearer token, a bearer token no cookie."""
    link = private.create(access.OWNER, "", clock.in_an_hour, "link")
    token = private.create(access.OWNER, "", clock.in_an_hour, "token")

    assert private.redeem(link, "token") is None
    assert private.redeem(link, "browser") is None
    assert private.redeem(token, "browser") is None


@pytest.mark.parametrize("secret", ["", "sg_", "sg_" + "a" * 43, "x" * 10_000, "\ud800", "é\0"])
def test_what_was_never_given_out_is_nobodys(private: Tokens, clock: Clock, secret: str) -> None:
    """Any text may be offered as a secret; it opens nothing and breaks nothing."""
    private.create(access.OWNER, "", clock.in_an_hour)

    assert private.redeem(secret) is None
    assert private.sign_in(secret) is None


def test_a_link_signs_in_once(private: Tokens, clock: Clock) -> None:
    """The second use of a link finds it spent, and the sign-in it made goes on."""
    link = private.create(access.workspaces("/w/a"), "laptop", clock.in_an_hour, "link")

    signed = private.sign_in(link)

    assert signed is not None
    assert signed.expires_at == int(clock.seconds * 1000) + tokens.BROWSER_SECONDS * 1000
    assert private.redeem(signed.secret, "browser") == access.workspaces("/w/a")
    assert private.sign_in(link) is None
    assert private.redeem(signed.secret, "browser") == access.workspaces("/w/a")


def test_only_one_of_many_at_once_can_spend_a_link(private: Tokens, path: Path, clock: Clock) -> None:
    """Two browsers and two processes that press the button together get one sign-in."""
    link = private.create(access.OWNER, "", clock.in_an_hour, "link")
    other = Tokens(path, clock=clock)
    results: list[object] = []
    threads = [
        threading.Thread(target=lambda door=door: results.append(door.sign_in(link)))
        for door in (private, other) * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(results) == 8
    assert sum(result is not None for result in results) == 1


def test_a_token_signs_browsers_in_until_it_ends(private: Tokens, clock: Clock) -> None:
    """A shared token opens the pages too, never for longer than itself."""
    token = private.create(access.workspaces("/w/a"), "", clock.in_an_hour)

    first, second = private.sign_in(token), private.sign_in(token)

    assert first is not None
    assert second is not None
    assert first.secret != second.secret
    assert first.expires_at == second.expires_at == clock.in_an_hour


def test_revoking_a_token_ends_its_sign_ins_at_once(private: Tokens, path: Path, clock: Clock) -> None:
    """What one process revokes is over in another one that has the database open."""
    token = private.create(access.OWNER, "shared", clock.in_an_hour)
    kept = private.create(access.OWNER, "kept", clock.in_an_hour)
    signed = private.sign_in(token)
    assert signed is not None
    elsewhere = Tokens(path, clock=clock)
    listed = {row.label: row.id for row in elsewhere.list() if row.kind == "token"}

    assert elsewhere.revoke(listed["shared"]) is True

    assert private.redeem(token) is None
    assert private.redeem(signed.secret, "browser") is None
    assert private.redeem(kept) == access.OWNER
    assert elsewhere.revoke(listed["shared"]) is False
    assert elsewhere.revoke("never-was") is False


def test_a_reader_never_waits_for_a_writer(private: Tokens, path: Path, clock: Clock) -> None:
    """While another process writes, secrets are redeemed from what was committed last."""
    secret = private.create(access.OWNER, "", clock.in_an_hour)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE token SET revoked_at = 1")

    assert private.redeem(secret) == access.OWNER

    writer.execute("COMMIT")
    assert private.redeem(secret) is None


def test_signing_out_ends_that_browser_alone(private: Tokens, clock: Clock) -> None:
    """The token and the other browsers that used it stay signed in."""
    token = private.create(access.OWNER, "", clock.in_an_hour)
    one, two = private.sign_in(token), private.sign_in(token)
    assert one is not None
    assert two is not None

    private.sign_out(one.secret)
    private.sign_out(token)

    assert private.redeem(one.secret, "browser") is None
    assert private.redeem(two.secret, "browser") == access.OWNER
    assert private.redeem(token) == access.OWNER


def test_a_list_says_who_may_see_what_and_until_when(private: Tokens, clock: Clock) -> None:
    """Everything but the secret is shown."""
    private.create(access.workspaces("/w/a"), "for B", clock.in_an_hour)

    (row,) = private.list()

    now = int(clock.seconds * 1000)
    assert row == tokens.Token(row.id, "token", "for B", access.workspaces("/w/a"), now, now + HOUR_MS, None)


def test_old_sign_ins_are_forgotten_but_never_a_token(private: Tokens, clock: Clock) -> None:
    """The list cannot grow with every sign-in for ever; what was given away stays accountable."""
    private.create(access.OWNER, "token", clock.in_an_hour)
    private.sign_in(private.create(access.OWNER, "link", clock.in_an_hour, "link"))
    clock.seconds += tokens.BROWSER_SECONDS + tokens.FORGET_SECONDS + 1

    private.create(access.OWNER, "new", clock.in_an_hour, "link")

    assert sorted(row.label for row in private.list()) == ["new", "token"]


@pytest.mark.parametrize(
    ("caller", "parameter"),
    [
        (access.NOBODY, "workspace"),
        (access.workspaces(), "workspace"),
        (access.workspaces(""), "workspace"),
        (access.workspaces("/w/\ud800"), "workspace"),
        (access.workspaces("/w/\0"), "workspace"),
        (Caller("session", frozenset({"/w/a", "/w/b"}), 7), "workspace"),
        (Caller("session", frozenset({"/w/a"}), None), "workspace"),
    ],
)
def test_access_to_nothing_in_particular_is_not_given(
    private: Tokens, clock: Clock, caller: Caller, parameter: str
) -> None:
    """A grant that could not be read back as itself is refused when it is made."""
    with pytest.raises(SessionGraphError) as raised:
        private.create(caller, "", clock.in_an_hour)

    assert raised.value.fields == {"parameter": parameter}
    assert private.list() == []


def test_a_token_must_expire_later_than_now(private: Tokens, clock: Clock) -> None:
    """A grant that is over when it is made is a mistake to report."""
    with pytest.raises(SessionGraphError) as raised:
        private.create(access.OWNER, "", int(clock.seconds * 1000))

    assert raised.value.fields == {"parameter": "expires"}


def test_secrets_are_kept_nowhere(private: Tokens, path: Path, clock: Clock) -> None:
    """Neither the database nor what lies beside it holds a secret or the random part of one."""
    secret = private.create(access.OWNER, "", clock.in_an_hour)
    signed = private.sign_in(secret)
    assert signed is not None
    stored = b"".join(file.read_bytes() for file in path.parent.iterdir())

    assert b"grant" in stored
    for given in (secret, signed.secret):
        assert given.removeprefix(tokens.PREFIX).encode() not in stored


def test_the_signing_key_is_made_once(private: Tokens, path: Path) -> None:
    """Every process that opens the database signs with the same 32 bytes; another index has others."""
    again = Tokens(path)
    elsewhere = Tokens(path.parent / "other" / tokens.FILE)

    assert len(private.signing_key) == 32
    assert again.signing_key == private.signing_key
    assert elsewhere.signing_key != private.signing_key


def test_nobody_else_can_read_the_file(path: Path) -> None:
    """Mode 0600 for the database and what SQLite puts beside it, even if the file was once more open."""
    path.parent.mkdir()
    path.touch(mode=0o644)
    private = Tokens(path)
    private.create(access.OWNER, "", 2**52)

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {tokens.FILE: 0o600, tokens.FILE + "-wal": 0o600, tokens.FILE + "-shm": 0o600}


def test_a_foreign_database_is_refused_untouched(path: Path) -> None:
    """A file that another program made is left as it is."""
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(SessionGraphError) as raised:
        Tokens(path)

    assert raised.value.code == "SESSION_QUERY_INVALID_CONFIG"
    assert path.read_bytes() == before


def test_a_damaged_database_is_refused(path: Path) -> None:
    """Bytes that are no database give the same clear error."""
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 100)

    with pytest.raises(SessionGraphError) as raised:
        Tokens(path)

    assert raised.value.code == "SESSION_QUERY_INVALID_CONFIG"
    assert str(path) not in raised.value.detail


def test_an_index_directory_that_cannot_be_written_is_named_as_the_reason(tmp_path: Path) -> None:
    """A file where the directory should be stands for any directory that cannot be written, root's included."""
    (tmp_path / "index").write_text("")

    with pytest.raises(SessionGraphError) as raised:
        Tokens(tmp_path / "index" / tokens.FILE)

    assert raised.value.code == "SESSION_QUERY_INVALID_CONFIG"
    assert "cannot be written" in raised.value.detail
    assert str(tmp_path) not in raised.value.detail
