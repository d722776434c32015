"""The one error class, its closed set of codes, and what each code means to a caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sessiongraph_web.language import Sentence, sentence


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an error code becomes at the edges: an HTTP status, an exit code, a sentence for anybody."""

    status: int
    exit_code: int
    sentence: str


CODES: Final[dict[str, Meaning]] = {
    "INVALID_ARGS": Meaning(400, 64, "A tool was called with arguments that its schema does not allow."),
    "SESSION_QUERY_ABORTED": Meaning(499, 130, "The request was cancelled before it finished."),
    "SESSION_QUERY_CORRUPT_SESSION": Meaning(
        500, 65, "This session's log cannot be read; Status says where it is damaged."
    ),
    "SESSION_QUERY_EVENT_NOT_FOUND": Meaning(404, 66, "There is no such event in this session."),
    "SESSION_QUERY_INDEX_FAILED": Meaning(
        503, 74, "The search index is not available; run `sessiongraph-web index` and try again."
    ),
    "SESSION_QUERY_INVALID_CONFIG": Meaning(500, 78, "A setting has a value that cannot be used."),
    "SESSION_QUERY_INVALID_CURSOR": Meaning(
        400, 64, "The cursor was altered or belongs to another request; start again without it."
    ),
    "SESSION_QUERY_INVALID_FILTER": Meaning(400, 64, "A parameter is unknown or has a wrong value."),
    "SESSION_QUERY_INVALID_LIMIT": Meaning(400, 64, "`limit` must be a whole number in its range."),
    "SESSION_QUERY_INVALID_LINEAGE": Meaning(409, 65, "The parents of this session form a loop."),
    "SESSION_QUERY_INVALID_QUERY": Meaning(400, 64, "The query is empty or too long."),
    "SESSION_QUERY_INVALID_SURFACE": Meaning(
        409, 65, "This log replaces events that are not there, so relations of its events are unknown."
    ),
    "SESSION_QUERY_INVALID_WINDOW": Meaning(
        400, 64, "`before` and `after` must be whole numbers in their range."
    ),
    "SESSION_QUERY_PERSISTENCE_FAILED": Meaning(
        503, 74, "The session store cannot be read; Status says where it was looked for."
    ),
    "SESSION_QUERY_SEARCH_DISABLED": Meaning(403, 69, "Search is switched off here; reading and export work."),
    "SESSION_QUERY_SESSION_NOT_FOUND": Meaning(404, 66, "There is no such session here."),
    "SESSION_QUERY_SOURCE_CONFLICT": Meaning(409, 65, "This session's log changed while it was read; try again."),
    "SESSION_QUERY_STALE_CURSOR": Meaning(
        409, 75, "The history changed since this cursor was made; start again without it."
    ),
    "SESSION_QUERY_TOOL_FAILED": Meaning(500, 70, "session query operation failed"),
    "SESSION_QUERY_TOOL_MISSING_AGENT": Meaning(400, 64, "session query tools require an agent-bound caller"),
    "SESSION_QUERY_TOOL_NO_CURRENT_STEP": Meaning(
        409, 65, "current-session search requires an active step boundary"
    ),
    "SESSION_QUERY_TOOL_UNAUTHORIZED": Meaning(403, 77, "session target is outside the caller workspace"),
    "SESSIONGRAPH_AMBIGUOUS_ID": Meaning(400, 64, "Several sessions begin like this; use one of the full ids."),
    "SESSIONGRAPH_CORRUPT": Meaning(
        503, 74, "The search index was damaged and is being rebuilt; try again in a moment."
    ),
    "SESSIONGRAPH_UNAUTHENTICATED": Meaning(401, 77, "Sign in first: `sessiongraph-web serve` prints the link."),
}


class SessionGraphError(Exception):
    """Every failure this product reports on purpose.

    `code` is one of `CODES`. `detail` is a sentence safe to show to the caller, more exact than the code's
    own; `fields` are facts for machines (`parameter`, `candidates`). Paths, SQL and query text never go here.
    Logs and tools take `detail`, which is English; the edges show what is `said` to a reader.
    """

    def __init__(self, code: str, detail: str | Sentence | None = None, **fields: object) -> None:
        self.code = code
        self.meaning = CODES[code]
        self.sentence = detail if isinstance(detail, Sentence) else sentence(detail or self.meaning.sentence)
        self.detail = str(self.sentence)
        self.fields = fields
        super().__init__(f"{code}: {self.detail}")

    def said(self) -> str:
        """Return the sentence in the language of the moment."""
        return self.sentence.said()


def not_found() -> SessionGraphError:
    """Return the one error for a session that is missing, foreign or forbidden: callers cannot tell which."""
    return SessionGraphError("SESSION_QUERY_SESSION_NOT_FOUND")


def invalid_parameter(parameter: str, problem: str, **variables: object) -> SessionGraphError:
    """Return the 400 that names a request parameter (`%(parameter)s`) and says what is wrong with it."""
    detail = sentence(problem, parameter=parameter, **variables)
    return SessionGraphError("SESSION_QUERY_INVALID_FILTER", detail, parameter=parameter)
