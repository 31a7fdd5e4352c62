"""What is shown of files and texts of a commit."""

from __future__ import annotations

import pytest

from handler.model.tree import is_lfs_pointer, printable


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
