"""Commands and their help pages in the language of the terminal, and what click itself says of them."""

from __future__ import annotations

import gettext as catalogues
import inspect
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

from sessiongraph_web import language
from sessiongraph_web.language import gettext
from sessiongraph_web.screen import columns, one_line

EXAMPLE: Final = "Example: "  # begins a paragraph of a help text that shows a command, which is no language
# What click says where our commands are shown or misused; it looks these up in the domain of the process.
CLICK: Final[tuple[str | tuple[str, str], ...]] = (
    "Usage:",
    "Options",
    "Commands",
    "Show this message and exit.",
    "default: {default}",
    "Error: {message}",
    "Try '{command} {option}' for help.",
    "Aborted!",
    "Missing argument",
    "No such command {name!r}.",
    "No such option {name!r}.",
    ("Did you mean {possibility}?", "(Did you mean one of: {possibilities}?)"),
    "Option {name!r} does not take a value.",
    ("Option {name!r} requires an argument.", "Option {name!r} requires {nargs} arguments."),
    ("Got unexpected extra argument ({args})", "Got unexpected extra arguments ({args})"),
    "Invalid value for {param_hint}: {message}",
    "Choose from:\n\t{choices}",
    ("{value!r} is not {choice}.", "{value!r} is not one of {choices}."),
    "{value!r} is not a valid {number_type}.",
    "{value} is not in the range {range}.",
)
# Pieces that no line breaks: what stands in brackets, a run of narrow characters, or one wide one; each with the
# punctuation that belongs to it.
_PIECE: Final = re.compile(
    r"\s*[“（《]*(?:\[[^\]\s]*\]|[^\s\u2e80-\uffef“”]+|[\u2e80-\uffef])?[”，。；：！？、）》]*"
)


@contextmanager
def spoken() -> Iterator[None]:
    """Speak the language that the terminal is set to, and have click speak it too."""
    name = language.of_environment(os.environ)
    before = catalogues.textdomain()
    with language.spoken(name):
        if name != language.ENGLISH:
            catalogues.bindtextdomain(language.DOMAIN, str(language.LOCALES))
            catalogues.textdomain(language.DOMAIN)
        try:
            yield
        finally:
            catalogues.textdomain(before)


def paragraphs(help_text: str) -> list[str]:
    """Return the paragraphs of a help text, each on one line."""
    return [" ".join(part.split()) for part in inspect.cleandoc(help_text).split("\n\n")]


def wrapped(text: str, width: int) -> Iterator[str]:
    """Break a text into lines of at most so many columns: at spaces, and between wide characters."""
    line = ""
    for match in _PIECE.finditer(text):
        piece = match[0]
        if line and columns(line + piece) > width:
            yield line
            line = piece.lstrip()
        else:
            line += piece if line else piece.lstrip()
    if line:
        yield line


class Formatter(click.HelpFormatter):
    """Writes help pages. Click counts characters and breaks at spaces, which is right for English alone."""

    def write_heading(self, heading: str) -> None:
        self.write(" " * self.current_indent + gettext("%(heading)s:", heading=heading) + "\n")

    def write_text(self, text: str) -> None:
        if language.current() == language.ENGLISH:
            super().write_text(text)
            return
        indent = " " * self.current_indent
        written = (wrapped(part, self.width - self.current_indent) for part in paragraphs(text))
        self.write("\n\n".join("\n".join(indent + line for line in lines) for lines in written) + "\n")

    def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
        if language.current() == language.ENGLISH:
            super().write_dl(rows, col_max, col_spacing)
            return
        rows = list(rows)
        first = min(max(columns(term) for term, _ in rows), col_max) + col_spacing
        for term, text in rows:
            self._write_row(term, list(wrapped(text, max(10, self.width - first - 2))), first, col_spacing)

    def _write_row(self, term: str, lines: Sequence[str], first: int, spacing: int) -> None:
        """Write a term and, from a column on, what it means; below it where the term is too long."""
        indent = " " * self.current_indent
        room = first - columns(term)
        lead = term + " " * room if room >= spacing else f"{term}\n{indent}{' ' * first}"
        text = f"\n{indent}{' ' * first}".join(lines)
        self.write(f"{indent}{lead}{text}".rstrip() + "\n")


class Context(click.Context):
    """What a command of ours is shown in."""

    formatter_class = Formatter


class _Helpful(click.Command):
    """A command whose help is looked up when it is shown: it was written when the module was read."""

    context_class = Context

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "Show this message and exit."  # click keeps what it said first, in whichever language
        return option

    def get_short_help_str(self, limit: int = 45) -> str:
        if language.current() == language.ENGLISH or not self.help:
            return super().get_short_help_str(limit)
        first = _said(paragraphs(self.help)[0]).partition("。")[0]
        return one_line(first, limit)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        if self.help:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text("\n\n".join(map(_said, paragraphs(self.help))))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(gettext("Options")):
            formatter.write_dl(list(_records(self, ctx)))


class Command(_Helpful):
    """A command of ours."""


class Group(_Helpful, click.Group):
    """A command of ours that has commands."""

    command_class = Command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def _records(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the options of a command with their help, and what click adds to it."""
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if isinstance(parameter, click.Option) and record is not None:
            spelled, text = record
            written = parameter.help or ""
            yield spelled, gettext(written) + text.removeprefix(written)


def _said(paragraph: str) -> str:
    if paragraph.startswith(EXAMPLE):
        return gettext("Example: %(command)s", command=paragraph.removeprefix(EXAMPLE))
    return gettext(paragraph)
