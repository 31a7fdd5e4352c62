"""The Python files of the checkout, each read and parsed once for all rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("handler", "infra", "scripts")
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Fault(NamedTuple):
    """A rule that is broken. `said`: what is wrong, and what to do."""

    name: str
    line: int
    said: str


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file. `nodes`: those of its tree by their class; of a test statements alone, for no rule asks for more."""

    name: str
    text: str
    tree: ast.Module
    nodes: dict[type[ast.AST], list[Any]]

    def of(self, *classes: type[ast.AST]) -> Iterator[Any]:
        """Yield the nodes of some classes."""
        for each in classes:
            yield from self.nodes.get(each, ())

    def texts(self) -> Iterator[ast.Constant]:
        """Yield the literals that are texts, also those inside f-strings."""
        return (each for each in self.of(ast.Constant) if isinstance(each.value, str))

    def alone(self) -> Iterator[ast.Constant]:
        """Yield the texts that stand alone: docstrings, and what is said below a constant."""
        for each in self.of(ast.Expr):
            if isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
                yield each.value

    def functions(self) -> Iterator[Function]:
        """Yield all functions, also those inside others."""
        return self.of(ast.FunctionDef, ast.AsyncFunctionDef)

    @property
    def module(self) -> str:
        """Its dotted name, as it is imported; a package's ends with `__init__`."""
        return self.name.removesuffix(".py").replace("/", ".")


def read(*parts: str) -> list[Source]:
    """Return the files below some directories of the checkout."""
    paths = sorted(path for part in parts for path in (ROOT / part).rglob("*.py"))
    return [parsed(str(path.relative_to(ROOT)), path.read_text()) for path in paths]


def parsed(name: str, text: str) -> Source:
    """Return a file as the rules see it."""
    tree = ast.parse(text, name)
    nodes: dict[type[ast.AST], list[Any]] = {}
    for node in statements(tree) if name.startswith("tests/") else ast.walk(tree):
        nodes.setdefault(type(node), []).append(node)
    return Source(name, text, tree, nodes)


def statements(tree: ast.AST) -> list[ast.AST]:
    """Return a node and all statements below it."""
    found = [tree]
    for node in found:  # which grows meanwhile
        found += inner(node)
    return found


def inner(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements, handlers and cases right below a statement."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        yield from getattr(node, field, ())


def line_at(text: str, offset: int) -> int:
    """Return the line in which a place of a text lies."""
    return text.count("\n", 0, offset) + 1
