"""No string is missing from a catalogue, none is left over, and what is shown comes from there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import read_mo
from jinja2 import nodes

from sessiongraph_web import language
from tests import catalogue

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates" / "sessiongraph").glob("*.html"))
SCRIPTS = sorted((ROOT / "sessiongraph_web" / "static").glob("*.js"))
LOOKUPS = {"_", "N_", "gettext", "ngettext", "pgettext", "npgettext", "sentence", "plural"}

# What is the same in every language: names, keys, samples of what is typed.
NAMES = {
    "sessiongraph", "JSON", "API", "#", "Ctrl", "bash", "timeout retry", '"connection reset"', "timeout -test",
    "支付回调", 'curl -H "Authorization Bearer $TOKEN"', "–",
    "inherited shadowed synthetic found",  # classes of a card
}  # fmt: skip
# Modules whose words are shown on pages.
SPEAKERS = (
    "attached", "bodies", "cards", "days", "eventtypes", "facts", "family", "pictures", "presentation",
    "relations", "toolcards", "transcripts", "wording", "web/inside", "web/searching", "web/views",
)  # fmt: skip
JINJA = jinja2.Environment(extensions=["jinja2.ext.i18n"], autoescape=True)
PLACEHOLDER = re.compile(r"%\((\w+)\)s|\{(\w+)(?:![rs])?\}")
TAG = re.compile(r"</?\w+")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
KEYS_OF_THE_KEYBOARD = {"Escape", "Enter"}
HAN = r"[\u3400-\u9fff]"


@pytest.fixture(scope="module")
def spoken() -> Catalog:
    return catalogue.spoken()


@pytest.fixture(scope="module", params=catalogue.TRANSLATED)
def kept(request: pytest.FixtureRequest) -> Catalog:
    return catalogue.read(request.param)


def pairs(kept: Catalog) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every sentence, both of its forms where it counts, with its translations."""
    for message in kept:
        if message.id:
            forms = tuple(message.id) if isinstance(message.id, list | tuple) else (message.id,)
            translations = message.string if isinstance(message.string, list | tuple) else (message.string,)
            for translation in translations:
                yield forms, translation


def test_a_catalogue_holds_what_is_said_and_nothing_else(spoken: Catalog, kept: Catalog) -> None:
    """`python -m tests.catalogue` has been run: no sentence is missing, none is left over."""
    said, known = set(catalogue.keyed(spoken)), set(catalogue.keyed(kept))
    assert len(said) > 400
    assert (sorted(map(str, said - known)), sorted(map(str, known - said))) == ([], [])
    assert not kept.obsolete


def test_every_sentence_is_translated(kept: Catalog) -> None:
    """None is empty, and none is a guess."""
    assert [message.id for message in catalogue.missing(kept)] == []


def test_a_translation_has_the_placeholders_and_the_markup_of_its_sentence(kept: Catalog) -> None:
    """What is put into a sentence, and the elements it holds, are the same in every language."""
    for forms, translation in pairs(kept):
        for pattern in (PLACEHOLDER, TAG):
            found = Counter(pattern.findall(translation))
            assert found in [Counter(pattern.findall(form)) for form in forms], forms


def test_the_compiled_catalogue_is_that_of_the_sentences(kept: Catalog) -> None:
    """What the product reads was compiled from what is reviewed."""
    with catalogue.po_path(str(kept.locale)).with_suffix(".mo").open("rb") as file:
        compiled = catalogue.keyed(read_mo(file))
    written = catalogue.keyed(kept)

    def strings(messages: dict[tuple[str | None, object], Message]) -> dict[Any, tuple[str, ...]]:
        return {
            key: tuple(message.string) if isinstance(message.string, list | tuple) else (message.string,)
            for key, message in messages.items()
        }

    assert strings(compiled) == strings(written)


def test_chinese_is_set_as_chinese() -> None:
    """Between Chinese characters stands Chinese punctuation; Latin words are kept apart by a space."""
    for sentence, translation in pairs(catalogue.read("zh")):
        text = PLACEHOLDER.sub("0", re.sub(r"<[^>]*>", "", re.sub(r"<code>.*?</code>", "0", translation)))
        assert not re.search(rf"{HAN}[,;:!?()]|[,;!?]{HAN}|{HAN}\.(?!\w)", text), (sentence, translation)
        assert not re.search(rf"{HAN}[A-Za-z]|[A-Za-z]{HAN}", text), (sentence, translation)
        assert not re.search(r"[，。；：！？（） ] | [，。；：！？）]", text), (sentence, translation)
        assert "您" not in text, (sentence, translation)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_says_nothing_past_the_catalogue(path: Path) -> None:
    """Every text node, every attribute that is read, and every string that is printed goes through it."""
    source = path.read_text("utf-8")
    literal = " ".join(_literal(source))
    words = [_stripped(text) for text in re.split(r"<[^>]*>", literal)]
    attributes = re.findall(r'\b(?:aria-label|title|placeholder|alt|data-label)="([^"\x00]*)', literal)
    assert [text for text in [*words, *attributes] if _is_language(text)] == []
    assert [text for text in _printed(JINJA.parse(source)) if _is_language(text)] == []


def _literal(source: str) -> Iterator[str]:
    """Yield what a template writes as it stands, less its `trans` blocks; NUL stands for what it prints."""
    in_trans = False
    previous = ""
    for _, token, value in JINJA.lex(source):
        if token == "name" and previous == "block_begin":
            in_trans = value == "trans" or (in_trans and value != "endtrans")
        if token == "data" and not in_trans:
            yield value
        elif token in ("variable_end", "block_end"):
            yield "\x00"
        if token != "whitespace":
            previous = token


def _printed(tree: nodes.Template) -> Iterator[str]:
    """Yield the strings that a template may print, less those that go through the catalogue."""
    shielded = {id(part) for call in tree.find_all(nodes.Call) for part in _arguments(call)}
    shielded |= {id(part) for test in tree.find_all(nodes.Compare) for part in test.find_all(nodes.Const)}
    shielded |= {id(part) for key in tree.find_all(nodes.Getitem) for part in key.arg.find_all(nodes.Const)}
    shielded |= {id(key.arg) for key in tree.find_all(nodes.Getitem)}
    for constant in tree.find_all(nodes.Const):
        if isinstance(constant.value, str) and id(constant) not in shielded:
            yield constant.value


def _arguments(call: nodes.Call) -> Iterator[nodes.Node]:
    if isinstance(call.node, nodes.Name) and call.node.name in LOOKUPS:
        yield from call.args


def _stripped(text: str) -> str:
    return re.sub(r"&\w+;|[\x00\s·→←…()/+−#×:.|]+", " ", text).strip()


def _is_language(text: str) -> bool:
    """Say whether a text is a word or a sentence, and no name or key."""
    return text not in NAMES and bool(re.search(rf"[A-Z][a-z]+|[a-z]{{2,}} [a-z]|{HAN}", text))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_translates_nothing_but_its_own_words(path: Path) -> None:
    """A sentence is markup once it is translated, so that nothing of a log may ever be looked up as one."""
    tree = JINJA.parse(path.read_text("utf-8"))
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name in LOOKUPS:
            literal = call.args[:2] if call.node.name != "_" and call.node.name != "gettext" else call.args[:1]
            assert [part for part in literal if not isinstance(part, nodes.Const)] == [], path.name


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_says_nothing_of_its_own(path: Path) -> None:
    """What a script shows stands in a `data-` attribute or a template that the server wrote."""
    found = LITERAL.finditer(re.sub(r"^\s*//.*$|\s//.*$", "", path.read_text("utf-8"), flags=re.MULTILINE))
    texts = [re.sub(r"\$\{.*?\}", "", (match[1] or match[2] or "")) for match in found]
    sentences = [text for text in texts if re.search(r"^[A-Z][a-z]+$|[A-Z][a-z]+ [a-z]+", text)]
    assert [text for text in sentences if text not in KEYS_OF_THE_KEYBOARD] == []


@pytest.mark.parametrize("name", SPEAKERS)
def test_a_module_that_pages_show_says_nothing_past_the_catalogue(name: str) -> None:
    """A string that reads like a word or a sentence is marked for the catalogue."""
    tree = ast.parse((ROOT / "sessiongraph_web" / f"{name}.py").read_text("utf-8"))
    shielded: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            shielded.add(id(node.body[0].value))  # type: ignore[attr-defined]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in LOOKUPS:
            shielded |= {id(part) for argument in node.args for part in ast.walk(argument)}
        if isinstance(node, ast.Dict):
            shielded |= {id(key) for key in node.keys}
        if isinstance(node, ast.Raise):
            shielded |= {id(part) for part in ast.walk(node)}
    said = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in shielded
    ]
    assert [text for text in said if re.search(r"^[A-Z][a-z]+( |$)|[a-z]{2,} [a-z]{2,}", text)] == []


def test_every_language_is_offered_by_name() -> None:
    """Each language has a name of its own, a tag for browsers, a gap between sentences, and a catalogue."""
    assert set(language.LANGUAGES) == set(language.TAGS) == set(language.GAPS)
    assert sorted(path.name for path in language.LOCALES.iterdir()) == sorted(catalogue.TRANSLATED)
