"""Answers on a terminal: what they say, and that nothing in them acts."""

from __future__ import annotations

import unicodedata

from sessiongraph_web import console
from sessiongraph_web.answers import Branch, Lineage, Relative
from sessiongraph_web.screen import Screen
from tests import answered

HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x00\x7f\x9b2J \u202eevil\u2069 \u200b\u2028\ufeff"


def is_harmless(text: str) -> bool:
    return not any(c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


def test_a_hostile_session_is_printed_harmlessly() -> None:
    """Titles, ids, working directories, models, types and data of a log cannot command a terminal."""
    summary = answered.summary(title=HOSTILE, id=HOSTILE, cwd=HOSTILE, models=[HOSTILE])
    page = answered.page(
        answered.event(HOSTILE, {HOSTILE: HOSTILE, "text": HOSTILE}),
        answered.user(HOSTILE, 1),
        children=[Relative(id=HOSTILE, title=HOSTILE)],
        session=summary,
    )
    lineage = Lineage(
        session=summary,
        ancestors=[summary],
        complete=True,
        descendants=[Branch(session=summary, link="fork", descendants=[])],
    )
    screen = Screen(80)
    assert all(map(is_harmless, [*console.session(page, screen), *console.lineage(lineage, screen)]))


def test_a_lineage_is_indented_by_generation() -> None:
    """Ancestors lead to the session, descendants follow, and what lies outside is one line."""
    parent, child = answered.summary(id="parent", title="P"), answered.summary(id="child", title="C")
    outside = Branch(session=None, link=None, descendants=[])
    lineage = Lineage(
        session=answered.summary(id="self", title="S"),
        ancestors=[parent],
        complete=False,
        descendants=[Branch(session=child, link="fork", descendants=[]), outside],
    )
    when = "2026-09-21 14:13:20 UTC"
    assert list(console.lineage(lineage, Screen(80))) == [
        "(an ancestor lies outside this view)",
        f"parent P {when}",
        f"  self S {when}",
        f"    child C {when}",
        "    (sessions outside this view)",
    ]
