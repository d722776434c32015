"""Hostile texts outside the pages: in a terminal, Markdown, CSV, JSON lines and archives."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import unicodedata
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from sessiongraph_web import access, cli, schema
from sessiongraph_web.operations import SessionGraph
from sessiongraph_web.web.links import canonical
from tests import hostile, products
from tests.asgi import Answer, ask, bearer
from tests.world import World

READER: Final = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
PLAIN_TAGS: Final = frozenset({"details", "summary"})  # the only HTML that a Markdown export writes


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> hostile.HostileStore:
    return hostile.write(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def product(found: hostile.HostileStore) -> Iterator[SessionGraph]:
    with products.indexed(found.store) as product:
        yield product


def places(found: hostile.HostileStore) -> list[str]:
    return ["--sessions", str(found.store), "--index", str(found.store.parent / "index")]


def commands(found: hostile.HostileStore) -> list[list[str]]:
    """Return every command that prints what a log says."""
    asked: list[list[str]] = [
        ["search", hostile.WORD, "--kinds", "user,assistant,tool_call,tool_result,title,todo,turn_end"],
        *(["timeline"], ["workspaces"], ["status", "--ledger"], ["check"]),
        *(["session", session_id] for session_id in found.ids),
        *(["trace", session_id] for session_id in found.ids),
        *(["event", found.ids[0], str(seq), "--before", "2", "--after", "2"] for seq in range(30)),
        *(["session", wrong] for wrong in (hostile.TEXT, hostile.SHORT)),
    ]
    return asked


def test_nothing_reaches_a_terminal_but_text(found: hostile.HostileStore, product: SessionGraph) -> None:
    """No command prints a control or bidi character of a log, or of what was typed, as text or as JSON."""
    assert product.settings.sessions == found.store
    for command in commands(found):
        for form in ([], ["--json"]):
            result = CliRunner().invoke(cli.main, [command[0], *places(found), *command[1:], *form])
            printed = result.stdout + result.stderr
            assert result.exception is None or isinstance(result.exception, SystemExit)
            assert printed, command
            assert {c for c in printed if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")} <= {"\t"}, (
                command
            )


class _Tags(HTMLParser):
    """The tags of a piece of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, bool(attrs)))


def test_markdown_holds_no_markup_of_a_log(product: SessionGraph, found: hostile.HostileStore) -> None:
    """Read by a viewer that lets HTML through, an export has our folds, no image, and links to the web alone."""
    for session_id in found.ids:
        text = _export(product, session_id, "md")
        tokens = [inner for token in READER.parse(text) for inner in (token, *(token.children or []))]
        tags = _Tags()
        for token in tokens:
            if token.type in ("html_block", "html_inline"):
                tags.feed(token.content)
        assert {tag for tag, _ in tags.found} <= PLAIN_TAGS
        assert not any(has_attributes for _, has_attributes in tags.found)
        assert [token for token in tokens if token.type == "image"] == []
        targets = [str(token.attrGet("href")) for token in tokens if token.type == "link_open"]
        assert [target for target in targets if not re.match(r"https?://|mailto:|#|[\w./-]+$", target)] == []
        assert not set(text) & set("\x1b\x9b\x07\u202e\u2066\x00")


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_json_is_json_and_lines_are_lines(product: SessionGraph, found: hostile.HostileStore, form: str) -> None:
    """No text of a log ends a string or a line: every line is one value, and holds no raw control character."""
    for session_id in found.ids:
        text = _export(product, session_id, form)
        lines = text.splitlines() if form == "ndjson" else [text]
        assert all(isinstance(json.loads(line), dict) for line in lines)
        assert not {c for c in text if c != "\n" and unicodedata.category(c) == "Cc"}


def _export(product: SessionGraph, session_id: str, form: str) -> str:
    return _get(product, f"/export/{canonical(session_id)}.{form}").text


def _get(product: SessionGraph, url: str) -> Answer:
    world = World(product.settings.sessions, product.settings.index)

    async def answer() -> Answer:
        datasette = world.serve()
        await datasette.invoke_startup()
        try:
            return await ask(datasette, url, headers=bearer(world.token(access.OWNER)))
        finally:
            await datasette.invoke_shutdown()

    return asyncio.run(answer())


@pytest.mark.parametrize(
    "path", ["entry.csv?_size=max", "session.csv?_stream=1", "-/query.csv?sql=select+*+from+entry"]
)
def test_no_cell_is_a_formula(product: SessionGraph, path: str) -> None:
    """A spreadsheet that opens a table or a query as CSV computes nothing; the same table as JSON is exact."""
    cells = []
    for workspace in product.workspaces(access.OWNER).workspaces:
        answer = _get(product, f"/{schema.database_name(workspace.cwd)}/{path}")
        assert answer.status == 200
        cells += [cell for row in csv.reader(io.StringIO(answer.text, newline="")) for cell in row]
    texts = [cell for cell in cells if not re.fullmatch(r"-?\d+", cell)]
    assert [text for text in texts if text.startswith(FORMULAS)] == []
    assert any(text.startswith("'=") for text in texts)
    exact = _get(product, f"/{schema.database_name('/w/' + hostile.TEXT)}/entry.json?_size=max").body
    assert any(row["text"].startswith("=") for row in json.loads(exact)["rows"])


def test_an_archive_names_only_safe_files(product: SessionGraph) -> None:
    """No name in an archive leaves its folder or hides its ending, and every JSON in it can be read."""
    with zipfile.ZipFile(io.BytesIO(_get(product, f"/export.zip?q={hostile.WORD}").body)) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        for name in names:
            assert not name.startswith(("/", "\\")), name
            assert ".." not in name.split("/"), name
            assert not {c for c in name if c in '<>:"\\|?*' or unicodedata.category(c).startswith("C")}, name
        assert [json.loads(archive.read(name)) for name in names if name.endswith("manifest.json")]
        pages = [archive.read(name).decode() for name in names if name.endswith(".html")]
    assert all("<script>" not in page and "\x1b" not in page for page in pages)
    assert len(pages) > 3
