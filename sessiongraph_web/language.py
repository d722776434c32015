"""The languages that are spoken: which one a reader is told in, and the sentences of its catalogue.

Sentences stand in the source in English and are looked up when they are shown, in the language of the request or
command that shows them. What belongs in a table of constants is marked there with `N_` and looked up later.
"""

from __future__ import annotations

import gettext as catalogues
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

DOMAIN: Final = "sessiongraph"
LOCALES: Final = Path(__file__).resolve().parent / "locales"
ENGLISH: Final = "en"
LANGUAGES: Final[dict[str, str]] = {ENGLISH: "English", "zh": "中文"}  # by primary subtag, each named in itself
TAGS: Final[dict[str, str]] = {ENGLISH: "en", "zh": "zh-Hans"}  # as pages say it to browsers
GAPS: Final[dict[str, str]] = {ENGLISH: " ", "zh": ""}  # between two sentences
MAX_RANGES: Final = 40  # of an Accept-Language that are looked at
NARROW_SPACE: Final = "\u202f"  # between groups of three digits

_RANGE: Final = re.compile(
    r"\s*([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*|\*)\s*(?:;\s*[qQ]\s*=\s*([01](?:\.\d{0,3})?)\s*)?"
)
_current: ContextVar[str] = ContextVar("language", default=ENGLISH)


def current() -> str:
    """Return the language that is spoken here and now."""
    return _current.get()


@contextmanager
def spoken(language: str) -> Iterator[None]:
    """Speak a language for the length of a block, which must not yield to whoever reads a generator."""
    token = _current.set(language if language in LANGUAGES else ENGLISH)
    try:
        yield
    finally:
        _current.reset(token)


def chosen(accept_language: str, kept: str | None = None) -> str:
    """Return the language to answer in: the one a reader chose before, else what the browser likes best.

    Of equal weights the first counts (RFC 9110, section 12.5.4); a region or a script makes no difference.
    """
    if kept in LANGUAGES:
        return str(kept)
    weights: dict[str, float] = {}
    for part in accept_language.split(",")[:MAX_RANGES]:
        match = _RANGE.fullmatch(part)
        if match:
            name = match[1].partition("-")[0].lower()
            weights[name] = max(weights.get(name, 0.0), min(1.0, float(match[2] or 1)))
    others = weights.pop("*", 0.0)
    best = max((*weights, *LANGUAGES), key=lambda name: weights.get(name, others) if name in LANGUAGES else -1.0)
    return best if weights.get(best, others) > 0 else ENGLISH


def of_environment(environment: Mapping[str, str]) -> str:
    """Return the language that a terminal is set to, by the variables that gettext reads."""
    locale = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "C")
    wished = environment.get("LANGUAGE", "") if _primary(locale) not in ("c", "posix") else ""
    names = [_primary(name) for name in (*wished.split(":"), locale)]
    return next((name for name in names if name in LANGUAGES), ENGLISH)


def N_(message: str) -> str:  # noqa: N802 - the name that gettext's users know
    """Mark a sentence of a table for the catalogue; it is looked up where it is shown."""
    return message


def gettext(message: str, /, **variables: object) -> str:
    """Return a sentence in the language of the moment. Variables stand in it as `%(name)s`."""
    return _filled(_catalogue(current()).gettext(message) if message else "", variables)


def pgettext(context: str, message: str, /, **variables: object) -> str:
    """Return a word whose translation depends on what it is said of."""
    return _filled(_catalogue(current()).pgettext(context, message), variables)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that is said later, maybe by another process: its text is English, `said` follows the reader.

    A variable may be a sentence too.
    """

    template: str
    variables: Mapping[str, object]

    def __str__(self) -> str:
        return _filled(self.template, self.variables)

    def said(self) -> str:
        """Return it in the language of the moment."""
        said = {
            name: value.said() if isinstance(value, Sentence) else value for name, value in self.variables.items()
        }
        return gettext(self.template, **said)


def sentence(template: str, /, **variables: object) -> Sentence:
    """Return a sentence to be said later. Variables stand in it as `%(name)s`."""
    return Sentence(template, variables)


def ngettext(one: str, many: str, number: int, /, **variables: object) -> str:
    """Return a sentence about a number of things, which stands in it as `%(num)s`."""
    return _filled(plural(one, many, number), {"num": grouped(number), **variables})


def plural(one: str, many: str, number: int) -> str:
    """Return a sentence about a number of things with its variables still in it."""
    return _catalogue(current()).ngettext(one, many, number)


def grouped(number: int) -> str:
    """Write a whole number with thin spaces between groups of three digits."""
    return f"{number:,}".replace(",", NARROW_SPACE)


def _filled(sentence: str, variables: Mapping[str, object]) -> str:
    return sentence % variables if variables else sentence


def _primary(locale: str) -> str:
    return re.split(r"[_.@-]", locale, maxsplit=1)[0].lower()


@cache
def _catalogue(language: str) -> catalogues.NullTranslations:
    if language == ENGLISH:
        return catalogues.NullTranslations()
    return catalogues.translation(DOMAIN, LOCALES, [language])
