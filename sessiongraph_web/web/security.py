"""The front door: what is refused before Datasette sees it, and the headers on all that leaves."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import Awaitable, Callable, Collection, MutableMapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from http.cookies import CookieError
from typing import TYPE_CHECKING, Any, Final, Literal

from datasette import Request, Response, handle_exception
from datasette.utils import StartupError, error_body, tilde_decode

from sessiongraph_web import access, language
from sessiongraph_web.access import Caller
from sessiongraph_web.config import PLUGIN_NAME
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.language import sentence
from sessiongraph_web.web import app, cells, http, links, live, render, routes, signin
from sessiongraph_web.web.databases import Databases, Files

if TYPE_CHECKING:
    from datasette.app import Datasette

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})  # what a server of this machine listens on
LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})  # and how browsers spell it
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
DATABASES_KEY: Final = "_sessiongraph_databases"

STRICT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Datasette's own pages have inline scripts, handlers and styles.
LOOSE_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS: Final = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}
PRIVATE: Final = b"private, no-store"
VARY: Final = b"Accept-Language, Cookie, Authorization"  # what an answer says depends on, and in which language

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]{1,5})?", re.ASCII)
_HOST_NAME: Final = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*", re.ASCII)
_COOKIE: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+=[^;]*", re.ASCII)
_STATIC: Final = re.compile(r"/-/static(?:-plugins)?/|/favicon\.ico$")
_ROUTES: Final = tuple((re.compile(route.pattern), route) for route in routes.ROUTES)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads: a page of ours, one of Datasette's, a database, or nowhere."""

    kind: Literal["static", "sign-in", "public", "ours", "datasette", "database", "nowhere"]
    database: str = ""
    is_csv: bool = False  # one row in each message

    @property
    def is_strict(self) -> bool:
        """Say whether what is answered there has no script or style but in files."""
        return self.kind not in ("datasette", "database")


NOWHERE: Final = Place("nowhere")


class CutOffError(Exception):
    """An answer goes no further: whoever asked would not be let in any more."""


class FrontDoor:
    """The outermost ASGI layer of our making. Everything that is not let in looks the same from outside."""

    def __init__(self, inner: Application, datasette: Datasette) -> None:
        self._inner = inner
        self._datasette = datasette
        self._hosts = LOOPBACK_HOSTS | allowed_hosts(datasette)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(_readable(scope), receive)
            with language.spoken(_language(request)):
                await self._serve(request, send)
        elif scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, request: Request, send: Send) -> None:
        where = place(self._path(request))
        async with AsyncExitStack() as stack:
            refused = _refusal(request, self._hosts) or await self._admit(request, where, stack)
            if refused is None:
                with suppress(CutOffError):
                    await self._inner(request.scope, request.receive, _held(_dressed(send, where), request))
            else:
                await refused.asgi_send(_dressed(send, NOWHERE, bodyless=request.method == "HEAD"))

    async def _admit(self, request: Request, where: Place, stack: AsyncExitStack) -> Response | None:
        """Return why a request goes no further, or None; what it needs to go on is entered into `stack`."""
        if where.kind == "static":
            request.scope[signin.SCOPE_KEY] = access.NOBODY
            return None
        try:
            caller = signin.caller(self._datasette, request)
            request.scope[signin.SCOPE_KEY] = caller
            request.scope[app.ADMISSION_KEY] = app.Admission(
                lambda: signin.caller(self._datasette, request) == caller
            )
            if where.kind in ("sign-in", "public"):
                return None
            if where.kind == "ours":
                return await self._admit_to_product(request, caller)
            return await self._admit_to_datasette(request, caller, where, stack)
        except SessionGraphError as error:
            return _failed(self._datasette, request, error)

    async def _admit_to_product(self, request: Request, caller: Caller) -> Response | None:
        """Let a known caller in, unless the configuration closes the instance to him."""
        if not caller.is_known:
            return not_signed_in(self._datasette, request)
        is_open = await self._datasette.allowed(action="view-instance", actor=access.to_actor(caller))
        return None if is_open else not_found(self._datasette, request)

    async def _admit_to_datasette(
        self, request: Request, caller: Caller, where: Place, stack: AsyncExitStack
    ) -> Response | None:
        if where.kind == "datasette" and caller.is_owner:
            files = await self._files()
            await stack.enter_async_context(_databases(self._datasette).lease(files))
            return None
        if where.kind == "database":
            files = await self._files()
            if where.database in files and access.sees_workspace(caller, files[where.database][1]):
                lease = _databases(self._datasette).lease(files, where.database)
                await stack.enter_async_context(lease)
                return None
        return not_found(self._datasette, request)

    async def _files(self) -> Files:
        return await asyncio.to_thread(app.product(self._datasette).databases, access.OWNER)

    def _path(self, request: Request) -> str:
        """Return the path that Datasette will route: raw, and below the base URL."""
        base_url: str = self._datasette.setting("base_url")
        path: str = request.path
        return "/" + path.removeprefix(base_url) if path.startswith(base_url) else path


def wrapper(datasette: Datasette) -> Callable[[Application], FrontDoor]:
    """Return what the `asgi_wrapper` hook answers."""
    return lambda inner: FrontDoor(inner, datasette)


def start(datasette: Datasette, argv: Sequence[str]) -> None:
    """Say how to sign in; a bare `datasette` is held to what `serve` is held to, and ends with the reason."""
    # With `rich` installed Datasette logs the local variables of every fault, cookies and tokens among them, and
    # fails on a 404 that was never raised.
    vars(handle_exception)["rich"] = None
    try:
        served = signin.served_at(argv)
        if served:
            check_bind(served[0], allowed_hosts(datasette))
        signin.greet(datasette, argv)
    except SessionGraphError as error:
        raise StartupError(error.said()) from error


def close(datasette: Datasette) -> None:
    """Close the product, and what the instance's requests left behind."""
    live.close(datasette)
    _databases(datasette).close()
    app.close(datasette)


def place(path: str) -> Place:
    """Say where a raw path leads, by its spelling alone."""
    if _STATIC.match(path):
        return Place("static")
    if path in (signin.LOGIN, signin.LOGOUT, signin.LANGUAGE):
        return Place("sign-in")
    for pattern, route in _ROUTES:
        if pattern.match(path):
            if route.name == "static":
                return Place("static")
            return Place("public" if route.access == "public" else "ours")
    first, _, rest = path.removeprefix("/").partition("/")
    if first == "-":
        return Place("datasette")
    name, _, suffix = first.partition(".")
    if suffix and (rest or suffix == "db"):
        return NOWHERE
    return Place("database", tilde_decode(name), path.endswith(".csv"))


def allowed_hosts(datasette: Datasette) -> frozenset[str]:
    """Return the host names that the configuration allows beside those of this machine."""
    options = datasette.plugin_config(PLUGIN_NAME) or {}
    return frozenset(map(_checked_host, options.get("allow_hosts") or ()))


def check_bind(host: str, allow_hosts: Collection[str]) -> None:
    """Refuse to listen beyond this machine unless the names it may be reached under are given."""
    names = sorted(map(_checked_host, allow_hosts))
    if not names and not is_loopback(host):
        raise SessionGraphError(
            "SESSION_QUERY_INVALID_CONFIG",
            sentence(
                "Listening on %(host)s would offer every session of every workspace on this machine to the"
                " network, behind nothing but a sign-in; name the hosts it may be reached under with"
                " --allow-host.",
                host=host,
            ),
            setting="allow_hosts",
        )


def not_found(datasette: Datasette, request: Request) -> Response:
    """Return the one answer to what is missing, foreign or forbidden; only its format follows the request."""
    error = SessionGraphError("SESSION_QUERY_SESSION_NOT_FOUND", "There is nothing here that you may see.")
    if _wants_json(request):
        return _json(error_body(error.said(), 404) | {"code": error.code})
    frame = render.Frame(caller=access.NOBODY, links=links.Links(datasette.setting("base_url")))
    body = render.page(datasette, "error.html", frame, {"error": error, "status": 404})
    return Response(body, 404, content_type="text/html; charset=utf-8")


def not_signed_in(datasette: Datasette, request: Request) -> Response:
    """Return the 401 that says how to sign in."""
    headers = {"www-authenticate": 'Bearer realm="sessiongraph"'}
    if _wants_json(request):
        error = SessionGraphError("SESSIONGRAPH_UNAUTHENTICATED")
        return _json(error_body(error.said(), 401) | {"code": error.code}, headers)
    return signin.page(
        datasette, request, onward=request.full_path, problem="needed", status=401, headers=headers
    )


def is_allowed_host(headers: Headers, allowed: Collection[str]) -> bool:
    """Say whether the one Host header names us; any port is as good as another, since it may be forwarded."""
    given = [value for name, value in headers if name.lower() == b"host"]
    match = _HOST.fullmatch(given[0].decode("latin-1").lower()) if len(given) == 1 else None
    return match is not None and match[1] in allowed


def is_cross_site(request: Request) -> bool:
    """Say whether another site's page made this request; it may only send a reader here, by a plain link."""
    headers = request.headers
    site = headers.get("sec-fetch-site")
    if site in ("same-origin", "none"):
        return False
    if site is not None:
        is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return not (is_link and request.method in ("GET", "HEAD"))
    origin = headers.get("origin")
    if request.method in SAFE_METHODS or origin is None:
        return False
    host = headers.get("host", "").lower()
    return origin.lower() not in (f"http://{host}", f"https://{host}")


def _language(request: Request) -> str:
    """Return the language that a request is answered in."""
    kept = request.cookies.get(http.LANGUAGE_COOKIE)
    return language.chosen(request.headers.get("accept-language", ""), kept)


def _refusal(request: Request, hosts: Collection[str]) -> Response | None:
    if not is_allowed_host(request.scope["headers"], hosts):
        return Response("This server does not answer to that name.\n", 421)
    if is_cross_site(request):
        return Response("This request came from another site.\n", 403)
    return None


def _failed(datasette: Datasette, request: Request, error: SessionGraphError) -> Response:
    if _wants_json(request):
        return _json(error_body(error.said(), error.meaning.status) | {"code": error.code})
    return http.failure(datasette, request, access.NOBODY, error)


def _readable(scope: Scope) -> Scope:
    """Return the scope less any cookie that Python's parser chokes on, which other ports of this host may set."""
    try:
        _ = Request(scope, None).cookies
    except CookieError:
        parts = b";".join(value for name, value in scope["headers"] if name == b"cookie").decode("latin-1")
        whole = "; ".join(part for part in map(str.strip, parts.split(";")) if _COOKIE.fullmatch(part))
        headers = [pair for pair in scope["headers"] if pair[0] != b"cookie"]
        return {**scope, "headers": [*headers, (b"cookie", whole.encode("latin-1"))]}
    return dict(scope)


def _dressed(send: Send, where: Place, *, bodyless: bool = False) -> Send:
    """Return a `send` that puts our headers on a response, makes CSV inert, and leaves out what nobody wants."""
    is_rows = False

    async def dressed(message: MutableMapping[str, Any]) -> None:
        nonlocal is_rows
        if message["type"] == "http.response.start":
            is_rows = where.is_csv and _is_plain(message.get("headers") or [])
            message = {**message, "headers": _dress(message["status"], message.get("headers") or [], where)}
        elif bodyless:
            message = {**message, "body": b""}
        elif is_rows:
            message = {**message, "body": cells.inert(message.get("body", b"").decode()).encode()}
        await send(message)

    return dressed


def _is_plain(headers: Headers) -> bool:
    kinds = (b"text/plain", b"text/csv")
    return any(name.lower() == b"content-type" and value.startswith(kinds) for name, value in headers)


def _held(send: Send, request: Request) -> Send:
    """Return a `send` that cuts a long answer off once its caller would not be let in any more.

    It then has no end, so that the server closes the connection and nobody takes a part for the whole.
    """
    admission: app.Admission | None = request.scope.get(app.ADMISSION_KEY)
    is_cut = False

    async def held(message: MutableMapping[str, Any]) -> None:
        nonlocal is_cut
        if admission and message.get("more_body") and admission.has_ended():
            is_cut = True
        if is_cut:
            raise CutOffError("access ended while this was sent")
        await send(message)

    return held


def _dress(status: int, headers: Headers, where: Place) -> Headers:
    """Return the headers to send. A response's own policy stays beside ours: browsers enforce both."""
    kept = [
        (name, value)
        for name, value in headers
        if name.lower() not in HEADERS and not name.lower().startswith(b"access-control-")
    ]
    if where.kind != "static" or status not in (200, 304):
        kept = [pair for pair in kept if pair[0].lower() != b"cache-control"] + [(b"cache-control", PRIVATE)]
    if where.is_strict and where.kind != "static":
        kept = [pair for pair in kept if pair[0].lower() != b"vary"] + [(b"vary", VARY)]
    policy = STRICT_POLICY if where.is_strict else LOOSE_POLICY
    return [*kept, *HEADERS.items(), (b"content-security-policy", policy.encode())]


def _databases(datasette: Datasette) -> Databases:
    """Return the instance's databases, kept on it: they refer to it, so a weak dictionary would hold both."""
    found: Databases = vars(datasette).setdefault(DATABASES_KEY, Databases(datasette))
    return found


def _wants_json(request: Request) -> bool:
    return request.path.endswith((".json", ".ndjson")) or "application/json" in request.headers.get("accept", "")


def _json(body: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(body), body["status"], headers, content_type="application/json; charset=utf-8")


def _checked_host(name: object) -> str:
    text = name.strip().lower() if isinstance(name, str) else ""
    if not _HOST_NAME.fullmatch(text):
        raise SessionGraphError(
            "SESSION_QUERY_INVALID_CONFIG",
            "`allow_hosts` takes host names as browsers send them, without a port; there are no wildcards.",
            setting="allow_hosts",
        )
    return text


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
