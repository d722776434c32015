"""The Datasette entry point: registers each bundled plugin under its own file name, and finds our templates.

Under that name a plugin counts as loaded when `--plugins-dir` meets the same file again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from datasette import hookimpl
from datasette.plugins import pm
from datasette.utils import module_from_path
from jinja2 import ChoiceLoader, Environment, FileSystemLoader

from sessiongraph_web.web import app

if TYPE_CHECKING:
    from datasette.app import Datasette

PATTERN: Final = "sessiongraph_*.py"


@hookimpl
def prepare_jinja2_environment(env: Environment, datasette: Datasette) -> None:
    """Put our templates after those of `--template-dir` and before Datasette's own."""
    loader = env.loader.loaders[0] if isinstance(env.loader, ChoiceLoader) else env.loader
    folder = str(app.bundled("templates"))
    if isinstance(loader, FileSystemLoader) and folder not in loader.searchpath:
        loader.searchpath.insert(1 if datasette.template_dir else 0, folder)


def _register_plugins() -> None:
    for path in sorted(app.bundled("plugins").glob(PATTERN)):
        if not pm.has_plugin(path.name):
            pm.register(module_from_path(str(path), name=path.name))


_register_plugins()
