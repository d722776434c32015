"""Names in archives: safe to unpack anywhere, and never two alike."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiongraph_web.entrynames import MAX_FOLDER_CHARS, Folders, download_name, safe_id, safe_name


@pytest.mark.parametrize(
    ("session_id", "expected"),
    [
        ("session-02b7_5", "session-02b7_5"),
        ('a/b c😀"', "a_b_c___"),
        ("../é x", "_____x"),
        ("a.b", "a_b"),
        ("日本", "__"),
        ("", ""),
    ],
)
def test_an_id_is_spelled_as_dsh_spells_it_in_archives(session_id: str, expected: str) -> None:
    """Every UTF-16 unit outside `A-Za-z0-9_-` becomes one low line."""
    assert safe_id(session_id) == expected


def test_the_archive_is_named_for_its_session() -> None:
    """The download carries the safe id, cut where a file system would refuse it."""
    assert download_name("weird id/../with~特殊😀") == "dsh-session-weird_id____with_____.zip"
    assert len(download_name("x" * 400)) == len("dsh-session-.zip") + 200


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("报告 report.txt", "报告 report.txt"),
        ("../../etc/passwd", ".._.._etc_passwd"),
        ("..", "_"),
        (".", "_"),
        ("", "_"),
        ("/abs", "_abs"),
        ("C:\\evil", "C__evil"),
        ("con", "_con"),
        ("NUL.txt", "_NUL.txt"),
        ("com1.tar.gz", "_com1.tar.gz"),
        ("COM¹", "_COM¹"),
        ("aux .c", "_aux .c"),
        ("console.log", "console.log"),
        ("stream.txt:hidden", "stream.txt_hidden"),
        ("trailing. . ", "trailing"),
        ("a\0b\nc\x1b[31m", "a_b_c_[31m"),
        ("photo\u202egnp.exe", "photo_gnp.exe"),
        ("half \ud83d", "half _"),
        ("e\u0301", "é"),
        (".env", ".env"),
    ],
)
def test_a_file_name_stays_as_near_as_can_be(name: str, expected: str) -> None:
    """What some system refuses, hides or runs is replaced; all else stays."""
    assert safe_name(name) == expected


def test_a_long_name_keeps_its_extension() -> None:
    """Names are cut between characters, in front of the extension."""
    assert safe_name("字" * 200 + ".tar.gz", 30) == "字" * 8 + ".gz"
    assert safe_name("x" * 300, 20) == "x" * 19


@given(st.text(max_size=300), st.integers(20, 240))
def test_any_name_is_safe(name: str, limit: int) -> None:
    """No text makes a name that is absolute, climbs, is too long, or that Windows would change."""
    made = safe_name(name, limit)

    assert 0 < len(made.encode()) <= limit
    assert PurePosixPath(made).name == made
    assert PureWindowsPath(made).name == made
    assert not PureWindowsPath(made).is_reserved()
    assert made == made.rstrip(". ")
    assert made == unicodedata.normalize("NFC", made)
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs") for character in made)


@pytest.mark.parametrize("session_ids", [("a/b", "a_b", "a:b"), ("Same", "same", "SAME"), ("x" * 200, "x" * 201)])
def test_ids_that_would_share_a_folder_are_told_apart(session_ids: tuple[str, ...]) -> None:
    """A suffix made from the id keeps folders apart where letter case is ignored; the first keeps its name."""
    folders = Folders()
    names = [folders.add(session_id) for session_id in session_ids]

    assert len({name.casefold() for name in names}) == len(names)
    assert all(len(name) <= MAX_FOLDER_CHARS for name in names)
    assert names[0].startswith(safe_id(session_ids[0])[:100])


def test_one_id_that_occurs_twice_has_two_folders() -> None:
    """Two logs with one id are both packed."""
    folders = Folders()

    assert len({folders.add("session-1") for _ in range(5)}) == 5


@given(st.lists(st.text(max_size=150), max_size=8))
def test_any_ids_have_folders_of_their_own(session_ids: list[str]) -> None:
    """Whatever the ids, folders are distinct, safe and bounded."""
    folders = Folders()
    names = [folders.add(session_id) for session_id in session_ids]

    assert len({name.casefold() for name in names}) == len(names)
    for name in names:
        assert 0 < len(name) <= MAX_FOLDER_CHARS + 1
        assert PurePosixPath(name).name == name
        assert not PureWindowsPath(name).is_reserved()
