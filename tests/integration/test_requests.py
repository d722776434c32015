"""Requests that broke other viewers, played against ours under the addresses that mean the same here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import pytest
from datasette.app import Datasette

from sessiongraph_web import access, schema
from sessiongraph_web.web import routes
from tests.asgi import Pairs, ask, bearer
from tests.shared import SHARED
from tests.world import FOREIGN, FOREIGN_WORD, HOME, World, two_workspaces

pytestmark = [pytest.mark.asyncio, pytest.mark.shared]

KINDS: Final = ("W01", "W02", "W03", "W04", "W05", "W10", "W13")
HOME_DATABASE: Final = schema.database_name(HOME)

# The cases name a product's addresses that are spelled otherwise here.
ADDRESSES: Final = (
    ("/-/sessiongraph/reindex", "/status/rebuild"),
    ("/-/sessiongraph/export.zip", "/export/{home}.zip"),
    ("/-/sessiongraph/session/", "/sessions/"),
    ("/-/sessiongraph/search", "/search"),
    ("/index.db", f"/{HOME_DATABASE}.db"),
    ("/index.json", f"/{HOME_DATABASE}/-/query.json"),
    ("/index/sessions.json", f"/{HOME_DATABASE}/session.json"),
)
# The cases say `cwd`, which is `workspace` here.
PARAMETERS: Final = (("cwd=", "workspace="),)


@dataclass(frozen=True)
class Case:
    """One line of the cases."""

    id: str
    method: str
    path: str
    headers: dict[str, str]
    body: str | None
    expect: str

    @property
    def statuses(self) -> set[int]:
        """Return the answers that the case takes, where the design says nothing else."""
        numbers = {int(number) for number in ("400", "403", "404", "405") if number in self.expect}
        return numbers - {200}

    def url(self, world: World) -> str:
        """Return the address that means the same here."""
        path = self.path
        for theirs, ours in ADDRESSES:
            if path.startswith(theirs):
                path = ours.format(home=world.ids["home"]) + path.removeprefix(theirs)
                break
        for theirs, ours in PARAMETERS:
            path = path.replace(theirs, ours)
        return path


def cases() -> list[Case]:
    """Read every line of the kinds that are answered here; more lines of them are tested as they come."""
    if SHARED is None:
        return []
    lines = (SHARED / "field-cases" / "web" / "requests.jsonl").read_text().splitlines()
    found = [Case(**json.loads(line)) for line in lines if line.strip()]
    return [case for case in found if case.id in KINDS]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return two_workspaces(tmp_path_factory.mktemp("requests")).build()


@pytest.mark.parametrize("who", ["owner", "scoped", "nobody"])
@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.id}:{case.method} {case.path}"[:80])
async def test_a_request_that_broke_others(served: Datasette, world: World, case: Case, who: str) -> None:
    """Whoever sends it: no fault, nothing foreign, no path of this machine, and the answer the case asks for."""
    credentials = {
        "owner": bearer(world.token(access.OWNER)),
        "scoped": bearer(world.token(access.workspaces(HOME))),
        "nobody": [],
    }[who]
    headers: Pairs = [
        *credentials,
        *((name, value) for name, value in case.headers.items() if name.lower() != "host"),
    ]

    sent: dict[str, Any] = {"method": case.method, "headers": headers, "body": case.body or ""}
    host = case.headers.get("Host", "localhost")

    answer = await ask(served, case.url(world), host=host, **sent)
    if answer.status == 302:
        # An id in another spelling is sent on to its canonical one, under the same noun.
        moved = answer.header("location") or ""
        assert moved.startswith("/sessions/")
        assert moved != case.url(world)
        answer = await ask(served, moved, host=host, **sent)

    assert answer.status in _expected(case, who), (answer.status, answer.text[:300])
    assert "frame-ancestors 'none'" in (answer.header("content-security-policy") or "")
    assert [name for name, _ in answer.headers if name.startswith("access-control-")] == []
    if who != "owner":
        for secret in (FOREIGN_WORD, FOREIGN, world.ids["foreign"], str(world.store), str(world.index)):
            assert secret not in answer.text


@pytest.mark.parametrize("place", ["/", "/-/", f"/{HOME_DATABASE}/", "/sessions/"])
@pytest.mark.parametrize("who", [access.OWNER, access.workspaces(HOME)], ids=lambda who: who.kind)
async def test_a_404_page_does_not_repeat_the_address(
    served: Datasette, world: World, place: str, who: access.Caller
) -> None:
    """W10: a link cannot put words of its maker into a page of ours."""
    answer = await ask(served, f"{place}call-0900-now", headers=bearer(world.token(who)))

    assert answer.status == 404
    assert "call-0900-now" not in answer.text


def _expected(case: Case, who: str) -> set[int]:
    """Return the statuses that are right here; where the design differs from the case, it is said why."""
    if case.id == "W01":
        return {421}  # the design answers a wrong Host with Misdirected Request, before anything else
    if case.headers.get("Sec-Fetch-Site") == "cross-site":
        return {403}  # refused before it is asked whether the method fits; no state changes either way
    if "Origin" in case.headers:
        return {403}
    if "cwd=/w/demo/app&cwd=/w/other" in case.path and who == "owner":
        return {200}  # `workspace` may be given several times: the owner asks about all of them at once
    if who == "nobody":
        return case.statuses | {401, 404}  # whoever has not signed in learns nothing but that
    if case.id in ("W03", "W04"):
        # SQL stays open inside the caller's own database; what a case asks for is not there or is his own.
        return {200, 400, 403, 404}
    if case.id == "W05":
        return case.statuses or {200, 403, 404}
    return case.statuses or {200, 404}


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/Los_Angeles", "Pacific/Kiritimati"])
@pytest.mark.parametrize("day", ["0001-01-01", "0001-12-31", "9999-01-01", "9999-12-31"])
async def test_the_ends_of_the_calendar_are_days(served: Datasette, world: World, day: str, zone: str) -> None:
    """A list up to, from or of the first or last day that can be written is an answer, and no fault."""
    headers = bearer(world.token(access.OWNER))
    for name in ("before", "after", "day", "created_before", "created_after"):
        for path in ("/timeline.json?", "/search.json?q=the&"):
            answer = await ask(served, f"{path}{name}={day}&tz={zone}", headers=headers)
            known = (name == "day" or not name.startswith("created")) if "timeline" in path else name != "day"
            assert answer.status == (200 if known else 400), answer.text


ODD_VALUES: Final = (
    *("-1", "9223372036854775808", "99999999999999999999", "1e9", "NaN", "Infinity", "0x10", "\u0663", "1_000"),
    *(
        "\0",
        "\r\nSet-Cookie: a=b",
        "../../etc/passwd",
        "{}",
        "x" * 5000,
        "9999-12-31",
        "Etc/GMT+99",
        "%ff",
        "\U0010ffff",
    ),
)


@pytest.mark.parametrize("who", [access.OWNER, access.workspaces(HOME)], ids=lambda who: who.kind)
@pytest.mark.parametrize("route", [route.name for route in routes.ROUTES if "GET" in route.methods])
async def test_no_value_of_a_parameter_is_a_fault(
    served: Datasette, world: World, route: str, who: access.Caller
) -> None:
    """Giant, negative, foreign to numbers, hostile to headers, given twice: an answer or a refusal, no fault."""
    asked = next(found for found in routes.ROUTES if found.name == route)
    names = {"id": world.ids["home"], "seq": 3, "sha256": "0" * 64, "digest": "0" * 12, "name": "style.css"}
    path = asked.template.format(**names)
    headers = bearer(world.token(who))
    for parameter in asked.parameters:
        for value in ODD_VALUES:
            encoded = quote(value.encode() if value != "%ff" else b"\xff", safe="")
            for query in (f"{parameter.name}={encoded}", f"{parameter.name}={encoded}&{parameter.name}=1"):
                answer = await ask(served, f"{path}?{query}", headers=headers)
                assert answer.status < 500, (parameter.name, value)
                assert [value for _, value in answer.headers if "\n" in value or "\r" in value] == []
                assert answer.header("set-cookie") is None
