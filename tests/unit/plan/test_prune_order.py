"""The order of deletion: what needs something goes before it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.model.names import identity_of
from handler.model.plan import Action, Change
from handler.plan.order import DEPENDS_ON, SYNC_WAVE
from handler.plan.prune import prune_stages
from tests.unit.plan.samples import document, member

SCOPED = ("Namespace", "CustomResourceDefinition", "ValidatingWebhookConfiguration", "PersistentVolume")


def thing(kind: str, name: str = "x", api: str = "v1", **annotations: str) -> dict[str, Any]:
    names = {"wave": SYNC_WAVE, "after": DEPENDS_ON}
    marks = {names[key]: value for key, value in annotations.items()}
    return member(document(kind, name, api), annotations=marks, **({"namespace": ""} if kind in SCOPED else {}))


def order(*bodies: dict[str, Any]) -> list[list[str]]:
    found = {identity_of(body): body for body in bodies}
    changes = [Change(Action.PRUNE, identity, str(identity), "7") for identity in found]
    return [[f"{change.identity.kind}/{change.identity.name}" for change in stage] for stage in prune_stages(changes, found)]


NAMESPACE = thing("Namespace", "shop")
CRD = thing("CustomResourceDefinition", "widgets.acme.io", "apiextensions.k8s.io/v1")
HOOK = thing("ValidatingWebhookConfiguration", "hook", "admissionregistration.k8s.io/v1")
CLAIM, DEPLOYMENT, ROLE = (
    thing("PersistentVolumeClaim"),
    thing("Deployment", "x", "apps/v1"),
    thing("Role", "x", "rbac.authorization.k8s.io/v1"),
)
WIDGET = thing("Widget", "x", "acme.io/v1")


def test_operators_live_until_their_resources_are_gone_and_namespaces_go_last() -> None:
    policy = thing("ValidatingAdmissionPolicyBinding", "policy", "admissionregistration.k8s.io/v1")
    assert order(NAMESPACE, ROLE, DEPLOYMENT, CRD, WIDGET, HOOK, policy, CLAIM) == [
        ["ValidatingWebhookConfiguration/hook", "ValidatingAdmissionPolicyBinding/policy"],
        ["Widget/x"],
        ["CustomResourceDefinition/widgets.acme.io"],
        ["Deployment/x"],
        ["Role/x"],
        ["PersistentVolumeClaim/x"],
        ["Namespace/shop"],
    ]


def test_prune_reverses_the_apply_order_inside_a_stage() -> None:
    assert order(thing("ConfigMap", "a"), thing("ConfigMap", "b"), thing("Secret")) == [["Secret/x", "ConfigMap/b", "ConfigMap/a"]]


def test_higher_waves_go_first_but_for_webhooks_and_holders() -> None:
    hook = thing("ValidatingWebhookConfiguration", "hook", "admissionregistration.k8s.io/v1", wave="-5")
    claim = thing("PersistentVolumeClaim", wave="9")
    late, middle = thing("ConfigMap", "late", wave="3"), thing("ConfigMap", "m", wave="not a number")
    assert order(middle, claim, late, hook) == [
        ["ValidatingWebhookConfiguration/hook"],
        ["ConfigMap/late"],
        ["ConfigMap/m"],
        ["PersistentVolumeClaim/x"],
    ]


def test_a_crd_of_a_high_wave_waits_for_its_resources_whatever_their_group_is_called() -> None:
    crd = thing("CustomResourceDefinition", "httproutes.gateway.networking.k8s.io", "apiextensions.k8s.io/v1", wave="5")
    route = thing("HTTPRoute", "x", "gateway.networking.k8s.io/v1")
    assert order(crd, route) == [["HTTPRoute/x"], ["CustomResourceDefinition/httproutes.gateway.networking.k8s.io"]]


def test_a_dependency_is_pruned_after_its_dependants() -> None:
    chain = [
        thing("Role", "c", "rbac.authorization.k8s.io/v1", after="apps/namespaces/shop/Deployment/b"),
        thing("Deployment", "b", "apps/v1", after="acme.io/namespaces/shop/Widget/x"),
        thing("Widget", "x", "acme.io/v1", after="/namespaces/shop/ConfigMap/elsewhere"),
    ]
    assert order(*chain) == [["Role/c"], ["Deployment/b"], ["Widget/x"]]


def test_what_depends_on_a_claim_keeps_the_namespace_waiting_for_both() -> None:
    claim = thing("PersistentVolumeClaim", after="/namespaces/shop/ConfigMap/x")
    assert order(NAMESPACE, claim, thing("ConfigMap")) == [["PersistentVolumeClaim/x"], ["ConfigMap/x"], ["Namespace/shop"]]


@pytest.mark.parametrize("written", ["nonsense", "a/b", "/namespaces/shop/ConfigMap/x,?"])
def test_a_live_depends_on_that_cant_be_read_orders_nothing(written: str) -> None:
    assert order(thing("ConfigMap", "y", after=written), thing("ConfigMap")) == [["ConfigMap/y", "ConfigMap/x"]]


def test_a_live_cycle_stops_nothing() -> None:
    found = order(
        thing("ConfigMap", "a", after="/namespaces/shop/ConfigMap/b"), thing("ConfigMap", "b", after="/namespaces/shop/ConfigMap/a")
    )
    assert sorted(name for stage in found for name in stage) == ["ConfigMap/a", "ConfigMap/b"]


pool = st.sampled_from(
    [
        *(thing("ConfigMap", name, wave=wave) for name in "ab" for wave in ("0", "4")),
        *(thing("Secret", name, after=f"/namespaces/shop/ConfigMap/{name}") for name in "ab"),
        NAMESPACE,
        CRD,
        WIDGET,
        HOOK,
        CLAIM,
        DEPLOYMENT,
    ]
)


@settings(max_examples=30, deadline=None)
@given(st.lists(pool, unique_by=identity_of).flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))))
def test_every_prune_is_ordered_and_dependencies_go_later(found: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    bodies, shuffled = found
    staged = order(*bodies)
    level = {name: number for number, stage in enumerate(staged) for name in stage}
    assert staged == order(*shuffled)
    assert sorted(level) == sorted(f"{body['kind']}/{body['metadata']['name']}" for body in bodies)
    assert sum(len(stage) for stage in staged) == len(bodies)
    pairs = [("Secret/a", "ConfigMap/a"), ("Secret/b", "ConfigMap/b"), ("Widget/x", "CustomResourceDefinition/widgets.acme.io")]
    pairs += [(name, "Namespace/shop") for name in level if name.partition("/")[0] not in SCOPED]
    assert all(level[first] < level[then] for first, then in pairs if first in level and then in level)
