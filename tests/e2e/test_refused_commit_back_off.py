"""A refused commit isn't tried again by ticks until something changes that its refusal names; then the next tick applies it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from handler.model.result import Outcome
from tests.e2e.documents import config_map, definition, deployment, offer, service
from tests.e2e.one_target import Shop, told
from tests.e2e.refused_commits import FOREIGN, Wire, assert_heals, assert_still, refused, waited


def test_a_missing_namespace(shop: Shop, wired: Wire, renders: list[str]) -> None:
    wire = wired()
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    shop.push(config_map(shop.name, "a"), config_map(f"{shop.name}-jobs", "b"))
    found = refused(shop)
    assert [(fact.kind, fact.name, fact.seen) for fact in found.facts] == [("Namespace", f"{shop.name}-jobs", "")]
    assert found.again == "", "what isn't there can't have changed in between"
    for _ in range(2):
        said = str(assert_still(shop, wire, renders, 1).problems[0])
    assert f"a change of Namespace/{shop.name}-jobs" in said
    assert f"anneal apply {shop.name}" in said
    shop.create_namespace(f"{shop.name}-jobs")
    assert_heals(shop, wire)


def test_a_kind_that_is_not_served(shop: Shop, wired: Wire, renders: list[str]) -> None:
    """Also on a first run, which leaves a record of nothing but that."""
    wire = wired()
    shop.push(config_map(shop.name, "a"), offer(shop.group, shop.name, "tea"))
    (fact,) = refused(shop).facts
    assert (fact.api_version, fact.kind, fact.name) == (f"{shop.group}/v1", "Offer", "")
    assert_still(shop, wire, renders, 2)
    assert_still(shop, wire, renders, 2, "drift")  # as `anneal run --trigger interval` asks
    shop.kubectl.apply(definition(shop.group))
    shop.kubectl.run("wait", "--for=condition=Established", f"crd/offers.{shop.group}")
    assert_heals(shop, wire)


def test_an_object_of_another_owner(shop: Shop, wired: Wire, renders: list[str]) -> None:
    wire = wired()
    shop.kubectl.apply(config_map(shop.name, "theirs", labels={FOREIGN: "shop"}))
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "theirs"))
    found = refused(shop)
    assert [str(fact) for fact in found.facts] == [f"ConfigMap/{shop.name}/theirs"]
    assert found.again, "it was looked at after the verdict"
    assert_still(shop, wire, renders, 1)
    shop.kubectl.run("label", "cm", "theirs", "-n", shop.name, f"{FOREIGN}-")
    assert_heals(shop, wire)


def test_a_quota_without_room(shop: Shop, wired: Wire, renders: list[str]) -> None:
    wire = wired()
    shop.kubectl.run("create", "quota", "tight", "-n", shop.name, "--hard=services=0")
    shop.push(config_map(shop.name, "a"), service(shop.name, "web"))
    result = shop.run()
    while result.code == "not-ready":  # its controller hasn't counted yet
        result = shop.run()
    assert (result.code, result.who) == ("quota-exceeded", "operator"), told(result)
    assert_still(shop, wire, renders, 1)
    shop.kubectl.run("patch", "quota", "tight", "-n", shop.name, "-p", '{"spec": {"hard": {"services": "5"}}}')
    result = shop.handler_at(wire.kubeconfig).run(shop.job("tick"))
    while result.code in ("quota-exceeded", "not-ready"):  # and hasn't heard of the new room
        result = shop.handler_at(wire.kubeconfig).run(shop.job("tick"))
    assert result.outcome is Outcome.APPLIED, told(result)


@pytest.fixture
def policy(shop: Shop) -> Iterator[str]:
    """A policy of the cluster that denies every ConfigMap of the shop's called `never`."""
    name = f"{shop.name}-never"
    group = "admissionregistration.k8s.io"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": shop.name}}, "resourceRules": rules}
    says = [{"expression": "object.metadata.name != 'never'", "message": "not here"}]
    spec = {"matchConstraints": where, "validations": says}
    bound = {"policyName": name, "validationActions": ["Deny"]}
    shop.kubectl.apply(
        {"apiVersion": f"{group}/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": f"{group}/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": bound},
    )
    yield name
    shop.kubectl.run("delete", "--ignore-not-found", f"validatingadmissionpolicybinding/{name}", f"validatingadmissionpolicy/{name}")


def test_a_denial_by_an_admission_policy_is_tried_again_after_the_back_off(
    shop: Shop, wired: Wire, renders: list[str], policy: str
) -> None:
    wire = wired()
    never = config_map(shop.name, "never")
    while shop.kubectl.tried("create", "--dry-run=server", "-f", "-", given=json.dumps(never)).returncode == 0:
        pass  # the API server hears of a policy a moment after it was written
    shop.push(never)
    found = refused(shop)
    assert [str(fact) for fact in found.facts] == [f"Namespace/{shop.name}"], "its labels may decide"
    assert_still(shop, wire, renders, 1)
    shop.kubectl.run("delete", f"validatingadmissionpolicybinding/{policy}")
    while shop.kubectl.tried("create", "--dry-run=server", "-f", "-", given=json.dumps(never)).returncode:
        pass
    assert_still(shop, wire, renders, 1)
    waited(shop)
    assert_heals(shop, wire)


def test_a_mistake_of_git_alone_is_not_tried_again_before_a_new_commit(shop: Shop, wired: Wire, renders: list[str]) -> None:
    wire = wired()
    broken = deployment(shop.name, "web")
    broken["spec"]["replica"] = 1
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    shop.push(config_map(shop.name, "a"), broken)
    found = refused(shop)
    assert (found.facts, found.again) == ((), "")
    assert_still(shop, wire, renders, 0)
    shop.declare(config_map(shop.name, "a"))
    shop.work.write("deploy/broken.yaml", "a: [1")
    shop.work.commit("no YAML")
    shop.work.push()
    found = refused(shop, "manifest-invalid")
    assert (found.facts, found.again) == ((), "")
    assert_still(shop, wire, renders, 0)
    assert_still(shop, wire, renders, 0, "push")
    shop.push(config_map(shop.name, "a", {"key": "2"}))
    assert_heals(shop, wire)


@pytest.mark.parametrize(
    "text", ["a: [1", '{"apiVersion": "v1", "kind": "Nonesuch", "metadata": {"name": "x"}}'], ids=["rendered", "planned"]
)
def test_a_push_that_touches_nothing_it_reads_is_refused_without_a_render(shop: Shop, renders: list[str], text: str) -> None:
    shop.work.write("deploy/broken.yaml", text)
    first = shop.work.commit("a mistake")
    shop.work.push()
    shop.run()
    renders.clear()
    shop.work.write("docs/README.md", "hello")
    second = shop.work.commit("documentation")
    shop.work.push()
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig)
    result = shop.run()
    assert (result.outcome, result.commit, renders) == (Outcome.FAILED, second, []), told(result)
    assert f"reads what {first[:12]} has read" in str(result.problems[0])
    state = shop.state()
    assert [(run.commit, run.message) for run in state.history] == [(second, state.status.message), (first, state.status.message)]
    assert state.history[0].subject == "documentation"
    assert state.status.refusal
    assert state.status.refusal.commit == second
    assert state.status.failures == 2


def test_changed_settings_and_requests_by_hand_skip_the_back_off(shop: Shop, renders: list[str]) -> None:
    shop.push(config_map(shop.name, "a"), config_map("elsewhere", "b"))
    refused(shop)
    for asked in ("oneoff", "replay"):
        renders.clear()
        assert shop.run(asked).outcome is Outcome.FAILED
        assert len(renders) == 1
    renders.clear()
    shop.configure(namespaces=(shop.name, "elsewhere"))
    (fact,) = refused(shop, trigger="tick").facts
    assert (len(renders), fact.name) == (1, "elsewhere")
    shop.configure(validate="none")
    renders.clear()
    shop.run("tick")
    assert len(renders) == 1, "settings that change only how a run looks count, too"


def test_a_record_without_a_refusal_is_tried_once(shop: Shop, wired: Wire, renders: list[str]) -> None:
    shop.push(config_map("elsewhere", "b"))
    refused(shop)
    shop.handler.store(shop.target).update(lambda state: replace(state, status=replace(state.status, refusal=None)))
    renders.clear()
    refused(shop, trigger="tick")
    assert len(renders) == 1
    assert_still(shop, wired(), renders, 0)
