"""The house rules of functions and frozen objects: the usual function is short, and nothing writes into an object from outside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from statistics import median

import pytest

from tests.source_files import length, modules, name, nodes, tree

MEDIAN_LINES = 6  # at most, docstrings not counted

Written = ast.Call | ast.Subscript
_Scope = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def lengths(found: Iterator[ast.AST]) -> list[int]:
    return [length(each) for each in found if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize(("lines", "counted"), [(2, 3), (MEDIAN_LINES, MEDIAN_LINES + 1)])
def test_the_length_of_a_function_leaves_its_docstring_out(lines: int, counted: int) -> None:
    source = 'def a():\n    """Two\n    lines."""\n' + "    b()\n" * lines
    assert lengths(ast.walk(ast.parse(source))) == [counted]


def test_the_median_function_is_short() -> None:
    assert median(lengths(node for path in modules() for node in nodes(path))) <= MEDIAN_LINES


def outside_writes(node: ast.AST, scopes: tuple[_Scope, ...] = ()) -> Iterator[Written]:
    """Yield what writes past a class: `object.__setattr__` but on `self` in a constructor of the class, and `x.__dict__[…] = …`."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "object.__setattr__" and not _own(each, scopes):
            yield each
        if isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load) and _dict_of(each.value):
            yield each
        inner = (*scopes, each) if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) else scopes
        yield from outside_writes(each, inner)


def _own(call: ast.Call, scopes: tuple[_Scope, ...]) -> bool:
    """Tell whether a call writes `self`, directly in `__init__` or `__post_init__` of a class."""
    if len(scopes) < 2 or not isinstance(scopes[-2], ast.ClassDef) or scopes[-1].name not in ("__init__", "__post_init__"):
        return False
    return bool(call.args) and ast.unparse(call.args[0]) == "self"


def _dict_of(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func) == "vars"
    return isinstance(value, ast.Attribute) and value.attr == "__dict__"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("object.__setattr__(plan, 'a', 1)", True),
        ("class A:\n    def b(self):\n        object.__setattr__(self, 'a', 1)", True),
        ("class A:\n    def __init__(self, b):\n        object.__setattr__(b, 'a', 1)", True),
        ("def __init__(self):\n    object.__setattr__(self, 'a', 1)", True),
        ("plan.__dict__['a'] = 1", True),
        ("self.__dict__['a'] += 1", True),
        ("del plan.__dict__['a']", True),
        ("vars(plan)['a'] = 1", True),
        ("class A:\n    def __init__(self):\n        object.__setattr__(self, 'a', 1)", False),
        ("class A:\n    def __post_init__(self):\n        object.__setattr__(self, 'a', 1)", False),
        ("a = plan.__dict__['a']", False),
        ("plan.counts['a'] = 1", False),
    ],
)
def test_a_write_into_an_object_from_outside_is_recognized(source: str, found: bool) -> None:
    assert bool(list(outside_writes(ast.parse(source)))) is found


def test_nothing_writes_into_a_frozen_object() -> None:
    found = ((path, each) for path in modules() for each in outside_writes(tree(path)))
    assert [f"{name(path)}:{each.lineno}: {ast.unparse(each)}" for path, each in found] == []
