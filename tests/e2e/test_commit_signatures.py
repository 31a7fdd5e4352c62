"""A target that requires signatures: whatever starts a run, nothing of a commit that no configured key signed reaches the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handler.config.git_settings import Verify
from handler.model.errors import CommitUnverified
from handler.model.result import Outcome, Result
from tests.e2e.documents import Document, config_map
from tests.e2e.one_target import PATH, Shop, told
from tests.signing import public, signed_by_ssh, ssh_key


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return ssh_key(tmp_path, "release")


@pytest.fixture
def strict(shop: Shop, key: Path) -> Shop:
    """A shop that requires signatures, with a signed commit applied."""
    shop.configure(verify=Verify(ssh=(public(key),)))
    push_signed(shop, key, config_map(shop.name, "a"))
    shop.applied()
    return shop


def push_signed(shop: Shop, key: Path, *documents: Document) -> str:
    shop.declare(*documents)
    sha = signed_by_ssh(shop.work, key, f"{len(documents)} signed documents")
    shop.work.push()
    return sha


def refused(result: Result, sha: str) -> None:
    assert (result.outcome, result.code, result.who) == (Outcome.FAILED, "commit-unverified", "author"), told(result)
    assert f"commit {sha}: " in result.message


def test_an_unsigned_push_is_refused_and_told_and_the_next_signed_one_applied(strict: Shop, key: Path) -> None:
    before, good = strict.versions(), strict.head
    unsigned = strict.push(config_map(strict.name, "evil"))
    refused(strict.run(), unsigned)
    state = strict.state()
    assert (state.commit, state.attempt, state.status.phase) == (good, None, "failed")
    assert "is not signed; sign it: git commit --amend -S" in state.status.message
    assert strict.versions() == before
    push_signed(strict, key, config_map(strict.name, "b"))
    strict.applied()
    strict.assert_converged()


def test_no_kind_of_run_takes_an_unverified_commit(strict: Shop, tmp_path: Path) -> None:
    before, good = strict.versions(), strict.head
    stranger = push_signed(strict, ssh_key(tmp_path, "stranger"), config_map(strict.name, "evil"))
    runs: tuple[tuple[str, dict[str, Any]], ...] = (
        ("tick", {}),
        ("push", {"hint": stranger}),
        ("replay", {"commit": stranger, "force": True, "actor": "ann"}),
        ("replay", {"force": True, "actor": "ann"}),
        ("oneoff", {"dry_run": True}),
    )
    for trigger, fields in runs:
        result = strict.run(trigger, **fields)
        refused(result, stranger)
        assert "is not among the configured ones" in result.message
    held = strict.run("drift")
    assert (held.outcome, held.commit) == (Outcome.UNCHANGED, good), "it holds what is recorded"
    assert strict.versions() == before
    with pytest.raises(CommitUnverified):
        strict.handler.source(strict.target).fetch(stranger, PATH)  # what `anneal render` and `anneal check` read
