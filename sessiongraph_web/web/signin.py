"""Signing in and out: who a request comes from, the one-time link, the page behind it, and what is printed."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit
from weakref import WeakKeyDictionary

from datasette import Request, Response, actor_auth_cookie

from sessiongraph_web import access, language, tokens
from sessiongraph_web.access import Caller
from sessiongraph_web.config import PLUGIN_NAME
from sessiongraph_web.tokens import Tokens
from sessiongraph_web.web import app, http, links, render

if TYPE_CHECKING:
    from datasette.app import Datasette

LOGIN: Final = "/-/login"
LOGOUT: Final = "/-/logout"
LANGUAGE: Final = "/-/language"  # where the switch of a page posts the language that its reader chose
LANGUAGE_SECONDS: Final = 365 * 86_400
SCOPE_KEY: Final = "sessiongraph.caller"  # where the front door leaves the caller in the ASGI scope
REFUSED: Final = 403
FORM_BYTES: Final = 16 * 1024
FAILURES_ALLOWED: Final = 10  # sign-ins that fail, from one address, in `FAILURE_SECONDS`
FAILURE_SECONDS: Final = 60
ADDRESSES_REMEMBERED: Final = 1024

_LOCAL_PATH: Final = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")
_TOKEN_IN_URL: Final = re.compile(r"(token=)[^&\s\"]+")


class Product(Protocol):
    """What signing in needs of the product."""

    @property
    def tokens(self) -> Tokens: ...


def link(product: Product, base_url: str) -> str:
    """Return a one-time link that signs the owner's browser in; it is good for `LINK_SECONDS`."""
    expires_at = int((time.time() + tokens.LINK_SECONDS) * 1000)
    secret = product.tokens.create(access.OWNER, "sign-in link", expires_at, "link")
    return f"{base_url.rstrip('/')}{LOGIN}?{urlencode({'token': secret})}"


def caller(datasette: Datasette, request: Request) -> Caller:
    """Return who a request comes from. A bearer token, if there is one, speaks alone.

    The last resort is an actor that this Datasette signed itself (its `client`, `--get --actor`); it counts only
    if `access.to_actor` wrote it, so `--root` is nobody here.
    """
    private = app.product(datasette).tokens
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return private.redeem(secret.strip()) or access.NOBODY
    cookie = request.cookies.get(cookie_name(private))
    signed_in = private.redeem(cookie, "browser") if cookie else None
    return signed_in or access.from_actor(actor_auth_cookie.actor_from_request(datasette, request))


def actor(datasette: Datasette, request: Request) -> dict[str, Any] | None:
    """Return the Datasette actor of a request, or None for nobody."""
    found = request.scope.get(SCOPE_KEY) or caller(datasette, request)
    return access.to_actor(found) if found.is_known else None


def cookie_name(private: Tokens) -> str:
    """Return the name of our cookie: one for each index, since browsers share cookies between ports."""
    return f"sessiongraph_{hashlib.sha256(b'cookie' + private.signing_key).hexdigest()[:8]}"


async def login(datasette: Datasette, request: Request) -> Response:
    """Show the sign-in button, which spends nothing, or sign in when it is pressed."""
    if request.method in ("GET", "HEAD"):
        asked = parse_qs(request.query_string, keep_blank_values=True)
        return page(datasette, request, token=_one(asked, "token"), onward=_one(asked, "next"))
    if request.method != "POST":
        return _not_allowed("GET, HEAD, POST")
    attempts = _attempts_of(datasette)
    address = (request.scope.get("client") or ("",))[0]
    if attempts.are_too_many(address):
        later = {"retry-after": str(FAILURE_SECONDS)}
        return page(datasette, request, problem="wait", status=429, headers=later)
    response = await _press(datasette, request)
    if response.status == REFUSED:
        attempts.failed(address)
    return response


async def _press(datasette: Datasette, request: Request) -> Response:
    asked = parse_qs((await request.post_body(FORM_BYTES)).decode("latin-1"), keep_blank_values=True)
    private = app.product(datasette).tokens
    signed_in = await asyncio.to_thread(private.sign_in, _one(asked, "token").strip())
    onward = local_path(_one(asked, "next"))
    if signed_in is None:
        return page(datasette, request, onward=onward, problem="refused", status=REFUSED)
    response = _see_other(onward or datasette.urls.instance())
    seconds = max(1, signed_in.expires_at // 1000 - int(time.time()))
    _set_cookie(response, request, cookie_name(private), signed_in.secret, seconds)
    return response


async def logout(datasette: Datasette, request: Request) -> Response:
    """End this browser's sign-in."""
    if request.method != "POST":
        return _not_allowed("POST")
    private = app.product(datasette).tokens
    name = cookie_name(private)
    if name in request.cookies:
        await asyncio.to_thread(private.sign_out, request.cookies[name])
    response = _see_other(datasette.urls.path(LOGIN))
    _set_cookie(response, request, name, "", 0)
    return response


async def speak(datasette: Datasette, request: Request) -> Response:
    """Keep the language that a reader chose, and go back to where he was; it opens nothing to anybody.

    A script tells the exact place; without one the browser does, since no page repeats its own address.
    """
    if request.method != "POST":
        return _not_allowed("POST")
    asked = parse_qs((await request.post_body(FORM_BYTES)).decode("latin-1"), keep_blank_values=True)
    wished, onward = _one(asked, "language"), _one(asked, "next") or _referring_path(request)
    response = _see_other(onward if _LOCAL_PATH.fullmatch(onward) else datasette.urls.instance())
    if wished in language.LANGUAGES:
        response.set_cookie(
            http.LANGUAGE_COOKIE,
            wished,
            max_age=LANGUAGE_SECONDS,
            samesite="lax",
            secure=request.scheme == "https",
        )
    return response


def page(
    datasette: Datasette,
    request: Request,
    *,
    token: str = "",
    onward: str = "",
    problem: str = "",
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """Render the sign-in page; `problem` is "" or why it is shown (`needed`, `refused`, `wait`)."""
    if problem == "needed" and cookie_name(app.product(datasette).tokens) in request.cookies:
        problem = "ended"  # the browser was signed in once
    frame = render.Frame(
        caller=access.NOBODY,
        links=links.Links(datasette.setting("base_url")),
        theme=request.cookies.get(http.THEME_COOKIE),
    )
    context = {
        "token": token[: tokens.SECRET_LENGTH_MAX],
        "onward": local_path(onward),
        "problem": problem,
        "action": datasette.urls.path(LOGIN),
    }
    body = "" if request.method == "HEAD" else render.page(datasette, "login.html", frame, context)
    return Response(body, status, headers, content_type="text/html; charset=utf-8")


def local_path(text: str) -> str:
    """Return a path of this server as it is, and "" for anything that could lead elsewhere."""
    return text if _LOCAL_PATH.fullmatch(text) and not text.startswith((LOGIN, LOGOUT)) else ""


def greet(datasette: Datasette, argv: Sequence[str]) -> None:
    """Print the sign-in link if this is a bare `datasette serve`; our own `serve` announces itself."""
    logging.getLogger("uvicorn.access").addFilter(hide_tokens)
    served = served_at(argv)
    if served and (datasette.plugin_config(PLUGIN_NAME) or {}).get("announce", True):
        base_url = address(*served) + datasette.setting("base_url")
        print(f"Sign in: {link(app.product(datasette), base_url)}", file=sys.stderr, flush=True)


def served_at(argv: Sequence[str]) -> tuple[str, str] | None:
    """Return the host and port that a `datasette` command line listens on, None if it serves nothing."""
    program = Path(argv[0]).name if argv else ""
    is_module = program == "__main__.py" and Path(argv[0]).parent.name == "datasette"
    if not is_module and program not in ("datasette", "datasette.exe"):
        return None
    if any(argument.partition("=")[0] == "--get" for argument in argv):
        return None
    return _option(argv, "-h", "--host") or "127.0.0.1", _option(argv, "-p", "--port") or "8001"


def address(host: str, port: str) -> str:
    """Return where a browser on this machine finds a server that listens there."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def hide_tokens(record: logging.LogRecord) -> bool:
    """Keep secrets in sign-in links out of the access log."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            _TOKEN_IN_URL.sub(r"\1…", value) if isinstance(value, str) else value for value in record.args
        )
    return True


ROUTES: Final[list[tuple[str, Callable[..., Any]]]] = [
    (rf"^{LOGIN}$", login),
    (rf"^{LOGOUT}$", logout),
    (rf"^{LANGUAGE}$", speak),
]


class Attempts:
    """Sign-ins that failed lately, by address."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def are_too_many(self, address: str) -> bool:
        since = time.monotonic() - FAILURE_SECONDS
        return sum(moment > since for moment in self._failures.get(address, ())) >= FAILURES_ALLOWED

    def failed(self, address: str) -> None:
        self._failures.setdefault(address, deque(maxlen=FAILURES_ALLOWED)).append(time.monotonic())
        self._failures.move_to_end(address)
        if len(self._failures) > ADDRESSES_REMEMBERED:
            self._failures.popitem(last=False)


_attempts: WeakKeyDictionary[Datasette, Attempts] = WeakKeyDictionary()


def _attempts_of(datasette: Datasette) -> Attempts:
    return _attempts.setdefault(datasette, Attempts())


def _referring_path(request: Request) -> str:
    """Return the path of the page of ours that a form was sent from, "" for another site's."""
    try:
        came = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return ""
    own = came.scheme in ("http", "https") and came.netloc == request.headers.get("host")
    return urlunsplit(("", "", came.path, came.query, "")) if own else ""


def _one(asked: dict[str, list[str]], name: str) -> str:
    """Return a parameter's value, "" unless it was given exactly once."""
    values = asked.get(name, [])
    return values[0] if len(values) == 1 else ""


def _option(argv: Sequence[str], short: str, long: str) -> str | None:
    for position, argument in enumerate(argv[1:], start=1):
        if argument in (short, long):
            return argv[position + 1] if position + 1 < len(argv) else None
        if argument.startswith(f"{long}="):
            return argument.removeprefix(f"{long}=")
        if argument.startswith(short) and not argument.startswith("--"):
            return argument.removeprefix(short)
    return None


def _set_cookie(response: Response, request: Request, name: str, value: str, seconds: int) -> None:
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        httponly=True,
        samesite="strict",
        secure=request.scheme == "https",
    )


def _not_allowed(methods: str) -> Response:
    return Response("Method not allowed\n", 405, {"allow": methods})


def _see_other(path: str) -> Response:
    return Response("", 303, {"location": path})
