"""Judging a commit: what is signed must be what is deployed."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handler.config.git_settings import Verify
from handler.model.errors import CommitUnverified, SourceRefused
from handler.source.git_objects import read_commit
from handler.source.signatures.verified_source import TrustedKeys
from tests.unit.source.signatures.ssh_signatures import ED25519_BLOB, armored, ed25519, frame, line

AUTHOR = b"author a <a@example.com> 1 +0000\ncommitter a <a@example.com> 1 +0000\n"
SHA, FIRST, SECOND = "1" * 40, "2" * 40, "3" * 40


def commit(payload: bytes, more: bytes = b"") -> bytes:
    """Sign a payload, and put the signature where git does."""
    signature = armored(frame(ED25519_BLOB, ed25519, payload=payload)) + more
    header = b"gpgsig " + signature.rstrip(b"\n").replace(b"\n", b"\n ")
    head, end, message = payload.partition(b"\n\n")
    return head + b"\n" + header + end + message


def judge(data: bytes, tree: str) -> None:
    TrustedKeys.of(Verify(ssh=(line(ED25519_BLOB),)), "shop").check(SHA, data, tree)


def test_a_commit_with_two_trees_is_refused_and_its_signature_counts_for_the_first_only() -> None:
    data = commit(f"tree {FIRST}\ntree {SECOND}\n".encode() + AUTHOR + b"\nSubject\n")
    with pytest.raises(SourceRefused, match="malformed"):
        read_commit(SHA, data)
    with pytest.raises(CommitUnverified, match="does not begin with the tree"):
        judge(data, SECOND)


GOOD = f"tree {FIRST}\nparent {SECOND}\n".encode() + AUTHOR + b"encoding latin1\nmergetag object x\n more\n\nSubject\n"


@example(len(GOOD) - 9, 9, b"")  # no message at all
@given(st.integers(0), st.integers(0, 12), st.binary(max_size=12))
def test_a_commit_altered_anywhere_is_read_or_refused_by_name(place: int, length: int, more: bytes) -> None:
    start = place % len(GOOD)
    try:
        info, tree = read_commit(SHA, GOOD[:start] + more + GOOD[start + length :])
    except SourceRefused:
        return
    assert (info.sha, len(tree)) == (SHA, 40)
    assert f"{info.subject}{info.author}".isprintable()


def test_the_tree_that_is_deployed_is_the_signed_one() -> None:
    data = commit(f"tree {FIRST}\n".encode() + AUTHOR + b"\nSubject\n")
    judge(data, FIRST)
    with pytest.raises(CommitUnverified, match="does not begin with the tree"):
        judge(data, SECOND)


def test_a_signature_over_the_size_limit_isnt_read() -> None:
    data = commit(f"tree {FIRST}\n".encode() + AUTHOR + b"\nSubject\n", more=b"\n" + b"x" * 70_000)
    with pytest.raises(CommitUnverified, match="more than 65536 bytes"):
        judge(data, FIRST)
