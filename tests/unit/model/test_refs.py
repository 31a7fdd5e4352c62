"""Ref names by git's rules, and commit ids."""

from __future__ import annotations

import pytest
from dulwich.refs import Ref, check_ref_format
from hypothesis import given
from hypothesis import strategies as st

from handler.model.refs import is_commit_id, ref_problem


@pytest.mark.parametrize("ref", ["refs/heads/main", "refs/tags/v1.2", "refs/heads/feature/ü-1", "refs/heads/a@b", "refs/heads/@"])
def test_good_refs_pass(ref: str) -> None:
    assert ref_problem(ref) == ""


@pytest.mark.parametrize(
    "ref",
    ["", "main", "refs/heads", "heads/main", "refs//x", "refs/heads/", "refs/heads/-x", "refs/heads/--upload-pack=touch", "refs/heads/a..b"]
    + [
        "refs/heads/.x",
        "refs/heads/x.",
        "refs/heads/x.lock",
        "refs/heads/x.lock/y",
        "refs/heads/a@{1}",
        "refs/heads/a b",
        "refs/heads/" + "x" * 2000,
    ]
    + [f"refs/heads/a{sign}b" for sign in "~^:?*[\\\n\0\x7f\t"],
)
def test_bad_refs_are_refused(ref: str) -> None:
    assert ref_problem(ref)


@given(st.text(alphabet=st.sampled_from("abc./-@{}~^:?*[\\ \n\x7f"), max_size=12))
def test_a_ref_that_passes_passes_dulwichs_check_ref_format(tail: str) -> None:
    ref = f"refs/heads/{tail}"
    if not ref_problem(ref):
        assert check_ref_format(Ref(ref.encode()))


@pytest.mark.parametrize(("text", "full"), [("a" * 40, True), ("a" * 39, False), ("A" * 40, False), ("a" * 40 + "\n", False), ("", False)])
def test_a_commit_id_is_forty_lower_case_digits(text: str, full: bool) -> None:
    assert is_commit_id(text) is full
