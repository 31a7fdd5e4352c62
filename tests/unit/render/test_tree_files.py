"""Which paths a directory that was taken covers."""

from __future__ import annotations

import pytest

from handler.render.tree_files import TreeFiles
from tests.fakes.source_tree import FakeTree

pytestmark = pytest.mark.slow


def taken(*directories: str) -> TreeFiles:
    return TreeFiles(FakeTree({}), taken=set(directories))


def test_a_directory_covers_itself_and_what_is_below_it() -> None:
    files = taken("a", "b/c")
    assert [path for path in ("a", "a/b", "a/b/c", "ab", "b", "b/c/d", "b/cd", "") if files.covers(path)] == ["a", "a/b", "a/b/c", "b/c/d"]
    assert taken("").covers("a/b")
    assert taken("").covers("")


def test_as_many_paths_as_directories_take_linear_time() -> None:
    """Compared with each directory, they would take hours."""
    files = taken(*(f"d{number}" for number in range(200_000)))
    assert not any(files.covers(f"x{number}") for number in range(200_000))
