"""How a page of a session is told: every type of event, and what belongs together."""

from __future__ import annotations

from typing import Any

import pytest

from sessiongraph_web import eventtypes, language, presentation
from sessiongraph_web.answers import DamageNote, Relative
from sessiongraph_web.cards import (
    Answer,
    Border,
    Card,
    Checklist,
    Folded,
    Note,
    Prompt,
    Queued,
    Raw,
    Subagent,
    Tool,
)
from tests import answered
from tests.answered import answer, call, event, page, result, user


def told(*events: Any, **beside: Any) -> list[Card]:
    """Return all cards of a page."""
    return [card for turn in presentation.transcript(page(*events, **beside)) for card in turn.cards]


def brief(card: Card) -> tuple[Any, ...]:
    """Return what a card says, without how it looks."""
    match card:
        case Prompt(body=body) | Queued(body=body):
            return card.shape, str(body.html.striptags())
        case Answer(body=body, model=model):
            return card.shape, str(body.html.striptags()), model
        case Folded(kind=kind, label=label, about=about):
            return card.shape, kind, label, about
        case Tool():
            return card.shape, card.name, card.argument, card.outcome, card.outcome_text, card.took
        case Checklist(tasks=tasks):
            return card.shape, tasks
        case Border() | Note():
            return card.shape, card.label, card.text
        case Subagent():
            return card.shape, card.label, card.child_id, card.mode
        case Raw():
            return card.shape, card.place.type
    raise AssertionError(card)


MESSAGE = {"content": [{"type": "text", "text": "hi"}]}
SPECIMENS: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]]]] = {
    "user/message": ({**MESSAGE, "source": {"kind": "user"}}, [("prompt", "hi")]),
    "assistant/message": (
        {"message": {**MESSAGE, "source": {"model": "m-1"}}},
        [("answer", "hi", "m-1")],
    ),
    "assistant/attempt": (
        {"stream": [{"type": "chunk", "chunk": {"reason": {"failure": {"message": "no"}}}}]},
        [("folded", "attempt", "Failed attempt", "no")],
    ),
    "assistant/chunk": ({"chunk": {"text": "par"}}, [("folded", "attempt", "Unfinished answer", "par")]),
    "text-chunks": ({"texts": ["par", "tial"]}, [("folded", "attempt", "Unfinished answer", "partial")]),
    "system/message": ({"message": MESSAGE}, [("folded", "context", "System prompt", "hi")]),
    "developer/message": (
        {"message": {"content": [{"type": "tool-addition", "toolName": "bash"}]}},
        [("folded", "context", "Change of tools", "+ bash")],
    ),
    "tool/call": (
        {"callId": "c", "name": "bash", "arguments": '{"command":"ls"}'},
        [("tool", "bash", "ls", "missing", "no result", None)],
    ),
    "tool/result": (
        {"message": {**MESSAGE, "toolCallId": "c"}},
        [("tool", "Tool output", "", "ok", "ok", None)],
    ),
    "turn/end": (
        {"reason": {"kind": "error", "error": {"message": "bad thing", "code": "X"}}},
        [("border", "Failed", "bad thing · X")],
    ),
    "agent/inbox/spliced": (
        {"inserted": [{**MESSAGE, "source": {"kind": "user"}, "id": "never"}]},
        [("queued", "hi")],
    ),
    "session/end-seed": ({"inherited": True}, [("border", "Forked here: all above was inherited", "")]),
    "session/title": ({"title": "标题"}, [("note", "Title", "标题")]),
    "llm/retry": (
        {"failure": {"message": "mock", "code": "SERVER"}},
        [("note", "Model request failed; trying again", "mock · SERVER")],
    ),
    "permission/preset": ({"preset": "p"}, [("note", "Permissions", "p")]),
    "sandbox/mode": ({"mode": "read-only", "source": "s"}, [("note", "Sandbox", "read-only · s")]),
    "approval/policy": ({"policy": "never"}, [("note", "Approval policy", "never asks")]),
    "approval/asked": ({"toolName": "bash", "reason": "需要"}, [("note", "Asked for approval", "bash · 需要")]),
    "approval/decided": ({"decision": "yes"}, [("note", "Approval decided", "yes")]),
    "working-directory/change": ({"cwd": "/w/b"}, [("border", "Working directory", "/w/b")]),
    "plan/mode": ({"active": True}, [("note", "Plan mode", "on")]),
    "todo/write": (
        {"todos": [{"content": "a", "status": "completed"}, {"content": "b"}]},
        [("checklist", [("a", "completed"), ("b", "pending")])],
    ),
    "goal/change": (
        {"operation": "pause", "goal": {"phase": "paused", "objective": "o"}},
        [("note", "Goal", "paused · o")],
    ),
    "command/run": (
        {"commandId": "k", "name": "goal", "args": " ship it"},
        [("note", "Command", "/goal ship it")],
    ),
    "command/done": ({"commandId": "k", "text": "set"}, [("note", "Command done", "set")]),
    "compaction/summary": (
        {"summary": MESSAGE["content"], "shadowedSeqs": [1, 2], "shadowedTokenCount": 1500},
        [("border", "Compacted: a summary took the place of 2 events", "1.5k tokens")],
    ),
    "subagent/descriptor": (
        {"label": "Count", "mode": "one-shot"},
        [("border", "Subagent", "Count · one-shot")],
    ),
    "subagent/catalog": (
        {"childId": "kid", "label": "Count", "mode": "one-shot"},
        [("subagent", "Count", None, "one-shot")],
    ),
    "tool-workflow/run-start": ({"name": "demo"}, [("note", "Workflow begins", "demo")]),
    "tool-workflow/agent-start": ({"childId": "kid", "label": "a"}, [("subagent", "a", None, None)]),
    "tool-workflow/agent-end": ({"outcome": "ok"}, [("note", "Workflow agent ends", "ok")]),
    "tool-workflow/run-end": ({"stopReason": "completed"}, [("note", "Workflow ends", "completed")]),
    "feedback/record": ({"text": "good"}, [("note", "Feedback", "good")]),
    "feedback/message-put": (
        {"item": {"rating": "negative", "note": "不太好"}},
        [("note", "Feedback on a message", "negative · 不太好")],
    ),
    "feedback/message-delete": ({}, [("note", "Feedback on a message withdrawn", "")]),
    "agent-preset/selected": ({"preset": "standard"}, [("note", "Preset", "standard")]),
    "model/selection": ({"model": "m-1"}, [("note", "Model", "m-1")]),
    "deliverables/presented": ({"files": ["a"]}, [("note", "Deliverables presented", '["a"]')]),
    "hook/invoked": ({"name": "h"}, [("note", "Hook", "h")]),
    "hook/result": ({"name": "h", "outcome": "ok"}, [("note", "Hook result", "h · ok")]),
    "schedule/change": ({"operation": "add"}, [("note", "Schedule", "add")]),
    "team/member": ({"name": "n"}, [("note", "Team member", "n")]),
    "team/task": ({"title": "t"}, [("note", "Team task", "t")]),
    "team/message/queued": ({"text": "t"}, [("note", "Team message queued", "t")]),
}
PLUMBING = sorted(name for name, shown in eventtypes.EVENT_TYPES.items() if shown.how == "plumbing")


@pytest.mark.parametrize("kind", sorted(SPECIMENS))
def test_each_type_has_its_card(kind: str) -> None:
    """A type of event is shown by its own card, with what matters of it."""
    data, cards = SPECIMENS[kind]
    assert [brief(card) for card in told(event(kind, data))] == cards


@pytest.mark.parametrize("kind", PLUMBING)
def test_bookkeeping_is_folded_at_the_end_of_its_turn(kind: str) -> None:
    """Bookkeeping has no card, but its place is kept; what a command said is told with the command."""
    (turn,) = presentation.transcript(page(event(kind, {"anything": 1})))
    assert (turn.cards, [place.type for place in turn.plumbing]) == ([], [kind] if kind != "command/done" else [])


def test_the_table_and_the_specimens_name_the_same_types() -> None:
    """No type is in the table without a test of how it is shown."""
    assert set(eventtypes.EVENT_TYPES) == {*SPECIMENS, *PLUMBING}


def test_an_unknown_type_is_shown_raw() -> None:
    """A type of a newer dsh is shown with all its data."""
    (card,) = told(event("something/new", {"a": {"b": "<c>"}}))
    assert isinstance(card, Raw)
    assert card.body.html.striptags() == '{ "a": { "b": "<c>" } }'


@pytest.mark.parametrize("kind", [*sorted(eventtypes.EVENT_TYPES), "something/new"])
@pytest.mark.parametrize(
    "data",
    [
        {},
        {"message": None, "content": 5, "source": [], "todos": "x", "inserted": {}, "stream": 1, "reason": "x"},
        {"message": {"content": [None, 1, "x", {"type": "text", "text": 7}], "source": "x", "toolCallId": 3}},
        {"callId": 1, "name": None, "arguments": {"a": 1}, "meta": {"diffs": [1], "lines": [{}]}, "error": "x"},
        {"name": ["x"], "arguments": "not json", "args": {}, "text": [], "label": {}, "childId": 0, "failure": 1},
        {
            "todos": [None, {"content": {"a": 1}, "status": 3}],
            "inserted": [None, {"source": "user"}],
            "texts": [1],
        },
    ],
)
def test_data_of_any_shape_is_told(kind: str, data: dict[str, Any]) -> None:
    """No shape of data keeps a page from being shown."""
    for card in told(event(kind, data), event("tool/result", data, 1)):
        assert brief(card)


@pytest.mark.parametrize(("source", "label"), sorted(eventtypes.SOURCES.items()))
def test_injected_context_is_folded_under_its_name(source: str, label: str) -> None:
    """What was said in the user's name by the harness is no prompt."""
    (card,) = told(user("told", kind=source))
    assert brief(card) == ("folded", "context", label, "told")


def test_a_call_and_its_result_are_one_card() -> None:
    """The card says tool, main argument, outcome and time; the result has no card of its own."""
    cards = told(
        answer("", 0, calls=["c1"]), call("c1", "bash", '{"command":"make\\n test"}', 1), result("c1", "done", 3)
    )
    assert [brief(card) for card in cards] == [("tool", "bash", "make test", "ok", "ok", "2.0 s")]


@pytest.mark.parametrize(
    ("text", "more", "outcome"),
    [
        ("fine", {}, ("ok", "ok")),
        ("x\n[exit code: 3]", {}, ("exit", "exit 3")),
        ("x\n[exit code: 0]", {}, ("ok", "ok")),
        ("no", {"error": {"code": "FS_NOT_FOUND"}}, ("failed", "file not found")),
        ("no", {"error": {"code": "FS_NEW"}}, ("failed", "FS_NEW")),
        ("no", {"message": {"toolCallId": "c1", "content": [], "isError": True}}, ("failed", "failed")),
    ],
)
def test_the_outcome_of_a_call(text: str, more: dict[str, Any], outcome: tuple[str, str]) -> None:
    """An error and a shell command's exit code are failures to a reader."""
    (card,) = told(call("c1", "bash", "{}"), result("c1", text, more=more))
    assert isinstance(card, Tool)
    assert (card.outcome, card.outcome_text) == outcome


def test_a_call_of_a_live_session_is_running() -> None:
    """Where the session is live and the page its last, a call without a result still runs."""
    (card,) = told(call("c1", "bash", "{}"), session=answered.summary(live=True))
    assert brief(card)[3:5] == ("waiting", "running")


def test_a_call_whose_result_is_on_a_later_page_says_so() -> None:
    """A page's border is no missing result."""
    (card,) = told(call("c1", "bash", "{}", partner=200), next_ordinal=100)
    assert brief(card)[3:5] == ("waiting", "result on a later page")


def test_a_call_that_was_never_recorded_shows_what_was_asked() -> None:
    """A call of an answer that has neither record nor result is a card without a result."""
    cards = told(answer("", 0, calls=["c9"]))
    assert [brief(card) for card in cards] == [("tool", "bash", "", "missing", "no result", None)]


def test_an_edit_is_a_diff() -> None:
    """What an edit changed is shown line by line and counted."""
    meta = {"diffs": [{"path": "a.txt", "oldText": "1\n2\n3", "newText": "1\n二\n3"}]}
    (card,) = told(call("c1", "edit", '{"file_path":"a.txt"}'), result("c1", "ok", more={"meta": meta}))
    assert isinstance(card, Tool)
    (section,) = card.sections
    assert (card.argument, card.added, card.removed, section.title) == ("a.txt", 1, 1, "a.txt")
    assert section.body.html == (
        '<span class="hunk">@@ -1,3 +1,3 @@</span>\n<span class="same"> 1</span>\n'
        '<span class="removed">-2</span>\n<span class="added">+二</span>\n<span class="same"> 3</span>\n'
    )


def test_a_file_that_was_read_is_shown_without_its_wrapping() -> None:
    """The lines of a read are code, in the language of the file's name."""
    meta = {"path": "/w/a.py", "lines": [{"number": 3, "text": "x = 1"}], "totalLines": 9}
    (card,) = told(call("c1", "read", '{"file_path":"a.py"}'), result("c1", "<path>…", more={"meta": meta}))
    assert isinstance(card, Tool)
    assert [section.title for section in card.sections] == ["Arguments", "Lines 3–3 of 9"]
    assert card.sections[1].body.html.striptags() == "x = 1"


def test_long_output_shows_head_and_tail() -> None:
    """Errors come last, so the end of a long output is kept, and what was left out is counted."""
    text = "first\n" + "x\n" * 20_000 + "last"
    (card,) = told(call("c1", "bash", '{"command":"x"}'), result("c1", text))
    assert isinstance(card, Tool)
    body = card.sections[-1].body
    assert body.html.startswith("first\n")
    assert body.html.endswith("last")
    assert body.left_out == len(text) - 6000


def test_a_command_and_what_it_answered_are_one_note() -> None:
    """A command's answer is unfolded from its note."""
    (card,) = told(
        event("command/run", {"commandId": "k", "name": "goal", "args": ""}),
        event("command/done", {"commandId": "k", "kind": "success", "text": "Goal created"}, 1),
    )
    assert isinstance(card, Note)
    assert (card.text, card.body and card.body.html) == ("/goal", "Goal created")


def test_a_queued_prompt_that_ran_is_not_shown_twice() -> None:
    """Every prompt passes through the inbox; only one that never ran is shown from there."""
    queued = event(
        "agent/inbox/spliced",
        {"inserted": [{"id": "m1", "source": {"kind": "user"}, "content": []}]},
        0,
        turn=None,
    )
    assert [brief(card) for card in told(queued, user("go", 1))] == [("prompt", "go")]


def test_a_prompt_that_ran_behind_the_page_is_not_shown_as_queued() -> None:
    """What the answer says to have run later is no lost prompt; what it does not name is one, on any page."""
    queued = event("agent/inbox/spliced", {"inserted": [{"id": "m9", "source": {"kind": "user"}, "content": []}]})
    assert told(queued, next_ordinal=1, ran_later=["m9"]) == []
    assert [brief(card) for card in told(queued, next_ordinal=1)] == [("queued", "")]


def test_a_command_and_its_end_are_one_note() -> None:
    """On one page they are told together; an end whose beginning is on an earlier page is told alone."""
    run = event("command/run", {"commandId": "k", "name": "goal"}, 0)
    done = event("command/done", {"commandId": "k", "text": "set"}, 1)
    (both,) = told(run, done)
    (alone,) = told(done)
    assert isinstance(both, Note)
    assert (both.label, both.partner, str(both.body and both.body.html)) == ("Command", 1, "set")
    assert brief(alone) == ("note", "Command done", "set")


def test_a_subagent_leads_to_its_session_where_it_may_be_seen() -> None:
    """A child that the caller sees is linked, with its title."""
    child = Relative(id="kid", log_id=9, title="The child", link="subagent")
    (card,) = told(event("subagent/catalog", {"childId": "kid", "label": "Count"}), children=[child])
    assert isinstance(card, Subagent)
    assert (card.child_id, card.title) == ("kid", "The child")


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        ({"kind": "aborted", "reason": {"kind": "user"}}, "Stopped by the user"),
        ({"kind": "aborted"}, "Stopped"),
        ({"kind": "max-tokens"}, "Stopped at the limit of tokens"),
        ({"kind": "interrupted"}, "Interrupted: dsh ended during this turn"),
        ({"kind": "forked"}, "Cut off by the fork"),
        ({"kind": "something new"}, "Ended: something new"),
    ],
)
def test_a_turn_that_did_not_complete_says_why(reason: dict[str, Any], label: str) -> None:
    """Every end but completion is a border, and the turn knows it."""
    (turn,) = presentation.transcript(page(event("turn/end", {"reason": reason})))
    assert [brief(card) for card in turn.cards] == [("border", label, "")]
    assert turn.ended_badly == label


def test_a_completed_turn_ends_without_a_word() -> None:
    """Completion is what one expects: it is bookkeeping."""
    (turn,) = presentation.transcript(page(event("turn/end", {"reason": {"kind": "completed"}})))
    assert (turn.cards, [place.type for place in turn.plumbing]) == ([], ["turn/end"])


def test_words_of_dsh_are_said_and_texts_are_not_touched() -> None:
    """What a field can only hold as a word is said in the reader's language; a title of one word stays it."""
    events = [
        event("approval/policy", {"policy": "never", "source": "delegation"}),
        event("plan/mode", {"active": False}, 1),
        event("session/title", {"title": "never"}, 2),
        event("goal/change", {"operation": "create", "goal": {"objective": "complete"}}, 3),
    ]
    with language.spoken("zh"):
        said = [brief(card)[2] for card in told(*events)]
    assert said == ["从不询问 · 来自父会话", "关", "never", "已设定 · complete"]


def test_a_retry_says_what_comes_next() -> None:
    """Which try of how many, and when; the failure itself where no failed attempt has told it."""
    data = {"failure": {"message": "cut", "code": "TRANSPORT"}, "retry": 2, "maxRetries": 5, "delayMs": 939.7}
    (alone,) = told(event("llm/retry", data))
    _, after = told(event("assistant/attempt", {"stream": []}), event("llm/retry", data, 1))
    assert brief(alone)[2] == "cut · try 2 of 5 · after 939 ms · TRANSPORT"
    assert brief(after)[2] == "try 2 of 5 · after 939 ms · TRANSPORT"


def test_a_turn_lasts_until_its_end() -> None:
    """What follows it in the log, a resume days later, is not its time."""
    ended = event("turn/end", {"reason": {"kind": "interrupted"}}, 5)
    (turn,) = presentation.transcript(page(user("go", 0), ended, event("session/end-seed", {}, 9000)))
    assert turn.took == "5.0 s"


def test_a_call_that_was_closed_afterwards_has_no_time() -> None:
    """When a call ended that nobody saw end is not known."""
    more = {"error": {"code": "TOOL_OUTCOME_UNKNOWN"}}
    (card,) = told(call("c1", "bash", "{}"), result("c1", "?", 9, more=more))
    assert brief(card)[3:] == ("failed", "outcome unknown", None)


def test_a_subagent_is_asked_by_its_parent() -> None:
    """Its prompts are the parent's, but for those that a person sent, and those that it inherited."""
    typed = event("user/message", {"content": "typed", "source": {"kind": "user", "rpcId": "r"}}, 1)
    shown = page(
        user("task", 0), typed, user("copied", 2, inherited=True), session=answered.summary(origin="subagent")
    )
    cards = [card for turn in presentation.transcript(shown) for card in turn.cards]
    assert [card.by_parent for card in cards if isinstance(card, Prompt)] == [True, False, False]
    assert not any(card.by_parent for card in told(user("task", 0)) if isinstance(card, Prompt))


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ('{"todos": [{"content": "one", "status": "pending"}, {"content": "二"}]}', "one, 二"),
        ('{"files": ["a.md", "b.md"], "paths": []}', "a.md, b.md"),
        ('{"x": [1, 2]}', '{"x": [1, 2]}'),
        ('{"wrong": true}', '{"wrong": true}'),
    ],
)
def test_lists_are_told_by_what_is_in_them(arguments: str, argument: str) -> None:
    """The line of a call holds the tasks or files of its list, no JSON where it means something."""
    (card,) = told(call("c1", "any", arguments))
    assert isinstance(card, Tool)
    assert card.argument == argument


def test_output_that_is_json_on_one_line_is_laid_out() -> None:
    """A line of JSON is read indented; what is laid out already, or only looks like it, stays as it is."""
    for text, style in (('{"goal":{"id":1}}', "code"), ('{"a":1}\n', "terminal"), ("{not json", "terminal")):
        (card,) = told(call("c1", "any", "{}"), result("c1", text))
        assert isinstance(card, Tool)
        assert card.sections[-1].body.style == style
        assert card.sections[-1].body.html.striptags().replace(" ", "") == text.strip().replace(" ", "")


def test_the_pieces_of_an_unfinished_answer_are_one_card() -> None:
    """However they are packed; of a turn that was answered before, what its last step had said is shown too."""
    step = {"turn": 1, "step": 2}
    whole = event("assistant/message", {"turn": 1, "step": 1, "message": {"content": "first"}}, 1)
    cards = told(
        event("text-chunks", {"turn": 1, "step": 1, "texts": ["fir", "st"]}, 0),
        whole,
        event("assistant/chunk", step | {"chunk": {"type": "block-start"}}, 2),
        event("text-chunks", step | {"texts": ["Start", "ing "]}, 3),
        event("text-chunks", step | {"texts": ["slowly"]}, 4),
    )
    assert [brief(card)[-1] for card in cards if isinstance(card, Folded)] == ["Starting slowly"]


def test_a_seed_without_inheritance_is_a_resume() -> None:
    """The same event marks a fork's border and a resumed log."""
    (card,) = told(event("session/end-seed", {}))
    assert brief(card) == ("border", "Resumed here", "")


def test_damage_is_shown_where_it_happened() -> None:
    """A damage note stands before the event it came before; one after the end stands last."""
    notes = [
        DamageNote(code="bad_line", message="not JSON", offset=10, line=3, ordinal=1),
        DamageNote(code="torn_tail", message="cut", offset=99, line=None, ordinal=2),
    ]
    cards = told(user("a", 0), user("b", 1), damage=notes)
    assert [brief(card) for card in cards] == [
        ("prompt", "a"),
        ("border", "Damaged here", "not JSON (byte 10, line 3)"),
        ("prompt", "b"),
        ("border", "Damaged here", "cut (byte 99)"),
    ]


def test_much_damage_in_one_place_is_counted() -> None:
    """A page is not drowned by a log that is broken in a thousand lines."""
    notes = [DamageNote(code="bad_line", message="x", offset=n, line=n, ordinal=0) for n in range(1000)]
    assert [brief(card)[2] for card in told(user("a", 0), damage=notes)[:-1]] == [
        "x (byte 0, line 0)",
        "x (byte 1, line 1)",
        "998 more damaged parts; Status lists them",
    ]


def test_damage_without_events_is_shown_too() -> None:
    """A log of which nothing could be read says what happened to it."""
    note = DamageNote(code="damaged_frame", message="bad block", offset=5, line=None, ordinal=0)
    assert [brief(card) for card in told(damage=[note])] == [("border", "Damaged here", "bad block (byte 5)")]


def test_events_are_grouped_into_turns() -> None:
    """A new turn number begins a turn; what is in no turn before the first stands alone."""
    turns = presentation.transcript(
        page(
            event("sandbox/mode", {"mode": "x"}, 0, turn=None),
            user("one", 1, turn=1),
            answer("1", 2, turn=1),
            event("session/title", {"title": "t"}, 3, turn=None),
            user("two", 4, turn=2),
        )
    )
    assert [(turn.number, [card.shape for card in turn.cards], turn.opening) for turn in turns] == [
        (None, ["note"], ""),
        (1, ["prompt", "answer", "note"], "one"),
        (2, ["prompt"], "two"),
    ]


@pytest.mark.parametrize(
    ("events", "opening"),
    [
        ([answer("first", 0), user("asked\nlater", 1)], ("user", "asked later")),
        ([call("c1", "bash", "{}", 0), answer("then", 1)], ("tool_call", "bash {}")),
        ([answer("", 0), answer("said", 1), call("c1", "bash", "{}", 2)], ("assistant", "said")),
        ([event("sandbox/mode", {"mode": "x"}, 0)], (None, "")),
    ],
)
def test_a_turn_opens_with_its_prompt_else_with_what_was_done_first(
    events: list[Any], opening: tuple[str | None, str]
) -> None:
    """A prompt comes first wherever it stands; where nobody asked, the first words or the first call."""
    (turn,) = presentation.transcript(page(*events))
    assert (turn.kind, turn.opening) == opening


def test_the_focused_view_keeps_prompts_and_last_answers() -> None:
    """Focused, a turn is its prompt, its final answer, and its borders."""
    (turn,) = presentation.transcript(
        page(
            user("q", 0),
            answer("I'll look", 1),
            call("c", "bash", "{}", 2),
            result("c", "x", 3),
            answer("It is", 4),
        ),
        focused=True,
    )
    assert [brief(card) for card in turn.cards] == [("prompt", "q"), ("answer", "It is", "m-1")]


def test_reasoning_is_folded_before_its_answer() -> None:
    """Reasoning is not what the model said."""
    content = [{"type": "reasoning", "text": "let me *think*"}, {"type": "text", "text": "yes"}]
    cards = told(event("assistant/message", {"message": {"content": content}}))
    assert [brief(card) for card in cards] == [
        ("folded", "reasoning", "Reasoning", "let me *think*"),
        ("answer", "yes", None),
    ]


def test_an_interrupted_answer_is_shown_with_what_it_had_said() -> None:
    """A cancelled answer keeps its partial text and says so."""
    (card,) = told(answer("par", more={"interrupted": True}))
    assert isinstance(card, Answer)
    assert card.interrupted


@pytest.mark.parametrize("text", ["<" * 50_000, "广" * 50_000, "`x` <b> " * 10_000, "\x1b[31mx" * 20_000])
def test_a_page_of_huge_texts_stays_bounded(text: str) -> None:
    """However large its events, the bodies of a page weigh what they may at most, and each shows something."""
    events = []
    for number in range(0, 99, 3):
        events += [
            answer(text, number),
            call(f"c{number}", "bash", "{}", number + 1),
            result(f"c{number}", text, number + 2),
        ]
    cards = told(*events)
    bodies = [card.body for card in cards if isinstance(card, Answer)]
    bodies += [section.body for card in cards if isinstance(card, Tool) for section in card.sections]
    assert sum(len(body.html.encode()) for body in bodies) < 160_000
    assert all(body.html.striptags() and body.left_out for body in bodies)
