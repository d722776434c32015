"""Errors: a closed set of codes, one meaning each, and nothing in a message that a caller may not read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from sessiongraph_web.errors import CODES, SessionGraphError, invalid_parameter, not_found

# The codes of the original under their full names, the one its tools have for arguments, and our own three.
_CLOSED: Final = [
    "SESSION_QUERY_ABORTED",
    "SESSION_QUERY_CORRUPT_SESSION",
    "SESSION_QUERY_EVENT_NOT_FOUND",
    "SESSION_QUERY_INDEX_FAILED",
    "SESSION_QUERY_INVALID_CONFIG",
    "SESSION_QUERY_INVALID_CURSOR",
    "SESSION_QUERY_INVALID_FILTER",
    "SESSION_QUERY_INVALID_LIMIT",
    "SESSION_QUERY_INVALID_LINEAGE",
    "SESSION_QUERY_INVALID_QUERY",
    "SESSION_QUERY_INVALID_SURFACE",
    "SESSION_QUERY_INVALID_WINDOW",
    "SESSION_QUERY_PERSISTENCE_FAILED",
    "SESSION_QUERY_SEARCH_DISABLED",
    "SESSION_QUERY_SESSION_NOT_FOUND",
    "SESSION_QUERY_SOURCE_CONFLICT",
    "SESSION_QUERY_STALE_CURSOR",
    "SESSION_QUERY_TOOL_FAILED",
    "SESSION_QUERY_TOOL_MISSING_AGENT",
    "SESSION_QUERY_TOOL_NO_CURRENT_STEP",
    "SESSION_QUERY_TOOL_UNAUTHORIZED",
    "INVALID_ARGS",
    "SESSIONGRAPH_AMBIGUOUS_ID",
    "SESSIONGRAPH_CORRUPT",
    "SESSIONGRAPH_UNAUTHENTICATED",
]
_MENTIONED: Final = re.compile(r'"((?:SESSION_QUERY|SESSIONGRAPH)_[A-Z_]+|INVALID_ARGS)"')


def test_the_set_of_codes_is_closed() -> None:
    """Clients may switch over these codes: none is missing, none is new."""
    assert sorted(CODES) == sorted(_CLOSED)


@pytest.mark.parametrize("code", CODES)
def test_a_code_means_a_failure_at_every_edge(code: str) -> None:
    """Each has an HTTP error status, an exit code of failure and a sentence for anybody."""
    meaning = CODES[code]

    assert 400 <= meaning.status <= 599
    assert 64 <= meaning.exit_code <= 78 or meaning.exit_code == 130  # sysexits, or interrupted
    assert meaning.sentence
    assert "/" not in meaning.sentence.replace("SESSION", "")


def test_a_foreign_and_a_missing_session_are_told_alike() -> None:
    """There is one such error, without a field that could differ."""
    one, other = not_found(), not_found()

    assert (one.code, one.detail, one.fields) == (other.code, other.detail, other.fields)
    assert (one.meaning.status, one.fields) == (404, {})


def test_an_error_says_its_code_and_its_detail() -> None:
    """The detail is more exact than the code's own sentence, which stands in where there is none."""
    exact = SessionGraphError("SESSION_QUERY_INVALID_LIMIT", "`limit` must be 5", limit=5)
    plain = SessionGraphError("SESSION_QUERY_INVALID_LIMIT")

    assert (str(exact), exact.fields) == ("SESSION_QUERY_INVALID_LIMIT: `limit` must be 5", {"limit": 5})
    assert plain.detail == CODES["SESSION_QUERY_INVALID_LIMIT"].sentence


def test_a_wrong_parameter_is_named() -> None:
    """The 400 says which parameter and what is wrong with it."""
    error = invalid_parameter("kinds", "`%(parameter)s` is unknown")

    assert (error.code, error.detail) == ("SESSION_QUERY_INVALID_FILTER", "`kinds` is unknown")
    assert (error.meaning.status, error.fields) == (400, {"parameter": "kinds"})


def test_a_code_outside_the_set_cannot_be_raised() -> None:
    """A misspelt code fails where it is written, not at a client."""
    with pytest.raises(KeyError):
        SessionGraphError("SESSION_QUERY_NO_SUCH_CODE")


def test_every_code_in_the_source_is_in_the_set() -> None:
    """Comparisons with a misspelt code would silently never hold."""
    root = Path(__file__).parents[2]
    sources = [*(root / "sessiongraph_web").rglob("*.py"), *(root / "plugins").glob("*.py")]

    assert {code for path in sources for code in _MENTIONED.findall(path.read_text("utf-8"))} == set(CODES)
