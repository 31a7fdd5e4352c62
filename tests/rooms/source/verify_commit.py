"""Judging commits in tests: by our keys, and by `git verify-commit`."""

from __future__ import annotations

import subprocess

import pytest

from handler.config.git_settings import Verify
from handler.model.errors import CommitUnverified
from handler.source.signatures.verified_source import TrustedKeys
from infra.githost import Work
from infra.gitwork import git_environment
from tests.signing import raw


def judge(work: Work, commit: str, *, ssh: tuple[str, ...] = (), pgp: tuple[str, ...] = ()) -> None:
    data = raw(work, commit)
    TrustedKeys.of(Verify(ssh, pgp), "shop").check(commit, data, data[5:45].decode())


def refused(work: Work, commit: str, *, ssh: tuple[str, ...] = (), pgp: tuple[str, ...] = ()) -> str:
    with pytest.raises(CommitUnverified) as caught:
        judge(work, commit, ssh=ssh, pgp=pgp)
    assert caught.value.who == "author"
    assert str(caught.value).startswith(f"target shop: verify: commit {commit}: ")
    assert caught.value.__cause__ is None
    return str(caught.value)


def git_believes(work: Work, commit: str, *flags: str) -> bool:
    done = subprocess.run(
        ["git", *flags, "verify-commit", commit], cwd=work.directory, env=git_environment(work.directory), capture_output=True, check=False
    )
    return done.returncode == 0


def rewritten(work: Work, data: bytes) -> str:
    """Store a commit object made by hand."""
    return work.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=data)
