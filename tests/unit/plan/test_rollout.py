"""A Rollout against what its commit declares: modes, stages of groups, what is refused before anything is asked of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from handler.engine.rollout_runner.actions import ACTIONS
from handler.model.errors import ManifestInvalid, PlanRefused
from handler.model.manifest import Manifest
from handler.model.names import identity_of
from handler.model.plan import Due
from handler.model.render import Rendered
from handler.model.rollout import Mode
from handler.model.tree import ReadSet
from handler.plan.admission import Desired
from handler.plan.rollout import PlannedRollout, refuse_strays, roll
from handler.rollout.checks import CHECKS
from tests.unit.plan import samples
from tests.unit.plan.samples import document

CRD = {
    "group": "shop.example.com",
    "scope": "Namespaced",
    "names": {"kind": "Offer", "plural": "offers"},
    "versions": [{"name": "v1", "served": True}],
}
SCOPED = {"cluster_scoped": ("Namespace", "CustomResourceDefinition.apiextensions.k8s.io"), "namespaces": ("shop", "new")}


def rollout(*groups: Mapping[str, Any], parallel: bool = False) -> Manifest:
    body = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "all"}}
    return Manifest.of({**body, "spec": {"parallel": parallel, "groups": list(groups)}}, "rollout.yaml:1")


def group(*steps: tuple[str, str], parallel: bool = False) -> dict[str, Any]:
    return {"parallel": parallel, "steps": [{"object": key, "action": action} for key, action in steps]}


def planned_rollout(
    files: Mapping[str, dict[str, Any]], document: Manifest | None, **settings: Any
) -> tuple[tuple[Desired, ...], PlannedRollout]:
    manifests = tuple(Manifest.of(body, f"{key}:1") for key, body in files.items())
    keys = {key: (identity_of(body),) for key, body in files.items()}
    rendered = Rendered(manifests, ReadSet(()), rollout=document, keys=keys)
    return roll(rendered, samples.admission(**settings).admit(manifests), ACTIONS, CHECKS)


FILES = {name: document(name=name) for name in ("a", "b", "c", "d")} | {"web": document("Deployment", "web", "apps/v1")}


def test_an_object_stands_in_the_stage_of_the_first_group_with_a_step_for_it() -> None:
    first = group(("web", "CreateOrUpdate"), ("b", "CreateIfNotExist"))
    second = group(("b", "CreateIfNotExist"), ("c", "Recreate"), ("d", "DeleteIfExist"))
    automatic, found = planned_rollout(FILES, rollout(first, second))
    assert [str(item.identity) for item in automatic] == ["ConfigMap/shop/a"]
    assert [[(item.identity.name, item.mode) for item in stage] for stage in found.stages] == [
        [("b", Mode.KEEP), ("web", Mode.APPLY)],
        [("c", Mode.RECREATE)],
    ]
    assert [(str(identity), item.mode) for identity, item in found.doomed.items()] == [("ConfigMap/shop/d", Mode.DELETE)]
    assert found.notes == ("1 object that no step names is applied before the first group",)
    assert {identity.name for identity in found.named} == {"b", "c", "d", "web"}


def test_a_rollout_with_values_that_arent_in_git_is_refused_by_their_places() -> None:
    written = replace(rollout(group(("a", "hunter2"))), hidden=("/spec/groups/0/steps/0/action",))
    with pytest.raises(ManifestInvalid, match="holds values that aren't in git: /spec/groups/0/steps/0/action; write there only") as error:
        planned_rollout(FILES, written)
    assert "hunter2" not in str(error.value)


def test_each_step_that_is_not_done_is_due() -> None:
    _, found = planned_rollout(FILES, rollout(group(("a", "CreateOrUpdate"), ("b", "Recreate"))))
    a, b = (identity_of(FILES[name]) for name in "ab")
    wanted = (
        Due("group 1", "a", samples.desired(FILES["a"])[0].identity, "CreateOrUpdate"),
        Due("group 1", "b", samples.desired(FILES["b"])[0].identity, "Recreate"),
    )
    assert found.due() == wanted
    assert found.due({("group 1", "a")}) == wanted[1:]
    assert (a.namespace, b.namespace, wanted[0].identity.namespace) == ("", "", "shop")


def test_without_a_rollout_all_objects_are_applied_automatically() -> None:
    automatic, found = planned_rollout(FILES, None)
    assert len(automatic) == len(FILES)
    assert found == PlannedRollout()
    assert (found.due(), found.notes, found.named) == ((), (), frozenset())


def test_a_group_puts_its_objects_in_the_order_of_kinds_and_waves() -> None:
    late = document(name="late", metadata={"annotations": {"argocd.argoproj.io/sync-wave": "2"}})
    files = {"late": late, "web": FILES["web"], "a": FILES["a"]}
    _, found = planned_rollout(files, rollout(group(("late", "CreateOrUpdate"), ("web", "CreateOrUpdate"), ("a", "CreateOrUpdate"))))
    assert [item.identity.name for item in found.stages[0]] == ["a", "web", "late"]


NEEDY: dict[str, dict[str, Any]] = {
    "crd": document("CustomResourceDefinition", "offers.shop.example.com", "apiextensions.k8s.io/v1", spec=CRD),
    "offer": document("Offer", "tea", "shop.example.com/v1"),
    "ns": document("Namespace", "new"),
    "inside": document(name="inside", metadata={"namespace": "new"}),
}
APPLY = "CreateOrUpdate"


@pytest.mark.parametrize(
    "groups",
    [
        [group(("crd", APPLY), ("offer", APPLY))],
        [group(("crd", APPLY), ("ns", APPLY), parallel=True), group(("offer", APPLY), ("inside", APPLY))],
        [group(("offer", APPLY))],
    ],
)
def test_a_dependency_may_come_in_an_earlier_group(groups: list[dict[str, Any]]) -> None:
    files = {key: body for key, body in NEEDY.items() if key != "inside" or len(groups) == 2}
    _, found = planned_rollout(files, rollout(*groups), **SCOPED)
    assert len(found.stages) == len(groups)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            rollout(group(("crd", APPLY))),
            "Offer/shop/tea: can't be without CustomResourceDefinition/offers.shop.example.com, which step crd in group 1",
        ),
        (rollout(group(("offer", APPLY), ("crd", APPLY))), "Offer/shop/tea: can't be without"),
        (rollout(group(("crd", APPLY), ("offer", APPLY), parallel=True)), "Offer/shop/tea: can't be without"),
        (rollout(group(("crd", APPLY)), group(("offer", APPLY)), parallel=True), "Offer/shop/tea: can't be without"),
        (
            rollout(group(("inside", APPLY)), group(("ns", APPLY))),
            "ConfigMap/new/inside: can't be without Namespace/new, which step ns in group 2",
        ),
        (rollout(group(("ns", "DeleteIfExist"))), "ConfigMap/new/inside: can't be without Namespace/new, which step ns in group 1 deletes"),
    ],
)
def test_an_object_in_a_group_before_its_dependency_is_refused(document: Manifest, said: str) -> None:
    with pytest.raises(PlanRefused) as refused:
        planned_rollout(NEEDY, document, **SCOPED)
    assert [each for each in str(refused.value).splitlines() if said in each]


@pytest.mark.parametrize(
    ("annotation", "value", "action", "way_out"),
    [
        ("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", "CreateOrUpdate", "remove the annotation, or write action: CreateIfNotExist"),
        ("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", "Recreate", "remove the annotation, or write action: CreateIfNotExist"),
        ("kustomize.toolkit.fluxcd.io/reconcile", "disabled", "CreateOrUpdate", "remove the annotation, or that step"),
        ("kustomize.toolkit.fluxcd.io/reconcile", "disabled", "DeleteIfExist", "remove the annotation, or that step"),
    ],
)
def test_a_step_that_does_what_an_annotation_forbids_is_refused(annotation: str, value: str, action: str, way_out: str) -> None:
    files = {"a": document(name="a", metadata={"annotations": {annotation: value}}), "b": FILES["b"]}
    with pytest.raises(PlanRefused) as refused:
        planned_rollout(files, rollout(group(("a", action), ("b", "CreateOrUpdate"))))
    assert str(refused.value).startswith(
        f"a:1: ConfigMap/shop/a: {annotation}: {value}, set in git, keeps it from what step a in group 1 would do"
    )
    assert str(refused.value).endswith(f"; {way_out}")


def test_what_an_annotation_keeps_may_be_created_by_a_step_and_stand_beside_the_steps() -> None:
    files = {"a": document(name="a", metadata={"annotations": {"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}}), "b": FILES["b"]}
    _, created = planned_rollout(files, rollout(group(("a", "CreateIfNotExist"))))
    assert [item.mode for stage in created.stages for item in stage] == [Mode.KEEP]
    automatic, _ = planned_rollout(files, rollout(group(("b", "CreateOrUpdate"))))
    assert [item.mode for item in automatic] == [Mode.KEEP]


def test_what_a_step_deletes_is_found_by_its_group() -> None:
    _, found = planned_rollout(FILES, rollout(group(("a", "CreateOrUpdate")), group(("b", "Recreate"), ("c", "DeleteIfExist"))))
    assert [found.group_of(identity) for identity in found.doomed] == [1]


def test_deleting_a_namespace_with_all_that_is_in_it_is_no_contradiction() -> None:
    _, found = planned_rollout(NEEDY, rollout(group(("inside", "DeleteIfExist"), ("ns", "DeleteIfExist"))), **SCOPED)
    assert len(found.doomed) == 2


@pytest.mark.parametrize(
    ("named", "way_out"),
    [
        ("", "add to target shop: rollout: deploy/r.yaml"),
        ("other.yaml", "target shop has another one, other.yaml: exclude this file, or add it to .annealignore"),
    ],
)
def test_a_rollout_among_the_objects_is_refused_with_the_line_that_helps(named: str, way_out: str) -> None:
    stray = Manifest.of(rollout(group(("a", APPLY))).body(), "deploy/r.yaml:3")
    with pytest.raises(ManifestInvalid) as refused:
        refuse_strays([samples.manifest(), stray], samples.target(rollout=named))
    assert (
        str(refused.value) == f"deploy/r.yaml:3: Rollout/all: is a Rollout: it says how objects are applied, and is none of them; {way_out}"
    )
    argo = Manifest.of(document("Rollout", "web", "argoproj.io/v1alpha1"), "web.yaml:1")
    refuse_strays([samples.manifest(), argo], samples.target())
