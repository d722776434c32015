"""The product inside a Datasette instance: one `SessionGraph` each, and how an instance is made."""

from __future__ import annotations

from collections.abc import Mapping
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
