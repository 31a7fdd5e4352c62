"""Globs and lines of ignore files mean what git means by them, in linear time."""

from __future__ import annotations

import pytest

from handler.render.globs import Glob, ignore_rules, ignored


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("**/*.yaml", "a.yaml", True),
        ("**/*.yaml", "x/y/a.yaml", True),
        ("**/*.yaml", "a.yml", False),
        ("*.yaml", "x/a.yaml", False),
        ("/*.yaml", "a.yaml", True),
        ("**", "x/y", True),
        ("x/**", "x/y/z", True),
        ("x/**", "x", False),
        ("x/", "x/y/z", True),
        ("x/**/z", "x/z", True),
        ("x/**/z", "x/a/b/z", True),
        ("x/**/z", "x/a/b", False),
        ("[a-c]?.json", "b1.json", True),
        ("[!a-c]1", "d1", True),
        ("[^a-c]1", "a1", False),
        ("[]a]", "]", True),
        ("[[:digit:]]", "7", True),
        ("[[:nothing:]]", "7", False),
        ("[a", "[a", False),
        ("a[b-]", "a-", True),
        ("\\*.x", "*.x", True),
        ("\\*.x", "a.x", False),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("a?", "a/", False),
    ],
)
def test_globs_mean_what_git_means(glob: str, path: str, matches: bool) -> None:
    assert Glob.of(glob).matches(path.split("/")) is matches


def test_stars_never_backtrack() -> None:
    assert not Glob.of("a*" * 60 + "b").matches(["a" * 4_000])
    assert not Glob.of("**/a/" * 60 + "b").matches(["a"] * 300)


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("*.md", "x/a.md", True),
        ("/a.md", "x/a.md", False),
        ("x/a.md", "x/a.md", True),
        ("# a", "# a", False),
        ("\\# a", "# a", True),
        ("a  ", "a", True),
        ("a\\ ", "a ", True),
        ("*\n!b", "b", False),
        ("\\!b", "!b", True),
        ("b/", "b", False),
        ("", "a", False),
        ("!", "a", False),
        ("/", "a", False),
    ],
)
def test_lines_of_an_ignore_file(text: str, path: str, expected: bool) -> None:
    assert ignored(path, {"": ignore_rules(text)}) is expected
