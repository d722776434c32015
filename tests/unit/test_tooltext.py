"""How tool answers are written: JSON as JavaScript spells it, excerpts, and where a long answer ends."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiongraph_web import tooltext
from sessiongraph_web.agents import prune
from sessiongraph_web.answers import Branch, Lineage, Snippet
from sessiongraph_web.tooltext import MOST_BYTES, excerpt, fit, to_json
from tests import answered


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (0, "0"),
        (-0.0, "0"),
        (-1.5, "-1.5"),
        (120, "120"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.25e25, "1.25e+25"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (0.1 + 0.2, "0.30000000000000004"),
        (2**53 + 1, "9007199254740992"),
        (float("inf"), "null"),
        (True, "true"),
        (None, "null"),
        ("\ud800\x01é", '"\\ud800\\u0001é"'),
    ],
)
def test_values_are_spelled_as_javascript_does(value: Any, spelled: str) -> None:
    """Numbers have the shortest digits, and `e` only where JavaScript writes it."""
    assert to_json(value) == spelled


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100)
@given(_JSON)
def test_what_is_written_means_the_same(value: Any) -> None:
    """Reading the JSON back gives the value, its integers as precise as a double."""
    assert json.loads(to_json(value), parse_int=float) == json.loads(json.dumps(value), parse_int=float)


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=50, max_size=50))
def test_numbers_agree_with_node(values: list[float]) -> None:
    """JavaScript itself writes the same."""
    program = f"process.stdout.write(JSON.stringify({json.dumps(values)}, null, 2))"
    written = subprocess.run(["node", "-e", program], capture_output=True, check=True, text=True).stdout
    assert to_json(values) == written


@pytest.mark.parametrize(
    ("text", "matches", "shown"),
    [
        ("a heron flew", [(2, 7)], "a [heron] flew"),
        ("it flew: heron herons", [(9, 14), (15, 21)], "it flew: heron [herons]"),
        ("x" * 100 + "heron" + "y" * 100, [(100, 105)], "…" + "x" * 60 + "[heron]" + "y" * 60 + "…"),
        ("no match", [], "no match"),
        ("改广告SDK", [(1, 3)], "改[广告]SDK"),
    ],
)
def test_an_excerpt_surrounds_the_longest_hit(text: str, matches: list[tuple[int, int]], shown: str) -> None:
    """Sixty characters on each side, the hit in brackets."""
    assert excerpt(Snippet(text=text, matches=matches)) == shown


def test_a_short_answer_is_whole() -> None:
    """Nothing is added to what fits."""
    assert fit(["a", "b\n", "c"], "x") == "a\nb\n\nc"


@pytest.mark.parametrize("size", [20_000, 100_000, 262_143, 262_144, 300_000])
def test_an_answer_ends_with_a_whole_part(size: int) -> None:
    """What is shown are the first parts, whole; only a part too long for any answer is cut itself."""
    parts = [chr(ord("a") + number) * size for number in range(26)]
    text = fit(parts, "the command")
    body, note = text.split("\n\n[Cut at 256 KiB. For the rest: ")
    assert note == "the command]"
    assert len(body.encode()) <= MOST_BYTES + len("…".encode())
    shown = body.split("\n")
    whole = [part for part in shown if not part.endswith("…")]
    assert whole == parts[: len(whole)]
    assert len(whole) == MOST_BYTES // (size + 1)
    assert [len(part) for part in shown if part.endswith("…")] == ([] if size < MOST_BYTES else [MOST_BYTES + 1])


def test_a_cut_never_divides_a_character() -> None:
    """A part that is cut itself stays text."""
    body = fit(["字" * MOST_BYTES], "x").split("…")[0]
    assert set(body) == {"字"}


def _lineage(*cwds: str, below: list[Branch]) -> Lineage:
    ancestors = [answered.summary(id=f"up-{n}", cwd=cwd) for n, cwd in enumerate(cwds)]
    return Lineage(session=answered.summary(), ancestors=ancestors, complete=True, descendants=below)


def _branch(name: str, cwd: str | None, *below: Branch) -> Branch:
    return Branch(session=answered.summary(id=name, cwd=cwd), link="fork", descendants=list(below))


def test_a_lineage_ends_at_the_border_of_the_workspace() -> None:
    """Behind a foreign relative nothing is shown, not even sessions of the own workspace."""
    tree = [_branch("a", "/w/a", _branch("b", "/w/b", _branch("c", "/w/a")), _branch("d", "/w/a"))]
    told = list(tooltext.lineage(prune(_lineage("/w/a", "/w/a/", "/w/a", below=tree), "/w/a")))
    names = [line.split(" — ")[0] for line in told[4:]]
    assert names == [
        "- up-0",
        "- [outside workspace boundary]",
        "\nDescendants:",
        "- a",
        "  - [outside workspace subtree]",
        "  - d",
    ]


def test_a_session_without_a_workspace_has_no_visible_relatives() -> None:
    """Sessions without a cwd share no workspace with each other."""
    pruned = prune(_lineage(below=[_branch("a", None), _branch("b", "/w/a")]), None)
    assert [branch.session for branch in pruned.descendants] == [None, None]


def test_a_very_deep_lineage_is_told() -> None:
    """No recursion limits the depth of a tree."""
    branch = _branch("leaf", "/w/a")
    for _ in range(5000):
        branch = _branch("x", "/w/a", branch)
    assert len(list(tooltext.lineage(prune(_lineage(below=[branch]), "/w/a")))) == 5001 + 6
