"""A target that requires signatures: whatever starts a run, nothing of a commit that no configured key signed reaches the cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handler.app.build import Handler, Options
from handler.config.git_settings import Verify
from handler.config.secrets import resolve_all
from handler.config.settings import Settings
from handler.model.errors import CommitUnverified, ConfigInvalid
from handler.model.result import Outcome, Result
from tests.e2e.documents import Document, config_map
from tests.e2e.one_target import DONE, PATH, Shop, told
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


def test_an_unsigned_commit_isnt_even_recorded_where_it_changes_nothing_that_is_read(strict: Shop, key: Path) -> None:
    good = strict.head
    strict.work.write("readme", "unsigned\n")
    unsigned = strict.work.commit("Elsewhere")
    strict.work.push()
    refused(strict.run(), unsigned)
    assert strict.state().commit == good
    strict.work.write("readme", "signed\n")
    signed = signed_by_ssh(strict.work, key, "Elsewhere, signed")
    strict.work.push()
    assert strict.run().outcome in DONE
    assert strict.state().commit == signed


def test_a_rollback_leads_away_from_an_unverified_head_until_a_verified_one_comes(strict: Shop, key: Path) -> None:
    good = strict.head
    push_signed(strict, key, config_map(strict.name, "b"))
    strict.applied()
    unsigned = strict.push(config_map(strict.name, "evil"))
    refused(strict.run(), unsigned)
    strict.applied("replay", commit=good, actor="ann")
    for trigger in ("tick", "drift"):
        result = strict.run(trigger)
        assert result.outcome is Outcome.UNCHANGED, told(result)
    strict.documents = (config_map(strict.name, "a"),)
    strict.assert_converged(good)
    push_signed(strict, key, config_map(strict.name, "c"))
    strict.applied()
    strict.assert_converged()


def test_a_refused_head_ends_no_pin_and_drift_is_corrected_at_the_pinned_commit(strict: Shop, key: Path) -> None:
    good, kept = strict.head, config_map(strict.name, "a")
    push_signed(strict, key, config_map(strict.name, "b"))
    strict.applied()
    strict.applied("replay", commit=good, actor="ann")
    pin = strict.state().pin
    assert pin
    assert pin.away
    unsigned = strict.push(config_map(strict.name, "evil"))
    strict.documents = (kept,)
    for trigger, hint in (("push", unsigned), ("tick", "")):
        result = strict.run(trigger, hint=hint)
        assert (result.outcome, result.commit) == (Outcome.UNCHANGED, good), told(result)
    strict.kubectl.run("delete", "configmap", "a", "-n", strict.name)
    strict.applied("drift")
    strict.assert_converged(good)
    assert strict.state().pin == pin
    push_signed(strict, key, config_map(strict.name, "c"))
    strict.applied()
    strict.assert_converged()
    assert strict.state().pin is None


def test_a_rollback_leads_away_from_a_head_whose_tree_is_refused(shop: Shop) -> None:
    good = shop.push(config_map(shop.name, "a"))
    shop.applied()
    shop.push(config_map(shop.name, "b"))
    shop.applied()
    shop.work.git("update-index", "--add", "--cacheinfo", f"160000,{good},{PATH}/vendor")
    shop.work.git("commit", "-q", "-m", "Submodule")
    shop.work.push()
    assert shop.run().code == "source-refused"
    shop.applied("replay", commit=good, actor="ann")
    shop.documents = (config_map(shop.name, "a"),)
    shop.assert_converged(good)


def test_verify_is_asked_of_the_applied_commit_too(shop: Shop, key: Path) -> None:
    unsigned = shop.push(config_map(shop.name, "a"))
    shop.applied()
    assert shop.run("tick").outcome is Outcome.UNCHANGED
    shop.configure(verify=Verify(ssh=(public(key),)))
    refused(shop.run("tick"), unsigned)
    shop.configure(verify=None)
    assert shop.run("tick").outcome in DONE


def test_a_commit_that_another_target_has_fetched_is_judged_anew(shop: Shop, key: Path) -> None:
    unsigned = shop.push(config_map(shop.name, "a"))
    strict = replace(shop.target, name=f"{shop.name}-strict", verify=Verify(ssh=(public(key),)))
    settings = Settings(targets=(shop.target, strict))
    secrets = resolve_all(settings, {}, needs={"git"})
    handler = Handler(settings, secrets, shop.sandbox, {}, Options(kubeconfig=str(shop.kubectl.kubeconfig)))
    assert handler.source(shop.target).fetch(unsigned, PATH)
    with pytest.raises(CommitUnverified):
        handler.source(strict).fetch(unsigned, PATH)
    given = Options(sources={strict.name: handler.source(shop.target)})
    with pytest.raises(ConfigInvalid, match="a directory carries no signature"):
        Handler(settings, secrets, shop.sandbox, {}, given).source(strict)


def test_a_key_that_cant_be_used_fails_its_target_by_the_fields_name(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.configure(verify=Verify(ssh=("ssh-ed25519 AAAA",)))
    result = shop.run()
    assert (result.outcome, result.code, result.who) == (Outcome.FAILED, "config-invalid", "operator")
    assert f"target {shop.name}: verify.ssh[0]" in result.message
