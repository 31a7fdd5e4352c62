"""Commit objects: what history shows of one, and what is no commit; and that the room starts no program."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from dulwich.objects import Commit, Tree
from hypothesis import given
from hypothesis import strategies as st

import handler.source
from handler.model.errors import SourceRefused
from handler.source.git_objects import read_commit

EMPTY = Tree().id


def commit(message: bytes, author: bytes = b"anneal <anneal@example.invalid>") -> tuple[str, bytes]:
    made = Commit()
    made.tree = EMPTY
    made.author = author
    made.committer = b"c <c@example.invalid>"
    made.author_time, made.commit_time, made.author_timezone, made.commit_timezone = 1, 2, 0, 0
    made.message = message
    return made.id.decode(), made.as_raw_string()


@pytest.mark.parametrize(
    ("message", "subject"),
    [
        (b"One\n\ntwo", "One"),
        (b"", ""),
        (b"\n\nLate", "Late"),
        (b"a\x1b[31mb\n", "a\\x1b[31mb"),
        (b"\xffx", "\ufffdx"),
        (b"y" * 999, "y" * 199 + "…"),
    ],
)
def test_the_subject_is_the_first_line_escaped_and_cut(message: bytes, subject: str) -> None:
    sha, data = commit(message)
    info, root = read_commit(sha, data)
    assert (info.sha, info.subject, info.author, info.time) == (sha, subject, "anneal <anneal@example.invalid>", 2)
    assert root == EMPTY.decode()


def test_a_flood_of_an_author_is_cut() -> None:
    info, _ = read_commit(*commit(b"One", b"a\x1b[31m" * 10_000 + b" <a@example.invalid>"))
    assert (len(info.author), info.author.isprintable()) == (200, True)


@pytest.mark.parametrize(
    "data", [b"", b"tree x\n\nm", b"hello", commit(b"m")[1].replace(b"author", b"auteur"), commit(b"m")[1].replace(b" 1 +0000", b"")]
)
def test_a_malformed_commit_is_refused(data: bytes) -> None:
    with pytest.raises(SourceRefused, match="malformed"):
        read_commit("1" * 40, data)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_commit_or_refused(data: bytes) -> None:
    with pytest.raises(SourceRefused):
        read_commit("1" * 40, data)


def test_source_starts_no_subprocess() -> None:
    for file in Path(handler.source.__file__).parent.glob("*.py"):
        tree = ast.parse(file.read_text())
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not names & {"subprocess", "multiprocessing", "pty", "asyncio.subprocess"}
        assert not called & {"system", "popen", "posix_spawn", "fork", "execv", "execve", "execvp"}
