"""Following: who may, what is told and when, how many at once, and how streams end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from sessiongraph_web import access
from sessiongraph_web.access import Caller
from sessiongraph_web.indexer import Wish
from sessiongraph_web.web import app, live, signin
from tests.asgi import Pairs, ask, bearer
from tests.builders import Log
from tests.followers import follow
from tests.world import FOREIGN, HOME, two_workspaces

pytestmark = pytest.mark.asyncio


class Site:
    """A served world, one of whose sessions grows."""

    def __init__(self, directory: Path) -> None:
        self.world = two_workspaces(directory)
        self.log = self.world.write("growing", Log(HOME).turn("first", "answer"))
        self.path = self.log.folder(self.world.store) / "session.v4.jsonl.zstd"
        self.world.build()
        self.address = f"/sessions/{self.log.id}/live"
        self.records = len(self.log.events)
        self.datasette = self.world.serve()

    def headers(self, caller: Caller = access.OWNER, *more: tuple[str, str]) -> Pairs:
        return [*bearer(self.world.token(caller)), *more]

    def grow(self, prompt: str) -> int:
        """Append a turn and return how many records there are now."""
        self.log.turn(prompt, "answer")
        self.log.append(self.path)
        return len(self.log.events)

    @property
    def streams(self) -> int:
        return live.lookout(self.datasette).streams


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(tmp_path)
    await made.datasette.invoke_startup()
    yield made
    await made.datasette.invoke_shutdown()


async def test_a_follower_is_told_the_range_of_what_is_new(site: Site) -> None:
    """Each growth of the log is one message; its id is where the next one begins. No text is in it."""
    async with follow(site.datasette, site.address, site.headers()) as follower:
        assert (follower.status, follower.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert follower.headers["cache-control"] == "private, no-store"
        second = site.grow("never in a message")
        await follower.hears(1)
        third = site.grow("never in a message")
        assert await follower.hears(2) == [
            (second, "more", {"first": site.records, "last": second - 1}),
            (third, "more", {"first": second, "last": third - 1}),
        ]


@pytest.mark.parametrize("resumed", [False, True], ids=["ordinal", "Last-Event-ID"])
async def test_a_follower_who_comes_again_is_told_what_he_missed(site: Site, *, resumed: bool) -> None:
    """What was written after the page was made, or while a stream was away, is told at once."""
    records = site.grow("meanwhile")
    more = [("last-event-id", str(site.records))] if resumed else []
    address = site.address + (f"?ordinal={0 if resumed else site.records}")
    async with follow(site.datasette, address, site.headers(access.OWNER, *more)) as follower:
        assert await follower.hears(1) == [(records, "more", {"first": site.records, "last": records - 1})]


@pytest.mark.parametrize("known", ["x", "-1", "9" * 40, "１"])
async def test_an_id_that_is_no_number_is_passed_over(site: Site, known: str) -> None:
    """A `Last-Event-ID` that we never sent counts for nothing."""
    headers = [*site.headers(), ("last-event-id", known.encode().decode("latin-1"))]
    address = f"{site.address}?ordinal=1"
    async with follow(site.datasette, address, [(name, value) for name, value in headers]) as follower:
        ((_, event, data),) = await follower.hears(1)
        assert (event, data["first"]) == ("more", 1)


async def test_a_log_that_was_written_anew_is_said_to_be(site: Site) -> None:
    """A follower who knows more than there is has to begin again."""
    async with follow(site.datasette, f"{site.address}?ordinal=500", site.headers()) as follower:
        assert await follower.hears(1) == [(site.records, "rewritten", {"records": site.records})]


async def test_half_an_event_is_no_news(site: Site) -> None:
    """A torn tail changes the file and tells nothing; the rest of it does."""
    site.log.turn("torn", "answer")
    grown = site.log.to_bytes(True)
    stored = site.path.read_bytes()
    async with follow(site.datasette, site.address, site.headers()) as follower:
        site.path.write_bytes(grown[: len(stored) + 5])
        await asyncio.sleep(3 * live.LOOK_SECONDS)
        assert follower.messages == []
        site.path.write_bytes(grown)
        records = len(site.log.events)
        assert await follower.hears(1) == [(records, "more", {"first": site.records, "last": records - 1})]


async def test_only_who_may_read_a_session_may_follow_it(site: Site) -> None:
    """To others it is missing, byte for byte; to nobody it is a 401; the index is the owner's alone."""
    hidden = f"/sessions/{site.world.ids['foreign']}/live"
    scoped = site.headers(access.workspaces(HOME))
    foreign = await ask(site.datasette, hidden, headers=scoped)
    missing = await ask(site.datasette, "/sessions/nosuchsession/live", headers=scoped)
    assert (foreign.status, foreign.body, foreign.headers) == (404, missing.body, missing.headers)
    assert (await ask(site.datasette, site.address)).status == 401
    assert (await ask(site.datasette, "/status/live", headers=scoped)).status == 404
    async with follow(site.datasette, site.address, scoped) as follower:
        assert follower.status == 200
    one = Caller("session", cwds=frozenset({HOME}), log_id=site.world.log_ids["growing"])
    async with follow(site.datasette, site.address, site.headers(one)) as follower:
        assert follower.status == 200


async def test_a_session_that_moves_away_is_followed_no_longer(site: Site) -> None:
    """The header is checked whenever there is news: what now belongs to another workspace ends the stream."""
    async with follow(site.datasette, site.address, site.headers(access.workspaces(HOME))) as follower:
        site.path.write_bytes(Log(FOREIGN, id=site.log.id).turn("not", "yours").to_bytes(True))
        await follower.ends()
        assert follower.messages == []


async def test_one_look_serves_all_followers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing happens a log is looked at by its stat, once for all who follow it, and never read."""
    looks: list[object] = []
    reads: list[int] = []
    look, read = live.SessionSource.state, live.SessionSource.news

    def state(source: live.SessionSource) -> object:
        looks.append(source.key)
        return look(source)

    def news(source: live.SessionSource, since: int) -> live.News | None:
        reads.append(since)
        return read(source, since)

    monkeypatch.setattr(live.SessionSource, "state", state)
    monkeypatch.setattr(live.SessionSource, "news", news)
    async with AsyncExitStack() as stack:
        for _ in range(8):
            await stack.enter_async_context(follow(site.datasette, site.address, site.headers()))
        await asyncio.sleep(live.LOOK_SECONDS)
        at_first = len(reads)
        looks.clear()
        await asyncio.sleep(4 * live.LOOK_SECONDS)
        assert len(looks) <= 5
        assert len(reads) == at_first == 8


async def test_streams_are_limited_and_freed(site: Site) -> None:
    """The 33rd is told to come later; a client that goes makes room at once, and the last stops the looking."""
    async with AsyncExitStack() as stack:
        followers = [
            await stack.enter_async_context(follow(site.datasette, site.address, site.headers()))
            for _ in range(live.MAX_STREAMS)
        ]
        refused = await ask(site.datasette, site.address, headers=site.headers())
        assert (refused.status, refused.header("retry-after")) == (503, str(live.BUSY_SECONDS))
        assert refused.header("cache-control") == "private, no-store"
        followers[0].go()
        await followers[0].ends()
        assert site.streams == live.MAX_STREAMS - 1
        async with follow(site.datasette, site.address, site.headers()) as follower:
            assert follower.status == 200
    assert site.streams == 0
    assert [task for task in asyncio.all_tasks() if "Lookout" in repr(task.get_coro()) and not task.done()] == []


async def test_silence_has_a_heartbeat(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream with nothing to say sends a comment now and then."""
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.05)
    async with follow(site.datasette, site.address, site.headers()) as follower:
        await follower._until(lambda: follower.body.count(live.HEARTBEAT) >= 2)
        assert follower.messages == []


async def test_a_stream_ends_to_be_authorized_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream has an end; a client that comes back with a token that was revoked is not let in."""
    monkeypatch.setattr(live, "LIFETIME_SECONDS", 0)
    headers = bearer(site.world.token(access.OWNER, label="short"))
    async with follow(site.datasette, site.address, headers) as follower:
        await follower.ends()
    site.world.revoke("short")
    assert (await ask(site.datasette, site.address, headers=headers)).status == 401


@pytest.mark.parametrize("address", ["session", "/status/live"])
async def test_a_stream_ends_when_access_is_taken_back(site: Site, address: str) -> None:
    """Who was revoked while following is told nothing more, and the stream ends; others' streams stay."""
    headers = bearer(site.world.token(access.OWNER, label="short"))
    path = site.address if address == "session" else address
    async with (
        follow(site.datasette, path, site.headers()) as other,
        follow(site.datasette, path, headers) as follower,
    ):
        site.world.revoke("short")
        await follower.ends()
        said = follower.messages
        site.grow("after the end")
        app.product(site.datasette).refresher.request(Wish())
        await other.hears(len(said) + 1)
        assert not other.ended
        assert follower.messages == said


async def test_a_stream_ends_when_access_runs_out(site: Site) -> None:
    """A token that expires meanwhile ends its stream."""
    headers = bearer(site.world.token(access.workspaces(HOME), seconds=1))
    async with follow(site.datasette, site.address, headers) as follower:
        await follower.ends()
    assert (await ask(site.datasette, site.address, headers=headers)).status == 401


async def test_a_sign_in_that_is_revoked_ends_its_stream(site: Site) -> None:
    """What a browser signed in with is taken back: the browser follows no longer."""
    private = app.product(site.datasette).tokens
    signed_in = private.sign_in(site.world.token(access.workspaces(HOME), label="shared"))
    assert signed_in is not None
    cookie = [("cookie", f"{signin.cookie_name(private)}={signed_in.secret}")]
    async with follow(site.datasette, site.address, cookie) as follower:
        (given,) = [token for token in private.list() if token.label == "shared" and token.kind == "token"]
        assert private.revoke(given.id)
        await follower.ends()
    assert (await ask(site.datasette, site.address, headers=cookie)).status == 401


async def test_closing_the_instance_ends_its_streams(site: Site) -> None:
    """Nobody waits for a heartbeat when the product is closed."""
    async with follow(site.datasette, site.address, site.headers()) as follower:
        live.close(site.datasette)
        await follower.ends()


async def test_head_is_answered_at_once(site: Site) -> None:
    """HEAD has the headers of a stream and no stream."""
    answer = await ask(site.datasette, site.address, method="HEAD", headers=site.headers())
    assert (answer.status, answer.body) == (200, b"")
    assert answer.header("content-type") == "text/event-stream; charset=utf-8"


async def test_the_owner_is_told_of_index_runs(site: Site) -> None:
    """At first how the index is; then what a run does; a message after it carries the epoch."""
    product = app.product(site.datasette)
    async with follow(site.datasette, "/status/live", site.headers()) as follower:
        first = await follower.hears(1)
        assert first == [(0, "indexed", {"epoch": product.note(access.OWNER).epoch})]
        site.grow("for the index")
        product.refresher.request(Wish())
        await follower._until(lambda: follower.messages[-1][0] == 1)
        assert follower.messages[-1] == (1, "indexed", {"epoch": product.note(access.OWNER).epoch})
        assert follower.messages[-1][2] != first[0][2]
