"""Properties of masking: it settles at once, and the cheap scan never hides what a rule would find."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sessiongraph_web import redact

_DATA = json.loads((Path(__file__).parents[1] / "data" / "secrets.json").read_text())
_TEXTS = [row["around"].replace("{}", "".join(row["secret"])) for row in _DATA["secrets"]] + _DATA["lookalikes"]
_GLUE = st.text("ab1_-=:\"'\\\\ \\n/@.[]{}<>$密：", max_size=6)
_FRAGMENTS = st.sampled_from(_TEXTS).flatmap(
    lambda text: st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(
        lambda cut: text[min(cut) : max(cut)]
    )
)
_MIXED = st.lists(st.one_of(_GLUE, st.sampled_from(_TEXTS), _FRAGMENTS), max_size=6).map("".join)


@settings(max_examples=300, deadline=None)
@given(_MIXED)
def test_masking_settles_at_once(text: str) -> None:
    """What was masked holds nothing more to mask, whatever stood beside it."""
    masked, _ = redact.mask(text)

    assert redact.mask(masked) == (masked, 0)


@settings(max_examples=300, deadline=None)
@given(_MIXED)
def test_the_scan_hides_nothing_from_the_rules(text: str) -> None:
    """A text that the scan passes is one that no rule would change."""
    assert redact.mask(text) == redact._mask(text)
