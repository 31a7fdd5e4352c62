"""A refused commit isn't tried again by ticks until something changes that its refusal names; then the next tick applies it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest

from handler.model.result import Outcome, Result
from tests.e2e.documents import config_map, definition, offer, service
from tests.e2e.one_target import Shop, told
from tests.e2e.refused_commits import Wire, assert_heals, assert_still, refused, waited
from tests.patience import until


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


def test_a_quota_without_room(shop: Shop, wired: Wire, renders: list[str]) -> None:
    wire = wired()
    shop.kubectl.run("create", "quota", "tight", "-n", shop.name, "--hard=services=0")
    shop.push(config_map(shop.name, "a"), service(shop.name, "web"))
    result = until(lambda: _other(shop.run(), "not-ready"))  # its controller has counted
    assert (result.code, result.who) == ("quota-exceeded", "operator"), told(result)
    assert_still(shop, wire, renders, 1)
    shop.kubectl.run("patch", "quota", "tight", "-n", shop.name, "-p", '{"spec": {"hard": {"services": "5"}}}')
    tick, full = shop.job("tick"), ("quota-exceeded", "not-ready")
    result = until(lambda: _other(shop.handler_at(wire.kubeconfig).run(tick), *full))  # and has heard of the new room
    assert result.outcome is Outcome.APPLIED, told(result)


def _other(result: Result, *codes: str) -> Result | None:
    """Return a result that has none of these codes."""
    return result if result.code not in codes else None


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
    created = partial(shop.kubectl.tried, "create", "--dry-run=server", "-f", "-", given=json.dumps(never))
    until(lambda: created().returncode)  # the API server hears of a policy a moment after it was written
    shop.push(never)
    found = refused(shop)
    assert [str(fact) for fact in found.facts] == [f"Namespace/{shop.name}"], "its labels may decide"
    assert_still(shop, wire, renders, 1)
    shop.kubectl.run("delete", f"validatingadmissionpolicybinding/{policy}")
    until(lambda: not created().returncode)
    assert_still(shop, wire, renders, 1)
    waited(shop)
    assert_heals(shop, wire)
