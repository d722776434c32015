"""The table of event types: how a transcript shows each. A type that is not here is shown raw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

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
    "plumbing",  # folded away at the end of its turn
    "raw",
]


@dataclass(frozen=True, slots=True)
class Shown:
    """How one type is shown: its label, and the fields of its data (dotted paths) that a note says."""

    how: How
    label: str
    fields: tuple[str, ...] = ()
    bad: bool = False


EVENT_TYPES: Final[dict[str, Shown]] = {
    "user/message": Shown("message", "Prompt"),
    "assistant/message": Shown("answer", "Answer"),
    "assistant/attempt": Shown("attempt", "Failed attempt"),
    "assistant/chunk": Shown("partial", "Unfinished answer"),
    "text-chunks": Shown("partial", "Unfinished answer"),
    "reasoning-chunks": Shown("plumbing", "Pieces of reasoning"),
    "tool-call-chunks": Shown("plumbing", "Pieces of a tool call"),
    "system/message": Shown("context", "System prompt"),
    "developer/message": Shown("context", "Change of tools"),
    "tool/call": Shown("call", "Tool call"),
    "tool/result": Shown("result", "Tool result"),
    "tool/ptc-dispatch": Shown("plumbing", "Tool dispatched from code"),
    "tool/ptc-dispatch-start": Shown("plumbing", "Tool dispatch from code begins"),
    "tool/code-dispatch": Shown("plumbing", "Tool dispatched from code"),
    "tool/code-dispatch-start": Shown("plumbing", "Tool dispatch from code begins"),
    "turn/start": Shown("plumbing", "Turn begins"),
    "turn/end": Shown("end", "Turn ends"),
    "step/start": Shown("plumbing", "Step begins"),
    "step/end": Shown("plumbing", "Step ends"),
    "agent/inbox/spliced": Shown("queue", "Inbox"),
    "request/header": Shown("plumbing", "Request settings and tools"),
    "request/context": Shown("plumbing", "Request context"),
    "session/end-seed": Shown("seed", "Seed ends"),
    "session/title": Shown("note", "Title", ("title",)),
    "session/title-llm-request": Shown("plumbing", "Title asked of a model"),
    "session-log-deepseek/delivery-accepted": Shown("plumbing", "Log delivered"),
    "llm/retry": Shown("note", "Model request failed; trying again", ("failure.message", "failure.code"), True),
    "llm/retry-started": Shown("plumbing", "Retry begins"),
    "permission/preset": Shown("note", "Permissions", ("preset",)),
    "sandbox/mode": Shown("note", "Sandbox", ("mode", "source")),
    "approval/policy": Shown("note", "Approval policy", ("policy", "source")),
    "approval/asked": Shown("note", "Asked for approval", ("toolName", "reason")),
    "approval/decided": Shown("note", "Approval decided", ("decision", "outcome", "reason")),
    "working-directory/change": Shown("border", "Working directory", ("cwd",)),
    "plan/mode": Shown("note", "Plan mode", ("active",)),
    "todo/write": Shown("todo", "To-do list"),
    "goal/change": Shown("note", "Goal", ("operation", "goal.phase", "goal.objective")),
    "job/registered": Shown("plumbing", "Job begins"),
    "job/settled": Shown("plumbing", "Job ends"),
    "command/run": Shown("command", "Command"),
    "command/done": Shown("done", "Command done"),
    "compaction/start": Shown("plumbing", "Compaction begins"),
    "compaction/summary": Shown("summary", "Compacted"),
    "compaction/end": Shown("plumbing", "Compaction ends"),
    "compaction/prune": Shown("plumbing", "Tool output pruned"),
    "subagent/descriptor": Shown("descriptor", "Subagent"),
    "subagent/catalog": Shown("subagent", "Subagent"),
    "subagent/model-selection-policy": Shown("plumbing", "Models for subagents"),
    "tool-workflow/run-start": Shown("note", "Workflow begins", ("name",)),
    "tool-workflow/agent-start": Shown("subagent", "Workflow agent"),
    "tool-workflow/agent-end": Shown("note", "Workflow agent ends", ("outcome",)),
    "tool-workflow/run-end": Shown("note", "Workflow ends", ("stopReason",)),
    "feedback/record": Shown("note", "Feedback", ("text",)),
    "feedback/message-put": Shown("note", "Feedback on a message", ("item.rating", "item.category", "item.note")),
    "feedback/message-delete": Shown("note", "Feedback on a message withdrawn"),
    "workspace/changes": Shown("plumbing", "Workspace changes"),
    "web/deepseek-search-llm-request": Shown("plumbing", "Web search asked of a model"),
    "agent-preset/selected": Shown("note", "Preset", ("preset", "name")),
    "model/selection": Shown("note", "Model", ("model", "provider")),
    "deliverables/presented": Shown("note", "Deliverables presented", ("files", "paths")),
    "hook/invoked": Shown("note", "Hook", ("name", "event")),
    "hook/result": Shown("note", "Hook result", ("name", "outcome")),
    "image/offload": Shown("plumbing", "Image left out of the model's view"),
    "schedule/change": Shown("note", "Schedule", ("operation",)),
    "team/member": Shown("note", "Team member", ("name", "status")),
    "team/task": Shown("note", "Team task", ("title", "status")),
    "team/message/queued": Shown("note", "Team message queued", ("text",)),
    "team/message/delivered": Shown("plumbing", "Team message delivered"),
}

SOURCES: Final[dict[str, str]] = {
    "runtime-context": "Context from the harness",
    "time-context": "The time, told to the model",
    "goal": "Goal round",
    "plan-mode": "Plan mode, told to the model",
    "repeat-tool-reminder": "Reminder: a repeated tool call",
    "subagent-settled": "A subagent reports back",
    "user-approval": "The user's decision",
    "working-directory": "Working directory, told to the model",
    "compact-checkpoint": "The summary that took the place of earlier events",
    "plugin": "Context from a plugin",
}

TURN_ENDS: Final[dict[str, str]] = {
    "aborted": "Stopped",
    "error": "Failed",
    "max-tokens": "Stopped at the limit of tokens",
    "interrupted": "Interrupted: dsh ended during this turn",
    "forked": "Cut off by the fork",
}


def shown(event_type: str) -> Shown:
    """Return how a type is shown."""
    return EVENT_TYPES.get(event_type) or Shown("raw", event_type)
