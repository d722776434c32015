"""Renders templates to HTML: one Jinja environment per Datasette instance, and what every page knows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import jinja2
from markupsafe import Markup, escape

from sessiongraph_web import eventtypes, language, markup, reasons, wording
from sessiongraph_web.access import Caller
from sessiongraph_web.web.links import Links, without

if TYPE_CHECKING:
    from datasette.app import Datasette

STATIC: Final = Path(__file__).resolve().parent.parent / "static"
FOLDER: Final = "sessiongraph/"
_TEMPLATES: Final = (STATIC.parent / "templates", STATIC.parent.parent / "templates")  # of a wheel, of a checkout
_environments: WeakKeyDictionary[Datasette, jinja2.Environment] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Frame:
    """What every page shows beside its content."""

    caller: Caller
    links: Links
    theme: str | None = None
    twin: str | None = None
    repeatable: bool = True  # False: this answers a form, so that a choice of language could not come back to it

    @property
    def scheme(self) -> str | None:
        """The colour scheme the reader chose, if any."""
        return self.theme if self.theme in ("light", "dark") else None

    @property
    def languages(self) -> dict[str, str]:
        """The languages that the page could be read in instead."""
        return {name: said for name, said in language.LANGUAGES.items() if name != language.current()}


def page(datasette: Datasette, template: str, frame: Frame, context: Mapping[str, Any]) -> str:
    """Render one page of ours."""
    return _environment(datasette).get_template(FOLDER + template).render(context, frame=frame, links=frame.links)


def file(template: str, context: Mapping[str, Any]) -> str:
    """Render a page of ours that is read without a server; `--template-dir` does not change it."""
    return _offline().get_template(FOLDER + template).render(context)


def install(environment: jinja2.Environment) -> None:
    """Give an environment the filters and functions that our templates use."""
    environment.add_extension("jinja2.ext.i18n")
    environment.newstyle_gettext = True  # type: ignore[attr-defined]  # by that extension
    environment.globals.update(
        _=_gettext,
        gettext=_gettext,
        ngettext=_ngettext,
        pgettext=_pgettext,
        language_tag=_language_tag,
        gap=_gap,
    )
    environment.filters.update(
        bytes=wording.byte_size,
        clip=markup.clip,
        duration=wording.duration,
        event_label=_event_label,
        exact=exact,
        number=language.grouped,
        snippet=markup.snippet,
        translated=language.gettext,
        reason=reasons.said,
        utc=wording.utc,
        visible=markup.visible,
        without=without,
    )
    environment.globals.update(asset=asset, wording=wording)


def _event_label(event_type: str) -> str:
    return eventtypes.shown(event_type).said


def exact(text: object) -> Markup:
    """Escape a text without making its control characters visible: for values that come back in a form."""
    return escape(str(text))


@cache
def asset(name: str) -> str:
    """Return the path below the base of a static file; it changes with the file's content."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{digest}/{name}"


@cache
def asset_names() -> frozenset[str]:
    """Return the names of the static files."""
    return frozenset(path.name for path in STATIC.iterdir() if path.is_file())


def _gettext(sentence: str, /, **variables: object) -> Markup:
    """Translate a sentence of a template, which may hold markup; what stands in it is escaped as anywhere."""
    return _filled(language.gettext(sentence), variables)


def _pgettext(context: str, word: str, /, **variables: object) -> Markup:
    return _filled(language.pgettext(context, word), variables)


def _ngettext(one: str, many: str, number: int, /, **variables: object) -> Markup:
    return _filled(language.plural(one, many, number), {"num": language.grouped(number), **variables})


def _filled(sentence: str, variables: Mapping[str, object]) -> Markup:
    if "%" in sentence:
        sentence %= {name: escape(_finalize(value)) for name, value in variables.items()}
    return Markup(sentence)  # noqa: S704 - a sentence is from the source or a catalogue, never from a log


def _language_tag() -> str:
    return language.TAGS[language.current()]


def _gap() -> str:
    return language.GAPS[language.current()]


def _environment(datasette: Datasette) -> jinja2.Environment:
    """Return the environment for our pages: Datasette's templates, rendered in the thread that calls."""
    if datasette not in _environments:
        theirs = datasette.get_jinja_environment()
        loaders = [theirs.loader, *(jinja2.FileSystemLoader(path) for path in _TEMPLATES)]
        _environments[datasette] = _make([loader for loader in loaders if loader is not None])
    return _environments[datasette]


@cache
def _offline() -> jinja2.Environment:
    return _make([jinja2.FileSystemLoader(path) for path in _TEMPLATES])


def _make(loaders: Sequence[jinja2.BaseLoader]) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    install(environment)
    return environment


def _finalize(value: object) -> object:
    """Make hidden characters visible in every text that a template prints; None prints nothing."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return markup.visible(value)
    return "" if value is None else value
