"""The catalogues and the source: `python -m tests.catalogue` brings every catalogue up to date with what is said.

New sentences are added without a translation, those that nobody says any more go; what is left to translate is
printed. The compiled catalogue, which is all that the product reads, is written beside.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from sessiongraph_web import cli, commands, language

ROOT = Path(__file__).resolve().parents[1]
TRANSLATED = tuple(name for name in language.LANGUAGES if name != language.ENGLISH)
FOLDERS = {"sessiongraph_web": "python", "templates/sessiongraph": "jinja2.ext:babel_extract"}
TEMPLATES = {"trim_blocks": "true", "lstrip_blocks": "true", "silent": "false", "newstyle_gettext": "true"}
KEYWORDS = {
    "_": None,
    "N_": None,
    "gettext": None,
    "ngettext": (1, 2),
    "pgettext": ((1, "c"), 2),
    "sentence": None,
    "Meaning": (3,),
    "SessionGraphError": (2,),
    "invalid_parameter": (2,),
    "_invalid": (2,),
}
WIDTH = 110
HEADERS = ("Language", "Plural-Forms", "MIME-Version", "Content-Type", "Content-Transfer-Encoding")


class Kept(Catalog):
    """A catalogue as it is kept: its header says nothing that changes from run to run."""

    @property
    def mime_headers(self) -> list[tuple[str, str]]:
        return [(name, value) for name, value in super().mime_headers if name in HEADERS]


def po_path(name: str) -> Path:
    """Return where the catalogue of a language is kept."""
    return language.LOCALES / name / "LC_MESSAGES" / f"{language.DOMAIN}.po"


def spoken() -> Catalog:
    """Return every sentence that the source says, each with the files that say it."""
    catalogue = Catalog(project="sessiongraph-web", fuzzy=False)
    for folder, method in FOLDERS.items():
        found = extract_from_dir(
            ROOT / folder,
            method_map=[("**.html" if "jinja2" in method else "**.py", method)],
            options_map={"**.html": TEMPLATES},
            keywords=KEYWORDS,
            comment_tags=("Translators:",),
            strip_comment_tags=True,
        )
        for name, _line, message, comments, context in sorted(found, key=lambda one: (one[0], one[1])):
            catalogue.add(message, None, [(f"{folder}/{name}", None)], auto_comments=comments, context=context)
    for place, helped in sorted({*_helped(cli.main, "cli")}):
        catalogue.add(helped, None, [(place, None)])
    for words in commands.CLICK:
        catalogue.add(words, None, [("sessiongraph_web/commands.py", None)])
    return catalogue


def _helped(command: click.Command, module: str) -> Iterator[tuple[str, str]]:
    """Yield the help of a command, its options and the commands below it, each with the file that says it."""
    module = command.callback.__module__.rpartition(".")[2] if command.callback else module
    place = f"sessiongraph_web/{module}.py"
    texts = commands.paragraphs(command.help or "")
    texts += [option.help for option in command.params if isinstance(option, click.Option) and option.help]
    yield from ((place, text) for text in texts if not text.startswith(commands.EXAMPLE))
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        yield from _helped(below, module)


def read(name: str) -> Catalog:
    """Return the catalogue of a language as it is kept; one that is not there yet is empty."""
    if not po_path(name).exists():
        return Kept(locale=name, domain=language.DOMAIN, fuzzy=False)
    with po_path(name).open("rb") as file:
        found = read_po(file, locale=name, domain=language.DOMAIN)
    kept = Kept(locale=name, domain=language.DOMAIN, header_comment=found.header_comment, fuzzy=False)
    for message in found:
        if message.id:
            kept[message.id] = message
    return kept


def keyed(catalogue: Catalog) -> dict[tuple[str | None, object], Message]:
    """Return the messages of a catalogue by what tells them apart."""
    return {(message.context, _key(message)): message for message in catalogue if message.id}


def _key(message: Message) -> object:
    return tuple(message.id) if isinstance(message.id, list | tuple) else message.id


def updated(name: str) -> Catalog:
    """Return a catalogue with what is new and without what is gone; nothing is guessed."""
    kept = read(name)
    kept.update(spoken(), no_fuzzy_matching=True, update_creation_date=False)
    kept.obsolete.clear()
    return kept


def missing(catalogue: Catalog) -> Iterator[Message]:
    """Yield the messages that are not translated whole."""
    for message in catalogue:
        texts = message.string if isinstance(message.string, list | tuple) else (message.string,)
        if message.id and (message.fuzzy or not all(texts)):
            yield message


def as_po(catalogue: Catalog) -> bytes:
    """Return a catalogue as it is kept, in an order that does not depend on where sentences stand."""
    kept = io.BytesIO()
    write_po(kept, catalogue, width=WIDTH, omit_header=False, sort_by_file=True, include_lineno=False)
    return kept.getvalue()


def as_mo(catalogue: Catalog) -> bytes:
    """Return a catalogue as the product reads it."""
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    return compiled.getvalue()


def main() -> int:
    left = 0
    for name in TRANSLATED:
        catalogue = updated(name)
        po_path(name).parent.mkdir(parents=True, exist_ok=True)
        po_path(name).write_bytes(as_po(catalogue))
        po_path(name).with_suffix(".mo").write_bytes(as_mo(catalogue))
        for message in missing(catalogue):
            left += 1
            print(f"{name}: {message.id!r} is not translated", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
