"""Errors: a closed set of codes, one meaning each, and nothing in a message that a caller may not read."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sessiongraph_web import damage, language
from sessiongraph_web.errors import CODES, SessionGraphError, invalid_parameter, not_found
from sessiongraph_web.language import sentence
from tests import catalogue
from tests.rooms import ROOMS

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
_CATALOGUE: Final = {message.id for message in catalogue.read("zh") if isinstance(message.id, str)}
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


# Where the sentence of an error is handed on, from a caller that wrote it or a table that is marked.
_HANDED_ON: Final = {"config._invalid", "damage.failure", "errors.invalid_parameter", "jobs.error"}
_VARIABLE: Final = re.compile(r"%\((\w+)\)s")


def _raised() -> Iterator[tuple[str, ast.FunctionDef, ast.Call]]:
    """Yield every call that makes an error or a sentence, with the function that it stands in."""
    root = Path(__file__).parents[2] / "sessiongraph_web"
    for path in sorted(root.rglob("*.py")):
        if path.stem in ROOMS["tools"]:  # what models read is in English
            continue
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                        yield f"{path.stem}.{function.name}", function, node


def _is_known(text: ast.expr, given: set[str]) -> bool:
    """Say whether an expression is a sentence of the catalogue whose variables are given."""
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return False
    return text.value in _CATALOGUE and set(_VARIABLE.findall(text.value)) == given


def _is_sentence(value: ast.expr, function: ast.FunctionDef) -> bool:
    """Say whether an expression is a call of `sentence`, or a name that stands for nothing else."""
    if isinstance(value, ast.Name):
        given = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == value.id
        ]
        return bool(given) and all(_is_sentence(one, function) for one in given)
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "sentence"


def test_every_sentence_of_an_error_can_be_said_in_every_language() -> None:
    """A raise site says a sentence of the catalogue, and gives exactly the variables that stand in it."""
    wrong, seen = [], 0
    for place, function, call in _raised():
        name, given = call.func.id, {keyword.arg or "" for keyword in call.keywords}  # type: ignore[attr-defined]
        if name == "SessionGraphError" and len(call.args) > 1 and place not in _HANDED_ON:
            seen += 1
            if not _is_known(call.args[1], set()) and not _is_sentence(call.args[1], function):
                wrong.append((place, ast.unparse(call)))
        if name == "invalid_parameter":
            seen += 1
            if not _is_known(call.args[1], given | {"parameter"}):
                wrong.append((place, ast.unparse(call)))
        if name == "sentence" and isinstance(call.args[0], ast.Constant) and not _is_known(call.args[0], given):
            wrong.append((place, ast.unparse(call)))
    assert wrong == []
    assert seen > 50


def test_the_sentences_of_tables_are_in_the_catalogue() -> None:
    """Every code has its sentence there, and every trouble with SQLite or the disk."""
    said = [meaning.sentence for meaning in CODES.values()]
    said += [detail for _, detail in damage._TROUBLE.values() if detail]
    assert [sentence for sentence in said if sentence not in _CATALOGUE] == []


def test_an_error_is_said_in_the_language_of_the_moment() -> None:
    """Its text, which logs and tools take, is English everywhere; a variable may be a sentence too."""
    within = sentence("%(number)s GiB of stored logs", number=8)
    error = SessionGraphError(
        "SESSION_QUERY_INVALID_FILTER",
        sentence("One archive holds at most %(bound)s; narrow the search or the time.", bound=within),
    )
    english = "One archive holds at most 8 GiB of stored logs; narrow the search or the time."
    with language.spoken("zh"):
        assert (str(error), error.detail) == (f"SESSION_QUERY_INVALID_FILTER: {english}", english)
        assert error.said() == "一个归档最多容纳 8 GiB 的存储日志；请缩小搜索或时间范围。"
        assert invalid_parameter("tz", "`%(parameter)s` must be 1 or 0").said() == "`tz` 必须是 1 或 0"
    assert error.said() == english
    assert pickle.loads(pickle.dumps(error.sentence)) == error.sentence  # noqa: S301 - it goes between processes
