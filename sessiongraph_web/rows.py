"""Reading rows of workspace databases: from which, under which conditions, and until when."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sessiongraph_web import damage

STEPS_BETWEEN_LOOKS: Final = 5000  # SQLite instructions between two looks at the clock
ROWS_BETWEEN_LOOKS: Final = 64


@dataclass(frozen=True, slots=True)
class Source:
    """One workspace's database, open for reading, with the revision that the answer is about."""

    cwd: str | None
    connection: sqlite3.Connection
    revision: int


def never() -> bool:
    """Say that nobody asks a search to stop."""
    return False


@dataclass(slots=True)
class Reader:
    """Runs SQL until the deadline, or until it is told to stop; remembers whether that came."""

    deadline: float
    stop: Callable[[], bool] = never
    is_late: bool = False

    def rows(self, source: Source, sql: str, arguments: Sequence[Any]) -> Iterator[Any]:
        """Yield the rows of a statement as tuples; at the deadline they simply end."""
        connection = source.connection
        connection.set_progress_handler(self.look, STEPS_BETWEEN_LOOKS)
        try:
            cursor = connection.cursor()
            cursor.row_factory = None  # tuples are made in half the time of rows
            cursor.execute(sql, arguments)
            while batch := cursor.fetchmany(ROWS_BETWEEN_LOOKS):
                if self.look():
                    return
                yield from batch
        except sqlite3.DatabaseError as error:
            is_interrupt = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT
            if not (self.is_late and is_interrupt):
                raise damage.failure(error) from error
        finally:
            connection.set_progress_handler(None, 0)

    def look(self) -> bool:
        """Say whether it is time to stop."""
        self.is_late = self.is_late or time.monotonic() >= self.deadline or self.stop()
        return self.is_late


@dataclass(slots=True)
class Condition:
    """SQL conditions that all hold, with what is bound to them in order."""

    terms: list[str] = field(default_factory=list)
    bound: list[Any] = field(default_factory=list)

    def add(self, term: str, *bound: Any) -> None:
        self.terms.append(term)
        self.bound += bound

    def among(self, column: str, values: Sequence[Any]) -> None:
        """Ask that a column is one of the values; none asks nothing."""
        if values:
            self.add(f"{column} IN (SELECT value FROM json_each(?))", json.dumps(values))  # noqa: S608

    def between(self, column: str, first: int | None, last: int | None) -> None:
        for sign, end in ((">=", first), ("<=", last)):
            if end is not None:
                self.add(f"{column} {sign} ?", end)

    @property
    def sql(self) -> str:
        return " AND ".join(self.terms) or "1"
