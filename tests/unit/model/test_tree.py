"""What is shown of files and texts of a commit."""

from __future__ import annotations

import pytest

from handler.model.errors import SourceRefused
from handler.model.tree import MAX_LINKS, is_lfs_pointer, printable, resolve_links
from tests.fakes.source_tree import FakeTree


def test_lfs_pointers_are_known_by_their_first_line() -> None:
    assert is_lfs_pointer(b"version https://git-lfs.github.com/spec/v1\noid sha256:11\nsize 5\n")
    assert not is_lfs_pointer(b"# version https://git-lfs.github.com/spec/v1\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b", "a b"),
        ("a\nb", "a\\nb"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\udcff", "\\udcff"),
        ("\u202e", "\\u202e"),
        ("ü", "ü"),
        ("x" * 9, "xxxx…"),
        ("\n" * 4, "\\n\\n…"),
    ],
)
def test_text_from_git_is_shown_escaped_and_cut(text: str, shown: str) -> None:
    assert printable(text, 5) == shown or printable(text) == shown


def test_links_that_are_each_a_long_way_have_an_end() -> None:
    """Each link within git's own bounds, all of them one after the other: 80,000 names for one path."""
    links = {f"l{number}": "d/../" * 800 + f"l{number + 1}" for number in range(MAX_LINKS - 1)}
    with pytest.raises(SourceRefused, match="l0: leads through symbolic links over more than 4,096 names"):
        resolve_links(FakeTree({"d/x": "", f"l{MAX_LINKS - 1}": ""}, links), "l0")
    assert resolve_links(FakeTree({"d/x": "", "l39": "x"}, links), "l38").entry
