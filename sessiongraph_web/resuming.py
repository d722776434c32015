"""The command that goes on with a session in dsh, ready to be pasted into a shell."""

from __future__ import annotations

import shlex
import string
import unicodedata
from typing import Final

from sessiongraph_web.language import N_

COMMAND: Final = "cd {cwd} && dsh --profile tui --resume {id}"
PLACEHOLDERS: Final = frozenset({"cwd", "id"})
# Controls, format characters (bidi among them), separators of lines: a paste may act on them or not show them.
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_MADE_SAFE: Final = "\ufffd"  # stands for what could not be read, so the text is not what dsh knows


def problem(template: str) -> str | None:
    """Say what is wrong with a template of the command, None if nothing is."""
    try:
        fields = [field for field in string.Formatter().parse(template) if field[1] is not None]
    except ValueError:
        return N_("has a brace that is not closed; write `{{` for one that is meant")
    if any(name not in PLACEHOLDERS or form or conversion for _, name, form, conversion in fields):
        return N_("may hold the placeholders `{cwd}` and `{id}` and no others")
    return None if _is_plain(template) else N_("must be one line of visible characters")


def command(template: str, *, cwd: str | None, id: str) -> str | None:  # noqa: A002 - the placeholder's name
    """Return the command that resumes a session, None where none can be offered.

    Both values are quoted for a shell. One that holds what a shell or an eye could stumble over, or that a
    program would take for an option, is refused rather than changed.
    """
    if not template or cwd is None or not all(map(_is_usable, (cwd, id))):
        return None
    return template.format(cwd=shlex.quote(cwd), id=shlex.quote(id))


def _is_usable(value: str) -> bool:
    return bool(value) and not value.startswith("-") and _MADE_SAFE not in value and _is_plain(value)


def _is_plain(text: str) -> bool:
    return not any(unicodedata.category(character) in _UNSAFE for character in text)
