"""The Python files of the repository, parsed once, for the tests that judge their source."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
HANDLER = ROOT / "handler"

T = TypeVar("T")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources(*parts: str) -> list[Path]:
    return sorted(path for part in parts for path in (ROOT / part).rglob("*.py"))


def modules() -> list[Path]:
    return sources("handler")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return _kept(ast.parse(path.read_text(), str(path)))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return _kept(tuple(ast.walk(tree(path))))


def _kept(made: T) -> T:
    """Return what lives to the end; no collection of garbage looks through its million objects again."""
    gc.freeze()
    return made


def length(function: Function) -> int:
    """Return the lines of a function without those of its docstring."""
    whole = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is None:
        return whole
    return whole - ((first.end_lineno or first.lineno) - first.lineno + 1)
