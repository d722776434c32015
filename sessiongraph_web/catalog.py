"""What `catalog.db` answers across workspaces: the timeline, days, workspaces, and the state of the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from sessiongraph_web.access import Caller
from sessiongraph_web.answers import DayCount, WorkspaceSummary, damage_notes, instant
from sessiongraph_web.filters import StatusRequest, TimelineRequest
from sessiongraph_web.models import Instant
from sessiongraph_web.reports import LedgerEntry, RunReport
from sessiongraph_web.schema import database_name

QUARTER_MS: Final = 900_000
DAYS_SHOWN: Final = 371  # a year of whole weeks
PROBLEMS_SHOWN: Final = 20
MOST_DAYS: Final = 3_000_000  # what a calendar library can hold, in days either side of 1970
_EPOCH_DAY: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Scope:
    """An SQL condition on `session` with its values: the rows that a caller may see."""

    condition: str
    values: Mapping[str, Any]


def scope_of(caller: Caller, log_ids: Sequence[int] = ()) -> Scope:
    """Return the rows of a caller. A one-session caller's `log_ids` were found by walking its lineage."""
    if caller.is_owner:
        return Scope("1", {})
    if caller.kind == "workspaces":
        cwds = msgspec.json.encode(sorted(caller.cwds)).decode()
        return Scope("session.cwd IN (SELECT value FROM json_each(:scope_cwds))", {"scope_cwds": cwds})
    ids = msgspec.json.encode(list(log_ids)).decode()
    return Scope("session.log_id IN (SELECT value FROM json_each(:scope_ids))", {"scope_ids": ids})


def timeline(
    catalog: sqlite3.Connection, scope: Scope, request: TimelineRequest, offset: int
) -> tuple[list[dict[str, Any]], int]:
    """Return a page of session rows in time order, and how many there are."""
    where, values = _timeline_filter(scope, request)
    order = "created_at" if request.sort == "created" else "last_at"
    rows = catalog.execute(
        f"""
        SELECT session.*, log.path, log.state, log.faults FROM session JOIN log USING (log_id)
        WHERE {where} ORDER BY {order} DESC, id, log_id LIMIT :limit OFFSET :offset
        """,  # noqa: S608 - conditions of ours, values bound
        {**values, "limit": request.limit, "offset": offset},
    ).fetchall()
    total = catalog.execute(f"SELECT count(*) FROM session WHERE {where}", values).fetchone()[0]  # noqa: S608
    return [dict(row) for row in rows], total


def days(catalog: sqlite3.Connection, scope: Scope, request: TimelineRequest) -> list[DayCount]:
    """Count sessions and entries for each active day of the range (the year up to the last activity, unless
    `after` or `before` say otherwise), in the caller's zone."""
    zone = ZoneInfo(request.zone)
    last = _day(request.before, zone) if request.before is not None else _last_day(catalog, scope, zone)
    if last is None:
        return []
    first = _shift(last, 1 - DAYS_SHOWN)
    if request.after is not None:
        first = max(first, _day(request.after, zone))
    shown = [first + timedelta(n) for n in range((last - first).days + 1)]
    borders = [(day.isoformat(), _quarter(day, zone), _quarter(_shift(day, 1), zone)) for day in shown]
    where, values = _timeline_filter(scope, TimelineRequest(workspaces=request.workspaces, models=request.models))
    rows = catalog.execute(
        f"""
        WITH day AS (
            SELECT value ->> 0 AS name, value ->> 1 AS first, value ->> 2 AS next FROM json_each(:borders)
        )
        SELECT day.name, count(DISTINCT activity.log_id), sum(activity.entries)
        FROM day JOIN activity ON activity.quarter >= day.first AND activity.quarter < day.next
        JOIN session USING (log_id) WHERE {where} GROUP BY day.name ORDER BY day.name
        """,  # noqa: S608 - conditions of ours, values bound
        {**values, "borders": msgspec.json.encode(borders).decode()},
    )
    return [DayCount(day=row[0], sessions=row[1], entries=row[2]) for row in rows]


def workspaces(catalog: sqlite3.Connection, scope: Scope) -> list[WorkspaceSummary]:
    """Return every workspace in the scope by last activity."""
    rows = catalog.execute(
        f"""
        SELECT cwd, count(*) AS sessions, sum(entries) AS entries,
               min(created_at) AS first_at, max(last_at) AS last_at
        FROM session WHERE {scope.condition} GROUP BY cwd ORDER BY last_at DESC, cwd
        """,  # noqa: S608 - a condition of ours, values bound
        scope.values,
    )
    return [
        WorkspaceSummary(
            cwd=row["cwd"],
            database=database_name(row["cwd"]),
            sessions=row["sessions"],
            entries=row["entries"],
            first_at=instant(row["first_at"]),
            last_at=instant(row["last_at"]),
        )
        for row in rows
    ]


def session_id(catalog: sqlite3.Connection, log_id: int) -> str | None:
    """Return the id of the session that a log holds."""
    row = catalog.execute("SELECT id FROM session WHERE log_id = ?", (log_id,)).fetchone()
    return str(row[0]) if row else None


def totals(catalog: sqlite3.Connection, scope: Scope) -> tuple[int, int, int]:
    """Return the number of workspaces, sessions and entries in the scope."""
    row = catalog.execute(
        f"""
        SELECT count(DISTINCT ifnull(cwd, x'00')), count(*), ifnull(sum(entries), 0)
        FROM session WHERE {scope.condition}
        """,  # noqa: S608 - a condition of ours, values bound
        scope.values,
    ).fetchone()
    return row[0], row[1], row[2]


def counter(catalog: sqlite3.Connection, scope: Scope, caller: Caller) -> tuple[int, int]:
    """Return a number that grows whenever a scoped caller's answers may change, and how many sessions it sees."""
    events, sessions = catalog.execute(
        f"SELECT ifnull(sum(events), 0), count(*) FROM session WHERE {scope.condition}",  # noqa: S608
        scope.values,
    ).fetchone()
    if caller.kind == "session":
        return events, sessions
    cwds = msgspec.json.encode(sorted(caller.cwds)).decode()
    revisions = catalog.execute(
        "SELECT ifnull(sum(revision), 0) FROM workspace WHERE cwd IN (SELECT value FROM json_each(?))", (cwds,)
    ).fetchone()
    return revisions[0], sessions


_STATE: Final = "CASE WHEN log.unreachable_since IS NULL THEN log.state ELSE 'unreachable' END"


def states(catalog: sqlite3.Connection) -> dict[str, int]:
    """Count the files of the ledger by state."""
    rows = catalog.execute(f"SELECT {_STATE}, count(*) FROM log GROUP BY 1 ORDER BY 1")  # noqa: S608
    return dict(rows.fetchall())


def ledger(catalog: sqlite3.Connection, request: StatusRequest) -> tuple[list[LedgerEntry], int]:
    """Return a page of the ledger by path, and how many files it holds in the wanted states."""
    wanted = msgspec.json.encode(list(request.states)).decode() if request.states else None
    where = f":wanted IS NULL OR {_STATE} IN (SELECT value FROM json_each(:wanted))"  # noqa: S608
    values = {"wanted": wanted, "limit": request.limit, "offset": request.offset}
    rows = catalog.execute(
        f"""
        SELECT log.*, {_STATE} AS shown, ifnull(session.damage, json_array_length(faults)) AS damage
        FROM log LEFT JOIN session USING (log_id) WHERE {where} ORDER BY path LIMIT :limit OFFSET :offset
        """,  # noqa: S608 - conditions of ours, values bound
        values,
    )
    total = catalog.execute(f"SELECT count(*) FROM log WHERE {where}", {"wanted": wanted}).fetchone()[0]  # noqa: S608
    return [_ledger_entry(row) for row in rows], total


def problems(catalog: sqlite3.Connection) -> list[LedgerEntry]:
    """Return the first files that were not read whole."""
    request = StatusRequest(
        states=("partial", "unreadable", "newer", "duplicate", "unreachable"), limit=PROBLEMS_SHOWN
    )
    return ledger(catalog, request)[0]


def runs(catalog: sqlite3.Connection) -> list[RunReport]:
    """Return the recorded runs, newest first."""
    rows = catalog.execute("SELECT report FROM run ORDER BY id DESC")
    return [msgspec.json.decode(row[0], type=RunReport, dec_hook=_decode_instant) for row in rows]


def _ledger_entry(row: sqlite3.Row) -> LedgerEntry:
    return LedgerEntry(
        path=row["path"],
        session_id=row["session_id"],
        cwd=row["cwd"],
        version=row["version"],
        state=row["shown"],
        reason=row["reason"],
        size=row["size"],
        faults=damage_notes(row["faults"]),
        damage=row["damage"],
    )


def _timeline_filter(scope: Scope, request: TimelineRequest) -> tuple[str, dict[str, Any]]:
    parts, values = [f"({scope.condition})"], dict(scope.values)
    for name, wanted, condition in (
        ("workspaces", request.workspaces, "session.cwd IN (SELECT value FROM json_each(:workspaces))"),
        ("models", request.models, _MODEL_CONDITION),
    ):
        if wanted:
            parts.append(condition)
            values[name] = msgspec.json.encode(list(wanted)).decode()
    if request.roots:
        parts.append("session.parent_session IS NULL")
    column = "session.created_at" if request.sort == "created" else "session.last_at"
    for name, moment, operator in (("after", request.after, ">="), ("before", request.before, "<=")):
        if moment is not None:
            parts.append(f"{column} {operator} :{name}")
            values[name] = moment
    if request.day is not None:
        day, zone = date.fromisoformat(request.day), ZoneInfo(request.zone)
        parts.append(
            "session.log_id IN (SELECT log_id FROM activity WHERE quarter >= :day_first AND quarter < :day_next)"
        )
        values |= {"day_first": _quarter(day, zone), "day_next": _quarter(_shift(day, 1), zone)}
    return " AND ".join(parts), values


_MODEL_CONDITION: Final = """
    EXISTS (SELECT 1 FROM json_each(session.models) AS used
            WHERE used.value IN (SELECT value FROM json_each(:models)))
"""


def _last_day(catalog: sqlite3.Connection, scope: Scope, zone: ZoneInfo) -> date | None:
    latest = (datetime.now(zone) + timedelta(1)).timestamp() * 1000 // QUARTER_MS
    row = catalog.execute(
        f"""
        SELECT max(quarter) FROM activity JOIN session USING (log_id)
        WHERE quarter <= :latest AND {scope.condition}
        """,  # noqa: S608 - a condition of ours, values bound
        {**scope.values, "latest": latest},
    ).fetchone()
    return None if row[0] is None else _day(row[0] * QUARTER_MS, zone)


def _day(millis: int, zone: ZoneInfo) -> date:
    """Return the zone's calendar day of a moment; moments that no calendar library can hold are clamped."""
    bounded = max(-MOST_DAYS * 86_400, min(millis // 1000, MOST_DAYS * 86_400))
    try:
        return datetime.fromtimestamp(bounded, zone).date()
    except (OverflowError, ValueError, OSError):
        return _EPOCH_DAY


def _shift(day: date, days: int) -> date:
    """Return the day so many days later; beyond the ends of the calendar, its first or last."""
    return date.fromordinal(max(1, min(day.toordinal() + days, date.max.toordinal())))


def _quarter(day: date, zone: ZoneInfo) -> int:
    start = datetime(day.year, day.month, day.day, tzinfo=zone)
    return int(start.timestamp() * 1000) // QUARTER_MS


def _decode_instant(kind: type, value: object) -> object:
    if kind is Instant and isinstance(value, int):
        return Instant(value)
    raise NotImplementedError
