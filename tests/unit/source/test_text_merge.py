"""Merging a text by its lines, compared with `git merge-file`: what both merge is the same, and what git refuses is refused here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.source.text_merge import ALL_STEPS, LARGEST, MergeBudget
from handler.source.text_merge import merged as merged_within

pytestmark = pytest.mark.slow


def merged(original: bytes, one: bytes, other: bytes) -> bytes | None:
    return merged_within(original, one, other, MergeBudget())


def by_git(directory: Path, original: bytes, one: bytes, other: bytes) -> bytes | None:
    names = []
    for name, text in (("one", one), ("original", original), ("other", other)):
        (directory / name).write_bytes(text)
        names.append(name)
    ended = subprocess.run(["git", "merge-file", "-p", *names], cwd=directory, capture_output=True, check=False)
    return ended.stdout if ended.returncode == 0 else None


@pytest.mark.parametrize(
    ("original", "one", "other", "both"),
    [
        (b"a\nb\nc\nd\n", b"A\nb\nc\nd\n", b"a\nb\nc\nD\n", b"A\nb\nc\nD\n"),
        (b"a\nb\nc\n", b"a\nb\nc\n", b"a\nB\nc\n", b"a\nB\nc\n"),
        (b"a\nb\nc\n", b"a\nX\nc\n", b"a\nX\nc\n", b"a\nX\nc\n"),
        (b"a\nb\nc\nd\n", b"a\nX\nc\nd\n", b"a\nX\nc\nD\n", None),
        (b"a\nb\nc\nd\n", b"a\nc\nd\n", b"a\nb\nc\nd\ne\n", b"a\nc\nd\ne\n"),
        (b"a\nb\nc\n", b"a\nX\nc\n", b"a\nY\nc\n", None),
        (b"a\nb\n", b"X\nb\n", b"a\nY\n", None),
        (b"", b"a\n", b"b\n", None),
        (b"a\0", b"b\0", b"a\0c", None),
        (b"a\rb\rc\rd\r", b"A\rb\rc\rd\r", b"a\rb\rc\rD\r", None),
        (b"a\r\nb\r\nc\r\n", b"A\r\nb\r\nc\r\n", b"a\r\nb\r\nC\r\n", b"A\r\nb\r\nC\r\n"),
        (b"a\nb\nc", b"A\nb\nc", b"a\nb\nC", b"A\nb\nC"),
    ],
)
def test_changes_apart_are_joined_and_what_touches_is_a_conflict(original: bytes, one: bytes, other: bytes, both: bytes | None) -> None:
    assert merged(original, one, other) == both


def test_a_large_file_is_left_to_git() -> None:
    assert merged(b"a\n" * LARGEST, b"b\n", b"a\n") is None


@pytest.mark.parametrize("lines", [["\n"], ["a\n", "b\n"], [f"{number}\n" for number in range(4000)]], ids=["one", "two", "many"])
def test_a_text_that_takes_long_to_compare_is_left_to_git(lines: list[str]) -> None:
    original = "".join(lines * (400_000 // len(lines))).encode()[: LARGEST // 2]
    one = b"x\n" + original[::-1] + b"y\n"
    assert merged(original, one, original + b"end\n") is None


def test_all_files_of_a_merge_share_a_budget_and_what_exceeds_it_is_left_to_git() -> None:
    lines = [f"{number}\n".encode() for number in range(700)]
    versions = b"".join(lines), b"".join([b"x\n", *lines]), b"".join([*lines, b"y\n"])
    slow = b"".join(lines), b"".join(reversed(lines)), versions[2]
    budget = MergeBudget()
    assert merged_within(*versions, budget) == b"x\n" + versions[2]
    slow_ones = 0
    while merged_within(*versions, budget):
        assert merged_within(*slow, budget) is None
        slow_ones += 1
    assert 2 < slow_ones < 20
    assert merged_within(*versions, budget) is None
    assert merged_within(b"a\n", b"b\n", b"b\n", budget) == b"b\n", "what is the same on both sides needs none"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_that_are_only_read_count_too(end: bytes) -> None:
    budget, lines = MergeBudget(), end * 10_000
    merged_within(lines, b"x" + lines, lines + b"y", budget)
    assert budget.left <= ALL_STEPS - 30_000


def test_a_change_of_a_large_text_is_found() -> None:
    lines = [f"{number}\n".encode() for number in range(100_000)]
    one, other, both = list(lines), list(lines), list(lines)
    one[10], other[90_000], other[90_500] = b"one\n", b"other\n", b"another\n"
    both[10], both[90_000], both[90_500] = b"one\n", b"other\n", b"another\n"
    assert merged(b"".join(lines), b"".join(one), b"".join(other)) == b"".join(both)


LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "", "  x: 1"]), max_size=12)


@st.composite
def edits(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """An original of mostly different lines, and two versions with a few edits each; not every end of a line is one to git."""
    end, last = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"])), draw(st.booleans())
    original = [
        f"line {number}" if draw(st.booleans()) else draw(st.sampled_from(["---", "  a: 1", ""]))
        for number in range(draw(st.integers(0, 14)))
    ]
    versions = []
    for side in ("ours", "theirs"):
        lines = list(original)
        for _ in range(draw(st.integers(0, 3))):
            at = draw(st.integers(0, len(lines)))
            match draw(st.sampled_from(["add", "drop", "change"])):
                case "add":
                    lines.insert(at, draw(st.sampled_from([f"{side} new", "same new", "---"])))
                case "drop":
                    del lines[at : at + draw(st.integers(1, 3))]
                case _ if at < len(lines):
                    lines[at] = draw(st.sampled_from([f"{side} changed", "same changed"]))
        versions.append(end.join([*lines, *([""] if last else [])]).encode())
    return end.join([*original, *([""] if last else [])]).encode(), versions[0], versions[1]


@settings(max_examples=300, deadline=None)
@given(edits())
def test_what_is_merged_here_is_what_git_merges(tmp_path_factory: pytest.TempPathFactory, case: tuple[bytes, bytes, bytes]) -> None:
    mine = merged(*case)
    if mine is not None:
        assert by_git(tmp_path_factory.mktemp("merge"), *case) == mine
