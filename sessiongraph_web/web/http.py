"""The edge of HTTP: requests become what views take; answers, errors and downloads become responses."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import parse_qs, parse_qsl, urlencode
from zoneinfo import ZoneInfo

import msgspec
from datasette import Request, Response
from datasette.utils import error_body

from sessiongraph_web import language, presentation
from sessiongraph_web.access import Caller
from sessiongraph_web.answers import Answer
from sessiongraph_web.config import Settings
from sessiongraph_web.errors import SessionGraphError, invalid_parameter, not_found
from sessiongraph_web.language import sentence
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.screen import safe_json
from sessiongraph_web.web import app, links, live, render, slots
from sessiongraph_web.web.downloads import Streamed

if TYPE_CHECKING:
    from datasette.app import Datasette

Access = Literal["public", "caller", "owner"]
Parameters = Mapping[str, Sequence[str]]

MAX_PARAMETERS: Final = 1000
FORM_BYTES: Final = 64 * 1024  # of what a form of ours posts
NAME_CHARS: Final = 60
PAGE_PARAMETERS: Final = frozenset({"view", "hide", "find", "until"})  # of a page; operations see none
ZONE_COOKIE: Final = "sg_zone"
THEME_COOKIE: Final = "sg_theme"
LANGUAGE_COOKIE: Final = "sg_language"
PRIVATE: Final = {"cache-control": "private, no-store"}
IMMUTABLE: Final = "public, max-age=31536000, immutable"
_LOG: Final = logging.getLogger("sessiongraph_web")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as views see it. `parameters` are for the operation, `looks` for the page alone."""

    product: SessionGraph
    settings: Settings
    caller: Caller
    variables: Mapping[str, str]
    parameters: Parameters
    looks: Parameters
    links: links.Links
    origin: str  # scheme and host under which the client knows this server


@dataclass(frozen=True, slots=True)
class Redirect:
    """An answer that sends the reader elsewhere."""

    to: str
    status: int = 302


@dataclass(frozen=True, slots=True)
class File:
    """An answer that is bytes: a download, or something shown in place."""

    filename: str
    media_type: str
    chunks: Iterator[bytes]
    inline: bool = False


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file; `fresh` says that it was asked for under its own hash, so that it never changes."""

    media_type: str
    content: bytes
    fresh: bool


@dataclass(frozen=True, slots=True)
class View:
    """How one route answers: its operation, and what its page needs beside the answer.

    An answer that is a dictionary goes out as JSON as it stands. `zoned` views take the reader's time zone from a
    cookie where the request names none; `static` ones hold nothing of a log. `blank` names the page of a request
    that asks nothing yet, as an empty search; to programs that is an error. `onward` sends a reader from the page
    of an answer to another one.
    """

    operate: Callable[[Asked], Answer | Redirect | File | Asset | live.Following | dict[str, Any]]
    template: str = ""
    context: Callable[[Any, Asked], dict[str, Any]] = field(default=lambda _answer, _asked: {})
    zoned: bool = False
    static: bool = False
    blank: Callable[[Asked], str | None] = field(default=lambda _asked: None)
    onward: Callable[[Any, Asked], str | None] = field(default=lambda _answer, _asked: None)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a route asks of a request: its method, who may send it, and which parameters it may carry."""

    methods: tuple[str, ...]
    access: Access
    parameters: frozenset[str]


def endpoint(view: View, terms: Terms) -> Callable[..., Any]:
    """Return the function that Datasette calls for a route."""

    async def respond(datasette: Datasette, request: Request) -> Any:
        if request.method not in terms.methods:
            allowed = {"allow": ", ".join(terms.methods)}
            return Response.text("Method not allowed\n", status=405, headers=allowed)
        moved = _canonical_path(datasette, request)
        if moved is not None:
            return Response.redirect(moved)
        caller = app.caller(request)  # whom the front door let in: it asked whether the configuration closes it
        posted = await request.post_body(FORM_BYTES) if request.method == "POST" else b""
        return await slots.compute(_respond, datasette, request, view, terms, caller, posted)

    respond._datasette_static = view.static  # type: ignore[attr-defined]  # else Datasette forbids caching it
    return respond


def failure(datasette: Datasette, request: Request, caller: Caller, error: SessionGraphError) -> Response:
    """Render an error for a page or its twin. It repeats nothing of the request."""
    status = 300 if "logs" in error.fields else error.meaning.status
    if _wants_json(request):
        body = error_body(error.said(), status) | {"code": error.code} | error.fields | _choices(request, error)
        return _json(request, body, status)
    return _html(datasette, request, caller, "error.html", {"error": error, "status": status}, status)


def _choices(request: Request, error: SessionGraphError) -> dict[str, list[str]]:
    """Return the same request for each of several logs with one id."""
    logs = error.fields.get("logs")
    if not isinstance(logs, list):
        return {}
    asked = [pair for pair in parse_qsl(request.query_string, keep_blank_values=True) if pair[0] != "log"]
    return {"links": [f"{request.path}?{urlencode([*asked, ('log', log)])}" for log in logs]}


def _respond(
    datasette: Datasette, request: Request, view: View, terms: Terms, caller: Caller, posted: bytes
) -> Any:
    """Answer one request; every failure becomes a response here and nowhere else."""
    try:
        _admit(caller, terms.access)
        asked = _asked(datasette, request, view, caller, posted)
        _check_names(asked.parameters, terms)
        blank = None if _wants_json(request) else view.blank(asked)
        if blank is not None:
            return _html(datasette, request, caller, blank, {"asked": asked})
        answer = view.operate(asked)
        if isinstance(answer, Redirect):
            return Response.redirect(answer.to, status=answer.status)
        if isinstance(answer, File):
            return Streamed(answer, request.receive, head=request.method == "HEAD")
        if isinstance(answer, live.Following):
            return live.Stream(datasette, request, answer)
        if isinstance(answer, Asset):
            return _static(request, answer)
        if isinstance(answer, dict):
            return _json(request, answer)
        if _wants_json(request):
            return _json(request, presentation.envelope(answer))
        onward = view.onward(answer, asked)
        if onward is not None:
            return Response.redirect(onward)
        context = {"answer": answer, "asked": asked} | view.context(answer, asked)
        return _html(datasette, request, caller, view.template, context)
    except SessionGraphError as error:
        if error.code == "SESSION_QUERY_STALE_CURSOR" and not _wants_json(request):
            return Response.redirect(_same_place(request, error))
        return failure(datasette, request, caller, error)
    except Exception:  # noqa: BLE001 - the edge: a fault of ours is logged whole, and shown as a number
        return _fault(datasette, request, caller)


def _same_place(request: Request, error: SessionGraphError) -> str:
    """Return where a list goes on that has changed since its cursor was made; the page says so."""
    kept = [pair for pair in parse_qsl(request.query_string, keep_blank_values=True) if pair[0] != "cursor"]
    return f"{request.path}?{urlencode([*kept, ('cursor', error.fields['cursor']), ('view', 'changed')])}"


def _fault(datasette: Datasette, request: Request, caller: Caller) -> Response:
    """Log a fault of ours whole, and show the reader its number alone."""
    number = secrets.token_hex(4)
    _LOG.exception("request %s failed", number)
    detail = sentence(
        "Something went wrong on the server; its log has the reason under %(number)s.", number=number
    )
    return failure(
        datasette, request, caller, SessionGraphError("SESSION_QUERY_TOOL_FAILED", detail, request_id=number)
    )


def _admit(caller: Caller, access: Access) -> None:
    if access == "public":
        return
    if not caller.is_known:
        raise SessionGraphError("SESSIONGRAPH_UNAUTHENTICATED")
    if access == "owner" and not caller.is_owner:
        raise not_found()


def _check_names(parameters: Parameters, terms: Terms) -> None:
    for name in parameters:
        if name not in terms.parameters:
            raise invalid_parameter(name[:NAME_CHARS], "`%(parameter)s` is not a parameter here")


def _asked(datasette: Datasette, request: Request, view: View, caller: Caller, posted: bytes) -> Asked:
    product = app.product(datasette)
    given = _parameters(request.query_string) | _parameters(posted.decode("latin-1"))
    zone = request.cookies.get(ZONE_COOKIE, "")
    if view.zoned and "tz" not in given and _is_zone(zone):
        given["tz"] = [zone]
    return Asked(
        product=product,
        settings=product.settings,
        caller=caller,
        variables=_variables(request),
        parameters={name: values for name, values in given.items() if name not in PAGE_PARAMETERS},
        looks={name: values for name, values in given.items() if name in PAGE_PARAMETERS},
        links=_links(datasette),
        origin=f"{request.scheme}://{request.host}",
    )


def _parameters(encoded: str) -> dict[str, list[str]]:
    try:
        return parse_qs(encoded, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        raise invalid_parameter(
            "query string", "`%(parameter)s` holds more than %(maximum)s parameters", maximum=MAX_PARAMETERS
        ) from error


def _is_zone(name: str) -> bool:
    try:
        return bool(name) and bool(ZoneInfo(name).key)
    except (ValueError, OSError, KeyError):
        return False


def _variables(request: Request) -> dict[str, str]:
    found = {name: value for name, value in request.url_vars.items() if value}
    if "id" in found:
        decoded = links.decode(found["id"])
        if decoded is None:
            raise not_found()
        found["id"] = decoded
    return found


def _canonical_path(datasette: Datasette, request: Request) -> str | None:
    """Return where an id in another spelling than ours is to be found, or None if it is spelled right."""
    spelled = request.url_vars.get("id")
    decoded = links.decode(spelled) if spelled else None
    if decoded is None or links.canonical(decoded) == spelled:
        return None
    base = len(datasette.setting("base_url")) - 1
    path: str = request.path
    start = path.index("/", base + 1) + 1  # the id follows the noun: /sessions/<id>
    query = f"?{request.query_string}" if request.query_string else ""
    return path[:start] + links.canonical(decoded) + path[start + len(spelled) :] + query


def _links(datasette: Datasette) -> links.Links:
    return links.Links(datasette.setting("base_url"))


def _wants_json(request: Request) -> bool:
    return request.url_vars.get("format") in (".json", ".ndjson")


def _twin(request: Request) -> str:
    query = f"?{request.query_string}" if request.query_string else ""
    return f"{request.path}.json{query}"


def _json(request: Request, body: dict[str, Any], status: int = 200) -> Response:
    encoded = safe_json(msgspec.json.encode(body))
    etag = f'"{hashlib.sha256(language.current().encode() + encoded).hexdigest()[:32]}"'
    headers = PRIVATE | {"etag": etag}
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if status == 200 and etag in known:
        return Response("", status=304, headers=headers, content_type="application/json")
    content = b"" if request.method == "HEAD" else encoded
    return Response(content, status=status, headers=headers, content_type="application/json; charset=utf-8")


def _static(request: Request, asset: Asset) -> Response:
    headers = {"cache-control": IMMUTABLE} if asset.fresh else dict(PRIVATE)
    content = b"" if request.method == "HEAD" else asset.content
    return Response(content, status=200, headers=headers, content_type=asset.media_type)


def _html(
    datasette: Datasette,
    request: Request,
    caller: Caller,
    template: str,
    context: Mapping[str, Any],
    status: int = 200,
) -> Response:
    frame = render.Frame(
        caller=caller,
        links=_links(datasette),
        theme=request.cookies.get(THEME_COOKIE),
        twin=_twin(request) if status == 200 and request.method != "POST" else None,
        repeatable=request.method != "POST",
    )
    body = render.page(datasette, template, frame, context)
    content = "" if request.method == "HEAD" else body
    return Response(content, status=status, headers=dict(PRIVATE), content_type="text/html; charset=utf-8")
