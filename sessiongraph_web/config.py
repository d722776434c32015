"""The settings: one table of names, defaults and bounds, and the values that a run of the product uses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from sessiongraph_web import resuming
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.language import sentence

PLUGIN_NAME: Final = "sessiongraph-web"
KIBI: Final = 1024
MEBI: Final = 1024 * KIBI


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: how a setting is spelled, what it may be, and what it is for.

    `minimum` and `maximum` bound integers (inclusive). The command-line flag is `--name-with-dashes`.
    """

    name: str
    default: Path | bool | int | str | None
    help: str
    minimum: int | None = None
    maximum: int | None = None

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("sessions", None, "the store: `$DSH_HOME/sessions`, else `~/.dsh/sessions`"),
    Setting("index", None, "where the index lives: `sessiongraph` beside the store"),
    Setting("attachments", None, "the attachment store: `attachments` beside the store"),
    Setting("freshness_seconds", 2, "look for new events before a query when the last look is older", 0, 86_400),
    Setting("auto_build", True, "build a missing index when the server starts"),
    Setting("auto_refresh", True, "look for new events before queries"),
    Setting("search", True, "answer searches; off, reads, traces and exports still work"),
    Setting("tool_result_chars", 16 * KIBI, "index this much of each end of a tool result; 0 none, -1 all", -1),
    Setting("snippet_chars", 240, "length of a snippet in code points", 1, 4096),
    Setting("default_limit", 20, "rows on a page when none are asked for", 1, 100),
    Setting("max_limit", 100, "most rows on a page", 1, 1000),
    Setting("max_search_results", 100, "most hits a model tool returns", 1, 1000),
    Setting("read_window_max", 50, "most neighbours of an event on each side", 0, 1000),
    Setting("search_timeout_seconds", 30, "when a search returns what it has", 1, 600),
    Setting("index_timeout_seconds", 300, "when the index tool stops waiting", 1, 86_400),
    Setting("background_index_sessions", 1000, "from this many sessions the index tool answers at once", 1),
    Setting("lock_wait_seconds", 120, "how long an index run waits for another one", 0, 86_400),
    Setting("resume_command", resuming.COMMAND, "how to go on with a session in dsh; empty: not offered"),
    Setting("max_line_bytes", 64 * MEBI, "a longer line of a log is one damaged unit", 64 * KIBI),
    Setting("max_window_bytes", 128 * MEBI, "a frame that needs a larger window is one damaged unit", KIBI),
)
_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of one run, validated. Build it with `load`."""

    sessions: Path
    index: Path
    attachments: Path
    freshness_seconds: int
    auto_build: bool
    auto_refresh: bool
    search: bool
    tool_result_chars: int
    snippet_chars: int
    default_limit: int
    max_limit: int
    max_search_results: int
    read_window_max: int
    search_timeout_seconds: int
    index_timeout_seconds: int
    background_index_sessions: int
    lock_wait_seconds: int
    resume_command: str
    max_line_bytes: int
    max_window_bytes: int


def load(
    values: Mapping[str, Any] | None = None, *, environ: Mapping[str, str] | None = None, home: Path | None = None
) -> Settings:
    """Return the settings for `values` (from flags or `metadata.yml`; None means not given).

    Unknown names and values out of bounds are SESSION_QUERY_INVALID_CONFIG errors that name the setting.
    """
    given = {name: value for name, value in (values or {}).items() if value is not None}
    for name in given:
        if name not in _BY_NAME:
            raise SessionGraphError(
                "SESSION_QUERY_INVALID_CONFIG",
                sentence("unknown setting `%(setting)s`", setting=name),
                setting=name,
            )
    checked: dict[str, Any] = {
        s.name: _check(s, given[s.name]) if s.name in given else s.default for s in SETTINGS
    }
    checked |= _paths(checked, os.environ if environ is None else environ, home or Path.home())
    if checked["default_limit"] > checked["max_limit"]:
        raise _invalid(_BY_NAME["default_limit"], "setting `%(setting)s` must not be above `max_limit`")
    return Settings(**{f.name: checked[f.name] for f in fields(Settings)})


def _paths(checked: Mapping[str, Any], environ: Mapping[str, str], home: Path) -> dict[str, Path]:
    dsh_home = Path(environ["DSH_HOME"]) if environ.get("DSH_HOME") else home / ".dsh"
    sessions = checked["sessions"] or dsh_home / "sessions"
    return {
        "sessions": sessions,
        "index": checked["index"] or sessions.parent / "sessiongraph",
        "attachments": checked["attachments"] or sessions.parent / "attachments",
    }


def _check(setting: Setting, value: object) -> Path | bool | int | str:
    if setting.default is None:
        return _check_path(setting, value)
    if isinstance(setting.default, bool):
        if not isinstance(value, bool):
            raise _invalid(setting, "setting `%(setting)s` must be true or false")
        return value
    if isinstance(setting.default, str):
        return _check_command(setting, value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _invalid(setting, "setting `%(setting)s` must be a whole number")
    if setting.minimum is not None and value < setting.minimum:
        raise _invalid(setting, "setting `%(setting)s` must be at least %(minimum)s", minimum=setting.minimum)
    if setting.maximum is not None and value > setting.maximum:
        raise _invalid(setting, "setting `%(setting)s` must be at most %(maximum)s", maximum=setting.maximum)
    return value


def _check_command(setting: Setting, value: object) -> str:
    if not isinstance(value, str):
        raise _invalid(setting, "setting `%(setting)s` must be a text")
    if wrong := resuming.problem(value):
        raise _invalid(setting, "setting `%(setting)s` %(wrong)s", wrong=sentence(wrong))
    return value


def _check_path(setting: Setting, value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise _invalid(setting, "setting `%(setting)s` must be a path")
    return Path(os.path.abspath(Path(value).expanduser()))  # noqa: PTH100 - symbolic links stay as they are


def _invalid(setting: Setting, problem: str, **variables: object) -> SessionGraphError:
    detail = sentence(problem, setting=setting.name, **variables)
    return SessionGraphError("SESSION_QUERY_INVALID_CONFIG", detail, setting=setting.name)
