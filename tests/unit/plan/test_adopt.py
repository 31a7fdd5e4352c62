"""Whether an object is ours, and what is taken over from those who applied it before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, identity_of
from handler.plan.adopt import is_member, taken_over
from tests.unit.plan.samples import SET, document, entry, member


def ours(live: dict[str, Any]) -> bool:
    return is_member(live, identity_of(live), "shop", SET)


def test_label_and_identity_together_make_an_object_ours() -> None:
    assert ours(member(document()))


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {PART_OF: "applyset-another-v1"}},
        {"labels": None},
        {"annotations": None},
        {"annotations": {IDENTITY: "shop:/ConfigMap:shop/original"}},
        {"annotations": {IDENTITY: "bank:/ConfigMap:shop/web"}},
        {"annotations": {IDENTITY: "shop:apps/ConfigMap:shop/web"}},
        {"annotations": {IDENTITY: "shop:/ConfigMap:bank/web"}},
        {"annotations": {IDENTITY: "shop:/ConfigMap:shop/web2"}},
    ],
)
def test_a_copied_or_missing_mark_makes_it_not_ours(change: dict[str, Any]) -> None:
    live = member(document())
    live["metadata"] |= change
    assert not ours(live)


def entries(*found: dict[str, Any], tools: tuple[str, ...] = (), **metadata: Any) -> list[dict[str, Any]]:
    merged = taken_over(document(metadata={"managedFields": list(found), **metadata}), tools)
    return json.loads(merged) if merged else []


@pytest.mark.parametrize(
    ("manager", "operation", "more", "taken"),
    [
        ("kubectl-client-side-apply", "Update", {}, True),
        ("kubectl", "Apply", {}, True),
        ("kubectl-edit", "Update", {}, True),
        ("before-first-apply", "Update", {}, True),
        ("kustomize-controller", "Apply", {}, False),
        ("argocd-controller", "Apply", {}, False),
        ("helm", "Update", {}, False),
        (FIELD_MANAGER, "Update", {}, True),
        (FIELD_MANAGER, "Apply", {}, False),
        (f"{FIELD_MANAGER}ing-oven", "Update", {}, False),
        ("kubectl-scale", "Update", {"subresource": "scale"}, False),
        ("kube-controller-manager", "Update", {}, False),
    ],
)
def test_only_the_fields_of_appliers_are_taken_over(manager: str, operation: str, more: dict[str, str], taken: bool) -> None:
    found = entries(entry({"f:data": {"f:a": {}}}, manager, operation, **more))
    assert [(each["manager"], each["operation"], each["fieldsV1"]) for each in found] == (
        [(FIELD_MANAGER, "Apply", {"f:data": {"f:a": {}}})] if taken else []
    )


def test_fields_of_several_appliers_join_ours_and_others_stay() -> None:
    ours, theirs = entry({"f:data": {"f:a": {}}}), entry({"f:data": {"f:b": {}}}, "kubectl-client-side-apply", "Update")
    hpa, helm = entry({"f:spec": {"f:replicas": {}}}, "hpa", "Update"), entry({"f:data": {"f:c": {}}}, "helm", "Update")
    assert entries(hpa, theirs, ours, helm) == [ours | {"fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}}}, hpa, helm]
    found = entries(hpa, theirs, ours, helm, tools=("helm",))
    assert found == [ours | {"fieldsV1": {"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}}}, hpa]


def test_an_entry_without_fields_adds_none() -> None:
    bare = entry({}, "kubectl", "Update")
    del bare["fieldsV1"]
    assert entries(bare)[0]["fieldsV1"] == {}
    assert taken_over({}) == b""


DATA: dict[str, Any] = {"f:data": {"f:a": {}}}
TRACKED = "argocd.argoproj.io/tracking-id"
TAKEN = [
    ("kustomize-controller", "Apply", DATA, {}, DATA),
    ("kustomize-controller", "Update", {"f:metadata": {"f:finalizers": {}}}, {}, None),
    ("kustomize-controller", "Apply", DATA, {"subresource": "status"}, None),
    ("helm-controller", "Update", {"f:metadata": {"f:finalizers": {".": {}, 'v:"f"': {}}}}, {}, None),
    ("helm-controller", "Update", DATA | {"f:metadata": {"f:finalizers": {".": {}}}, "f:status": {"f:x": {}}}, {}, DATA),
    ("argocd-application-controller", "Update", {"f:operation": {"f:sync": {}}, "f:status": {}}, {}, None),
    ("gotk-kustomize-controller", "Update", DATA, {}, None),
    ("helm", "Update", DATA, {}, None),
]


@pytest.mark.parametrize(("manager", "operation", "fields", "more", "taken"), TAKEN)
def test_what_the_named_tools_deployed_is_taken_over_and_never_finalizers_or_status(
    manager: str, operation: str, fields: dict[str, Any], more: dict[str, str], taken: dict[str, Any] | None
) -> None:
    found = entries(entry(fields, manager, operation, **more), tools=("flux", "argocd"))
    assert [each["fieldsV1"] for each in found if each["manager"] == FIELD_MANAGER] == ([taken] if taken else [])
    left = [each["fieldsV1"] for each in found if each["manager"] == manager]
    assert left == ([{key: fields[key] for key in fields if key != "f:data"}] if taken and fields != DATA else [])


def test_the_marks_of_the_named_tools_go_whoever_wrote_them() -> None:
    marked: dict[str, Any] = {
        "f:metadata": {"f:labels": {".": {}, "f:kapp.k14s.io/app": {}, "f:app": {}}, "f:annotations": {f"f:{TRACKED}": {}}}
    }
    metadata = {"labels": {"kapp.k14s.io/app": "1", "app": "web"}, "annotations": {TRACKED: "web:/ConfigMap:shop/web"}}
    operator = entry(marked, "operator", "Update")
    found = entries(operator, tools=("kapp",), **metadata)
    mine: dict[str, Any] = {"f:metadata": {"f:labels": {"f:kapp.k14s.io/app": {}}}}
    assert [(each["manager"], each["operation"]) for each in found] == [(FIELD_MANAGER, "Apply"), ("operator", "Update")]
    assert found[0]["fieldsV1"] == mine
    assert found[1]["fieldsV1"]["f:metadata"]["f:labels"] == {".": {}, "f:app": {}}
    assert f"f:{TRACKED}" in found[1]["fieldsV1"]["f:metadata"]["f:annotations"]
    assert entries(operator, tools=("helm",), **metadata) == []
