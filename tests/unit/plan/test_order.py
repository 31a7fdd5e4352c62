"""Stages: what must stand before what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.model.errors import PlanRefused
from handler.model.names import Identity
from handler.model.rollout import Mode
from handler.plan.admission import Desired
from handler.plan.order import DEPENDS_ON, SYNC_WAVE, Order
from handler.plan.order import order as put_in_order
from tests.unit.plan.samples import CRD, desired, document

SCOPED = (
    "Namespace",
    "CustomResourceDefinition",
    "ClusterRole",
    "ValidatingWebhookConfiguration",
    "MutatingAdmissionPolicy.admissionregistration.k8s.io",
    "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io",
)
RBAC = "rbac.authorization.k8s.io/v1"


def stages(items: Iterable[Desired], own: str = "") -> tuple[tuple[Desired, ...], ...]:
    return put_in_order(items, own).stages


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


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"])
def test_what_judges_other_writes_comes_last(kind: str) -> None:
    hook = document(kind, "hook", "admissionregistration.k8s.io/v1")
    assert order(hook, document(), CRD, wave("5", "late")) == [
        ["CustomResourceDefinition/widgets.acme.io", "ConfigMap/web"],
        ["ConfigMap/late"],
        [f"{kind}/hook"],
    ]


def test_a_webhook_that_something_depends_on_stands_before_it() -> None:
    hook = document("ValidatingWebhookConfiguration", "hook", "admissionregistration.k8s.io/v1")
    needing = after("admissionregistration.k8s.io/ValidatingWebhookConfiguration/hook")
    assert order(needing, hook, document("Secret")) == [["Secret/web", "ValidatingWebhookConfiguration/hook"], ["ConfigMap/web"]]


def test_the_handlers_own_workload_comes_after_everything_and_nothing_waits_for_it_or_for_webhooks() -> None:
    hook = document("ValidatingWebhookConfiguration", "hook", "admissionregistration.k8s.io/v1")
    own, other = document("Deployment", "anneal", "apps/v1"), document("Deployment", "web", "apps/v1")
    found = put_in_order(desired(own, hook, other, wave("7", "late"), cluster_scoped=SCOPED), "shop/anneal")
    assert named(found) == [["web"], ["late"], ["hook"], ["anneal"]]
    assert awaited(found) == {"late": ["web"]}
    assert stages(desired(own, other), "other/anneal") == stages(desired(own, other))


def test_an_own_workload_that_something_depends_on_stands_before_it() -> None:
    own = document("Deployment", "anneal", "apps/v1")
    staged = stages(desired(after("apps/namespaces/shop/Deployment/anneal"), own), "shop/anneal")
    assert [[item.identity.name for item in stage] for stage in staged] == [["anneal"], ["web"]]


def test_a_wave_may_put_a_binding_before_its_role() -> None:
    binding = document("RoleBinding", api=RBAC, roleRef={"kind": "Role", "name": "web"})
    role = document("Role", api=RBAC, metadata={"annotations": {SYNC_WAVE: "1"}})
    assert order(role, binding) == [["RoleBinding/web"], ["Role/web"]]


@pytest.mark.parametrize("parts", [{"spec": "text"}, {"spec": None}, {"spec": {"serviceAccountName": ["x"]}}, {"roleRef": "web"}])
def test_a_body_of_any_shape_is_ordered(parts: dict[str, Any]) -> None:
    bodies = [document("Pod", **parts), document("RoleBinding", api=RBAC, **parts), document("ServiceAccount", "default")]
    assert sum(len(stage) for stage in order(*bodies)) == 3


def test_a_bare_pod_waits_for_its_account_and_a_binding_for_its_role() -> None:
    binding = document("RoleBinding", api=RBAC, roleRef={"kind": "Role", "name": "web"})
    cluster = document("RoleBinding", "two", RBAC, roleRef={"kind": "ClusterRole", "name": "web"})
    pod = document("Pod", spec={"serviceAccountName": "web"})
    bodies = [binding, cluster, pod, document("Role", api=RBAC), document("ClusterRole", api=RBAC), document("ServiceAccount")]
    assert order(*bodies) == [["ClusterRole/web", "ServiceAccount/web", "Role/web"], ["RoleBinding/two", "RoleBinding/web", "Pod/web"]]


def test_waves_follow_one_another() -> None:
    assert order(wave("1", "b"), wave("-1", "a"), document(name="m")) == [["ConfigMap/a"], ["ConfigMap/m"], ["ConfigMap/b"]]
    assert order(wave("+01", "b"), wave(str(-(2**63)), "a")) == [["ConfigMap/a"], ["ConfigMap/b"]]


def test_depends_on_a_cluster_scoped_object() -> None:
    role = document("ClusterRole", "r", RBAC)
    assert order(after("rbac.authorization.k8s.io/ClusterRole/r"), role) == [["ClusterRole/r"], ["ConfigMap/web"]]


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
        ([wave("1_0", "a")], f"0.yaml:1: ConfigMap/shop/a: {SYNC_WAVE}: '1_0' is not a whole number"),
        ([wave(" 1", "a")], f"0.yaml:1: ConfigMap/shop/a: {SYNC_WAVE}: ' 1' is not a whole number"),
        ([wave("\u0663", "a")], f"0.yaml:1: ConfigMap/shop/a: {SYNC_WAVE}: '\u0663' is not a whole number"),
        ([wave(str(2**63), "a")], f"0.yaml:1: ConfigMap/shop/a: {SYNC_WAVE}: '{2**63}' is not a whole number"),
        ([after("x" * 100_000)], f"0.yaml:1: ConfigMap/shop/web: {DEPENDS_ON}: can't read '{'x' * 119}…'"),
        ([wave("9" * 100_000, "a")], f"0.yaml:1: ConfigMap/shop/a: {SYNC_WAVE}: '{'9' * 119}…' is not a whole number"),
    ],
)
def test_a_dependency_cycle_is_refused_naming_the_path(bodies: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(PlanRefused) as caught:
        order(*bodies)
    assert str(caught.value).startswith(told)


def test_all_malformed_waves_and_depends_on_are_told_at_once() -> None:
    both = document(metadata={"annotations": {SYNC_WAVE: "first", DEPENDS_ON: "nonsense"}})
    with pytest.raises(PlanRefused) as caught:
        order(both, after("nonsense", "other"))
    assert len(caught.value.problems) == 3


@pytest.mark.slow
def test_a_long_chain_is_ordered_without_recursion() -> None:
    chain = [after(f"/namespaces/shop/ConfigMap/{number + 1}", str(number)) for number in range(1100)]
    assert [stage[0] for stage in order(*chain)][:2] == ["ConfigMap/1099", "ConfigMap/1098"]


def hook(name: str, **annotations: str) -> Desired:
    """A hook that stands among the stages."""
    (item,) = desired(document("Job", name, "batch/v1", metadata={"annotations": annotations}))
    return replace(item, mode=Mode.HOOK)


def named(stages_of: Order) -> list[list[str]]:
    return [[item.identity.name for item in stage] for stage in stages_of.stages]


def awaited(found: Order) -> dict[str, list[str]]:
    return {one.name: sorted(need.name for need in needs) for one, needs in found.awaits.items()}


def test_only_depends_on_and_waves_wait_for_health() -> None:
    bodies = [CRD, document("Namespace", "shop"), document("Widget", "w", "acme.io/v1"), document("Role", "r", RBAC)]
    binding = document("RoleBinding", "r", RBAC, roleRef={"kind": "Role", "name": "r"})
    assert awaited(put_in_order(desired(*bodies, binding, cluster_scoped=SCOPED))) == {}
    chain = [after("/namespaces/shop/ConfigMap/b", "a"), after("/namespaces/shop/ConfigMap/c", "b"), document(name="c")]
    assert awaited(put_in_order(desired(*chain))) == {"a": ["b"], "b": ["c"]}


def test_a_wave_awaits_every_lower_one() -> None:
    bodies = [wave("2", "c"), wave("-1", "a"), document(name="m"), wave("3", "shop", "Namespace")]
    assert awaited(put_in_order(desired(*bodies, cluster_scoped=SCOPED))) == {"m": ["a", "shop"], "c": ["a", "m", "shop"]}


def test_a_hook_stands_in_the_last_stage_of_its_wave_and_nothing_awaits_it() -> None:
    bodies = desired(document(name="c"), after("/namespaces/shop/ConfigMap/c", "a"), wave("1", "b"))
    found = put_in_order([hook("h"), *bodies, hook("weighed", **{"helm.sh/hook-weight": "1"})])
    assert named(found) == [["c"], ["a", "h"], ["b", "weighed"]]
    assert awaited(found) == {"a": ["c"], "b": ["a", "c"], "weighed": ["a", "c"]}


def test_a_hook_that_an_object_depends_on_stands_before_it() -> None:
    found = put_in_order([hook("h"), *desired(after("batch/namespaces/shop/Job/h", "a"), document(name="c"))])
    assert named(found) == [["c", "h"], ["a"]]
    assert awaited(found) == {}


def test_a_cycle_through_a_hook_is_refused_naming_the_path() -> None:
    early = document(name="a", metadata={"annotations": {DEPENDS_ON: "batch/namespaces/shop/Job/h", SYNC_WAVE: "-1"}})
    with pytest.raises(PlanRefused, match="ConfigMap/shop/a: waits for itself: ConfigMap/shop/a -> Job/shop/h -> ConfigMap/shop/a"):
        put_in_order([hook("h", **{SYNC_WAVE: "1"}), *desired(early)])


def test_objects_that_hooks_need_are_a_stage_before_everything() -> None:
    items = desired(document("Namespace", "shop"), wave("-5", "a"), document(), cluster_scoped=SCOPED)
    found = put_in_order(items, first=[items[0].identity])
    assert named(found) == [["shop"], ["a"], ["web"]]
    assert awaited(found) == {"web": ["a"]}


def test_a_depends_on_of_an_undeclared_object_is_noted_and_not_waited_for() -> None:
    found = put_in_order(desired(after("/namespaces/shop/ConfigMap/else, ")))
    told = f"ConfigMap/shop/web: {DEPENDS_ON} names ConfigMap/shop/else, which isn't declared here; it isn't waited for"
    assert (found.notes, found.awaits) == ((told,), {})
    elsewhere = Identity("", "ConfigMap", "shop", "else")
    assert put_in_order(desired(after("/namespaces/shop/ConfigMap/else")), others=[elsewhere]).notes == ()


names = st.sampled_from("abcdef")
marks = st.fixed_dictionaries({}, optional={"wave": st.sampled_from(["-1", "0", "2"]), "after": names})
SHARED = (
    CRD,
    document("Namespace", "shop"),
    document("Widget", "w", "acme.io/v1"),
    document("ValidatingWebhookConfiguration", "hook", "admissionregistration.k8s.io/v1"),
)


def graph(found: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    """ConfigMaps that depend only on names after their own, so that there is no cycle by depends-on alone."""
    bodies = []
    for name, mark in found.items():
        annotations = {SYNC_WAVE: mark["wave"]} if "wave" in mark else {}
        if mark.get("after", "") > name:
            annotations[DEPENDS_ON] = f"/namespaces/shop/ConfigMap/{mark['after']}"
        bodies.append(document(name=name, metadata={"annotations": annotations}))
    return [*bodies, *SHARED]


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.dictionaries(names, marks).map(graph).flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))))
def test_every_dependency_stands_earlier_and_no_object_is_lost(found: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    bodies, shuffled = found
    try:
        staged = order(*bodies)
    except PlanRefused:
        with pytest.raises(PlanRefused):
            order(*shuffled)
        return
    assert staged == order(*shuffled)
    assert sorted(name for stage in staged for name in stage) == sorted(f"{body['kind']}/{body['metadata']['name']}" for body in bodies)
    level = {name: number for number, stage in enumerate(staged) for name in stage}
    for body in bodies:
        name, annotations = f"{body['kind']}/{body['metadata']['name']}", body["metadata"].get("annotations") or {}
        needs = ["Namespace/shop"] * (body["kind"] in ("ConfigMap", "Widget")) + ["CustomResourceDefinition/widgets.acme.io"] * (
            body["kind"] == "Widget"
        )
        if DEPENDS_ON in annotations:
            needs.append(f"ConfigMap/{annotations[DEPENDS_ON][-1]}")
        assert all(level[need] < level[name] for need in needs if need in level)
    waves = {
        name: int((body["metadata"].get("annotations") or {}).get(SYNC_WAVE, 0))
        for body in bodies
        if (name := f"ConfigMap/{body['metadata']['name']}") in level
    }
    assert all(level[one] < level[other] for one in waves for other in waves if waves[one] < waves[other])
    assert level["ValidatingWebhookConfiguration/hook"] == len(staged) - 1
