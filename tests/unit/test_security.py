"""The front door's judgements that need no server: names, origins, places, binds."""

from __future__ import annotations

from typing import Any

import pytest
from datasette import Request

from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.web import security, signin
from sessiongraph_web.web.security import Place

ALLOWED = security.LOOPBACK_HOSTS | {"box.lan"}


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:8001", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8001", "box.lan", "BOX.LAN:443"],
)
def test_a_server_answers_to_its_own_names(host: str) -> None:
    """Names of this machine and those that were allowed, on any port: ports are forwarded."""
    assert security.is_allowed_host([(b"host", host.encode())], ALLOWED)


@pytest.mark.parametrize(
    "host",
    [
        "",
        " ",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "127.0.0.1.nip.example:8001",
        "localhost.",
        "127.0.0.1.",
        "[::1].",
        "::1",
        "[::2]",
        "localhost:",
        "localhost:http",
        "localhost:999999",
        "localhost:8001:8001",
        "evil@localhost",
        "localhost@evil.example",
        "localhost/evil.example",
        "localhost, evil.example",
        "localhost\n",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0.0.0.0",  # noqa: S104 - given to be refused
        "loca\xadlhost",
        "xbox.lan",
        "box.lan.evil.example",
    ],
)
def test_a_name_that_only_looks_like_ours_is_not_ours(host: str) -> None:
    """DNS rebinding needs a name of the attacker's; nothing but an exact name is taken."""
    assert not security.is_allowed_host([(b"host", host.encode("latin-1"))], ALLOWED)


def test_a_host_must_be_named_exactly_once() -> None:
    """No Host, or two of them, leave open which one was meant."""
    assert not security.is_allowed_host([], ALLOWED)
    assert not security.is_allowed_host([(b"x-forwarded-host", b"localhost")], ALLOWED)
    assert not security.is_allowed_host([(b"host", b"localhost"), (b"Host", b"localhost")], ALLOWED)


LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize(
    ("method", "headers", "expected"),
    [
        ("GET", {}, False),
        ("POST", {}, False),
        ("GET", {"sec-fetch-site": "same-origin"}, False),
        ("POST", {"sec-fetch-site": "same-origin", "origin": "null"}, False),
        ("GET", {"sec-fetch-site": "none"}, False),
        ("GET", LINK, False),
        ("HEAD", LINK, False),
        ("POST", LINK, True),
        ("GET", LINK | {"sec-fetch-site": "same-site"}, False),
        ("GET", LINK | {"sec-fetch-dest": "iframe"}, True),
        ("GET", LINK | {"sec-fetch-dest": "embed"}, True),
        ("GET", LINK | {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}, True),
        ("GET", LINK | {"sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}, True),
        ("GET", {"sec-fetch-site": "cross-site"}, True),
        ("GET", {"sec-fetch-site": "same-site"}, True),
        ("GET", {"sec-fetch-site": "something-new"}, True),
        ("POST", {"origin": "http://localhost:8001"}, False),
        ("POST", {"origin": "https://localhost:8001"}, False),
        ("POST", {"origin": "http://localhost"}, True),
        ("POST", {"origin": "http://localhost:8002"}, True),
        ("POST", {"origin": "http://evil.example"}, True),
        ("POST", {"origin": "null"}, True),
        ("POST", {"origin": ""}, True),
        ("DELETE", {"origin": "http://evil.example"}, True),
        ("GET", {"origin": "http://evil.example"}, False),
    ],
)
def test_another_site_may_only_send_a_reader_here(method: str, headers: dict[str, str], expected: bool) -> None:
    """A plain link from elsewhere is let in; whatever else a page elsewhere can cause is not."""
    pairs = [(b"host", b"localhost:8001"), *((k.encode(), v.encode()) for k, v in headers.items())]
    scope: dict[str, Any] = {"type": "http", "method": method, "path": "/", "headers": pairs}

    assert security.is_cross_site(Request(scope, None)) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", Place("ours")),
        ("/.json", Place("ours")),
        ("/search", Place("ours")),
        ("/sessions/session-1.json", Place("ours")),
        ("/sessions/..%2f..%2fetc%2fpasswd", Place("ours")),
        ("/status/rebuild", Place("ours")),
        ("/openapi.json", Place("public")),
        ("/static/0123456789ab/style.css", Place("static")),
        ("/static/0123456789ab/../../x.css", Place("database", "static")),
        ("/-/static/app.css", Place("static")),
        ("/-/static-plugins/x/y.js", Place("static")),
        ("/favicon.ico", Place("static")),
        ("/-/login", Place("sign-in")),
        ("/-/logout", Place("sign-in")),
        ("/-/login/", Place("datasette")),
        ("/-/login.json", Place("datasette")),
        ("/-/staticx", Place("datasette")),
        ("/-", Place("datasette")),
        ("/-/", Place("datasette")),
        ("/-/threads.json", Place("datasette")),
        ("/ws_1", Place("database", "ws_1")),
        ("/ws_1.json", Place("database", "ws_1")),
        ("/ws_1/entry.csv", Place("database", "ws_1", is_csv=True)),
        ("/ws~5F1/entry", Place("database", "ws_1")),
        ("/ws%5F1/entry", Place("database", "ws%5F1")),
        ("/WS_1", Place("database", "WS_1")),
        ("/_internal", Place("database", "_internal")),
        ("/ws_1.db", Place("nowhere")),
        ("/ws_1.json/entry", Place("nowhere")),
        ("//evil.example", Place("database", "")),
        ("", Place("database", "")),
    ],
)
def test_a_path_leads_to_one_place(path: str, expected: Place) -> None:
    """What a path is taken for is what Datasette will route it to."""
    assert security.place(path) == expected


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "[::1]", "localhost"])
def test_listening_on_this_machine_needs_no_more(host: str) -> None:
    """Loopback addresses are not reached from elsewhere."""
    security.check_bind(host, [])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "box.lan", ""])  # noqa: S104 - given to be refused
def test_listening_beyond_this_machine_says_what_it_exposes(host: str) -> None:
    """Without a name to be reached under, the server is not started; with one it is."""
    with pytest.raises(SessionGraphError) as raised:
        security.check_bind(host, [])

    assert raised.value.code == "SESSION_QUERY_INVALID_CONFIG"
    assert "every session of every workspace" in raised.value.detail
    assert "--allow-host" in raised.value.detail
    security.check_bind(host, ["box.lan"])


@pytest.mark.parametrize("name", ["*", "*.lan", "box.lan:8001", "http://box.lan", "", "box..lan", "box.lan.", 7])
def test_an_allowed_host_is_a_plain_name(name: object) -> None:
    """Wildcards, ports and addresses of pages are refused when the server starts, not ignored later."""
    with pytest.raises(SessionGraphError) as raised:
        security.check_bind("127.0.0.1", [name])  # type: ignore[list-item]

    assert raised.value.fields == {"setting": "allow_hosts"}


@pytest.mark.parametrize("path", ["/", "/search?q=a&b=%20", "/sessions/x#e3", "/ws_1/entry.json?_size=5"])
def test_sign_in_leads_on_to_a_path_of_this_server(path: str) -> None:
    """A local path is kept as it is."""
    assert signin.local_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "search",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "http://evil.example/",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/x\r\nset-cookie: a=b",
        "/a b",
        "/a\\b",
        "/x\x7f",
        "/-/login",
        "/-/login?token=x",
        "/-/logout",
    ],
)
def test_sign_in_leads_nowhere_else(path: str) -> None:
    """Other servers, headers smuggled in, and the sign-in pages themselves are dropped."""
    assert signin.local_path(path) == ""


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["/x/bin/datasette"], ("127.0.0.1", "8001")),
        (["/x/bin/datasette", "serve", "-p", "9000"], ("127.0.0.1", "9000")),
        (["datasette", "-m", "metadata.yml", "--port=9000", "-h", "::1"], ("::1", "9000")),
        (["datasette", "-p9000", "--host", "box.lan"], ("box.lan", "9000")),
        (["/x/datasette/__main__.py", "serve"], ("127.0.0.1", "8001")),
        (["datasette", "--get", "/"], None),
        (["datasette", "--get=/"], None),
        (["/x/bin/sessiongraph-web", "serve"], None),
        (["/x/pytest/__main__.py"], None),
        ([""], None),
        ([], None),
    ],
)
def test_a_bare_server_is_known_by_its_command_line(argv: list[str], expected: tuple[str, str] | None) -> None:
    """Datasette tells nobody where it listens; what was typed says it."""
    assert signin.served_at(argv) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),  # noqa: S104 - compared, not bound
        ("::", "http://127.0.0.1:80"),
        ("box.lan", "http://box.lan:80"),
    ],
)
def test_a_link_names_an_address_that_can_be_opened(host: str, expected: str) -> None:
    """Listening everywhere is no address; this machine is."""
    assert signin.address(host, "80") == expected
