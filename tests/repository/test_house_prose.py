"""The house rules of prose: no riddle words in docstrings, comments, messages and pages; a private docstring has one line."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.repository import pages
from tests.repository.pages import FENCE, SPAN
from tests.source_files import ROOT, Function, modules, name, sources, tree

VAGUE = (
    *("whoever", "whomever", "nobody", "somebody", "someone", "anybody", "anyone", "everybody", "everyone"),  # which person?
    *("told", "tells"),  # reports, shows, logs, returns
)
"""Words that name no subject, or no act: a sentence says which person, process, object or host it means, and what that does."""
PAGES = ("handler/web/openapi.yaml", *map(pages.name, pages.PAGES))


def vague_words(text: str) -> list[str]:
    """Return the vague words that prose has outside of spans and blocks of code: there they are values and names."""
    prose = SPAN.sub("", FENCE.sub("", text))
    return re.findall(rf"\b(?:{'|'.join(VAGUE)})\b", prose, re.IGNORECASE)


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each comment and each docstring; a text that stands alone below a constant is one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def messages(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string that may be a message: one with a space in it, the constant parts of an f-string, too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""Whoever asks gets it."""', ["Whoever"]),
        ('A = 1\n"""Known to nobody."""', ["nobody"]),
        ("a = 1  # somebody is told", ["somebody", "told"]),
        ("# anybody", ["anybody"]),
        ("# It tells everyone, anyone.", ["tells", "everyone", "anyone"]),
        ("told = 'nobody'", []),
        ('def told():\n    """`who` must act: `author` or `nobody`."""', []),
        ('"""A person reads it, and bodyguards untold."""', []),
    ],
)
def test_a_vague_word_of_a_docstring_or_comment_is_recognized(source: str, found: list[str]) -> None:
    assert [word for _, text in prose(source) for word in vague_words(text)] == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('raise Refused("the file told everybody")', ["told", "everybody"]),
        ('f"{host} tells someone"', ["tells", "someone"]),
        ('WHO = ("author", "nobody")', []),
        ('f"write `who: nobody` in {path}"', []),
    ],
)
def test_a_vague_word_of_a_message_is_recognized(source: str, found: list[str]) -> None:
    assert [word for _, text in messages(source) for word in vague_words(text)] == found


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("Somebody pushes.", ["Somebody"]),
        ("An error with `nobody` is tried again.", []),
        ("```console\nwho: nobody\n```\n", []),
        ("A cause is told once.", ["told"]),
        ("A person pushes, and labels tell targets apart.", []),
    ],
)
def test_a_vague_word_of_a_page_is_recognized(page: str, found: list[str]) -> None:
    assert vague_words(page) == found


def test_docstrings_and_comments_name_their_subjects() -> None:
    found = (
        (path, line, word)
        for path in sources("handler", "infra", "scripts", "tests")
        for line, text in prose(path.read_text())
        for word in vague_words(text)
    )
    assert [f"{name(path)}:{line}: {word}" for path, line, word in found] == []


def test_messages_name_their_subjects() -> None:
    found = (
        (path, line, word)
        for path in sources("handler", "infra", "scripts")
        for line, text in messages(path.read_text())
        for word in vague_words(text)
    )
    assert [f"{name(path)}:{line}: {word}" for path, line, word in found] == []


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_their_subjects(page: str) -> None:
    assert vague_words((ROOT / page).read_text()) == []


def long_private_docstrings(node: ast.AST, private: bool = False) -> Iterator[Function]:
    """Yield each private function, and each method of a private class, whose docstring has more than one line."""
    for each in ast.iter_child_nodes(node):
        inside = private
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = private or (each.name.startswith("_") and not each.name.endswith("__"))
        if inside and isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and "\n" in (ast.get_docstring(each) or ""):
            yield each
        yield from long_private_docstrings(each, inside)


LONG = '"""One line.\n\n        And more.\n        """'


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (f"def _a():\n        {LONG}", ["_a"]),
        (f"class _A:\n    def a(self):\n        {LONG}", ["a"]),
        (f"class A:\n    def _a(self):\n        {LONG}", ["_a"]),
        (f"class A:\n    def __call__(self):\n        {LONG}", []),
        (f"def a():\n        {LONG}", []),
        ('def _a():\n    """One line."""', []),
    ],
)
def test_a_private_docstring_of_more_than_one_line_is_recognized(source: str, found: list[str]) -> None:
    assert [each.name for each in long_private_docstrings(ast.parse(source))] == found


def test_a_private_docstring_has_one_line() -> None:
    found = ((path, each) for path in modules() for each in long_private_docstrings(tree(path)))
    assert [f"{name(path)}:{each.lineno}: {each.name}" for path, each in found] == []
