"""What all commands share: where things are, the product for one command, interrupts, progress, printing."""

from __future__ import annotations

import dataclasses
import io
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec

from sessiongraph_web import (
    access,
    commands,
    config,
    generation,
    indexer,
    presentation,
    reasons,
    spellings,
)
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import Answer, SearchPage, TimelinePage, WorkspaceList
from sessiongraph_web.config import Settings
from sessiongraph_web.errors import CODES, SessionGraphError
from sessiongraph_web.indexer import Progress
from sessiongraph_web.language import gettext
from sessiongraph_web.operations import SessionGraph, missing_store
from sessiongraph_web.reports import Status
from sessiongraph_web.screen import Screen, safe, safe_json

INTERRUPTED: Final = CODES["SESSION_QUERY_ABORTED"].exit_code
PLAIN_SECONDS: Final = 10  # between two lines of progress where they are kept, as in a pipe or a log
F = TypeVar("F", bound=Callable[..., Any])


class Commands(commands.Group):
    """The one place where the command line turns errors into sentences and exit codes, in its own language."""

    def main(self, *args: Any, **extra: Any) -> Any:
        _write_everything()
        with commands.spoken():
            return super().main(*args, **extra)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if parent is not None:  # under `datasette`, whose `main` is not ours
            parent.with_resource(commands.spoken())
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SessionGraphError as error:
            click.echo(f"sessiongraph-web: {safe(error.said())}", err=True)
            for name, value in error.fields.items():
                click.echo(f"  {name}: {safe(str(value))}", err=True)
            ctx.exit(error.meaning.exit_code)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


def places(command: F) -> F:
    """Add the options that say where things are."""
    path = click.Path(path_type=Path)
    for name, text in (
        ("--index", "Where the index lives."),
        ("--sessions", "The store; default ~/.dsh/sessions."),
    ):
        command = click.option(name, type=path, help=text)(command)
    return command


def query(command: F) -> F:
    """Add what every reading command takes, and hand it the product and the caller."""

    @places
    @click.option(
        "--workspace", multiple=True, help="See only sessions of this exact working directory; repeatable."
    )
    @click.option("--json", "as_json", is_flag=True, help="Print the JSON that the page's twin has.")
    @wraps(command)
    def wrapped(
        sessions: Path | None, index: Path | None, workspace: tuple[str, ...], as_json: bool, **rest: Any
    ) -> None:
        settings = config.load({"sessions": sessions, "index": index})
        caller = caller_of(workspace)
        with opened(settings) as product:
            answer, render = command(product, caller, **rest)
            show(answer, render, as_json=as_json)
            if _is_empty(answer):
                offer_spellings(product, *workspace)

    return wrapped  # type: ignore[return-value]


def choice(values: Sequence[str], text: str, name: str) -> Callable[[F], F]:
    return click.option(f"--{name}", type=click.Choice(values), default=values[0], show_default=True, help=text)


def caller_of(workspaces: tuple[str, ...]) -> Caller:
    return access.workspaces(*workspaces) if workspaces else access.OWNER


@contextmanager
def opened(settings: Settings) -> Iterator[SessionGraph]:
    """Look for new events once, then open the product for one command."""
    warn_of_store(settings)
    if settings.auto_refresh:
        _refresh(settings)
    product = SessionGraph(dataclasses.replace(settings, auto_refresh=False))
    try:
        yield product
    finally:
        product.close()


@contextmanager
def interruptible(stop: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C ask for a good end, and the second one end at once."""

    def ask(_signal: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        click.echo(
            "\n" + gettext("Stopping after the logs being read; press Ctrl-C again to stop at once."), err=True
        )

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class ProgressLine:
    """Says how far one run is: on a terminal in a line that is written over, else in a plain one now and then."""

    def __init__(self) -> None:
        self._told = 0.0  # seconds of the run when the last plain line was written

    def __call__(self, progress: Progress) -> None:
        if not progress.logs_total:
            return
        said = gettext(
            "Indexing %(done)s of %(total)s logs, %(percent)s %%",
            done=progress.logs,
            total=progress.logs_total,
            percent=100 * progress.bytes // progress.bytes_total if progress.bytes_total else 100,
        )
        if progress.seconds_left is not None:
            said += gettext(", about %(seconds)s s left", seconds=f"{progress.seconds_left:.0f}")
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{said}", err=True, nl=progress.logs == progress.logs_total)
        elif not 0 <= progress.seconds - self._told < PLAIN_SECONDS:  # each pass of a run counts from 0
            click.echo(said, err=True)
            self._told = progress.seconds


def show(answer: Answer, render: Callable[[Any, Screen], Iterable[str]], *, as_json: bool) -> None:
    if as_json:
        show_json(presentation.encode(answer))
        return
    for line in render(answer, _screen()):
        click.echo(line)


def show_json(value: Any) -> None:
    encoded = safe_json(msgspec.json.encode(value))
    sys.stdout.buffer.write(msgspec.json.format(encoded, indent=2) + b"\n")


def parameters(**options: Any) -> dict[str, list[str]]:
    """Turn options into the text parameters that a URL would have."""
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    many = {name: value if isinstance(value, tuple) else (value,) for name, value in given.items()}
    return {name: ["1" if value is True else str(value) for value in values] for name, values in many.items()}


def write_whole(target: Path, chunks: Iterable[bytes]) -> None:
    """Write a file that is either whole or not there."""
    partial = target.with_name(target.name + ".part")
    try:
        with partial.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _write_everything() -> None:
    """Spell out what the encoding of an output has no sign for: titles of logs are in every script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")


def _is_empty(answer: Answer) -> bool:
    """Say whether a list has nothing to show."""
    match answer:
        case SearchPage():
            return not answer.sessions and not answer.entries
        case TimelinePage() | Status():
            return not answer.sessions
        case WorkspaceList():
            return not answer.workspaces
    return False


def warn_of_store(settings: Settings) -> None:
    """Say that there is nothing to read where sessions are looked for, if so."""
    problem = missing_store(settings)
    if problem:
        said = gettext(
            "The session store cannot be read: %(problem)s. What was indexed before is kept.",
            problem=f"{reasons.said(problem)} ({settings.sessions})",
        )
        click.echo(safe(said), err=True)


def offer_spellings(product: SessionGraph, *workspaces: str) -> None:
    """Say under which other names directories have sessions, to who asks on this machine."""
    try:
        known = [found.cwd for found in product.workspaces(access.OWNER).workspaces]
    except SessionGraphError:  # no index yet
        return
    for other in (other for workspace in workspaces for other in spellings.others(workspace, known)):
        said = gettext(
            "%(directory)s may be the same directory under another name; it has sessions: add %(option)s",
            directory=safe(other),
            option=f"--workspace {shlex.quote(safe(other))}",
        )
        click.echo(said, err=True)


def _refresh(settings: Settings) -> None:
    """Bring the index up to date; if another run is going on, the index as it stands will do."""
    exists = generation.live(settings.index) is not None
    waiting = dataclasses.replace(settings, lock_wait_seconds=0) if exists else settings
    stop = threading.Event()
    try:
        with interruptible(stop):
            indexer.Run(waiting, stop=stop, on_progress=ProgressLine()).execute()
    except SessionGraphError as error:
        if not exists:  # sessions can be read without one
            said = gettext("no index: %(problem)s", problem=error.said())
            click.echo(f"sessiongraph-web: {safe(said)}", err=True)
    if stop.is_set():
        raise SystemExit(INTERRUPTED)


def _screen() -> Screen:
    if not sys.stdout.isatty():
        return Screen(100, again=_again)
    width = shutil.get_terminal_size().columns
    bold, faint = partial(click.style, bold=True), partial(click.style, dim=True)
    return Screen(width, bold, faint, again=_again)


def _again(**changes: str | None) -> str:
    """Return the command that runs now with some options changed, or left out where the value is None."""
    context = click.get_current_context()
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
    } | changes
    options, arguments = [], []
    for parameter in context.command.params:
        value = given.get(parameter.name or "")
        if isinstance(parameter, click.Argument):
            arguments.append(str(value))
        elif value is True:
            options.append(parameter.opts[0])
        elif value is not None and value is not False:
            several = value if isinstance(value, tuple) else (value,)
            options += [word for one in several for word in (parameter.opts[0], str(one))]
    ends = ["--"] if any(argument.startswith("-") for argument in arguments) else []
    return shlex.join([*context.command_path.split(), *options, *ends, *arguments])
