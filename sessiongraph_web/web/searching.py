"""What a search page offers beside its hits: chips that drop a filter, facets that add one, ways to sort."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sessiongraph_web import wording
from sessiongraph_web.answers import Facet, SearchPage
from sessiongraph_web.language import N_, gettext
from sessiongraph_web.models import DEFAULT_KINDS, KINDS
from sessiongraph_web.reports import Status
from sessiongraph_web.web.links import Links, without

Parameters = Mapping[str, Sequence[str]]

FACET_ROWS: Final = 8
FACETS: Final = ("workspace", "tool", "model", "month")
NOT_CHIPS: Final = frozenset({"q", "cursor", "limit", "sort", "group", "match", "tz"})
FORM: Final = ("after", "before", "session", "tool", "surfaces", "types", "match", "roots", "inherited", "live")
SORTS: Final = {"relevance": N_("Best match"), "newest": N_("Newest"), "oldest": N_("Oldest")}
FULL_ROWS: Final = 40  # on longer pages each session shows its best hit alone


@dataclass(frozen=True, slots=True)
class Choice:
    """A link that changes one thing about a request."""

    label: str
    url: str
    chosen: bool = False
    count: int | None = None


@dataclass(frozen=True, slots=True)
class FacetBox:
    """One facet: its values as choices, and how many more there are."""

    title: str
    choices: list[Choice]
    left_out: int


@dataclass(frozen=True, slots=True)
class Offers:
    """Everything a search page offers to change."""

    chips: list[Choice]
    kinds: list[Choice]
    facets: list[FacetBox]
    sorts: list[Choice]
    next_url: str | None
    show_more_hits: bool
    kept: list[tuple[str, str]]  # what the form of more filters leaves as it is
    instead: list[Choice]  # other ways to ask, where nothing was found


def describe(answer: SearchPage, parameters: Parameters, links: Links) -> Offers:
    """Return what the page of this answer offers."""
    given = {name: [value for value in values if value] for name, values in parameters.items()}
    base = without({name: values for name, values in given.items() if values}, "cursor")
    return Offers(
        chips=list(_chips(base, links)),
        kinds=_kinds(answer, base, links),
        facets=[box for name in FACETS if (box := _facet(name, answer, base, links)) is not None],
        sorts=[
            Choice(gettext(label), _url(links, base | {"sort": [sort]}), chosen=answer.sort == sort)
            for sort, label in SORTS.items()
        ],
        next_url=_url(links, base | {"cursor": [answer.next_cursor]}) if answer.next_cursor else None,
        show_more_hits=len(answer.sessions) <= FULL_ROWS,
        kept=[
            (name, value) for name, values in base.items() for value in (values[1:] if name in FORM else values)
        ],
        instead=list(_instead(answer, base, links)),
    )


def _instead(answer: SearchPage, parameters: Parameters, links: Links) -> Iterator[Choice]:
    """Offer ways to ask for the same that find more than this one does."""
    filters = [name for name in parameters if name not in NOT_CHIPS]
    if filters:
        yield Choice(gettext("the same without filters"), _url(links, without(parameters, *filters)))
    if answer.match == "phrase":
        yield Choice(gettext("its words in any order"), _url(links, without(parameters, "match")))
    if answer.match != "text":
        yield Choice(
            gettext("it as a piece of text, inside words too"), _url(links, {**parameters, "match": ["text"]})
        )
    if "inherited" not in parameters:
        yield Choice(
            gettext("what forks copied from their parents too"), _url(links, {**parameters, "inherited": ["1"]})
        )


def _chips(parameters: Parameters, links: Links) -> Iterator[Choice]:
    for name, values in parameters.items():
        if name in NOT_CHIPS:
            continue
        for value in values:
            rest: Parameters = {**parameters, name: [other for other in values if other != value]}
            if name == "session" and not rest[name]:  # the list of one session's entries becomes one of sessions
                rest = without(rest, "group")
            yield Choice(_said(name, value), _url(links, rest))


def _said(name: str, value: str) -> str:
    """Name a filter as a reader would."""
    if value == "1" and name in wording.FLAGS:
        return gettext(wording.FLAGS[name])
    named = {"kinds": wording.KINDS, "surfaces": wording.SURFACES}.get(name, {})
    shown = gettext(named[value]) if value in named else value
    return gettext(wording.FILTERS.get(name, name)) + gettext(": ") + shown


def _kinds(answer: SearchPage, parameters: Parameters, links: Links) -> list[Choice]:
    """Offer each kind alone, beside the kinds that a search looks at by itself."""
    given = [kind for value in parameters.get("kinds", []) for kind in value.split(",")]
    rest = without(parameters, "kinds")
    usual = sum(answer.kind_counts.get(kind, 0) for kind in DEFAULT_KINDS)
    choices = [Choice(gettext("Conversation"), _url(links, rest), chosen=not given, count=usual)]
    choices += [
        Choice(
            gettext(wording.KINDS[kind]),
            _url(links, rest | {"kinds": [kind]}),
            chosen=given == [kind],
            count=answer.kind_counts.get(kind, 0),
        )
        for kind in KINDS
        if answer.kind_counts.get(kind) or given == [kind]
    ]
    return choices


def _facet(name: str, answer: SearchPage, parameters: Parameters, links: Links) -> FacetBox | None:
    values = [facet for facet in answer.facets.get(name, []) if _is_choice(name, facet)]
    if name == "month":  # a reader looks for a time among times, latest first
        values.sort(key=lambda facet: facet.value or "", reverse=True)
    changes = {str(facet.value): _change(name, str(facet.value), parameters) for facet in values[:FACET_ROWS]}
    if len(values) < 2 and not any(chosen for _, chosen in changes.values()):
        return None
    choices = [
        Choice(
            str(facet.value), _url(links, changes[str(facet.value)][0]), changes[str(facet.value)][1], facet.count
        )
        for facet in values[:FACET_ROWS]
    ]
    return FacetBox(gettext(wording.FACETS[name]), choices, max(0, len(values) - FACET_ROWS))


def _is_choice(name: str, facet: Facet) -> bool:
    """Say whether a value can be asked for: no workspace, tool or model is none, and a month has a date."""
    return facet.value is not None and (name != "month" or facet.value[:1].isdigit())


def _change(name: str, value: str, parameters: Parameters) -> tuple[Parameters, bool]:
    """Return the request with a facet's value chosen, or dropped if it is chosen already."""
    if name == "month":
        first, last = _month(value)
        chosen = parameters.get("after") == [first] and parameters.get("before") == [last]
        rest = without(parameters, "after", "before")
        return (rest if chosen else rest | {"after": [first], "before": [last]}), chosen
    values = set(parameters.get(name, []))
    return {**parameters, name: sorted(values ^ {value})}, value in values


def _month(value: str) -> tuple[str, str]:
    """Return the first and the last day of `YYYY-MM`; both are the value itself if it is no month."""
    try:
        year, month = map(int, value.split("-"))
        return f"{value}-01", f"{value}-{monthrange(year, month)[1]:02d}"
    except ValueError:
        return value, value


def _url(links: Links, parameters: Parameters) -> str:
    return links.path("/search", **{name: list(values) for name, values in parameters.items()})


@dataclass(frozen=True, slots=True)
class LedgerOffers:
    """The ways through the ledger: one state or all, and the next page."""

    states: list[Choice]
    next_url: str | None
    previous_url: str | None


def ledger(answer: Status, parameters: Parameters, links: Links) -> LedgerOffers:
    """Return what the ledger of a status page offers."""
    given = parameters.get("state", [])
    offset = _whole(parameters.get("offset", []))
    shown = len(answer.ledger or [])
    total = answer.ledger_total or 0
    states = [
        Choice(gettext("All files"), links.path("/status", ledger="1"), chosen=bool(answer.ledger) and not given)
    ]
    states += [
        Choice(state, links.path("/status", ledger="1", state=state), chosen=list(given) == [state], count=number)
        for state, number in (answer.states or {}).items()
        if number
    ]
    after, before = offset + shown, max(0, offset - (_whole(parameters.get("limit", [])) or 100))
    return LedgerOffers(
        states,
        links.path("/status", ledger="1", state=given, offset=str(after)) if shown and after < total else None,
        links.path("/status", ledger="1", state=given, offset=str(before)) if offset else None,
    )


def _whole(values: Sequence[str]) -> int:
    return int(values[0]) if values and values[0].isdecimal() else 0
