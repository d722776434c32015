"""The table of event types: how a transcript shows each. A type that is not here is shown raw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from sessiongraph_web.language import N_, gettext

How = Literal[
    "message",  # a prompt, or context that was injected in the user's name
    "context",  # what the model was told by the harness, folded
    "answer",
    "attempt",  # an answer that failed
    "partial",  # pieces of an answer (generation 0), shown where the whole never came
    "call",
    "result",
    "todo",
    "queue",  # prompts put into or taken out of the inbox
    "command",
    "done",  # the end of a command, told with its beginning
    "summary",  # the text that took the place of compacted events
    "seed",  # the end of what was inherited, or a resume
    "descriptor",  # the head of a subagent's log
    "subagent",  # a child session
    "end",  # the end of a turn
    "border",
    "note",
    "retry",  # a note that says which of how many tries comes next, and when
    "plumbing",  # folded away at the end of its turn
    "raw",
]


@dataclass(frozen=True, slots=True)
class Shown:
    """How one type is shown: its label, in the catalogue, and the fields of its data that a note says."""

    how: How
    label: str
    fields: tuple[str, ...] = ()  # dotted paths; in a list of events they are said of every type
    bad: bool = False

    @property
    def said(self) -> str:
        """The label in the reader's language; a type that nobody told us about is its own label."""
        return self.label if self.how == "raw" else gettext(self.label)


EVENT_TYPES: Final[dict[str, Shown]] = {
    "user/message": Shown("message", N_("Prompt")),
    "assistant/message": Shown("answer", N_("Answer")),
    "assistant/attempt": Shown("attempt", N_("Failed attempt")),
    "assistant/chunk": Shown("partial", N_("Unfinished answer")),
    "text-chunks": Shown("partial", N_("Unfinished answer")),
    "reasoning-chunks": Shown("plumbing", N_("Pieces of reasoning")),
    "tool-call-chunks": Shown("plumbing", N_("Pieces of a tool call")),
    "system/message": Shown("context", N_("System prompt")),
    "developer/message": Shown("context", N_("Change of tools")),
    "tool/call": Shown("call", N_("Tool call")),
    "tool/result": Shown("result", N_("Tool result")),
    "tool/ptc-dispatch": Shown("plumbing", N_("Tool dispatched from code")),
    "tool/ptc-dispatch-start": Shown("plumbing", N_("Tool dispatch from code begins")),
    "tool/code-dispatch": Shown("plumbing", N_("Tool dispatched from code")),
    "tool/code-dispatch-start": Shown("plumbing", N_("Tool dispatch from code begins")),
    "turn/start": Shown("plumbing", N_("Turn begins"), ("turn",)),
    "turn/end": Shown("end", N_("Turn ends"), ("turn", "reason.kind", "reason.error.message")),
    "step/start": Shown("plumbing", N_("Step begins"), ("step",)),
    "step/end": Shown("plumbing", N_("Step ends"), ("step",)),
    "agent/inbox/spliced": Shown("queue", N_("Inbox"), ("outcome",)),
    "request/header": Shown("plumbing", N_("Request settings and tools"), ("header.config.model", "reason")),
    "request/context": Shown("plumbing", N_("Request context"), ("model",)),
    "session/end-seed": Shown("seed", N_("Seed ends")),
    "session/title": Shown("note", N_("Title"), ("title",)),
    "session/title-llm-request": Shown("plumbing", N_("Title asked of a model"), ("route.model",)),
    "session-log-deepseek/delivery-accepted": Shown("plumbing", N_("Log delivered")),
    "llm/retry": Shown(
        "retry", N_("Model request failed; trying again"), ("failure.message", "failure.code"), True
    ),
    "llm/retry-started": Shown("plumbing", N_("Retry begins"), ("retry",)),
    "permission/preset": Shown("note", N_("Permissions"), ("preset",)),
    "sandbox/mode": Shown("note", N_("Sandbox"), ("mode", "source")),
    "approval/policy": Shown("note", N_("Approval policy"), ("policy", "source")),
    "approval/asked": Shown("note", N_("Asked for approval"), ("toolName", "reason")),
    "approval/decided": Shown("note", N_("Approval decided"), ("decision", "outcome", "reason")),
    "working-directory/change": Shown("border", N_("Working directory"), ("cwd",)),
    "plan/mode": Shown("note", N_("Plan mode"), ("active",)),
    "todo/write": Shown("todo", N_("To-do list")),
    "goal/change": Shown("note", N_("Goal"), ("operation", "goal.objective")),
    "job/registered": Shown("plumbing", N_("Job begins"), ("label",)),
    "job/settled": Shown("plumbing", N_("Job ends"), ("label", "status", "detail")),
    "command/run": Shown("command", N_("Command"), ("name", "args")),
    "command/done": Shown("done", N_("Command done"), ("text",)),
    "compaction/start": Shown("plumbing", N_("Compaction begins")),
    "compaction/summary": Shown("summary", N_("Compacted")),
    "compaction/end": Shown("plumbing", N_("Compaction ends")),
    "compaction/prune": Shown("plumbing", N_("Tool output pruned")),
    "subagent/descriptor": Shown("descriptor", N_("Subagent"), ("label", "mode")),
    "subagent/catalog": Shown("subagent", N_("Subagent"), ("label", "mode")),
    "subagent/model-selection-policy": Shown("plumbing", N_("Models for subagents")),
    "tool-workflow/run-start": Shown("note", N_("Workflow begins"), ("name",)),
    "tool-workflow/agent-start": Shown("subagent", N_("Workflow agent"), ("label",)),
    "tool-workflow/agent-end": Shown("note", N_("Workflow agent ends"), ("outcome",)),
    "tool-workflow/run-end": Shown("note", N_("Workflow ends"), ("stopReason",)),
    "feedback/record": Shown("note", N_("Feedback"), ("text",)),
    "feedback/message-put": Shown(
        "note", N_("Feedback on a message"), ("item.rating", "item.category", "item.note")
    ),
    "feedback/message-delete": Shown("note", N_("Feedback on a message withdrawn")),
    "workspace/changes": Shown("plumbing", N_("Workspace changes")),
    "web/deepseek-search-llm-request": Shown("plumbing", N_("Web search asked of a model")),
    "agent-preset/selected": Shown("note", N_("Preset"), ("preset", "name")),
    "model/selection": Shown("note", N_("Model"), ("model", "provider")),
    "deliverables/presented": Shown("note", N_("Deliverables presented"), ("files", "paths")),
    "hook/invoked": Shown("note", N_("Hook"), ("name", "event")),
    "hook/result": Shown("note", N_("Hook result"), ("name", "outcome")),
    "image/offload": Shown("plumbing", N_("Image left out of the model's view")),
    "schedule/change": Shown("note", N_("Schedule"), ("operation",)),
    "team/member": Shown("note", N_("Team member"), ("name", "status")),
    "team/task": Shown("note", N_("Team task"), ("title", "status")),
    "team/message/queued": Shown("note", N_("Team message queued"), ("text",)),
    "team/message/delivered": Shown("plumbing", N_("Team message delivered")),
}

SOURCES: Final[dict[str, str]] = {
    "runtime-context": N_("Context from the harness"),
    "time-context": N_("The time, told to the model"),
    "goal": N_("Goal round"),
    "plan-mode": N_("Plan mode, told to the model"),
    "repeat-tool-reminder": N_("Reminder: a repeated tool call"),
    "subagent-settled": N_("A subagent reports back"),
    "user-approval": N_("The user's decision"),
    "working-directory": N_("Working directory, told to the model"),
    "compact-checkpoint": N_("The summary that took the place of earlier events"),
    "plugin": N_("Context from a plugin"),
}

TURN_ENDS: Final[dict[str, str]] = {
    "aborted": N_("Stopped"),
    "error": N_("Failed"),
    "max-tokens": N_("Stopped at the limit of tokens"),
    "interrupted": N_("Interrupted: dsh ended during this turn"),
    "forked": N_("Cut off by the fork"),
}

CAUSES: Final[dict[str, str]] = {"user": N_("user"), "parent": N_("parent")}  # who stopped a turn

WORDED: Final = frozenset(  # fields that hold words of dsh's own, never a text
    {
        *("active", "decision", "item.category", "item.rating", "mode", "operation", "outcome", "policy"),
        *("reason.kind", "source", "status", "stopReason"),
    }
)
WORDS: Final[dict[str, str]] = {  # what such words mean; any other is said as it is written
    "true": N_("on"),
    "false": N_("off"),
    "create": N_("set"),
    "edit": N_("changed"),
    "pause": N_("paused"),
    "resume": N_("resumed"),
    "complete": N_("completed"),
    "clear": N_("cleared"),
    "completed": N_("completed"),
    "delegation": N_("from the parent"),
    "never": N_("never asks"),
    "ask": N_("asks"),
    "positive": N_("positive"),
    "negative": N_("negative"),
    "other": N_("other"),
    "continuable": N_("continuable"),
    "one-shot": N_("one-shot"),
}


def shown(event_type: str) -> Shown:
    """Return how a type is shown."""
    return EVENT_TYPES.get(event_type) or Shown("raw", event_type)
