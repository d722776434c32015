"""How ids are spelled in addresses, and the addresses of pages."""

from __future__ import annotations

import pytest

from sessiongraph_web.web.links import Links, canonical, decode
from tests.answered import summary

IDS = ("session-1", "a.b", "a/b", "weird id/../with~特殊😀", "..", "a%2Fb", "~2E", "a+b", "x.json", "a\0b", "_-")


@pytest.mark.parametrize("text", IDS)
def test_a_canonical_id_reads_back(text: str) -> None:
    """The one spelling holds no dot, slash or percent sign, and means the id again."""
    spelled = canonical(text)
    assert not set(spelled) & set("./%")
    assert decode(spelled) == text


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("session%2D1", "session-1"),
        ("a.b", "a.b"),
        ("a%2Fb", "a/b"),
        ("a%252Fb", "a%2Fb"),
        ("~2e", "~2e"),
        ("a~b", "a~b"),
        ("%E7%89%B9", "特"),
        ("%ff", None),
        ("~FF", "~FF"),
    ],
)
def test_another_spelling_is_decoded_once(spelled: str, meant: str | None) -> None:
    """What is not canonical is percent-encoded, once; bytes that are no UTF-8 mean nothing."""
    assert decode(spelled) == meant


def test_addresses_leave_out_what_is_not_asked() -> None:
    """None, false and empty parameters are not in an address; true is 1, a list repeats its name."""
    links = Links("/base/")
    assert (
        links.path("/x", a=None, b=False, c="", d=True, e=["1", "广"], f=0) == "/base/x?d=1&e=1&e=%E5%B9%BF&f=0"
    )


def test_links_of_a_twin_name_its_log() -> None:
    """Two logs with one id are told apart in every link to them."""
    twin = summary(id="a.b", duplicate=True)
    links = Links()
    assert [links.session(twin), links.trace(twin), links.export(twin, redact=True), links.event(twin, 3, 4)] == [
        "/sessions/a~2Eb?log=7",
        "/trace/a~2Eb?log=7",
        "/export/a~2Eb.zip?log=7&redact=1",
        "/sessions/a~2Eb/events/3?log=7",
    ]


def test_an_event_without_a_number_goes_by_its_position() -> None:
    """Every event has a permanent address."""
    links = Links()
    assert links.event(summary(), None, 12) == "/sessions/session-1/events/-?ordinal=12"
    assert links.event(summary(), 3, 12, repeated=True) == "/sessions/session-1/events/3?ordinal=12"


def test_a_place_in_the_transcript_has_a_lead_in() -> None:
    """A hit is shown with what came before it, as far as there is any."""
    links = Links()
    assert links.place(summary(), 50) == "/sessions/session-1?at=50#e50"
    assert links.place(summary(), 2) == "/sessions/session-1?at=2#e2"
