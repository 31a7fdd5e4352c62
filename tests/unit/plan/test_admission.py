"""What git declares is admitted, or every reason is reported at once with the line that would allow it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.model.errors import PlanRefused
from handler.model.manifest import Manifest
from handler.model.names import IDENTITY, PART_OF, Identity
from handler.plan.admission import declared_kinds
from tests.unit.plan.samples import CRD, SET, admission, desired, document, instance


def refusals(*bodies: dict[str, Any], **settings: Any) -> list[str]:
    with pytest.raises(PlanRefused) as caught:
        desired(*bodies, **settings)
    return [str(problem) for problem in caught.value.problems]


def test_inventory_marks_and_the_default_namespace_are_set() -> None:
    (item,) = desired(document(metadata={"labels": {"app": "web"}}))
    metadata = item.manifest.body()["metadata"]
    assert item.identity == Identity("", "ConfigMap", "shop", "web")
    assert metadata["labels"] == {"app": "web", PART_OF: SET}
    assert metadata["annotations"] == {IDENTITY: "shop:/ConfigMap:shop/web"}


def test_a_star_allows_every_cluster_scoped_object_which_loses_a_namespace_it_cant_have() -> None:
    (item,) = desired(document("Namespace", "shop", metadata={"namespace": "shop"}), cluster_scoped=("*",))
    assert item.identity == Identity("", "Namespace", "", "shop")


@pytest.mark.parametrize(
    ("body", "settings", "told"),
    [
        (
            document(metadata={"namespace": "bank"}),
            {},
            "0.yaml:1: ConfigMap/bank/web: namespace bank is not in the target's whitelist; add to target shop: namespaces: [shop, bank]",
        ),
        (
            document(metadata={"namespace": "shpo"}),
            {},
            (
                "0.yaml:1: ConfigMap/shpo/web: namespace shpo is not in the target's whitelist, which has shop; "
                "correct it to shop; or, if it is meant: add to target shop: namespaces: [shop, shpo]"
            ),
        ),
        (
            document("Namespace", "shpo"),
            {},
            (
                "0.yaml:1: Namespace/shpo: Namespace is cluster-scoped and not allowed here, and namespace shpo is not in the target's "
                "whitelist, which has shop; correct it to shop; or, if it is meant: add to target shop:\n  namespaces: [shop, shpo]\n"
                "  clusterScoped: [Namespace]"
            ),
        ),
        (
            document(),
            {"namespace": ""},
            (
                "0.yaml:1: ConfigMap/web: names no namespace, and the target has no default; "
                "write metadata.namespace, or set namespace: shop on target shop"
            ),
        ),
        (
            document(),
            {"namespace": "", "namespaces": ("*",)},
            (
                "0.yaml:1: ConfigMap/web: names no namespace, and the target has no default; "
                "write metadata.namespace, or set namespace: default on target shop"
            ),
        ),
        (
            document("Namespace", "shop"),
            {"cluster_scoped": ("ClusterRole",)},
            (
                "0.yaml:1: Namespace/shop: Namespace is cluster-scoped and not allowed here; "
                "add to target shop: clusterScoped: [ClusterRole, Namespace]"
            ),
        ),
        (
            document("Namespace", "bank"),
            {"cluster_scoped": ("Namespace",)},
            "0.yaml:1: Namespace/bank: namespace bank is not in the target's whitelist; add to target shop: namespaces: [shop, bank]",
        ),
        (
            document("Deploymnt", api="apps/v1"),
            {},
            "0.yaml:1: Deploymnt/web: the API server doesn't serve apps/v1 Deploymnt; did you mean apps/v1 Deployment?",
        ),
        (
            document("Namespace", "bank"),
            {"cluster_scoped": ("ClusterRole",)},
            (
                "0.yaml:1: Namespace/bank: Namespace is cluster-scoped and not allowed here, and namespace bank is not in the target's "
                "whitelist; add to target shop:\n  namespaces: [shop, bank]\n  clusterScoped: [ClusterRole, Namespace]"
            ),
        ),
        (
            document("Deployment", api="extensions/v1beta1"),
            {},
            (
                "0.yaml:1: Deployment/web: the API server doesn't serve extensions/v1beta1 Deployment; did you mean apps/v1 Deployment? "
                "Else declare its CustomResourceDefinition in the same path, or install it first"
            ),
        ),
        (
            document("ConfigMapList", api="monitoring.coreos.com/v1"),
            {},
            (
                "0.yaml:1: ConfigMapList/web: the API server doesn't serve monitoring.coreos.com/v1 ConfigMapList; "
                "declare its CustomResourceDefinition in the same path, or install it first"
            ),
        ),
        (
            document("Qqq", api="zzz.example/v9"),
            {},
            (
                "0.yaml:1: Qqq/web: the API server doesn't serve zzz.example/v9 Qqq; "
                "declare its CustomResourceDefinition in the same path, or install it first"
            ),
        ),
        (
            document("Binding"),
            {},
            "0.yaml:1: Binding/shop/web: Binding is a request, not an object: the API server keeps none of it; remove it from git",
        ),
        (
            document("ConfigMap", "anneal-shop", metadata={"namespace": "anneal-system"}),
            {"namespaces": ("*",)},
            "0.yaml:1: ConfigMap/anneal-system/anneal-shop: is where Anneal keeps its own state; give it another name or namespace",
        ),
    ],
)
def test_an_admission_refusal_names_the_place_and_the_fix(body: dict[str, Any], settings: dict[str, Any], told: str) -> None:
    assert refusals(body, **settings) == [told]


def test_an_object_in_the_namespace_of_the_record_is_allowed() -> None:
    (item,) = desired(document(metadata={"namespace": "anneal-system"}), namespaces=("*",))
    assert item.identity.namespace == "anneal-system"


def test_two_documents_for_one_object_name_both_places() -> None:
    (told,) = refusals(document(), document(metadata={"namespace": "shop"}))
    assert told == "1.yaml:1: ConfigMap/shop/web: is declared twice, also at 0.yaml:1; keep one of them"


def test_all_mistakes_are_told_at_once() -> None:
    assert len(refusals(document("Nope"), document(metadata={"namespace": "bank"}), document("Namespace", "x"))) == 4  # and the block


@pytest.mark.parametrize("body", [document(metadata={"namespace": "bank"}), document("Namespace", "bank")])
def test_an_instance_is_confined_to_the_namespace_of_its_object(body: dict[str, Any]) -> None:
    confined, wide = (replace(admission(), target=instance(across=across, cluster_scoped=("Namespace",))) for across in (False, True))
    with pytest.raises(PlanRefused) as caught:
        confined.admit([Manifest.of(body, "0.yaml:1")])
    (problem,) = caught.value.problems
    assert problem.fix == (
        "an instance of shop declares objects of its own namespace alone; for others write acrossNamespaces: true under its "
        "trigger.resource, and name them in namespaces or clusterScoped"
    )
    with pytest.raises(PlanRefused) as caught:
        wide.admit([Manifest.of(body, "0.yaml:1")])
    assert caught.value.problems[0].fix == "add to target shop: namespaces: [shop, bank]"
    assert confined.admit([Manifest.of(document(), "0.yaml:1")])


def test_a_namespace_that_resembles_an_allowed_one_is_corrected_before_it_is_allowed() -> None:
    there = [document(name=name, metadata={"namespace": "shpo"}) for name in ("a", "b")]
    (told,) = refusals(*there)
    assert told == (
        "0.yaml:1: ConfigMap/shpo/a and 1 more: namespace shpo is not in the target's whitelist, which has shop; "
        "correct it to shop\nor, if it is meant: add to target shop: namespaces: [shop, shpo]"
    )
    for other in ("shop-b", "shop2", "ship-eu", "bank"):
        assert "which has" not in refusals(document(metadata={"namespace": other}))[0]
    *said, end = refusals(*there, document(metadata={"namespace": "bank"}))
    assert [line.partition("whitelist")[2] for line in said] == [", which has shop", ""]
    assert end.endswith("namespaces: [shop, shpo, bank]\nor correct it to shop")


def test_missing_settings_are_one_block_at_the_end_with_each_refusal_counted() -> None:
    there = [document(name=name, metadata={"namespace": space}) for space in ("bank", "club") for name in ("a", "b")]
    assert refusals(document("Nope"), *there, document("Namespace", "bank"), cluster_scoped=("ClusterRole",))[1:] == [
        "1.yaml:1: ConfigMap/bank/a and 1 more: namespace bank is not in the target's whitelist",
        "3.yaml:1: ConfigMap/club/a and 1 more: namespace club is not in the target's whitelist",
        "5.yaml:1: Namespace/bank: Namespace is cluster-scoped and not allowed here, and namespace bank is not in the target's whitelist",
        (
            "target shop: 5 objects need what it doesn't allow; add to target shop:\n"
            "  namespaces: [shop, bank, club]\n  clusterScoped: [ClusterRole, Namespace]"
        ),
    ]


def test_objects_of_one_unknown_kind_are_one_line_with_its_own_way_out() -> None:
    kinds = [document(kind, name, "zzz.example/v1") for kind in ("Pump", "Valve") for name in "abc"]
    assert refusals(*kinds, document(metadata={"namespace": "bank"})) == [
        (
            "0.yaml:1: Pump/a and 2 more: the API server doesn't serve zzz.example/v1 Pump; "
            "declare its CustomResourceDefinition in the same path, or install it first"
        ),
        (
            "3.yaml:1: Valve/a and 2 more: the API server doesn't serve zzz.example/v1 Valve; "
            "declare its CustomResourceDefinition in the same path, or install it first"
        ),
        "6.yaml:1: ConfigMap/bank/web: namespace bank is not in the target's whitelist; add to target shop: namespaces: [shop, bank]",
    ]


def test_a_kind_that_this_commit_brings_is_known_and_waits_for_its_crd_and_namespace() -> None:
    namespace, widget = document("Namespace", "shop"), document("Widget", "w", "acme.io/v1")
    items = desired(CRD, namespace, widget, cluster_scoped=("Namespace", "CustomResourceDefinition.apiextensions.k8s.io"))
    found = {item.identity.kind: item for item in items}
    assert found["Widget"].resource.plural == "widgets"
    assert [str(need) for need in found["Widget"].needs] == ["CustomResourceDefinition/widgets.acme.io", "Namespace/shop"]


def test_versions_of_gits_crd_count_not_those_of_the_live_one() -> None:
    names, versions = {"kind": "Gadget", "plural": "gadgets"}, [{"name": "v0", "served": False}, {"name": "v1", "served": True}]
    spec = {"group": "acme.io", "scope": "Namespaced", "names": names, "versions": versions}
    crd = document("CustomResourceDefinition", "gadgets.acme.io", "apiextensions.k8s.io/v1", spec=spec)
    gadget = document("Gadget", "g", "acme.io/v0")
    assert refusals(crd, gadget, cluster_scoped=(CRD["kind"],)) == [
        "1.yaml:1: Gadget/g: git's own CustomResourceDefinition doesn't serve acme.io/v0 Gadget; did you mean acme.io/v1 Gadget?"
    ]
    assert desired(gadget)
    created_only = {**crd, "metadata": {**crd["metadata"], "annotations": {"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}}}
    assert desired(created_only, gadget, cluster_scoped=(CRD["kind"],)), "the live one stays as it is"


@pytest.mark.parametrize("spec", [None, "text", [], {"versions": "v1"}, {"names": "w", "versions": ["v1", {"name": "v1"}]}])
def test_a_crd_of_any_shape_is_the_servers_to_refuse(spec: Any) -> None:
    (item,) = desired(CRD | {"spec": spec}, cluster_scoped=(CRD["kind"],))
    assert item.identity.name == "widgets.acme.io"


def test_a_kind_brought_by_a_crd_may_be_cluster_scoped() -> None:
    crd = CRD | {"spec": CRD["spec"] | {"scope": "Cluster"}}
    items = desired(crd, document("Widget", "w", "acme.io/v1"), cluster_scoped=(CRD["kind"], "Widget.acme.io"))
    assert [str(item.identity) for item in items] == ["CustomResourceDefinition/widgets.acme.io", "Widget/w"]


def test_only_a_crd_declares_kinds() -> None:
    assert [resource.plural for _, resource in declared_kinds(CRD)] == ["widgets"]
    assert list(declared_kinds(document("Deployment", "web", "apps/v1", spec=CRD["spec"]))) == []
