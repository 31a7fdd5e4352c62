"""What the control plane itself does to a run: admission policies, a Namespace on its way out, tokens that expire, kinds that vanish."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.model.result import Outcome, Result
from tests.e2e.documents import config_map, definition, offer
from tests.e2e.one_target import DONE, Shop, told
from tests.e2e.served_kinds import until_served
from tests.e2e.test_admission_and_tokens import ALLOWED, FORBIDDEN, policy
from tests.patience import until


@pytest.fixture
def forbid(shop: Shop) -> Iterator[Callable[[str], None]]:
    """Forbid ConfigMaps for which an expression isn't true; wait until the API server knows. An empty one forbids nothing any more."""
    made = policy(shop, "true")

    def is_known(*, forbidden: bool) -> bool:
        probe = yaml.safe_dump(config_map(shop.name, "probe", {"key": "forbidden"}))
        done = shop.kubectl.tried("apply", "--server-side", "-f", "-", given=probe)
        return FORBIDDEN in done.stderr if forbidden else done.returncode == 0

    def change(expression: str) -> None:
        if expression:
            shop.kubectl.apply(*policy(shop, expression))
        else:
            remove()
        until(lambda: is_known(forbidden=bool(expression)))
        shop.kubectl.run("delete", "configmap", "probe", "-n", shop.name, "--ignore-not-found")

    def remove() -> None:
        for document in reversed(made):
            shop.kubectl.run("delete", document["kind"], shop.name, "--ignore-not-found")

    yield change
    remove()


def test_what_an_admission_policy_denies_is_the_authors_and_nothing_is_written(shop: Shop, forbid: Callable[[str], None]) -> None:
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "gone"))
    shop.applied()
    before = shop.versions()
    forbid(ALLOWED)
    shop.push(config_map(shop.name, "a", {"key": "2"}), config_map(shop.name, "b", {"key": "forbidden"}))
    result = shop.run()
    assert (result.outcome, result.who) == (Outcome.FAILED, "author"), told(result)
    assert FORBIDDEN in result.message
    assert shop.versions() == before
    assert shop.state().attempt is None
    forbid("")
    shop.applied("replay")
    shop.assert_converged()


def test_a_denial_by_admission_after_the_dry_run_leaves_an_attempt_that_the_next_run_closes(
    shop: Shop, forbid: Callable[[str], None]
) -> None:
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "gone"))
    shop.applied()
    forbid(f"request.dryRun || {ALLOWED}")
    shop.push(config_map(shop.name, "a", {"key": "2"}), config_map(shop.name, "b", {"key": "forbidden"}))
    result = shop.run()
    assert (result.outcome, result.who) == (Outcome.FAILED, "author"), told(result)
    assert f"ConfigMap/{shop.name}/b" in result.message
    assert shop.live(config_map(shop.name, "gone")), "after a failed apply nothing is pruned"
    assert shop.state().attempt
    forbid("")
    shop.applied("tick")
    shop.assert_converged()


@pytest.mark.parametrize("expression", ["request.operation == 'CREATE' && object.data['key'] != 'forbidden'", "has(object.data.by)"])
def test_a_policy_that_denies_any_write_blames_no_field(shop: Shop, forbid: Callable[[str], None], expression: str) -> None:
    """What would go, too, is no reason for it; where it is the reason that field is named with its line for git."""
    theirs = config_map(shop.name, "a", {"key": "1", "by": "hand"}, labels={"old": "label"})
    shop.kubectl.apply(theirs)
    forbid(expression)
    before = shop.versions([theirs])
    shop.push(config_map(shop.name, "a", {"key": "1"}))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused"), told(result)
    assert FORBIDDEN in result.message
    assert ("live alone has" in result.message) is ("has(" in expression), result.message
    if "has(" in expression:
        assert "live alone has data.by: hand (by kubectl-client-side-apply), and" in result.message
        assert "write into it data: {by: hand}" in result.message
    assert shop.versions([theirs]) == before
    forbid("")


# --- a Namespace on its way out
def test_a_terminating_namespace_is_not_ready_and_the_run_after_it_applies_all(shop: Shop) -> None:
    holding = config_map(shop.name, "holding", finalizers=["example.com/hold"])
    shop.kubectl.apply(holding)
    shop.kubectl.run("delete", "namespace", shop.name, "--wait=false")
    shop.push(config_map(shop.name, "a"))
    result = shop.run()
    assert (result.outcome, result.code, result.who) == (Outcome.FAILED, "not-ready", "nobody"), told(result)
    assert result.next_try
    shop.kubectl.run("patch", "configmap", "holding", "-n", shop.name, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    until(lambda: not shop.kubectl.run("get", "namespace", shop.name, "--ignore-not-found", "-o", "name"))
    shop.create_namespace()
    shop.applied("tick")
    shop.assert_converged()


# --- credentials that expire
def with_user(kubeconfig: Path, place: Path, user: dict[str, Any]) -> Path:
    """Write a kubeconfig whose user proves itself in another way."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"] = [{"name": row["name"], "user": user} for row in config["users"]]
    place.write_text(yaml.safe_dump(config))
    return place


def token_of(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"])


def from_file(place: Path) -> dict[str, Any]:
    return {"tokenFile": str(place / "token")}


def from_plugin(place: Path) -> dict[str, Any]:
    plugin, answer = place / "plugin", {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    text = str(answer | {"status": {"token": "TOKEN"}}).replace("'", '"').replace("TOKEN", "'$(cat " + str(place / "token") + ")'")
    plugin.write_text(f"#!/bin/sh\necho x >>{place}/asked\necho '{text}'\n")
    plugin.chmod(0o700)
    return {"exec": {"apiVersion": answer["apiVersion"], "command": str(plugin), "interactiveMode": "Never"}}


@pytest.mark.parametrize("user", [from_file, from_plugin])
def test_an_expired_token_is_renewed_once_and_one_that_stays_bad_is_the_operators(
    shop: Shop, user: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    token, good = tmp_path / "token", token_of(shop.kubectl.kubeconfig)
    token.write_text(good)
    worker = shop.handler_at(with_user(shop.kubectl.kubeconfig, tmp_path / "kubeconfig", user(tmp_path)))
    shop.push(config_map(shop.name, "a"))
    assert worker.run(shop.job()).outcome is Outcome.APPLIED
    asked = tmp_path / "asked"
    loads = len(asked.read_text().splitlines()) if asked.exists() else 0

    api = worker.api(shop.target)
    token.write_text("expired")
    api.connection.refresh(api.connection.generation)
    token.write_text(good)
    shop.push(config_map(shop.name, "a", {"key": "2"}), config_map(shop.name, "b"))
    assert worker.run(shop.job()).outcome is Outcome.APPLIED
    assert not asked.exists() or len(asked.read_text().splitlines()) == 3 * loads, "two loads: ours, and one after the 401"

    token.write_text("revoked")
    api.connection.refresh(api.connection.generation)
    before = shop.versions()
    shop.push(config_map(shop.name, "a", {"key": "3"}))
    result = worker.run(shop.job())
    assert (result.outcome, result.code, result.who) == (Outcome.FAILED, "access-denied", "operator"), told(result)
    assert shop.versions() == before
    token.write_text(good)
    assert worker.run(shop.job("tick")).outcome is Outcome.APPLIED
    shop.assert_converged()


# --- kinds that vanish
def test_a_deleted_crd_is_applied_again_with_its_custom_resources(shop: Shop) -> None:
    declared = [definition(shop.group), offer(shop.group, shop.name, "spring"), config_map(shop.name, "a")]
    shop.push(*declared)
    shop.applied()
    shop.kubectl.run("delete", "crd", f"offers.{shop.group}", "--wait=true")
    until_served(shop, "v1", served=False)
    kept = shop.versions([declared[2]])
    ends: list[Result] = []

    def is_done() -> bool:
        ends.append(shop.run("tick" if ends else "drift"))
        assert ends[-1].outcome in DONE or ends[-1].who == "nobody", told(ends[-1])
        return ends[-1].outcome in DONE

    until(is_done, lambda: told(ends[-1]))
    shop.assert_converged()
    assert shop.versions([declared[2]]) == kept
