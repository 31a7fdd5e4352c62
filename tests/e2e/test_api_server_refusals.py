"""What the API server may say no to: rights, admission, immutable fields, another cluster. Nothing is done by halves."""

from __future__ import annotations

from typing import Any

import pytest

from handler.config.settings import Impersonate, RecreateSettings
from handler.model.result import Outcome
from tests.e2e.documents import Document, admission, config_map, definition, deployment, job, offer, service, stateful_set
from tests.e2e.hurried_requests import hurry
from tests.e2e.one_target import Shop, told
from tests.e2e.rbac_rights import ALL, DEPLOYER, allow


@pytest.fixture
def account(shop: Shop) -> Shop:
    """A shop whose target acts as a ServiceAccount that may handle ConfigMaps only, in its own namespace."""
    shop.configure(impersonate=Impersonate(f"{shop.name}/{DEPLOYER}"), namespaces=(shop.name,))
    allow(shop, (ALL, "", "configmaps"))
    return shop


def test_an_account_deploys_and_prunes_with_its_rights_and_writes_nothing_where_one_is_missing(account: Shop) -> None:
    account.push(config_map(account.name, "a"), config_map(account.name, "b"))
    account.applied()
    account.push(config_map(account.name, "a", {"key": "2"}))
    account.applied()
    account.assert_converged()
    assert account.run("drift").outcome is Outcome.UNCHANGED
    before = account.versions()
    account.push(config_map(account.name, "a"), service(account.name, "web"))
    result = account.run()
    assert (result.outcome, result.code, result.who) == (Outcome.FAILED, "access-denied", "operator"), told(result)
    assert "resources: [services]" in result.problems[0].fix
    assert f"Role in {account.name}" in result.problems[0].fix
    other = account.create_namespace(f"{account.name}-jobs")
    account.configure(namespaces=(account.name, other))
    account.push(config_map(account.name, "a"), config_map(other, "b"))
    assert account.run().code == "access-denied", "the server's own rules hold, whatever the configuration allows"
    assert account.versions() == before


def test_a_kind_that_may_not_be_listed_any_more_prunes_nothing(account: Shop) -> None:
    allow(account, (ALL, "", "configmaps"), (ALL, "", "services"))
    account.push(config_map(account.name, "a"), config_map(account.name, "gone"), service(account.name, "web"))
    account.applied()
    allow(account, (ALL, "", "configmaps"), ("get,create,patch,delete", "", "services"))
    account.kubectl.judges(f"{account.name}/{DEPLOYER}", verb="list", resource="services", namespace=account.name, allows=False)
    before = account.versions()
    account.push(config_map(account.name, "a"))
    result = account.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "access-denied")
    assert "verbs: [list]" in result.problems[0].fix
    assert account.versions() == before


def test_an_unreachable_webhook_ends_the_run_before_the_first_write(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.push(definition(shop.group), config_map(shop.name, "a"))
    shop.applied()
    shop.kubectl.apply(admission(shop.name, shop.group, failurePolicy="Fail"))
    before = shop.versions()
    shop.push(definition(shop.group), config_map(shop.name, "a", {"key": "2"}), offer(shop.group, shop.name, "spring"))
    hurry(monkeypatch, shop.handler.api(shop.target), lambda method, path: method == "PATCH" and "/offers" in path, 3.0)
    result = shop.run()
    assert (result.outcome, result.who) == (Outcome.FAILED, "nobody"), told(result)
    assert "offers" in result.message
    assert result.next_try
    assert shop.versions() == before


def other_selector(shop: Shop, **metadata: Any) -> Document:
    changed = deployment(shop.name, "web", **metadata)
    changed["spec"]["selector"]["matchLabels"] = {"app": "other"}
    changed["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    return changed


ALLOWED = {"anneal.dev/recreate": "allow"}


def test_an_immutable_field_is_refused_with_the_line_that_allows_it_and_recreated_with_it(shop: Shop) -> None:
    """A finished Job needs none; for a StatefulSet the annotation isn't enough; a typo is something else."""
    work = job(shop.name, "migrate")
    shop.push(deployment(shop.name, "web"), stateful_set(shop.name, "db"), work)
    shop.applied()
    shop.kubectl.run("wait", "--for=condition=complete", "job/migrate", "-n", shop.name)
    before = shop.versions()
    sets = stateful_set(shop.name, "db", "other", annotations=ALLOWED)
    shop.push(other_selector(shop), sets, job(shop.name, "migrate", image="migrate:2"), config_map(shop.name, "new"))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused")
    fixes = {each.subject.partition("/")[0]: each.fix for each in result.problems}
    assert 'anneal.dev/recreate: "allow"' in fixes["Deployment"]
    assert "take that change back" in fixes["StatefulSet"]
    assert fixes.keys() == {"Deployment", "StatefulSet"}
    typo = deployment(shop.name, "web", annotations=ALLOWED)
    typo["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    shop.push(typo, stateful_set(shop.name, "db"), work)
    assert shop.run().outcome is Outcome.FAILED
    assert shop.versions() == before
    shop.configure(recreate=RecreateSettings(("StatefulSet.apps",)))
    changed = (other_selector(shop, annotations=ALLOWED), sets, job(shop.name, "migrate", image="migrate:2"))
    shop.push(*changed, config_map(shop.name, "new"))
    assert shop.applied().counts == {"recreated": 3, "created": 1}
    shop.assert_converged()
