"""Stored sentences: whatever the source writes into an index is known again, and said in another language."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from sessiongraph_web import language, reasons

ROOT: Final = Path(__file__).parents[2] / "sessiongraph_web"
# The calls whose text an index keeps, by module, with the place of the text among their arguments.
WRITERS: Final = {
    "assembly": {"_fault": 1},
    "frames": {"Damage": 1, "_Broken": 0},
    "lines": {"BadLine": 0},
    "logs": {"Fault": 1},
    "discovery": {"_skip": 3},
    "surface": {"_Invalid": 0},
    "generations": {"InvalidSurface": 0},
    "update": {"_condemn": 1, "append": 0},
    "indexer": {"append": 0},
}


def written() -> Iterator[tuple[str, str]]:
    """Yield every sentence that the source hands to an index, its variables filled in."""
    for module, writers in WRITERS.items():
        tree = ast.parse((ROOT / f"{module}.py").read_text("utf-8"))
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            for call in ast.walk(function):
                name = (
                    getattr(call.func, "attr", getattr(call.func, "id", "")) if isinstance(call, ast.Call) else ""
                )
                if isinstance(call, ast.Call) and name in writers and len(call.args) > writers[name]:
                    yield from ((module, text) for text in texts(call.args[writers[name]], function, tree))


def texts(node: ast.expr, function: ast.FunctionDef, tree: ast.Module) -> list[str]:
    """Return what an expression may be as text; 7 stands for what it is filled with."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp(body=first, orelse=second):
            return texts(first, function, tree) + texts(second, function, tree)
        case ast.BoolOp(values=values):
            return [text for value in values for text in texts(value, function, tree)]
        case ast.JoinedStr(values=values):
            parts = [texts(value, function, tree) for value in values]
            return ["".join(made) for made in itertools.product(*parts)]
        case ast.FormattedValue(value=value):
            return texts(value, function, tree) or ["7"]
        case ast.Call(func=ast.Attribute(value=inner, attr="format")):
            return [text.replace("{}", "7") for text in texts(inner, function, tree)]
        case ast.Call(func=ast.Name(id=name)):
            return [
                text
                for one in tree.body
                if isinstance(one, ast.FunctionDef) and one.name == name
                for end in ast.walk(one)
                if isinstance(end, ast.Return) and end.value is not None
                for text in texts(end.value, one, tree)
            ]
        case ast.Name(id=name):
            return [
                text
                for scope in (function, tree)
                for one in (scope.body if scope is tree else ast.walk(scope))
                if isinstance(one, ast.Assign | ast.AnnAssign) and one.value is not None
                for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
                if isinstance(target, ast.Name) and target.id == name
                for text in texts(one.value, function, tree)
            ]
    return []


def test_what_an_index_keeps_is_known_again() -> None:
    """Each fault of a log, each reason of a file and each note of a run is said in Chinese."""
    found = sorted(set(written()))
    with language.spoken("zh"):
        unknown = [(module, text) for module, text in found if reasons.said(text) == text]
    assert unknown == []
    assert len(found) > 45


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("the file is empty", "文件是空的"),
        ("event numbers 4 to 9 are missing", "缺少事件编号 4 到 9"),
        ("session.v4.jsonl beside it is newer", "旁边的 session.v4.jsonl 更新"),
        ("This log cannot be read: Permission denied.", "无法读取这个日志：权限不足。"),
        ("the file of workspace /w/100% (x) was damaged (it cannot be used); it was built anew",
         "工作区 /w/100% (x) 的文件已损坏（无法使用）；已重建"),
        ("the catalog was damaged (it cannot be used); everything was built anew; the file is empty",
         "目录库已损坏（无法使用）；已全部重建；文件是空的"),
        ("The disk that holds the index is full; make room and run `sessiongraph-web index`.",
         "索引所在的磁盘已满；请腾出空间，再运行 `sessiongraph-web index`。"),
        ("what SQLite says; and more", "what SQLite says; and more"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_stored_sentence_is_said_with_what_stands_in_it(stored: str, said: str) -> None:
    """Names and numbers stay; several sentences in a row are said one by one; what is not known stays."""
    with language.spoken("zh"):
        assert reasons.said(stored) == said
    assert reasons.said(stored) == stored
