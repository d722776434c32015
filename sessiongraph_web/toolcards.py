"""Makes one card of a tool call and its result: a line that says what happened, and the parts behind it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from sessiongraph_web import bodies, loose, markup, outcomes, terminal, wording
from sessiongraph_web.answers import EventView
from sessiongraph_web.attached import cited
from sessiongraph_web.bodies import Allowance
from sessiongraph_web.cards import Outcome, Section, Tool, place
from sessiongraph_web.language import gettext

ARGUMENT_CHARS: Final = 180
NAME_CHARS: Final = 60
SHELLS: Final = frozenset({"bash", "shell", "sh", "exec", "run_command", "execute_command", "terminal"})
WRITERS: Final = frozenset({"write", "write_file", "create_file"})
MAIN_ARGUMENTS: Final = (
    "command", "cmd", "pattern", "query", "queries", "url", "file_path", "path", "cd", "description", "prompt",
    "objective", "name", "script", "skill",
)  # fmt: skip
_LANGUAGES: Final = {
    "py": "python", "js": "javascript", "mjs": "javascript", "ts": "typescript", "tsx": "tsx", "jsx": "jsx",
    "rs": "rust", "go": "go", "c": "c", "h": "c", "cpp": "cpp", "java": "java", "rb": "ruby", "sh": "bash",
    "json": "json", "yml": "yaml", "yaml": "yaml", "toml": "toml", "html": "html", "css": "css", "sql": "sql",
    "md": "markdown", "xml": "xml", "swift": "swift", "kt": "kotlin", "php": "php", "lua": "lua",
}  # fmt: skip


def tool(
    call: EventView | None,
    result: EventView | None,
    allowance: Allowance,
    *,
    waiting: bool = False,
    recorded: bool = True,
) -> Tool:
    """Return the card of a call and its result, either of which may be missing from the page."""
    event = call or result
    if event is None:
        raise ValueError("a card needs a call or a result")
    name = loose.string(call.data.get("name")) if call else None
    arguments = loose.decoded(call.data.get("arguments")) if call else None
    message = loose.mapping(loose.at(result.data, "message")) if result else {}
    text = loose.texts(message.get("content"))
    changes = _changes(arguments, result)
    sections, added, removed = _sections(name, call, arguments, result, text, changes, allowance)
    outcome, outcome_text = _outcome(result, call=call, waiting=waiting)
    return Tool(
        place=place(event),
        name=markup.clip(name or (gettext("tool") if call else gettext("Tool output")), NAME_CHARS),
        argument=_argument(call, arguments),
        outcome=outcome,
        outcome_text=outcome_text,
        took=_took(call, result),
        sections=sections,
        attached=cited(message.get("content")),
        partner=_partner(event, result) if call else event.partner,
        has_both=call is not None and result is not None,
        result_alone=call is None,
        recorded=recorded,
        added=added,
        removed=removed,
    )


def _took(call: EventView | None, result: EventView | None) -> str | None:
    """Say how long a call took, where its result was written when it ended."""
    if call is None or result is None or outcomes.error_code(result.data) in outcomes.UNTIMED:
        return None
    return wording.between(call.time, result.time)


def _partner(call: EventView, result: EventView | None) -> int | None:
    """Return where the stored result of a call is, if there is one."""
    if result is None:
        return call.partner
    return None if result.synthetic else result.ordinal


def _argument(call: EventView | None, arguments: Any) -> str:
    """Return the argument that tells most, on one line."""
    if call is None:
        return ""
    fields = loose.mapping(arguments)
    value = next((fields[name] for name in MAIN_ARGUMENTS if fields.get(name)), None)
    if value is None:
        value = next((item for item in map(_listed, fields.values()) if isinstance(item, str) and item), None)
    if value is None:
        value = fields or arguments
    if value is None:
        value = call.data.get("arguments") or ""
    if value == {}:
        return ""
    value = _listed(value)
    return markup.clip(" ".join(terminal.plain(loose.said(value)[: ARGUMENT_CHARS * 4]).split()), ARGUMENT_CHARS)


def _listed(value: Any) -> Any:
    """Join a list of texts, or of what has a content: files, tasks; any other value is left as it is."""
    if not isinstance(value, list) or not value:
        return value
    texts = [loose.mapping(item).get("content", item) for item in value]
    return ", ".join(texts) if all(isinstance(text, str) for text in texts) else value


def _outcome(result: EventView | None, *, call: EventView | None, waiting: bool) -> tuple[Outcome, str]:
    """Say how a call ended."""
    if result is None:
        if waiting:
            return "waiting", gettext("running")
        elsewhere = call is not None and call.partner is not None
        return ("waiting", gettext("result on a later page")) if elsewhere else ("missing", gettext("no result"))
    if outcomes.is_error(result.data):
        code = outcomes.error_code(result.data) or ""
        known = outcomes.ERRORS.get(code)
        return "failed", gettext(known) if known else markup.clip(code or gettext("failed"), NAME_CHARS)
    exited = outcomes.exit_code(result.data)
    return ("exit", gettext("exit %(code)s", code=exited)) if exited else ("ok", gettext("ok"))


def _changes(arguments: Any, result: EventView | None) -> list[tuple[str, str, str]]:
    """Return what a call changed in files: path, old text, new text."""
    meta = loose.mapping(result.data.get("meta")) if result else {}
    found = [loose.mapping(item) for item in loose.items(meta.get("diffs"))]
    changes = [
        (loose.string(item.get("path")) or "", str(item.get("oldText") or ""), str(item.get("newText") or ""))
        for item in found
        if isinstance(item.get("oldText") or "", str) and isinstance(item.get("newText") or "", str)
    ]
    fields = loose.mapping(arguments)
    if not changes and isinstance(fields.get("old_string"), str) and isinstance(fields.get("new_string"), str):
        changes = [(loose.string(fields.get("file_path")) or "", fields["old_string"], fields["new_string"])]
    return changes


def _sections(
    name: str | None,
    call: EventView | None,
    arguments: Any,
    result: EventView | None,
    text: str,
    changes: list[tuple[str, str, str]],
    allowance: Allowance,
) -> tuple[list[Section], int, int]:
    sections: list[Section] = []
    added = removed = 0
    for path, old, new in changes:
        body, plus, minus = bodies.diff(old, new, allowance)
        sections.append(Section(markup.clip(path, ARGUMENT_CHARS) or gettext("Change"), body))
        added, removed = added + plus, removed + minus
    if call is not None and not changes:
        sections += _input(name or "", call, arguments, allowance)
    if result is not None:
        sections += _output(result, text, allowance, brief=bool(changes))
    return sections, added, removed


def _input(name: str, call: EventView, arguments: Any, allowance: Allowance) -> list[Section]:
    fields = loose.mapping(arguments)
    command = fields.get("command")
    if name in SHELLS and isinstance(command, str):
        rest = {key: value for key, value in fields.items() if key not in ("command", "description")}
        shell = [Section(gettext("Command"), bodies.code(command, "bash", allowance))]
        return shell + ([Section(gettext("Options"), bodies.data(rest, allowance))] if rest else [])
    content = fields.get("content")
    if name in WRITERS and isinstance(content, str):
        return [Section(gettext("Written"), bodies.code(content, _language(fields), allowance))]
    prompt = fields.get("prompt")
    if isinstance(prompt, str) and name.startswith(("subagent", "task", "agent")):
        return [Section(gettext("Prompt"), bodies.plain(prompt, allowance))]
    if arguments is None and call.data.get("arguments"):
        return [
            Section(gettext("Arguments, not JSON"), bodies.plain(loose.said(call.data["arguments"]), allowance))
        ]
    if not fields and not arguments:
        return []
    return [Section(gettext("Arguments"), bodies.data(arguments, allowance))]


def _output(result: EventView, text: str, allowance: Allowance, *, brief: bool) -> list[Section]:
    meta = loose.mapping(result.data.get("meta"))
    lines = [loose.mapping(line) for line in loose.items(meta.get("lines"))]
    if lines and all(isinstance(line.get("text"), str) for line in lines):
        source = "\n".join(line["text"] for line in lines)
        return [Section(_range(lines, meta), bodies.code(source, _language(meta), allowance))]
    if not text or (brief and len(text) < ARGUMENT_CHARS and not result.data.get("error")):
        return []
    value = loose.decoded(text) if text[:1] in ("{", "[") and "\n" not in text else None
    shown = bodies.output(text, allowance) if value is None else bodies.data(value, allowance)
    if not shown.html.strip():
        shown = bodies.plain(gettext("(nothing but white space and terminal control sequences)"), allowance)
    return [Section(gettext("Output"), shown)]


def _range(lines: list[Mapping[str, Any]], meta: Mapping[str, Any]) -> str:
    first, last, total = lines[0].get("number"), lines[-1].get("number"), meta.get("totalLines")
    if loose.integer(total) is None:
        return gettext("Content")
    return gettext("Lines %(first)s–%(last)s of %(number)s", first=first, last=last, number=total)


def _language(fields: Mapping[str, Any]) -> str | None:
    path = loose.string(fields.get("file_path")) or loose.string(fields.get("path")) or ""
    return _LANGUAGES.get(PurePosixPath(path).suffix.removeprefix(".").lower())
