"""Stages: what must stand before what."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.errors import PlanRefused
from handler.plan.order import DEPENDS_ON, SYNC_WAVE, stages
from tests.unit.plan.samples import desired, document
from tests.unit.plan.test_admit import CRD

SCOPED = ("Namespace", "CustomResourceDefinition", "ClusterRole", "ValidatingWebhookConfiguration")
RBAC = "rbac.authorization.k8s.io/v1"


def order(*bodies: dict[str, Any]) -> list[list[str]]:
    staged = stages(desired(*bodies, cluster_scoped=SCOPED))
    return [[f"{item.identity.kind}/{item.identity.name}" for item in stage] for stage in staged]


def wave(number: str, name: str, kind: str = "ConfigMap") -> dict[str, Any]:
    return document(kind, name, metadata={"annotations": {SYNC_WAVE: number}})


def after(references: str, name: str = "web") -> dict[str, Any]:
    return document(name=name, metadata={"annotations": {DEPENDS_ON: references}})


def test_crds_and_namespaces_stand_before_what_needs_them() -> None:
    assert order(document("Widget", "w", "acme.io/v1"), document(), document("Namespace", "shop"), CRD) == [
        ["CustomResourceDefinition/widgets.acme.io", "Namespace/shop"],
        ["ConfigMap/web"],
        ["Widget/w"],
    ]


def test_kind_rank_breaks_ties_inside_a_stage() -> None:
    bodies = [document("Deployment", api="apps/v1"), document("Secret"), document("ServiceAccount"), document("ConfigMap")]
    assert order(*bodies) == [["ServiceAccount/web", "ConfigMap/web", "Secret/web", "Deployment/web"]]


def test_webhook_configurations_come_last() -> None:
    hook = document("ValidatingWebhookConfiguration", "hook", "admissionregistration.k8s.io/v1")
    assert order(hook, document(), wave("5", "late")) == [["ConfigMap/web"], ["ConfigMap/late"], ["ValidatingWebhookConfiguration/hook"]]


def test_a_bare_pod_waits_for_its_account_and_a_binding_for_its_role() -> None:
    binding = document("RoleBinding", api=RBAC, roleRef={"kind": "Role", "name": "web"})
    cluster = document("RoleBinding", "two", RBAC, roleRef={"kind": "ClusterRole", "name": "web"})
    pod = document("Pod", spec={"serviceAccountName": "web"})
    bodies = [binding, cluster, pod, document("Role", api=RBAC), document("ClusterRole", api=RBAC), document("ServiceAccount")]
    assert order(*bodies) == [["ClusterRole/web", "ServiceAccount/web", "Role/web"], ["RoleBinding/two", "RoleBinding/web", "Pod/web"]]


def test_waves_follow_one_another() -> None:
    assert order(wave("1", "b"), wave("-1", "a"), document(name="m")) == [["ConfigMap/a"], ["ConfigMap/m"], ["ConfigMap/b"]]


def test_a_namespace_of_a_later_wave_is_pulled_forward() -> None:
    assert order(wave("3", "shop", "Namespace"), wave("1", "a"))[0] == ["Namespace/shop"]


def test_depends_on_orders_within_a_wave() -> None:
    chain = [after("/namespaces/shop/ConfigMap/b", "a"), after("/namespaces/shop/ConfigMap/c", "b"), document(name="c")]
    assert order(*chain) == [["ConfigMap/c"], ["ConfigMap/b"], ["ConfigMap/a"]]


def test_depends_on_a_cluster_scoped_object() -> None:
    role = document("ClusterRole", "r", RBAC)
    assert order(after("rbac.authorization.k8s.io/ClusterRole/r"), role) == [["ClusterRole/r"], ["ConfigMap/web"]]


def test_depends_on_what_isnt_declared_orders_nothing() -> None:
    assert order(after("/namespaces/shop/ConfigMap/else, ")) == [["ConfigMap/web"]]


@pytest.mark.parametrize(
    ("bodies", "told"),
    [
        (
            [after("/namespaces/shop/ConfigMap/b", "a"), after("/namespaces/shop/ConfigMap/a", "b")],
            "ConfigMap/shop/a: waits for itself: ConfigMap/shop/a -> ConfigMap/shop/b -> ConfigMap/shop/a",
        ),
        (
            [document(name="a", metadata={"annotations": {DEPENDS_ON: "/namespaces/shop/ConfigMap/b"}}), wave("2", "b")],
            "ConfigMap/shop/a: waits for itself: ConfigMap/shop/a -> ConfigMap/shop/b -> ConfigMap/shop/a",
        ),
        ([after("nonsense")], f"0.yaml:1: ConfigMap/shop/web: {DEPENDS_ON}: can't read 'nonsense'"),
        ([wave("first", "a")], f"0.yaml:1: ConfigMap/shop/a: {SYNC_WAVE}: 'first' is not a whole number"),
    ],
)
def test_what_cant_be_ordered_is_refused_naming_the_path(bodies: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(PlanRefused) as caught:
        order(*bodies)
    assert str(caught.value).startswith(told)


def test_nothing_has_no_stages() -> None:
    assert stages(()) == ()
