"""Settings: defaults, bounds, where paths come from, and errors that name the setting."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web.config import MEBI, SETTINGS, Setting, Settings, load
from sessiongraph_web.errors import SessionGraphError

HOME = Path("/home/someone")


def _load(environ: dict[str, str] | None = None, **values: Any) -> Settings:
    return load(values, environ=environ or {}, home=HOME)


def test_the_defaults_are_those_of_the_design() -> None:
    """Nothing given, everything has a value."""
    assert asdict(_load()) == {
        "sessions": HOME / ".dsh" / "sessions",
        "index": HOME / ".dsh" / "sessiongraph",
        "attachments": HOME / ".dsh" / "attachments",
        "freshness_seconds": 2,
        "auto_build": True,
        "auto_refresh": True,
        "search": True,
        "tool_result_chars": 16384,
        "snippet_chars": 240,
        "default_limit": 20,
        "max_limit": 100,
        "max_search_results": 100,
        "read_window_max": 50,
        "search_timeout_seconds": 30,
        "index_timeout_seconds": 300,
        "background_index_sessions": 1000,
        "lock_wait_seconds": 120,
        "resume_command": "cd {cwd} && dsh --profile tui --resume {id}",
        "max_line_bytes": 64 * MEBI,
        "max_window_bytes": 128 * MEBI,
    }


def test_the_table_has_a_row_for_every_value() -> None:
    """No setting without its default, help and flag; names are unique."""
    assert [setting.name for setting in SETTINGS] == [field.name for field in fields(Settings)]
    assert all(setting.help for setting in SETTINGS)
    assert [setting.flag for setting in SETTINGS if setting.name == "max_line_bytes"] == ["--max-line-bytes"]


@pytest.mark.parametrize(
    ("environ", "values", "expected"),
    [
        ({"DSH_HOME": "/srv/dsh"}, {}, ("/srv/dsh/sessions", "/srv/dsh/sessiongraph", "/srv/dsh/attachments")),
        (
            {"DSH_HOME": ""},
            {},
            (f"{HOME}/.dsh/sessions", f"{HOME}/.dsh/sessiongraph", f"{HOME}/.dsh/attachments"),
        ),
        ({"DSH_HOME": "/srv/dsh"}, {"sessions": "/x/logs"}, ("/x/logs", "/x/sessiongraph", "/x/attachments")),
        ({}, {"sessions": "/x/logs", "index": "/y/i"}, ("/x/logs", "/y/i", "/x/attachments")),
        ({}, {"sessions": "/x/a/../logs"}, ("/x/logs", "/x/sessiongraph", "/x/attachments")),
        ({}, {"sessions": Path("/x/logs")}, ("/x/logs", "/x/sessiongraph", "/x/attachments")),
    ],
)
def test_paths_follow_the_store(
    environ: dict[str, str], values: dict[str, Any], expected: tuple[str, ...]
) -> None:
    """The store comes from the setting, `$DSH_HOME` or the home folder; the others lie beside it."""
    settings = _load(environ, **values)

    assert (str(settings.sessions), str(settings.index), str(settings.attachments)) == expected


def test_a_link_to_the_store_stays_the_path_that_was_given(tmp_path: Path) -> None:
    """Paths are made absolute, never resolved: the user's own spelling is shown."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    assert _load(sessions=tmp_path / "link").sessions == tmp_path / "link"


def test_none_means_not_given() -> None:
    """A flag that was left out changes nothing."""
    assert _load(max_limit=None, sessions=None, search=None) == _load()


def _wrong_values() -> list[Any]:
    wrong = []
    for setting in SETTINGS:
        if setting.default is None:
            bad: list[Any] = ["", "a\0b", 7, True]
        elif isinstance(setting.default, bool):
            bad = ["true", 1, 0, "", []]
        elif isinstance(setting.default, str):
            bad = [5, True, [], "dsh {session}", "dsh {id}\n", "dsh {id"]
        else:
            bad = ["5", 1.5, True, []]
            bad += [setting.minimum - 1] if setting.minimum is not None else []
            bad += [setting.maximum + 1] if setting.maximum is not None else []
        wrong += [pytest.param(setting, value, id=f"{setting.name}={value!r}") for value in bad]
    return wrong


@pytest.mark.parametrize(("setting", "value"), _wrong_values())
def test_a_wrong_value_is_an_error_that_names_the_setting(setting: Setting, value: Any) -> None:
    """Types and bounds are checked once, here."""
    with pytest.raises(SessionGraphError) as caught:
        _load(**{setting.name: value})

    assert (caught.value.code, caught.value.fields) == ("SESSION_QUERY_INVALID_CONFIG", {"setting": setting.name})
    assert f"`{setting.name}`" in caught.value.detail


@pytest.mark.parametrize("setting", [s for s in SETTINGS if isinstance(s.default, int) and s.maximum is not None])
def test_the_bounds_themselves_are_allowed(setting: Setting) -> None:
    """Bounds are inclusive."""
    around: dict[str, Any] = {"default_limit": 1, "max_limit": 1000}
    for value in (setting.minimum, setting.maximum):
        given = {name: limit for name, limit in around.items() if name != setting.name} | {setting.name: value}
        assert getattr(_load(**given), setting.name) == value


def test_an_unknown_setting_is_an_error_that_names_it() -> None:
    """A misspelling never passes for a default."""
    with pytest.raises(SessionGraphError) as caught:
        _load(max_limits=5)

    assert caught.value.detail == "unknown setting `max_limits`"
    assert caught.value.fields == {"setting": "max_limits"}


def test_the_default_page_fits_the_largest_page() -> None:
    """`default_limit` above `max_limit` would refuse every plain request."""
    with pytest.raises(SessionGraphError, match="`default_limit` must not be above `max_limit`"):
        _load(default_limit=50, max_limit=10)
