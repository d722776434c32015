"""The product inside a Datasette instance: one `SessionGraph` each, and how an instance is made."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from sessiongraph_web import access, config
from sessiongraph_web.access import Caller
from sessiongraph_web.operations import SessionGraph

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

FRONT_DOOR: Final = frozenset(
    {"allow_hosts", "port", "announce"}
)  # options of the front door, which are no settings
DATASETTE_SETTINGS: Final[dict[str, Any]] = {
    "sql_time_limit_ms": 1000,
    "num_sql_threads": 3,
    "allow_download": False,
    "allow_signed_tokens": False,
    "default_allow_sql": True,  # inside the caller's own databases only
    "max_returned_rows": 1000,
    "facet_time_limit_ms": 200,
    "suggest_facets": False,
    "default_cache_ttl": 0,
    "template_debug": False,
    "trace_debug": False,
}

ADMISSION_KEY: Final = "sessiongraph.admission"  # where the front door leaves it in the ASGI scope
ADMISSION_SECONDS: Final = 2.0  # between two looks at whether it still holds

_products: WeakKeyDictionary[Datasette, SessionGraph] = WeakKeyDictionary()


def product(datasette: Datasette) -> SessionGraph:
    """Return the instance's product, made from its plugin configuration when first asked for."""
    found = _products.get(datasette)
    if found is None:
        found = _products[datasette] = SessionGraph(config.load(settings_of(datasette)))
    return found


def close(datasette: Datasette) -> None:
    """Close the instance's product, if it has one."""
    found = _products.pop(datasette, None)
    if found:
        found.close()


def settings_of(datasette: Datasette) -> dict[str, Any]:
    """Return the settings part of the plugin configuration."""
    options: Mapping[str, Any] = datasette.plugin_config(config.PLUGIN_NAME) or {}
    return {name: value for name, value in options.items() if name not in FRONT_DOOR}


def caller(request: Request) -> Caller:
    """Return who asks, from the actor that our own hook wrote."""
    return access.from_actor(request.actor)


class Admission:
    """That a request was let in, and whether it still would be: access ends while long answers go on."""

    def __init__(self, ask: Callable[[], bool]) -> None:
        self._ask = ask
        self._asked_at = time.monotonic()
        self._ended = False

    def has_ended(self) -> bool:
        """Say whether access was taken back or ran out; asked anew when the last look is too old."""
        if not self._ended and time.monotonic() - self._asked_at >= ADMISSION_SECONDS:
            self._asked_at = time.monotonic()
            self._ended = not self._ask()
        return self._ended


def admission(request: Request) -> Admission:
    """Return how the front door let a request in."""
    found: Admission = request.scope[ADMISSION_KEY]
    return found


def make(options: Mapping[str, Any]) -> Datasette:
    """Return a Datasette instance with these plugin options and the settings that the product needs."""
    from datasette.app import Datasette

    return Datasette(
        config={"plugins": {config.PLUGIN_NAME: dict(options)}},
        settings=dict(DATASETTE_SETTINGS),
        template_dir=str(bundled("templates")),
        cache_headers=True,
    )


def bundled(folder: str) -> Path:
    """Return a folder that ships with the product: inside the wheel, or beside the package in a checkout."""
    package = Path(str(resources.files("sessiongraph_web")))
    inside = package / folder
    return inside if inside.is_dir() else package.parent / folder
