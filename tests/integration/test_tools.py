"""The model tools: whom they answer what, how long they take, and where a long answer ends."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from click.testing import CliRunner

from sessiongraph_web import access, agents, cli, config, indexer
from sessiongraph_web.agents import Agent
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.filters import EventRequest
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.reports import Status
from sessiongraph_web.tools import Result, Toolbox
from sessiongraph_web.tooltext import MOST_BYTES
from tests.builders import START_MS, Log
from tests.neighbourhood import ASKED, FOREIGN, TWIN, Neighbourhood, secret
from tests.world import HOME, World, add_foreign, home_only

OUTSIDE: Final = Result(
    "Error: session target is outside the caller workspace", "SESSION_QUERY_TOOL_UNAUTHORIZED"
)
TARGETED: Final = (
    ("session_event_search", {"query": ASKED}),
    ("session_trace", {}),
    ("session_event_trace", {"seq": 4}),
    ("session_event_read", {"seq": 4, "before": 4, "after": 4}),
)
LISTING: Final = (
    ("session_search", {"query": ASKED}),
    ("session_search", {"query": ASKED, "include_root_sessions": True}),
    ("sessiongraph", {"operation": "search", "query": ASKED, "limit": 100}),
    ("sessiongraph", {"operation": "search", "query": "secret", "kinds": ["user", "tool_result", "title"]}),
    ("sessiongraph", {"operation": "timeline", "limit": 100.0}),
    ("sessiongraph", {"operation": "workspaces"}),
    ("sessiongraph", {"operation": "status"}),
)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionGraph]:
    """The product on the neighbourhood."""
    found = Neighbourhood(tmp_path_factory.mktemp("neighbourhood")).open()
    yield found
    found.close()


def agent(product: SessionGraph, kind: str) -> Agent:
    """Return a caller by its kind."""
    if kind == "workspace":
        return Agent("/w/a")
    return agents.agent_of(product, {"session": "session-own", "no cwd": "session-nowhere"}[kind])


@pytest.mark.parametrize("caller", ["session", "workspace", "no cwd"])
@pytest.mark.parametrize("target", [*FOREIGN, "missing", "twice", "empty", "prefix", "surrogate", "NUL"])
@pytest.mark.parametrize(("name", "arguments"), TARGETED)
def test_what_is_outside_answers_as_what_is_missing(
    product: SessionGraph, caller: str, target: str, name: str, arguments: dict[str, Any]
) -> None:
    """A foreign, missing, ambiguous or malformed target is one same sentence, whoever asks, whatever tool."""
    named = {"missing": "session-none", "twice": "session-twice", "empty": "", "prefix": "session-sam"}
    named |= {"surrogate": "\ud800", "NUL": "session-own\0"}
    session_id = named.get(target, f"session-{secret(target)}")
    assert Toolbox(product, agent(product, caller)).call(name, arguments | {"session_id": session_id}) == OUTSIDE


@pytest.mark.parametrize("caller", ["session", "workspace"])
@pytest.mark.parametrize(("name", "arguments"), TARGETED)
@pytest.mark.parametrize("session_id", ["session-own", "session-same", TWIN])
def test_what_is_inside_is_told_without_a_word_of_others(
    product: SessionGraph, caller: str, session_id: str, name: str, arguments: dict[str, Any]
) -> None:
    """Sessions of the same workspace are read; of an id that occurs elsewhere too, the own one alone."""
    if (name, session_id, caller) == ("session_event_search", "session-own", "session"):
        arguments = arguments | {"seq_to": 0}
    result = Toolbox(product, agent(product, caller)).call(name, arguments | {"session_id": session_id})
    assert result.code is None
    assert session_id in result.text
    assert "secret" not in result.text


@pytest.mark.parametrize("caller", ["session", "workspace"])
@pytest.mark.parametrize(("name", "arguments"), LISTING)
def test_lists_hold_nothing_of_others(
    product: SessionGraph, caller: str, name: str, arguments: dict[str, Any]
) -> None:
    """No list, count or path tells of another workspace."""
    result = Toolbox(product, agent(product, caller)).call(name, arguments)
    assert result.code is None
    text = result.text
    assert "secret" not in text.replace("secret: ", "")
    assert not re.search(r"/w/(?!a(?!/|\w))|session-nowhere|--elsewhere--|/tmp", text)


@pytest.mark.parametrize("parent", ["session-secretnocwd", "session-none", TWIN, "session-own"])
def test_a_hidden_parent_finds_what_a_missing_one_finds(product: SessionGraph, parent: str) -> None:
    """Children are found by a visible parent alone."""
    given = {"query": ASKED, "parent_session_ids": [parent]}
    text = Toolbox(product, Agent("/w/a")).call("session_search", given).text
    assert ("session-same" in text) == (parent == "session-own")
    if parent != "session-own":
        assert text == "No prior session matches found."


def test_no_argument_widens_a_workspace(product: SessionGraph) -> None:
    """Asking for another workspace is refused, and a cursor of the owner's is of no use."""
    asked = {"operation": "search", "query": ASKED, "limit": 1}
    whole = Toolbox(product, Agent()).call("sessiongraph", asked).text
    cursor = re.findall(r"cursor (\S+)", whole)[0]
    toolbox = Toolbox(product, Agent("/w/a"))
    assert toolbox.call("sessiongraph", asked | {"workspace": "/w"}).code == "SESSION_QUERY_INVALID_FILTER"
    assert toolbox.call("sessiongraph", asked | {"cursor": cursor}).code == "SESSION_QUERY_INVALID_CURSOR"
    assert toolbox.call("sessiongraph_index", {}) == Result(
        "Error: only the owner may index", "SESSION_QUERY_TOOL_UNAUTHORIZED"
    )


def test_relatives_outside_are_marks_without_names(product: SessionGraph) -> None:
    """A lineage has one mark for each child that lies outside, and the names of those inside."""
    text = Toolbox(product, Agent("/w/a")).call("session_trace", {"session_id": "session-own"}).text
    below = text.split("Descendants:\n")[1].split("\n")
    assert sorted(below)[: len(FOREIGN)] == ["- [outside workspace subtree]"] * len(FOREIGN)
    assert [line.split(" — ")[0] for line in below if "outside" not in line] == ["- session-same"]


def test_a_session_without_a_workspace_sees_itself_alone(product: SessionGraph) -> None:
    """Its own events can be read; its own trace names nobody; there is nothing to search across."""
    toolbox = Toolbox(product, agent(product, "no cwd"))
    assert toolbox.call("session_event_read", {"seq": 3}).text.startswith("Session session-nowhere — the heron\n")
    assert "- none (target is a root session)" in toolbox.call("session_trace", {}).text
    assert toolbox.call("session_search", {"query": ASKED}).code == "SESSION_QUERY_TOOL_UNAUTHORIZED"
    assert "No " not in toolbox.call("session_event_search", {"query": ASKED}).text


@pytest.mark.parametrize("session_id", ["session-none", "session-ow", "session-twice"])
def test_a_caller_must_be_one_session(product: SessionGraph, session_id: str) -> None:
    """A caller that is missing, or named in part, or there twice, is none."""
    with pytest.raises(SessionGraphError) as raised:
        agents.agent_of(product, session_id)
    assert raised.value.code == "SESSION_QUERY_TOOL_MISSING_AGENT"


def test_without_an_agent_only_sessiongraph_answers(product: SessionGraph) -> None:
    """The owner has no session to speak for; the five tools say so, and sessiongraph shows the whole machine."""
    toolbox = Toolbox(product, Agent())
    for name, arguments in (("session_search", {"query": "x"}), *TARGETED):
        assert toolbox.call(name, arguments).code == "SESSION_QUERY_TOOL_MISSING_AGENT"
    assert "/w/A" in toolbox.call("sessiongraph", {"operation": "workspaces"}).text


def test_a_workspace_has_no_current_session(product: SessionGraph) -> None:
    """Where no session calls, a tool needs to be told which one is meant."""
    assert Toolbox(product, Agent("/w/a")).call("session_trace", {}).code == "SESSION_QUERY_TOOL_MISSING_AGENT"


@pytest.mark.parametrize(("name", "arguments"), [(n, a) for n, a in LISTING if a.get("operation") != "search"])
def test_other_workspaces_change_no_word(tmp_path: Path, name: str, arguments: dict[str, Any]) -> None:
    """A scoped caller reads the same with and without other people's sessions in the store."""
    world = home_only(tmp_path).build()
    before = _told(world, name, arguments)
    add_foreign(world).build()
    assert _told(world, name, arguments) == before


def _told(world: World, name: str, arguments: dict[str, Any]) -> str:
    product = SessionGraph(config.load(world.options))
    try:
        text = Toolbox(product, Agent(HOME)).call(name, arguments).text
    finally:
        product.close()
    return re.sub(r"refreshed: .*|\(\d+ ms\)", "", text)


def test_what_was_written_is_read_as_it_was_spelled_and_masked(tmp_path: Path) -> None:
    """An old record keeps its own spelling; a secret in it is masked, for the agent's own session too."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    log = Log("/w/a", id="session-old", version=0)
    log.start_turn(f"my token is {token}")
    log.assistant("ok", [("call-1", "bash", "{}")])
    log.call("call-1", "bash")
    result = log.result("call-1", "done")
    log.write(tmp_path / "sessions")
    settings = config.load(
        {"sessions": tmp_path / "sessions", "index": tmp_path / "index", "auto_refresh": False}
    )
    indexer.Run(settings).execute()
    product = SessionGraph(settings)
    toolbox = Toolbox(product, agents.agent_of(product, log.id))
    told = toolbox.call("session_event_read", {"seq": result, "before": 50}).text
    record = json.loads(told.split("```json\n")[1].split("\n```")[0])
    assert record == log.events[-1]
    assert token not in told
    assert "[masked:" in told
    product.close()


def test_an_own_search_ends_before_the_current_step(tmp_path: Path) -> None:
    """What the step that calls has written so far is no hit, however far back it began."""
    log = Log("/w/a", id="session-own").turn(f"the {ASKED}", "earlier")
    log.start_turn(f"the {ASKED} again")
    for number in range(250):
        log.call(f"call-{number}", "bash", f'{{"command": "{ASKED}"}}')
    log.write(tmp_path / "sessions")
    settings = config.load(
        {"sessions": tmp_path / "sessions", "index": tmp_path / "index", "auto_refresh": False}
    )
    indexer.Run(settings).execute()
    product = SessionGraph(settings)
    toolbox = Toolbox(product, agents.agent_of(product, log.id))
    text = toolbox.call("session_event_search", {"query": ASKED, "seq_to": 999}).text
    assert text.startswith(
        "Session session-own — the heron\n\nEvent search results (1):\n1. seq 3 | user/message"
    )
    product.close()


def test_titles_are_not_searched(tmp_path: Path) -> None:
    """The five tools search every kind of text but titles, as the original did."""
    log = Log("/w/a")
    log.turn("hello", "there").title("wagtail")
    log.write(tmp_path / "sessions")
    settings = config.load(
        {"sessions": tmp_path / "sessions", "index": tmp_path / "index", "auto_refresh": False}
    )
    indexer.Run(settings).execute()
    product = SessionGraph(settings)
    toolbox = Toolbox(product, Agent("/w/a"))
    assert toolbox.call("session_search", {"query": "wagtail"}).text == "No prior session matches found."
    assert "[wagtail]" in toolbox.call("sessiongraph", {"operation": "search", "query": "wagtail"}).text
    product.close()


def test_a_text_too_common_to_rank_asks_to_narrow(tmp_path: Path) -> None:
    """Where matches were left out of the ranking, the answer says how to come to them, and so they are found."""
    Log("/w/a", id="session-early").turn(ASKED, "rare").write(tmp_path / "sessions")
    late = Log("/w/a", id="session-late", created_at=START_MS + 1_000_000)
    for number in range(1001):
        late.user(f"{ASKED} {number}")
    late.write(tmp_path / "sessions")
    settings = config.load(
        {"sessions": tmp_path / "sessions", "index": tmp_path / "index", "auto_refresh": False}
    )
    indexer.Run(settings).execute()
    product = SessionGraph(settings)
    toolbox = Toolbox(product, Agent("/w/a"))
    text = toolbox.call("session_search", {"query": ASKED}).text
    assert "session-early" not in text
    assert text.endswith("\n\nResult cap reached. Narrow the query or add filters to find additional matches.")
    narrowed = toolbox.call("session_search", {"query": ASKED, "session_ids": ["session-early"]}).text
    assert narrowed.startswith("Session search results (1):\n\n1. Session session-early")
    product.close()


def test_a_long_answer_is_cut_and_says_where_the_rest_is(tmp_path: Path) -> None:
    """An event too long for one answer ends with a command that prints all of it, and works."""
    log = Log("/w/a", id="session-long")
    seq = log.user("字" * 200_000)
    for _ in range(3):
        log.user("b" * 100_000)
    log.write(tmp_path / "sessions")
    settings = config.load(
        {"sessions": tmp_path / "sessions", "index": tmp_path / "index", "auto_refresh": False}
    )
    indexer.Run(settings).execute()
    product = SessionGraph(settings)
    toolbox = Toolbox(product, Agent("/w/a"))
    neighbours = toolbox.call("session_event_read", {"session_id": log.id, "seq": seq + 3, "before": 2}).text
    whole = toolbox.call("session_event_read", {"session_id": log.id, "seq": seq}).text
    for text in (neighbours, whole):
        assert MOST_BYTES // 2 < len(text.encode()) < MOST_BYTES + 500
    assert neighbours.count("b" * 100_000) == 2, "the second neighbour is left out whole"
    command = re.search(r"For the rest: sessiongraph-web (.*)\]$", whole)
    assert command and command[1] == f"event session-long --workspace /w/a {seq} --json"
    places = ["--sessions", str(settings.sessions), "--index", str(settings.index)]
    printed = CliRunner().invoke(cli.main, [*command[1].split(), *places])
    assert json.loads(printed.stdout)["target"]["data"]["content"][0]["text"] == "字" * 200_000
    product.close()


def test_a_long_session_says_how_to_go_on(tmp_path: Path) -> None:
    """sessiongraph's answer is cut between events, and the command that it names asks the same."""
    log = Log("/w/a", id="session-long")
    for number in range(100):
        log.user(f"{number} " + "字" * 1990)
    log.write(tmp_path / "sessions")
    settings = config.load(
        {"sessions": tmp_path / "sessions", "index": tmp_path / "index", "auto_refresh": False}
    )
    indexer.Run(settings).execute()
    product = SessionGraph(settings)
    given = {"operation": "session", "session_id": log.id, "ordinal": 1, "limit": 99}
    text = Toolbox(product, Agent("/w/a")).call("sessiongraph", given).text
    command = re.search(r"For the rest: sessiongraph-web (.*)\]$", text)
    assert command
    assert command[1] == "session --ordinal 1 --limit 99 --workspace /w/a --json -- session-long"
    places = ["--sessions", str(settings.sessions), "--index", str(settings.index)]
    words = command[1].split()
    printed = CliRunner().invoke(cli.main, [words[0], *places, *words[1:]])
    assert len(json.loads(printed.stdout)["events"]) == 99
    assert len(text.encode()) < MOST_BYTES + 500
    product.close()


def test_a_filter_has_so_many_values_at_most(product: SessionGraph) -> None:
    """A list that no model means is refused before anything is looked up."""
    many = [f"session-{number}" for number in range(501)]
    result = Toolbox(product, Agent("/w/a")).call("session_search", {"query": "x", "parent_session_ids": many})
    assert result.text == "Error: parent_session_ids must contain at most 500 values"


class Slow:
    """A product whose searches go on until they are told to stop, as one over a huge index would."""

    def __init__(self, product: SessionGraph, seconds: int) -> None:
        self.product, self.settings = product, replace(product.settings, search_timeout_seconds=seconds)
        self.stopped = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.product, name)

    def search(self, caller: Any, request: Any, *, stop: Any) -> Any:
        while not stop():
            time.sleep(0.005)
        self.stopped.set()
        return self.product.search(caller, request, stop=stop)


@pytest.mark.parametrize("name", ["session_search", "session_event_search"])
def test_a_search_out_of_time_is_one_fixed_error(product: SessionGraph, name: str) -> None:
    """At the deadline a search stops: half an answer would look like a whole one."""
    given = {"query": ASKED} | ({"session_id": "session-same"} if "event" in name else {})
    slow: Any = Slow(product, seconds=0)
    assert Toolbox(slow, Agent("/w/a")).call(name, given) == Result(
        "Error: session query was cancelled", "SESSION_QUERY_ABORTED"
    )


def test_a_call_that_nobody_waits_for_stops(product: SessionGraph) -> None:
    """A cancelled search ends long before its time is up, with the error that wins over all others."""
    slow: Any = Slow(product, seconds=600)
    for name, given in (("session_search", {"query": ASKED}), ("session_search", {"query": " "})):
        result = Toolbox(slow, Agent("/w/a")).call(name, given, stop=lambda: True)
        assert result.code == "SESSION_QUERY_ABORTED"


def test_real_searches_stop_when_told(product: SessionGraph) -> None:
    """The operation itself heeds `stop`: its page is partial."""
    asked = {"operation": "search", "query": ASKED}
    assert (
        Toolbox(product, Agent("/w/a")).call("sessiongraph", asked, stop=_late(2)).code == "SESSION_QUERY_ABORTED"
    )


def _late(looks: int) -> Any:
    """Return what says so from the given look on."""
    left = [looks]

    def stop() -> bool:
        left[0] -= 1
        return left[0] < 0

    return stop


def test_indexing_reports_what_it_did(tmp_path: Path) -> None:
    """The owner's tool brings a small index up to date and tells the counts."""
    neighbourhood = Neighbourhood(tmp_path)
    product = SessionGraph(config.load({"sessions": neighbourhood.store, "index": neighbourhood.index}))
    text = Toolbox(product, Agent()).call("sessiongraph_index", {}).text
    assert re.match(r"13 logs found, 13 indexed, 0 extended, 0 unchanged, 0 removed, 0 failed in ", text)
    product.close()


def test_a_large_index_is_built_in_the_background(tmp_path: Path) -> None:
    """From so many sessions on the answer is the id of a run, at once; the run goes on and ends well."""
    neighbourhood = Neighbourhood(tmp_path)
    neighbourhood.open().close()
    Log("/w/a", id="session-new").turn("new", "one").write(neighbourhood.store)
    settings = config.load(
        {"sessions": neighbourhood.store, "index": neighbourhood.index, "background_index_sessions": 5}
    )
    product = SessionGraph(replace(settings, auto_refresh=False))
    text = Toolbox(product, Agent()).call("sessiongraph_index", {}).text
    assert re.fullmatch(r"Index run [0-9a-f]{8} goes on in the background; .*", text)
    for thread in threading.enumerate():
        if thread.name == "sessiongraph-index":
            thread.join()
    assert _sessions(product) == 14
    product.close()


def _sessions(product: SessionGraph) -> int:
    status: Status = product.status(access.OWNER)
    return status.sessions


def test_indexing_out_of_time_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is not done in its time is told to end, and the answer is the fixed error."""
    started: list[indexer.Run] = []

    class Endless(indexer.Run):
        def execute(self, wish: Any = None) -> Any:
            started.append(self)
            self.stop.wait(60)
            return super().execute(wish)

    monkeypatch.setattr(indexer, "Run", Endless)
    (tmp_path / "sessions").mkdir()
    settings = config.load({"sessions": tmp_path / "sessions", "index": tmp_path / "index"})
    product = SessionGraph(replace(settings, auto_refresh=False, index_timeout_seconds=0))
    assert Toolbox(product, Agent()).call("sessiongraph_index", {}).code == "SESSION_QUERY_ABORTED"
    assert started[0].stop.is_set()
    product.close()


def test_a_search_over_half_an_index_says_so(product: SessionGraph) -> None:
    """While the first build goes on, nobody takes what is missing for what does not exist."""

    class Young(Slow):
        def search(self, caller: Any, request: Any, *, stop: Any) -> Any:
            page = self.product.search(caller, request, stop=stop)
            return msgspec.structs.replace(page, index=msgspec.structs.replace(page.index, indexing=True))

    young: Any = Young(product, 30)
    for query in (ASKED, "nowhere"):
        text = Toolbox(young, Agent("/w/a")).call("session_search", {"query": query}).text
        assert text.endswith(
            "\n\nThe index is still being built, so matches may be missing; ask again in a moment."
        )


def test_an_unexpected_failure_tells_nothing(product: SessionGraph) -> None:
    """Whatever goes wrong inside, a model reads one fixed sentence."""

    class Broken(Slow):
        def search(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("/secret/path")

    broken: Any = Broken(product, 1)
    for name in ("session_search", "sessiongraph"):
        result = Toolbox(broken, Agent("/w/a")).call(name, {"query": "x", "operation": "search"})
        assert result == Result("Error: session query operation failed", "SESSION_QUERY_TOOL_FAILED")


def test_a_search_switched_off_says_so_and_reads_go_on(tmp_path: Path) -> None:
    """Without search, exact reads and traces answer."""
    product = Neighbourhood(tmp_path).open(search=False)
    toolbox = Toolbox(product, Agent("/w/a"))
    assert toolbox.call("session_search", {"query": ASKED}).text == (
        "Error: session search is disabled in this deployment"
    )
    assert toolbox.call("session_trace", {"session_id": "session-own"}).code is None
    product.close()


def test_the_command_prints_what_a_model_reads(tmp_path: Path) -> None:
    """`tool` answers on standard output, and an error on standard error with the exit code of its meaning."""
    neighbourhood = Neighbourhood(tmp_path)
    places = ["--sessions", str(neighbourhood.store), "--index", str(neighbourhood.index)]

    def run(*words: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(cli.main, ["tool", *words, *places])
        return done.exit_code, done.stdout, done.stderr

    code, out, _ = run("session_trace", "--caller", "session-own")
    assert (code, out.split("\n")[0]) == (0, "Session session-own — where is the heron?")
    code, out, err = run("session_trace", "--workspace", "/w/a", "--args", '{"session_id": "session-none"}')
    assert (code, out, err) == (77, "", OUTSIDE.text + "\n")
    assert run("session_trace", "--caller", "session-none")[0] == 64
    assert run("session_trace", "--args", "no")[0] == 2
    assert run("session_trace", "--caller", "a", "--workspace", "b")[0] == 2


def test_the_written_record_is_masked_by_the_operation(product: SessionGraph) -> None:
    """The operation behind the read hands out the record as stored, under its ordinal."""
    written = product.written(access.workspaces("/w/a"), EventRequest(id="session-own", ordinal=1))
    assert (written.ordinal, written.record["type"], written.masked) == (1, "turn/start", 0)
