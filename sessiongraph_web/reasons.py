"""Why something could not be read whole: indexes hold it in English, and a reader is told in another language.

A stored sentence is known again by its template here; what stands in its variables is kept. Sentences that are
not known, as those of SQLite and zstd, stay as they are.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from sessiongraph_web import language
from sessiongraph_web.language import N_, gettext

TEMPLATES: Final = (
    # what is wrong in a log
    N_("the file is empty"),
    N_("the file is not zstd, whatever its name says"),
    N_("there is no header"),
    N_("the first line is not a header"),
    N_("a second header"),
    N_("the header has no id"),
    N_("the header has no cwd"),
    N_("the header's cwd is empty"),
    N_("the header's cwd is not text"),
    N_("the header's cwd holds a lone surrogate or NUL"),
    N_("the folder has not the name of the header's id"),
    N_("the project folder has not the name of the header's cwd"),
    N_("the header says version %(version)s, the file's name %(named)s"),
    N_("unknown format: the version is %(version)s"),
    N_("version %(version)s is newer than this product; read as well as it can be"),
    N_("version %(version)s is newer than %(newest)s; read as well as it can be"),
    N_("the last line, begun at byte %(offset)s, is incomplete"),
    N_("the last write, begun at byte %(offset)s, is incomplete"),
    N_("the line begun at byte %(offset)s is cut by the damage behind it"),
    N_("a line longer than %(limit)s bytes"),
    N_("nothing but white space"),
    N_("not UTF-8"),
    N_("not JSON: %(problem)s"),
    N_("Expecting value"),
    N_("Expecting property name enclosed in double quotes"),
    N_("Expecting ':' delimiter"),
    N_("Expecting ',' delimiter"),
    N_("Extra data"),
    N_("Unterminated string starting at"),
    N_("Invalid control character at"),
    N_("Invalid \\escape"),
    N_("Invalid \\uXXXX escape"),
    N_("%(token)s is no number"),
    N_("not a JSON object"),
    N_("nested deeper than %(levels)s levels"),
    N_("an event without a type"),
    N_("an event whose data is not an object"),
    N_("event number %(seq)s was used before (expected %(expected)s)"),
    N_("event number %(seq)s is missing"),
    N_("event numbers %(first)s to %(last)s are missing"),
    N_("no frame begins at byte %(offset)s"),
    N_("a frame header uses a reserved bit"),
    N_("the frame at byte %(offset)s has a block of no known kind or size"),
    N_("the frame at byte %(offset)s cannot be decoded: %(problem)s"),
    N_("the frame at byte %(offset)s needs a window of %(window)s bytes; the limit is %(limit)s"),
    N_("%(lost)s bytes from byte %(offset)s on hold no whole frame"),
    N_("zeros from byte %(offset)s on (the file has %(size)s)"),
    N_("zeros from byte %(offset)s to byte %(end)s"),
    # what became of a file
    N_("This log cannot be read: %(reason)s."),
    N_("nothing could be read"),
    N_("it is no session log"),
    N_("a link, not a log"),
    N_("not a regular file"),
    N_("no facts"),
    N_("the name or place is not one of a session log"),
    N_("another log carries the same session id"),
    N_("%(name)s beside it is newer"),
    # of the store and of runs
    N_("it cannot be listed"),
    N_("there is no such directory"),
    N_("the index was of another make, or its catalog damaged; everything was built anew"),
    N_("the catalog was damaged (%(why)s); everything was built anew"),
    N_("the file of the sessions without a workspace was damaged (%(why)s); it was built anew"),
    N_("the file of workspace %(cwd)s was damaged (%(why)s); it was built anew"),
    N_("it cannot be used"),
    N_("%(name)s is missing or of another make"),
    N_("the full-text index counts other entries than there are"),
    N_("a part of the full-text index is empty"),
    N_("the full-text index does not know all entries that there are"),
    N_("SQLite finds fault with it: %(fault)s"),
    N_("%(error)s during an index run; the old index is still served"),
    N_("No such file or directory"),
    N_("Permission denied"),
    N_("Input/output error"),
    # what a check finds
    N_("%(number)s terms are counted wrongly, the first is %(term)s"),
    N_("the entries with %(term)s are not those that hold it"),
    N_("log %(log)s is not what the ledger says"),
    N_("log %(log)s has %(found)s entries of its own, not %(entries)s"),
    N_("session %(id)s differs from its log in `%(table)s`"),
    # of what the model saw
    N_("session event seq %(seq)s is not contiguous; expected %(expected)s"),
    N_('session event "%(type)s" is surface-eligible and requires a surfaceOp marker'),
    N_('session event "%(type)s" is not surface-eligible and cannot carry %(field)s'),
    N_('session event "%(type)s" carries an invalid surfaceOp'),
    N_('session event "%(type)s" carries an invalid replace surfaceOp'),
    N_('session event "%(type)s" sourceEventSeqs must densely contain non-negative safe integers'),
    N_("sourceEventSeqs on event at seq %(seq)s must be an array when present"),
    N_("sourceEventSeqs must not be empty except on assistant/message"),
    N_("sourceEventSeqs must not contain duplicates"),
    N_("sourceEventSeqs must reference earlier events: %(source)s >= current seq %(seq)s"),
    N_("surface replace: start seq %(start)s (index %(first)s) is after end seq %(end)s (index %(last)s)"),
    N_("surface replace: %(side)s seq %(seq)s not found in surface"),
    N_("surface replace: sourceEventSeqs must include every shadowed surface node; missing %(seqs)s"),
    N_("tool/result surface replacement must rewrite exactly one current node"),
    N_("tool/result surface replacement must target a current tool/result"),
    N_("tool/result surface replacement may change only content"),
)
MOST_CHARACTERS: Final = 4000  # of a text that is looked up
_VARIABLE: Final = re.compile(r"%\\\((\w+)\\\)s")  # as `re.escape` leaves it
_JOINT: Final = N_("; ")  # between what a run has to say


def said(text: str) -> str:
    """Return a stored sentence, or several in a row, in the language of the moment."""
    if language.current() == language.ENGLISH or len(text) > MOST_CHARACTERS:
        return text
    whole = _said(text)
    if whole is not None:
        return whole
    at = text.find(_JOINT)
    while at >= 0:
        first = _said(text[:at])
        if first is not None:
            return first + gettext(_JOINT) + said(text[at + len(_JOINT) :])
        at = text.find(_JOINT, at + 1)
    return text


def _said(text: str) -> str | None:
    """Return one stored sentence in the language of the moment, None if it is not known."""
    exactly = gettext(text)
    if exactly != text:
        return exactly
    for template, pattern in _patterns():
        found = pattern.fullmatch(text)
        if found:
            return gettext(template, **{name: said(value) for name, value in found.groupdict().items()})
    return None


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the templates that have variables, each with what finds it."""
    made = ((template, _VARIABLE.sub(r"(?P<\1>.+)", re.escape(template))) for template in TEMPLATES)
    return tuple((template, re.compile(pattern, re.DOTALL)) for template, pattern in made if "(?P<" in pattern)
