"""Answers as text for a terminal: width-aware, and with every control character of a log made visible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sessiongraph_web import reasons, wording
from sessiongraph_web.answers import (
    Branch,
    EventPage,
    EventTrace,
    EventView,
    Hit,
    Lineage,
    SearchPage,
    SessionPage,
    SessionSummary,
    TimelinePage,
    WorkspaceList,
)
from sessiongraph_web.checking import CheckReport
from sessiongraph_web.language import gettext, ngettext, pgettext
from sessiongraph_web.models import Instant
from sessiongraph_web.reports import LedgerEntry, RunReport, Status
from sessiongraph_web.screen import Screen, columns, one_line, safe
from sessiongraph_web.tokens import Token

_INDENT: Final = "   "
_LABEL_COLUMNS: Final = 12  # of the names of facts
_EVENT_TEXT: Final = 2000  # characters of an event on a session page; `event` shows it whole


def search(page: SearchPage, screen: Screen) -> Iterator[str]:
    yield screen.bold(_search_heading(page))
    for note in _search_notes(page):
        yield screen.faint(note)
    others = _other_kinds(page)
    if others and screen.again:
        yield _INDENT + safe(screen.again(kinds=",".join(others), cursor=None), keep="")
    for number, hit in enumerate(page.sessions, 1):
        yield ""
        yield from _session_line(hit.session, screen, number)
        yield _INDENT + ngettext("%(num)s match", "%(num)s matches", hit.matches, num=hit.matches)
        for shown in (hit.best, *hit.more):
            yield _hit_line(shown, screen)
    for shown in page.entries:
        yield screen.bold(one_line(shown.session_id, screen.width))
        yield _hit_line(shown, screen)
    if page.next_cursor:
        yield ""
        yield from _more(page.next_cursor, screen)


def session(page: SessionPage, screen: Screen) -> Iterator[str]:
    summary, outside = page.session, gettext("outside your view")
    yield screen.bold(one_line(summary.title, screen.width))
    yield from _facts(
        (gettext("id"), summary.id),
        (gettext("workspace"), summary.cwd or gettext("none recorded")),
        (gettext("created"), _when(summary.created_at)),
        (gettext("last event"), _when(summary.last_at)),
        (gettext("counts"), _counts(summary)),
        (gettext("models"), ", ".join(summary.models) or _none()),
        (gettext("parent"), _parent(page)),
        (gettext("children"), ", ".join(child.id or outside for child in page.children) or _none()),
        (gettext("damage"), _damage(summary)),
    )
    if page.resume_command:
        yield from _facts((gettext("resume"), page.resume_command))
    for event in page.events:
        yield ""
        yield from _event(event, screen, whole=False)
    if page.next_ordinal is not None:
        yield ""
        yield screen.faint(gettext("More: add %(option)s", option=f"--ordinal {page.next_ordinal}"))


def event(page: EventPage, screen: Screen) -> Iterator[str]:
    for shown in (*page.before, page.target, *page.after):
        yield from _event(shown, screen, whole=shown is page.target)
        yield ""
    if page.repeats:
        yield gettext("The same seq is also at ordinal %(ordinals)s.", ordinals=", ".join(map(str, page.repeats)))
    if page.trace:
        yield from event_trace(page.trace, screen)


def event_trace(trace: EventTrace, screen: Screen) -> Iterator[str]:
    yield screen.bold(f"seq {trace.seq} | {safe(trace.type, keep='')} | {trace.surface} | {_when(trace.time)}")
    yield from _facts(
        (gettext("replaced by"), _numbers([] if trace.replaced_by is None else [trace.replaced_by])),
        (gettext("chain"), _numbers(trace.replacement_chain)),
        (gettext("replaces"), _numbers(trace.replaced_event_seqs)),
        (gettext("sources"), _numbers(trace.source_event_seqs)),
        (gettext("derived"), _numbers(trace.derived_event_seqs)),
    )


def timeline(page: TimelinePage, screen: Screen) -> Iterator[str]:
    yield screen.bold(gettext("%(number)s sessions", number=page.total))
    for summary in page.sessions:
        yield from _session_line(summary, screen)
    if page.next_cursor:
        yield from _more(page.next_cursor, screen)


def workspaces(found: WorkspaceList, screen: Screen) -> Iterator[str]:
    for workspace in found.workspaces:
        yield screen.bold(safe(workspace.cwd or _no_directory(), keep=""))
        yield _INDENT + gettext(
            "%(sessions)s sessions, %(entries)s entries, last %(time)s",
            sessions=workspace.sessions,
            entries=workspace.entries,
            time=_when(workspace.last_at),
        )
    if not found.workspaces:
        yield gettext("No workspace has a session yet.")


def lineage(found: Lineage, screen: Screen) -> Iterator[str]:
    if not found.complete:
        yield gettext("(an ancestor lies outside this view)")
    for depth, ancestor in enumerate(reversed(found.ancestors)):
        yield "  " * depth + _named(ancestor, screen)
    depth = len(found.ancestors)
    yield screen.bold("  " * depth + _named(found.session, screen))
    yield from _branches(found.descendants, depth + 1, screen)


def status(found: Status, screen: Screen) -> Iterator[str]:
    note = found.index
    yield screen.bold(
        gettext(
            "%(sessions)s sessions, %(entries)s entries, %(workspaces)s workspaces",
            sessions=found.sessions,
            entries=found.entries,
            workspaces=found.workspaces,
        )
    )
    never = gettext("never; run `sessiongraph-web index`")
    states = ", ".join(f"{count} {state}" for state, count in (found.states or {}).items())
    facts = [
        (gettext("refreshed"), _when(note.refreshed_at) if note.refreshed_at else never),
        (gettext("epoch"), str(note.epoch)),
        (gettext("store"), found.sessions_path or gettext("hidden")),
        (gettext("index"), found.index_path or gettext("hidden")),
        (gettext("files"), states or _none()),
        (gettext("masking"), gettext(found.masking)),
    ]
    if found.index.indexing:
        indexing = gettext("%(done)s of %(total)s", done=note.done, total=note.total)
        facts.insert(1, (gettext("indexing"), indexing))
    if found.store_problem:
        facts.append((gettext("problem"), reasons.said(found.store_problem)))
    yield from _facts(*facts)
    for entry in found.ledger if found.ledger is not None else found.problems or []:
        yield from _entry(entry)
        if entry.damage > len(entry.faults):
            more = entry.damage - len(entry.faults)
            yield _INDENT + ngettext("and %(num)s more", "and %(num)s more", more, num=more)


def run_report(report: RunReport) -> str:
    said = gettext(
        "%(discovered)s logs found, %(indexed)s indexed, %(extended)s extended, %(skipped)s unchanged,"
        " %(removed)s removed, %(failed)s failed in %(seconds)s s",
        discovered=report.discovered,
        indexed=report.indexed,
        extended=report.extended,
        skipped=report.skipped,
        removed=report.removed,
        failed=report.failed,
        seconds=f"{report.seconds:.1f}",
    )
    if report.outcome == "complete":
        return said
    outcome = gettext(wording.OUTCOMES[report.outcome])
    return said + gettext(" (%(outcome)s; run it again to go on)", outcome=outcome)


def check_report(report: CheckReport) -> Iterator[str]:
    """Say what was looked at and what is wrong, with the way out."""
    yield gettext(
        "%(workspaces)s workspaces, %(sessions)s sessions and %(entries)s entries checked,"
        " %(reread)s sessions read again: %(outcome)s",
        workspaces=report.workspaces,
        sessions=report.sessions,
        entries=report.entries,
        reread=report.reread,
        outcome=gettext("all is well") if report.sound else gettext("something is wrong"),
    )
    for finding in report.findings:
        place = finding.workspace if finding.workspace is not None else gettext("sessions without a workspace")
        detail = safe(reasons.said(finding.detail), keep="")
        yield f"{_INDENT}{finding.check}: {safe(place, keep='')}: {detail}"
    if not report.sound:
        yield gettext("`sessiongraph-web index --force` builds everything anew.")


def token_facts(token: Token) -> dict[str, str]:
    """Return what a list says of a grant of access: never the secret, which is known to nobody."""
    opens = ", ".join(sorted(token.caller.cwds)) or gettext("everything")
    if token.caller.kind == "session":
        opens = gettext("log %(log)s in %(workspace)s", log=token.caller.log_id, workspace=opens)
    until = gettext("until %(time)s", time=_when(Instant(token.expires_at)))
    return {
        "id": token.id,
        "kind": token.kind,
        "state": gettext("revoked") if token.revoked_at else until,
        "opens": safe(opens, keep=""),
        "label": safe(token.label, keep=""),
    }


def _search_heading(page: SearchPage) -> str:
    return gettext(
        "%(hits)s matches in %(sessions)s sessions (%(time)s ms)",
        hits=page.hits if page.hits_exact else gettext("%(number)s or more", number=page.hits),
        sessions=page.session_count,
        time=f"{page.took_ms:.0f}",
    )


def _search_notes(page: SearchPage) -> Iterator[str]:
    if page.widened:
        yield gettext("Nothing in prompts, answers, calls and titles, so every kind was searched.")
    if page.loose:
        yield gettext("No exact match: these contain every part, not side by side.")
    if not page.ranked_exactly:
        yield gettext("A very common text: the newest matches were ranked.")
    if page.partial:
        yield gettext("The time was up: this is what was found until then.")
    others = _other_kinds(page)
    if others:
        counts = ", ".join(f"{kind} {count}" for kind, count in others.items())
        yield gettext("Also in: %(counts)s", counts=counts)


def _more(cursor: str, screen: Screen) -> Iterator[str]:
    """Say how to see the next page."""
    if screen.again:
        yield from _facts((gettext("more"), screen.again(cursor=cursor)))
    else:
        yield screen.faint(gettext("More: add %(option)s", option=f"--cursor {cursor}"))


def _other_kinds(page: SearchPage) -> dict[str, int]:
    """Return how many hits the kinds hold that were not searched."""
    return {kind: count for kind, count in page.kind_counts.items() if kind not in page.kinds and count}


def _session_line(summary: SessionSummary, screen: Screen, number: int | None = None) -> Iterator[str]:
    lead = f"{number}. " if number else ""
    yield screen.bold(lead + one_line(summary.title, screen.width - len(lead)))
    where = one_line(summary.cwd or _no_directory(), screen.width - len(_INDENT))
    yield f"{_INDENT}{safe(summary.id, keep='')}"
    yield screen.faint(f"{_INDENT}{where}")
    about = gettext("%(time)s, %(turns)s", time=_when(summary.created_at), turns=_turns(summary))
    yield screen.faint(_INDENT + about)


def _hit_line(hit: Hit, screen: Screen) -> str:
    lead = f"{_INDENT}seq {hit.seq} {hit.kind}: "
    return lead + one_line(hit.snippet.text, max(20, screen.width - len(lead)))


def _event(shown: EventView, screen: Screen, *, whole: bool) -> Iterator[str]:
    marks: list[str] = [shown.surface]
    if shown.inherited:
        marks.append(gettext("inherited"))
    if shown.synthetic:
        marks.append(gettext("synthetic"))
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
        yield "  " * at + (
            _named(branch.session, screen) if branch.session else gettext("(sessions outside this view)")
        )
        waiting += [(below, at + 1) for below in reversed(branch.descendants)]


def _named(summary: SessionSummary, screen: Screen) -> str:
    return one_line(f"{summary.id}  {summary.title}  {_when(summary.created_at)}", screen.width * 2)


def _facts(*facts: tuple[str, str]) -> Iterator[str]:
    for name, value in facts:
        label = gettext("%(name)s:", name=name)
        yield f"{_INDENT}{label}{' ' * (_LABEL_COLUMNS - columns(label))} {safe(value, keep='')}"


def _counts(summary: SessionSummary) -> str:
    events, calls = summary.events, summary.tool_calls
    return gettext(
        "%(events)s, %(turns)s, %(calls)s (%(errors)s failed), %(input)s tokens in, %(output)s out",
        events=ngettext("%(num)s event", "%(num)s events", events, num=events),
        turns=_turns(summary),
        calls=ngettext("%(num)s tool call", "%(num)s tool calls", calls, num=calls),
        errors=summary.tool_errors,
        input=summary.input_tokens,
        output=summary.output_tokens,
    )


def _turns(summary: SessionSummary) -> str:
    return ngettext("%(num)s turn", "%(num)s turns", summary.turns, num=summary.turns)


def _damage(summary: SessionSummary) -> str:
    number = summary.damage
    if not number:
        return _none()
    return ngettext("%(num)s fault; see `status`", "%(num)s faults; see `status`", number, num=number)


def _entry(entry: LedgerEntry) -> Iterator[str]:
    """Say what became of a file of the store, and what is wrong in it."""
    why = gettext(" (%(reason)s)", reason=safe(reasons.said(entry.reason), keep="")) if entry.reason else ""
    yield f"{entry.state}: {safe(entry.path, keep='')}{why}"
    for fault in entry.faults:
        where = gettext("byte %(offset)s, line %(line)s") if fault.line else gettext("byte %(offset)s")
        at = where % {"offset": fault.offset, "line": fault.line}
        message = safe(reasons.said(fault.message), keep="")
        yield _INDENT + gettext("%(code)s at %(place)s: %(message)s", code=fault.code, place=at, message=message)


def _parent(page: SessionPage) -> str:
    if page.parent is None:
        return _none()
    return page.parent.id or gettext("outside your view")


def _numbers(values: list[int]) -> str:
    return ", ".join(map(str, values)) or _none()


def _none() -> str:
    return pgettext("in a list of facts", "none")


def _no_directory() -> str:
    return gettext("(no working directory recorded)")


def _when(moment: Instant | None) -> str:
    return moment.iso.replace("T", " ").removesuffix("Z")[:-4] + " UTC" if moment else pgettext("time", "unknown")
