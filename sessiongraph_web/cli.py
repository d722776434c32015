"""The command line: each command parses, calls one operation and prints one rendering."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any, Final, get_args

import click

from sessiongraph_web import (
    __version__,
    checking,
    config,
    console,
    filters,
    indexer,
)
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import Answer
from sessiongraph_web.granting import token
from sessiongraph_web.indexer import Wish
from sessiongraph_web.lending import mcp, tool
from sessiongraph_web.models import KINDS, SURFACES, LogState
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.shell import (
    INTERRUPTED,
    Commands,
    ProgressLine,
    caller_of,
    choice,
    interruptible,
    opened,
    parameters,
    places,
    query,
    show,
    show_json,
    warn_of_store,
    write_whole,
)

DEFAULT_PORT: Final = 8642
FORMATS: Final = get_args(filters.ExportFormat)


@click.group(cls=Commands)
@click.version_option(__version__, help="Show the version and exit.")
def main() -> None:
    """Search, read, trace and export DeepSeek Harness (dsh) session logs."""


@main.command()
@places
@click.option("--force", is_flag=True, help="Build everything anew.")
@click.option("--prune", is_flag=True, help="Forget sessions whose files cannot be reached any more.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def index(sessions: Path | None, index: Path | None, force: bool, prune: bool, as_json: bool) -> None:
    """Build the index, or bring it up to date.

    Example: sessiongraph-web index --sessions ~/.dsh/sessions
    """
    settings = config.load({"sessions": sessions, "index": index})
    stop = threading.Event()
    with interruptible(stop):
        report = indexer.Run(settings, stop=stop, on_progress=ProgressLine()).execute(
            Wish(force=force, prune=prune)
        )
    show(report, lambda found, _: [console.run_report(found)], as_json=as_json)
    warn_of_store(settings)
    if report.outcome == "interrupted":
        raise SystemExit(INTERRUPTED)


@main.command()
@places
@click.option(
    "--sample",
    type=click.IntRange(0),
    default=checking.SAMPLE_SESSIONS,
    show_default=True,
    help="How many sessions to read from the store again; 0 reads every one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def check(sessions: Path | None, index: Path | None, sample: int, as_json: bool) -> None:
    """Check the index against itself and against the store. Exits with 1 if anything is wrong.

    Example: sessiongraph-web check --sample 0
    """
    settings = config.load({"sessions": sessions, "index": index})
    with indexer.locked(settings):
        report = checking.Check(settings, sample=sample).perform()
    show(report, lambda found, _: console.check_report(found), as_json=as_json)
    if not report.sound:
        raise SystemExit(1)


@main.command()
@query
@click.argument("text")
@choice(get_args(filters.Match), "How to read the text; `text` is a literal substring.", "match")
@choice(get_args(filters.Sort), "In which order.", "sort")
@choice(get_args(filters.Group), "Hits by session, or each alone.", "group")
@click.option("--kinds", help=f"Comma-separated kinds of entries: {', '.join(KINDS)}.")
@click.option("--types", help="Comma-separated event types, such as tool/result.")
@click.option("--surfaces", help=f"Comma-separated: {', '.join(SURFACES)}.")
@click.option("--tool", multiple=True, help="Only calls and results of this tool; repeatable.")
@click.option("--model", multiple=True, help="Only sessions that this model answered in; repeatable.")
@click.option("--session", multiple=True, help="Only the session with this id; repeatable.")
@click.option("--parent", multiple=True, help="Only children of the session with this id; repeatable.")
@click.option("--roots", is_flag=True, help="Leave out forks and subagents.")
@click.option("--live", is_flag=True, help="Only sessions that a process is writing now.")
@click.option("--inherited", is_flag=True, help="Also what forks copied from their parents.")
@click.option("--after", help="Entries from this time on: ISO 8601, or a day.")
@click.option("--before", help="Entries up to this time.")
@click.option("--created-after", help="Sessions begun from this time on.")
@click.option("--created-before", help="Sessions begun up to this time.")
@click.option("--seq-from", type=int, help="Lowest event number.")
@click.option("--seq-to", type=int, help="Highest event number.")
@click.option("--tz", help="Time zone of days, such as Asia/Shanghai; default UTC.")
@click.option("--limit", type=int, help="Rows on a page.")
@click.option("--cursor", help="The next page, as the page before gave it.")
def search(product: SessionGraph, caller: Caller, text: str, **options: Any) -> tuple[Answer, Any]:
    """Find text in prompts, answers, tool calls and titles.

    Example: sessiongraph-web search 广告 --kinds user,assistant
    """
    request = filters.parse_search(parameters(q=text, **options), product.settings)
    return product.search(caller, request), console.search


@main.command()
@query
@click.argument("session_id")
@click.option("--ordinal", type=int, help="Begin at this position in the log.")
@click.option("--at", type=int, help="The page that holds this position.")
@click.option("--seq", type=int, help="The page that holds this event.")
@click.option("--time", help="Begin at the first event from this time on.")
@click.option("--last", is_flag=True, help="Show the final page.")
@click.option("--log", type=int, help="Which log, where several carry the id.")
@click.option("--limit", type=int, help="Events on a page.")
@click.option("--redact", is_flag=True, help="Mask known secrets.")
def session(product: SessionGraph, caller: Caller, session_id: str, **options: Any) -> tuple[Answer, Any]:
    """Read one session, by full id or unique beginning.

    Example: sessiongraph-web session 02b75564
    """
    request = filters.parse_session(session_id, parameters(**options), product.settings)
    return product.session(caller, request), console.session


@main.command()
@query
@click.argument("session_id")
@click.argument("seq", type=int, required=False)
@click.option("--ordinal", type=int, help="Which event, by its position in the log.")
@click.option("--before", type=int, help="Neighbours before it.")
@click.option("--after", type=int, help="Neighbours after it.")
@click.option("--log", type=int, help="Which log, where several carry the id.")
@click.option("--redact", is_flag=True, help="Mask known secrets.")
def event(product: SessionGraph, caller: Caller, session_id: str, **options: Any) -> tuple[Answer, Any]:
    """Read one whole event, its neighbours and its relations.

    Example: sessiongraph-web event 02b75564 12 --before 2
    """
    request = filters.parse_event(session_id, parameters(**options), product.settings)
    return product.event(caller, request), console.event


@main.command()
@query
@click.argument("session_id")
@click.option("--log", type=int, help="Which log, where several carry the id.")
def trace(product: SessionGraph, caller: Caller, session_id: str, **options: Any) -> tuple[Answer, Any]:
    """Show a session's ancestors and descendants.

    Example: sessiongraph-web trace 02b75564
    """
    request = filters.parse_session(session_id, parameters(**options), product.settings)
    return product.trace(caller, request), console.lineage


@main.command()
@query
@choice(("created", "activity"), "In which order.", "sort")
@click.option("--after", help="From this time on: ISO 8601, or a day.")
@click.option("--before", help="Up to this time.")
@click.option("--day", help="Sessions active on this day.")
@click.option("--model", multiple=True, help="Only sessions that this model answered in; repeatable.")
@click.option("--roots", is_flag=True, help="Leave out forks and subagents.")
@click.option("--tz", help="Time zone of days, such as Asia/Shanghai; default UTC.")
@click.option("--limit", type=int, help="Sessions on a page.")
@click.option("--cursor", help="The next page, as the page before gave it.")
def timeline(product: SessionGraph, caller: Caller, **options: Any) -> tuple[Answer, Any]:
    """List sessions, newest first.

    Example: sessiongraph-web timeline --after 2026-11-01
    """
    request = filters.parse_timeline(parameters(**options), product.settings)
    return product.timeline(caller, request), console.timeline


@main.command()
@query
def workspaces(product: SessionGraph, caller: Caller) -> tuple[Answer, Any]:
    """List working directories that have sessions.

    Example: sessiongraph-web workspaces --json
    """
    return product.workspaces(caller), console.workspaces


@main.command()
@query
@click.option("--ledger", is_flag=True, help="List every file of the store and what became of it.")
@click.option("--state", multiple=True, help=f"Only files in this state: {', '.join(get_args(LogState))}.")
@click.option("--offset", type=int, help="Leave out so many files.")
@click.option("--limit", type=int, help="Files on a page.")
def status(product: SessionGraph, caller: Caller, **options: Any) -> tuple[Answer, Any]:
    """Say how the index is and what could not be read.

    Example: sessiongraph-web status --ledger
    """
    request = filters.parse_status(parameters(**options), product.settings)
    return product.status(caller, request), console.status


@main.command()
@places
@click.argument("session_id")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="Where to write; default the archive's own name."
)
@click.option("--descendants", is_flag=True, help="With forks and subagents.")
@click.option("--redact", is_flag=True, help="Mask known secrets.")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    default="zip",
    show_default=True,
    help="`raw` packs the stored files as they are; `md`, `json` and `ndjson` are texts of this session alone.",
)
@click.option("--log", type=int, help="Which log, where several carry the id.")
@click.option("--workspace", multiple=True, help="See only sessions of this exact working directory; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def export(
    sessions: Path | None,
    index: Path | None,
    session_id: str,
    output: Path | None,
    workspace: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Write a session's log as a ZIP archive, or its events as text.

    It may hold secrets; --redact masks the known ones.

    Example: sessiongraph-web export 02b75564 --descendants
    """
    settings = config.load({"sessions": sessions, "index": index})
    with opened(settings) as product:
        request = filters.parse_export(session_id, parameters(**options), product.settings, formats=FORMATS)
        download = product.export(caller_of(workspace), request)
        target = output or Path(download.filename)
        write_whole(target, download.chunks)
    if as_json:
        show_json({"path": str(target), "media_type": download.media_type, "bytes": target.stat().st_size})
    else:
        click.echo(target)


@main.command()
@places
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port", default=DEFAULT_PORT, type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one."
)
@click.option("--allow-host", multiple=True, help="A further Host that browsers may use; needed beyond loopback.")
@click.option("--open", "open_browser", is_flag=True, help="Open the sign-in link in a browser.")
@click.option("--demo", is_flag=True, help="Serve made-up sessions from a temporary directory.")
def serve(
    sessions: Path | None,
    index: Path | None,
    host: str,
    port: int,
    allow_host: tuple[str, ...],
    open_browser: bool,
    demo: bool,
) -> None:
    """Serve the history to a browser on this machine.

    Example: sessiongraph-web serve --open
    """
    from sessiongraph_web.web import server

    options = server.Options(sessions, index, host, port, allow_host, open_browser, demo)
    asyncio.run(server.serve(options))


for command in (token, tool, mcp):
    main.add_command(command)
