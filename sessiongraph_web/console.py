"""Answers as text for a terminal: width-aware, and with every control character of a log made visible."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from sessiongraph_web.answers import (
    Branch,
    EventPage,
    EventTrace,
    EventView,
    Hit,
    Lineage,
    RunReport,
    SearchPage,
    SessionPage,
    SessionSummary,
    Status,
    TimelinePage,
    WorkspaceList,
)
from sessiongraph_web.checking import CheckReport
from sessiongraph_web.models import Instant
from sessiongraph_web.tokens import Token

_INDENT: Final = "   "
MOST_SCANNED: Final = 100_000  # characters of a text that one line is made of
_EVENT_TEXT: Final = 2000  # characters of an event on a session page; `event` shows it whole
_REPLACED: Final = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True, slots=True)
class Screen:
    """Where text goes: its width in columns, and how to emphasise (or not)."""

    width: int = 80
    bold: Callable[[str], str] = str
    faint: Callable[[str], str] = str


def safe(text: str, *, keep: str = "\n\t") -> str:
    """Make text harmless to a terminal: control, format and bidi characters become visible code points."""
    return "".join(c if c in keep or unicodedata.category(c) not in _REPLACED else _visible(c) for c in text)


def one_line(text: str, width: int) -> str:
    """Return text as one line of at most `width` columns, cut with an ellipsis."""
    flat = safe(" ".join(text[:MOST_SCANNED].split()), keep="")
    ends = list(accumulate(map(_columns, flat)))
    if not ends or ends[-1] <= width:
        return flat
    return flat[: bisect_right(ends, width - 1)] + "…"


def search(page: SearchPage, screen: Screen) -> Iterator[str]:
    yield screen.bold(_search_heading(page))
    for note in _search_notes(page):
        yield screen.faint(note)
    for number, hit in enumerate(page.sessions, 1):
        yield ""
        yield from _session_line(hit.session, screen, number)
        matches = "1 match" if hit.matches == 1 else f"{hit.matches} matches"
        yield f"{_INDENT}{matches}"
        for shown in (hit.best, *hit.more):
            yield _hit_line(shown, screen)
    for shown in page.entries:
        yield screen.bold(one_line(shown.session_id, screen.width))
        yield _hit_line(shown, screen)
    if page.next_cursor:
        yield ""
        yield screen.faint(f"More: add --cursor {page.next_cursor}")


def session(page: SessionPage, screen: Screen) -> Iterator[str]:
    summary = page.session
    yield screen.bold(one_line(summary.title, screen.width))
    yield from _facts(
        ("id", summary.id),
        ("workspace", summary.cwd or "none recorded"),
        ("created", _when(summary.created_at)),
        ("last event", _when(summary.last_at)),
        ("counts", _counts(summary)),
        ("models", ", ".join(summary.models) or "none"),
        ("parent", _parent(page)),
        ("children", ", ".join(child.id or "outside your view" for child in page.children) or "none"),
        ("damage", f"{len(page.damage)} faults; see `status`" if page.damage else "none"),
    )
    if page.resume_command:
        yield from _facts(("resume", page.resume_command))
    for event in page.events:
        yield ""
        yield from _event(event, screen, whole=False)
    if page.next_ordinal is not None:
        yield ""
        yield screen.faint(f"More: add --ordinal {page.next_ordinal}")


def event(page: EventPage, screen: Screen) -> Iterator[str]:
    for shown in (*page.before, page.target, *page.after):
        yield from _event(shown, screen, whole=shown is page.target)
        yield ""
    if page.repeats:
        yield f"The same seq is also at ordinal {', '.join(map(str, page.repeats))}."
    if page.trace:
        yield from event_trace(page.trace, screen)


def event_trace(trace: EventTrace, screen: Screen) -> Iterator[str]:
    yield screen.bold(f"seq {trace.seq} | {safe(trace.type, keep='')} | {trace.surface} | {_when(trace.time)}")
    yield from _facts(
        ("replaced by", _numbers([] if trace.replaced_by is None else [trace.replaced_by])),
        ("chain", _numbers(trace.replacement_chain)),
        ("replaces", _numbers(trace.replaced_event_seqs)),
        ("sources", _numbers(trace.source_event_seqs)),
        ("derived", _numbers(trace.derived_event_seqs)),
    )


def timeline(page: TimelinePage, screen: Screen) -> Iterator[str]:
    yield screen.bold(f"{page.total} sessions")
    for summary in page.sessions:
        yield from _session_line(summary, screen)
    if page.next_cursor:
        yield screen.faint(f"More: add --cursor {page.next_cursor}")


def workspaces(found: WorkspaceList, screen: Screen) -> Iterator[str]:
    for workspace in found.workspaces:
        yield screen.bold(safe(workspace.cwd or "(no working directory recorded)", keep=""))
        counts = f"{workspace.sessions} sessions, {workspace.entries} entries"
        yield f"{_INDENT}{counts}, last {_when(workspace.last_at)}"
    if not found.workspaces:
        yield "No workspace has a session yet."


def lineage(found: Lineage, screen: Screen) -> Iterator[str]:
    if not found.complete:
        yield "(an ancestor lies outside this view)"
    for depth, ancestor in enumerate(reversed(found.ancestors)):
        yield "  " * depth + _named(ancestor, screen)
    depth = len(found.ancestors)
    yield screen.bold("  " * depth + _named(found.session, screen))
    yield from _branches(found.descendants, depth + 1, screen)


def status(found: Status, screen: Screen) -> Iterator[str]:
    note = found.index
    yield screen.bold(f"{found.sessions} sessions, {found.entries} entries, {found.workspaces} workspaces")
    facts = [
        ("refreshed", _when(note.refreshed_at) if note.refreshed_at else "never; run `sessiongraph-web index`"),
        ("epoch", str(note.epoch)),
        ("store", found.sessions_path or "hidden"),
        ("index", found.index_path or "hidden"),
        ("files", ", ".join(f"{count} {state}" for state, count in (found.states or {}).items()) or "none"),
        ("masking", found.masking),
    ]
    if found.index.indexing:
        facts.insert(1, ("indexing", f"{note.done} of {note.total}"))
    if found.store_problem:
        facts.append(("problem", found.store_problem))
    yield from _facts(*facts)
    for entry in found.ledger if found.ledger is not None else found.problems or []:
        yield f"{entry.state}: {safe(entry.path, keep='')}" + (
            f" ({safe(entry.reason, keep='')})" if entry.reason else ""
        )
        for fault in entry.faults:
            line = f", line {fault.line}" if fault.line else ""
            yield f"{_INDENT}{fault.code} at byte {fault.offset}{line}: {safe(fault.message, keep='')}"


def run_report(report: RunReport) -> str:
    parts = [
        f"{report.discovered} logs found",
        f"{report.indexed} indexed",
        f"{report.extended} extended",
        f"{report.skipped} unchanged",
        f"{report.removed} removed",
        f"{report.failed} failed",
    ]
    ended = "" if report.outcome == "complete" else f" ({report.outcome}; run it again to go on)"
    return f"{', '.join(parts)} in {report.seconds:.1f} s{ended}"


def check_report(report: CheckReport) -> Iterator[str]:
    """Say what was looked at and what is wrong, with the way out."""
    yield (
        f"{report.workspaces} workspaces, {report.sessions} sessions and {report.entries} entries checked,"
        f" {report.reread} sessions read again: {'all is well' if report.sound else 'something is wrong'}"
    )
    for finding in report.findings:
        place = finding.workspace if finding.workspace is not None else "sessions without a workspace"
        yield f"{_INDENT}{finding.check}: {safe(place, keep='')}: {safe(finding.detail, keep='')}"
    if not report.sound:
        yield "`sessiongraph-web index --force` builds everything anew."


def token_facts(token: Token) -> dict[str, str]:
    """Return what a list says of a grant of access: never the secret, which is known to nobody."""
    opens = ", ".join(sorted(token.caller.cwds)) or "everything"
    if token.caller.kind == "session":
        opens = f"log {token.caller.log_id} in {opens}"
    return {
        "id": token.id,
        "kind": token.kind,
        "state": "revoked" if token.revoked_at else f"until {_when(Instant(token.expires_at))}",
        "opens": safe(opens, keep=""),
        "label": safe(token.label, keep=""),
    }


def _search_heading(page: SearchPage) -> str:
    hits = f"{page.hits}" if page.hits_exact else f"{page.hits} or more"
    return f"{hits} matches in {page.session_count} sessions ({page.took_ms:.0f} ms)"


def _search_notes(page: SearchPage) -> Iterator[str]:
    if page.widened:
        yield "Nothing in prompts, answers, calls and titles, so every kind was searched."
    if page.loose:
        yield "No exact match: these contain every part, not side by side."
    if not page.ranked_exactly:
        yield "A very common text: the newest matches were ranked."
    if page.partial:
        yield "The time was up: this is what was found until then."
    others = {kind: count for kind, count in page.kind_counts.items() if kind not in page.kinds and count}
    if others:
        yield "Also in: " + ", ".join(f"{kind} {count}" for kind, count in others.items())


def _session_line(summary: SessionSummary, screen: Screen, number: int | None = None) -> Iterator[str]:
    lead = f"{number}. " if number else ""
    yield screen.bold(lead + one_line(summary.title, screen.width - len(lead)))
    where = one_line(summary.cwd or "(no working directory recorded)", screen.width - len(_INDENT))
    yield f"{_INDENT}{safe(summary.id, keep='')}"
    yield screen.faint(f"{_INDENT}{where}")
    yield screen.faint(f"{_INDENT}{_when(summary.created_at)}, {summary.turns} turns")


def _hit_line(hit: Hit, screen: Screen) -> str:
    lead = f"{_INDENT}seq {hit.seq} {hit.kind}: "
    return lead + one_line(hit.snippet.text, max(20, screen.width - len(lead)))


def _event(shown: EventView, screen: Screen, *, whole: bool) -> Iterator[str]:
    marks = [shown.surface] + [name for name in ("inherited", "synthetic") if getattr(shown, name)]
    yield screen.bold(f"seq {shown.seq} | {safe(shown.type, keep='')} | {', '.join(marks)} | {_when(shown.time)}")
    text = "\n".join(_strings(shown.data))
    cut = text if whole or len(text) <= _EVENT_TEXT else text[:_EVENT_TEXT] + "…"
    for line in safe(cut).split("\n"):
        yield _INDENT + line


def _strings(value: Any, name: str = "") -> Iterator[str]:
    """Yield the leaves of an event's data, each with its name; long texts stand alone."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, name)
    elif name == "text":
        yield str(value)
    else:
        yield f"{name}: {value}"


def _branches(branches: list[Branch], depth: int, screen: Screen) -> Iterator[str]:
    waiting = [(branch, depth) for branch in reversed(branches)]
    while waiting:
        branch, at = waiting.pop()
        yield "  " * at + (_named(branch.session, screen) if branch.session else "(sessions outside this view)")
        waiting += [(below, at + 1) for below in reversed(branch.descendants)]


def _named(summary: SessionSummary, screen: Screen) -> str:
    return one_line(f"{summary.id}  {summary.title}  {_when(summary.created_at)}", screen.width * 2)


def _facts(*facts: tuple[str, str]) -> Iterator[str]:
    for name, value in facts:
        yield f"{_INDENT}{name + ':':<12} {safe(value, keep='')}"


def _counts(summary: SessionSummary) -> str:
    return (
        f"{summary.events} events, {summary.turns} turns, {summary.tool_calls} tool calls"
        f" ({summary.tool_errors} failed), {summary.input_tokens} tokens in, {summary.output_tokens} out"
    )


def _parent(page: SessionPage) -> str:
    if page.parent is None:
        return "none"
    return page.parent.id or "outside your view"


def _numbers(values: list[int]) -> str:
    return ", ".join(map(str, values)) or "none"


def _when(moment: Instant | None) -> str:
    return moment.iso.replace("T", " ").removesuffix("Z")[:-4] + " UTC" if moment else "unknown"


def _visible(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
