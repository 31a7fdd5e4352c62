"""What the API server may say no to: rights, admission, immutable fields, another cluster. Nothing is done by halves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.config.settings import Cluster, Impersonate, RecreateSettings, Settings
from handler.model.result import Outcome
from infra.githost import Host
from tests.e2e.api_proxy import Wired
from tests.e2e.documents import Document, admission, config_map, definition, deployment, job, namespace, offer, service, stateful_set
from tests.e2e.one_target import STATES, Shop, told
from tests.e2e.rbac_rights import ALL, DEPLOYER, allow
from tests.rooms.cluster.faulty_proxy import Handler

Wire = Callable[[], Wired]


@pytest.fixture
def account(shop: Shop) -> Shop:
    """A shop whose target acts as a ServiceAccount that may handle ConfigMaps only, in its own namespace."""
    shop.configure(impersonate=Impersonate(f"{shop.name}/{DEPLOYER}"), namespaces=(shop.name,))
    allow(shop, (ALL, "", "configmaps"))
    return shop


def test_a_service_account_with_its_rbac_rights_deploys_and_prunes_in_its_namespaces(account: Shop) -> None:
    account.push(config_map(account.name, "a"), config_map(account.name, "b"))
    account.applied()
    account.push(config_map(account.name, "a", {"key": "2"}))
    account.applied()
    account.assert_converged()
    assert account.run("drift").outcome is Outcome.UNCHANGED


def test_a_missing_right_is_named_and_nothing_is_written(account: Shop) -> None:
    account.push(config_map(account.name, "a"), service(account.name, "web"))
    result = account.run()
    assert (result.outcome, result.code, result.who) == (Outcome.FAILED, "access-denied", "operator"), told(result)
    assert "resources: [services]" in result.problems[0].fix
    assert f"Role in {account.name}" in result.problems[0].fix
    assert account.labelled() == {}


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


def test_a_whitelisted_namespace_without_rbac_is_access_denied(account: Shop) -> None:
    """The server's own rules hold for the target's identity, whatever the configuration allows."""
    other = account.create_namespace(f"{account.name}-jobs")
    account.configure(namespaces=(account.name, other))
    account.push(config_map(account.name, "a"), config_map(other, "b"))
    result = account.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "access-denied")
    assert account.labelled() == {}


def test_a_webhook_without_dry_run_is_noted_and_not_fatal(shop: Shop, wired: Wire) -> None:
    """`admissionregistration.k8s.io/v1` takes no such webhook any more; those of older servers make the dry-run answer this."""
    shop.push(definition(shop.group), config_map(shop.name, "a"))
    shop.applied()
    wire = wired()
    said = {"kind": "Status", "code": 400, "reason": "BadRequest", "message": 'admission webhook "judge" does not support dry run'}

    def answer(handler: Handler) -> bool:
        handler.answer(400, {"Content-Type": "application/json"}, json.dumps(said).encode())
        return False

    shop.push(definition(shop.group), config_map(shop.name, "a", {"key": "2"}), offer(shop.group, shop.name, "spring"))
    wire.meet(1, answer, lambda method, path: "/offers/" in path and "dryRun" in path)
    result = shop.handler_at(wire.kubeconfig).run(shop.job())
    assert result.outcome is Outcome.APPLIED, told(result)
    assert result.plan
    assert result.plan.notes[0].startswith(f"Offer/{shop.name}/spring: an admission webhook does not support dry run")
    shop.assert_converged()


def test_an_unreachable_webhook_ends_the_run_before_the_first_write(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.push(definition(shop.group), config_map(shop.name, "a"))
    shop.applied()
    monkeypatch.setattr(Api.__init__, "__kwdefaults__", {**(Api.__init__.__kwdefaults__ or {}), "deadline": 3.0})
    shop.kubectl.apply(admission(shop.name, shop.group, failurePolicy="Fail"))
    before = shop.versions()
    shop.push(definition(shop.group), config_map(shop.name, "a", {"key": "2"}), offer(shop.group, shop.name, "spring"))
    shop.configure()
    result = shop.run()
    assert (result.outcome, result.who) == (Outcome.FAILED, "nobody"), told(result)
    assert "offers" in result.message
    assert result.next_try
    assert shop.versions() == before


def test_a_finished_job_with_another_template_is_run_again(shop: Shop) -> None:
    shop.push(job(shop.name, "migrate"), config_map(shop.name, "a"))
    shop.applied()
    older = shop.versions([job(shop.name, "migrate")])
    shop.kubectl.run("wait", "--for=condition=complete", "job/migrate", "-n", shop.name, "--timeout=110s")
    shop.push(job(shop.name, "migrate", image="migrate:2"), config_map(shop.name, "a"))
    result = shop.applied()
    assert result.counts["recreated"] == 1
    assert shop.versions([job(shop.name, "migrate")]) != older
    shop.assert_converged()


def other_selector(shop: Shop, **metadata: Any) -> Document:
    changed = deployment(shop.name, "web", **metadata)
    changed["spec"]["selector"]["matchLabels"] = {"app": "other"}
    changed["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    return changed


def test_an_immutable_field_is_refused_with_the_line_that_allows_it_and_recreated_with_it(shop: Shop) -> None:
    shop.push(deployment(shop.name, "web"))
    shop.applied()
    before = shop.versions()
    shop.push(other_selector(shop), config_map(shop.name, "new"))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused")
    assert 'anneal.dev/recreate: "allow"' in result.problems[0].fix
    assert shop.versions() == before
    shop.push(other_selector(shop, annotations={"anneal.dev/recreate": "allow"}), config_map(shop.name, "new"))
    assert shop.applied().counts == {"recreated": 1, "created": 1}
    shop.assert_converged()


def test_a_stateful_set_is_recreated_only_when_its_kind_is_named(shop: Shop) -> None:
    shop.push(stateful_set(shop.name, "db"))
    shop.applied()
    before = shop.versions()
    shop.push(stateful_set(shop.name, "db", "other", annotations={"anneal.dev/recreate": "allow"}))
    result = shop.run()
    assert result.outcome is Outcome.FAILED
    assert "take that change back" in result.problems[0].fix
    assert shop.versions() == before
    shop.configure(recreate=RecreateSettings(("StatefulSet.apps",)))
    assert shop.applied().counts == {"recreated": 1}
    shop.assert_converged()


def test_a_typo_is_never_taken_for_an_immutable_field(shop: Shop) -> None:
    shop.push(deployment(shop.name, "web", annotations={"anneal.dev/recreate": "allow"}))
    shop.applied()
    before = shop.versions()
    typo = deployment(shop.name, "web", annotations={"anneal.dev/recreate": "allow"})
    typo["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    shop.push(typo)
    assert shop.run().outcome is Outcome.FAILED
    assert shop.versions() == before


def test_a_namespace_and_a_kind_that_are_not_allowed_come_with_the_line_to_add(shop: Shop) -> None:
    shop.configure(cluster_scoped=())
    shop.push(namespace("elsewhere"), config_map("kube-system", "a"), config_map(shop.name, "b"))
    result = shop.run()
    assert result.outcome is Outcome.FAILED
    assert [problem.fix for problem in result.problems[:-1]] == ["", ""]
    assert result.problems[-1].fix.splitlines() == [
        f"add to target {shop.name}:",
        f"  namespaces: [{shop.name}, {shop.name}-jobs, kube-system, elsewhere]",
        "  clusterScoped: [Namespace]",
    ]
    assert shop.labelled() == {}


def test_another_server_than_the_server_pin_is_refused(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.configure(cluster=Cluster(server="https://prod.example.com:6443"))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "server-pinned")
    shop.configure(cluster=Cluster())
    assert shop.labelled() == {}


def test_another_repository_or_installation_is_refused_until_retargeted(shop: Shop, host: Host) -> None:
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    shop.applied()
    before = shop.versions()
    repository = replace(shop.target.repository, url=shop.target.repository.url.replace("127.0.0.1", "localhost"))
    shop.push(config_map(shop.name, "a"))
    shop.configure(repository=repository)
    assert shop.run().code == "target-moved"
    shop.configure(repository=replace(repository, url=host.url_of(shop.name)))
    shop.settings = Settings((shop.target,), installation="other", state_namespace=STATES)
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig)
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "target-moved")
    assert f"anneal retarget {shop.name}" in result.problems[0].fix
    assert shop.versions() == before
