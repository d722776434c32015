"""CSV whose texts no spreadsheet computes."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiongraph_web.web import cells

FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"


def written(*row: object) -> str:
    made = io.StringIO()
    csv.writer(made).writerow(row)
    return made.getvalue()


def read(row: str) -> list[str]:
    (found,) = csv.reader(io.StringIO(row, newline=""))
    return found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('=HYPERLINK("http://evil.example";"x")', '\'=HYPERLINK("http://evil.example";"x")'),
        ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
        ("-1+1", "'-1+1"),
        ("@SUM(1,2)", "'@SUM(1,2)"),
        ("\t=1", "'\t=1"),
        ("＝1+1", "'＝1+1"),
        ("\n=1", "'\n=1"),
        ("a =1", "a =1"),
        ("a,=1", "a,=1"),
        ('",=1', '",=1'),
        ("-12.5", "-12.5"),
        ("", ""),
    ],
)
def test_a_formula_becomes_a_text(text: str, shown: str) -> None:
    """What begins as a formula does gets a guard; numbers, and all other texts, stay as they are."""
    assert read(cells.inert(written("first", text, -7, None))) == ["first", shown, "-7", ""]


@given(st.lists(st.text(alphabet=st.sampled_from("=+-@\t\r\n\",'a1 ")), min_size=2))
def test_nothing_else_of_a_row_changes(row: list[str]) -> None:
    """Whatever a row holds, its cells are the same in number and text, but for the guards."""
    found = read(cells.inert(written(*row)))
    assert [cell.removeprefix("'") for cell in found] == [cell.removeprefix("'") for cell in row]
    assert all(cell.lstrip("+-").isdecimal() for cell in found if cell.startswith(tuple(FORMULA_STARTS)))
