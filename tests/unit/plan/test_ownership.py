"""Whose an object is that isn't ours: by label, annotation and field manager, tool by tool."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from handler.config.settings import Tool
from handler.model.names import IDENTITY, PART_OF, applyset_id, identity_of
from handler.plan.ownership import TOOLS, ForeignOwner, foreign_owner, managers_of, tool_marks
from tests.unit.plan.samples import SET, document, entry, instance
from tests.unit.rows import each_row

CONTROLLER = {"kind": "Shop", "name": "main", "uid": "u"}
TRACKED = {"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/web"}
RELEASE = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "apps"}
FLEET = {"objectset.rio.cattle.io/id": "default-shop-web"}
ADDON = FLEET | {"objectset.rio.cattle.io/owner-gvk": "k3s.cattle.io/v1, Kind=Addon", "objectset.rio.cattle.io/owner-name": "dns"}
OTHER = applyset_id("anneal-bank", "bank")
DATA: dict[str, Any] = {"f:data": {"f:a": {}}}


def owner(adopted: tuple[str, ...] = (), **metadata: Any) -> ForeignOwner | None:
    live = document(metadata={"namespace": "shop", **metadata})
    return foreign_owner(live, identity_of(live), SET, adopted)


def test_the_object_of_an_instance_is_no_foreign_owner_of_what_it_alone_owns() -> None:
    own = {"apiVersion": "acme.io/v1", "kind": "Shop", "name": "main", "uid": "uid-main", "controller": True}
    for references, named in (([own], None), ([own | {"name": "second"}], "Shop second"), ([own, own | {"name": "second"}], "Shop main")):
        live = document(metadata={"namespace": "shop", "ownerReferences": references})
        found = foreign_owner(live, identity_of(live), SET, instance=instance().instance)
        assert (found and found.name.partition(" and ")[0]) == named


def test_the_table_has_each_tool_that_a_target_can_name() -> None:
    assert tuple(TOOLS) == get_args(Tool)


@each_row(
    ("metadata", "named", "tools"),
    [
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}, "Flux Kustomization apps", ["flux"]),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "web"}}, "Flux HelmRelease web", ["flux"]),
        ({"labels": {"argocd.argoproj.io/instance": "web"}}, "Argo CD application web", ["argocd"]),
        ({"annotations": TRACKED}, "Argo CD application web", ["argocd"]),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "team_web:/ConfigMap:shop/web"}}, "Argo CD application web", ["argocd"]),
        ({"annotations": RELEASE}, "Helm release web", ["helm"]),
        (
            {"annotations": RELEASE, "labels": {"helm.toolkit.fluxcd.io/name": "w"}},
            "Flux HelmRelease w and Helm release web",
            ["flux", "helm"],
        ),
        ({"labels": {"kapp.k14s.io/app": "1"}}, "kapp app 1", ["kapp"]),
        ({"labels": {"kluctl.io/discriminator": "d"}}, "kluctl discriminator d", ["kluctl"]),
        ({"labels": {"kubernixos": "c"}}, "Kubernixos checksum c", ["kubernixos"]),
        ({"annotations": {"config.k8s.io/owning-inventory": "i"}}, "cli-utils inventory i", ["cli-utils"]),
        ({"annotations": FLEET}, "Rancher Fleet object set default-shop-web", ["fleet"]),
        ({"annotations": FLEET | RELEASE}, "Helm release web and Rancher Fleet object set default-shop-web", ["helm", "fleet"]),
        ({"annotations": ADDON}, "Addon dns", []),
        ({"labels": {PART_OF: "applyset-x-v1"}}, "ApplySet applyset-x-v1", []),
        ({"labels": {PART_OF: "applyset-x-v1"}, "annotations": {IDENTITY: "bank:/ConfigMap:shop/web"}}, "target bank", []),
        ({"labels": {PART_OF: "applyset-x-v1"}, "annotations": {IDENTITY: "bank:/ConfigMap:shop/copy"}}, "ApplySet applyset-x-v1", []),
        ({"labels": {PART_OF: "applyset-x-v1", "kapp.k14s.io/app": "1"}}, "ApplySet applyset-x-v1 and kapp app 1", []),
        ({"labels": {PART_OF: OTHER}}, f"ApplySet {OTHER}", [OTHER]),
        ({"labels": {PART_OF: OTHER}, "annotations": {IDENTITY: "bank:/ConfigMap:shop/web"}}, "target bank", [OTHER]),
        ({"labels": {PART_OF: OTHER, "kapp.k14s.io/app": "1"}}, f"ApplySet {OTHER} and kapp app 1", ["kapp", OTHER]),
        ({"labels": {PART_OF: OTHER}, "ownerReferences": [CONTROLLER | {"controller": True}]}, f"ApplySet {OTHER} and Shop main", []),
        ({"ownerReferences": [CONTROLLER, CONTROLLER | {"name": "second", "controller": True}]}, "Shop second", []),
    ],
)
def test_a_mark_names_its_owner_and_the_tools_that_a_target_would_have_to_name(
    metadata: dict[str, Any], named: str, tools: list[str]
) -> None:
    found = owner(**metadata)
    assert found
    assert (found.name, list(found.tools)) == (named, tools)
    if tools:
        assert owner(tuple(tools), **metadata) is None
        assert owner(tuple(tools[:-1]), **metadata) is not None
    else:
        assert owner(tuple(TOOLS), **metadata) is not None


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"labels": {PART_OF: SET}},
        {"labels": {"app": "web"}, "annotations": {"note": "x"}},
        {"ownerReferences": [CONTROLLER]},
        {"labels": {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "web", "helm.sh/chart": "web-1"}},
        {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "managedFields": [entry(DATA, "kubectl-client-side-apply", "Update")]},
        {"labels": {"objectset.rio.cattle.io/hash": "1"}},  # Services hand it on to their EndpointSlices
        {"labels": {"kustomize.toolkit.fluxcd.io/prune": "disabled"}},
    ],
)
def test_common_labels_name_no_owner(metadata: dict[str, Any]) -> None:
    assert owner(**metadata) is None


def labelled(key: str) -> dict[str, Any]:
    return {"f:metadata": {"f:labels": {f"f:{key}": {}}}}


INSTANCE, MANAGED_BY = "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"
FINALIZERS: dict[str, Any] = {"f:metadata": {"f:finalizers": {".": {}, 'v:"finalizers.fluxcd.io"': {}}}}
STATUS: dict[str, Any] = {"f:status": {"f:conditions": {}}}
WRITERS = [
    ("kustomize-controller", "Apply", DATA, {}, "Flux (field manager kustomize-controller)"),
    ("kustomize-controller", "Apply", {"f:metadata": {"f:labels": {"f:app": {}}}}, {}, "Flux (field manager kustomize-controller)"),
    ("kustomize-controller", "Update", FINALIZERS, {}, ""),
    ("kustomize-controller", "Update", STATUS, {"subresource": "status"}, ""),
    ("gotk-kustomize-controller", "Update", FINALIZERS, {}, ""),
    ("source-controller", "Update", FINALIZERS, {}, ""),
    ("flux", "Apply", DATA, {}, "Flux (field manager flux)"),
    ("flux", "Update", {"f:spec": {"f:suspend": {}}}, {}, ""),
    ("helm-controller", "Update", DATA, {}, "Flux (field manager helm-controller)"),
    ("helm-controller", "Apply", DATA, {}, "Flux (field manager helm-controller)"),
    ("helm-controller", "Update", FINALIZERS | STATUS, {}, ""),
    ("argocd-controller", "Update", DATA | labelled(INSTANCE), {}, "Argo CD application web"),
    ("argocd-controller", "Update", labelled(INSTANCE), {}, "Argo CD application web"),
    ("argocd-controller", "Apply", DATA, {}, "Argo CD (field manager argocd-controller)"),
    ("argocd-controller", "Update", {"f:metadata": {"f:labels": {"f:team": {}}}}, {}, ""),
    ("argocd-application-controller", "Update", DATA, {}, "Argo CD (field manager argocd-application-controller)"),
    ("argocd-application-controller", "Update", STATUS | {"f:operation": {"f:sync": {}}}, {}, ""),
    ("argocd-server", "Update", DATA, {}, ""),
    ("helm", "Update", DATA, {}, "Helm (field manager helm)"),
    ("helm", "Update", labelled(MANAGED_BY), {}, "Helm (field manager helm)"),
    ("helm", "Update", labelled("name"), {}, ""),  # --create-namespace
    ("helm", "Apply", DATA, {}, "Helm (field manager helm)"),
    ("terraform-provider-helm_v2.13.0_x5", "Update", DATA, {}, "Helm (field manager terraform-provider-helm_v2.13.0_x5)"),
    ("kapp", "Update", DATA, {}, "kapp (field manager kapp)"),
    ("kapp-controller", "Update", DATA, {}, ""),
    ("kluctl", "Apply", DATA, {}, "kluctl (field manager kluctl)"),
    ("kluctl", "Update", {"f:spec": {"f:suspend": {}}}, {}, ""),
    ("fleetagent", "Update", DATA, {}, "Rancher Fleet (field manager fleetagent)"),
    ("fleetagent", "Update", DATA, {"subresource": "status"}, ""),
    ("kube-controller-manager", "Update", DATA, {}, ""),
    ("kubectl-client-side-apply", "Update", DATA, {}, ""),
    ("cert-manager-certificates-issuing", "Apply", DATA, {}, ""),
]


@each_row(("manager", "operation", "fields", "more", "named"), WRITERS)
def test_a_tool_is_known_by_what_it_deployed_not_by_what_its_controllers_co_write(
    manager: str, operation: str, fields: dict[str, Any], more: dict[str, str], named: str
) -> None:
    written = entry(fields, manager, operation, **more)
    found = owner(labels={INSTANCE: "web", MANAGED_BY: "Helm"}, managedFields=[entry({}), written])
    assert (found.name if found else "") == named


PATCH = (
    "first stop Argo CD: kubectl patch applications.argoproj.io web -n {} --type=merge "
    """-p '{{"spec":{{"syncPolicy":{{"automated":null}}}}}}'"""
)
FORGET = (
    "helm uninstall would delete it all the same: once all of the release is taken over make Helm forget it: "
    "kubectl delete secrets -n apps -l owner=helm,name="
)


@pytest.mark.parametrize(
    ("metadata", "stop"),
    [
        (
            {"labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}},
            "first stop Flux: flux suspend kustomization apps -n flux-system",
        ),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "web"}}, "first stop Flux: flux suspend helmrelease web -n NAMESPACE"),
        ({"annotations": TRACKED}, PATCH.format("argocd")),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "team_web:/ConfigMap:shop/web"}}, PATCH.format("team")),
        ({"annotations": RELEASE}, f"{FORGET}web"),
        ({"annotations": {**RELEASE, "meta.helm.sh/release-name": "web; rm -rf $HOME"}}, f"{FORGET}NAME"),
        ({"labels": {"kubernixos": "c"}}, ""),
    ],
)
def test_a_tool_that_would_fight_back_is_stopped_by_a_command_made_of_the_marks(metadata: dict[str, Any], stop: str) -> None:
    found = owner(**metadata)
    assert found
    assert "; ".join(found.stop) == stop


def test_what_an_annotation_says_is_shown_in_one_short_line() -> None:
    found = owner(annotations={"meta.helm.sh/release-name": "web\n" + 200 * "x"})
    assert found
    assert found.name.startswith('Helm release "web\\nxxx')
    assert len(found.name) < 130


def test_the_managers_of_some_tools_are_theirs_alone() -> None:
    assert [each.name for each in managers_of(("helm", "kapp"))] == ["helm", "terraform-provider-helm*", "kapp", "kapp-server-side-apply"]
    assert managers_of(()) == ()


def test_marks_are_what_a_tool_labels_and_annotates_and_nothing_that_a_chart_brings() -> None:
    labels = {"kluctl.io/discriminator": "d", "kluctl.io/tag-0": "web", "app": "web", "kapp.k14s.io/app": "1"}
    annotations = {"kluctl.io/deployment-item-dir": "web", "kluctl.io/skip-delete": "true"}
    found = tool_marks(document(metadata={"labels": labels, "annotations": annotations}), ("kluctl", "argocd"))
    assert found == {
        "f:metadata": {
            "f:labels": {"f:kluctl.io/discriminator": {}, "f:kluctl.io/tag-0": {}},
            "f:annotations": {"f:kluctl.io/deployment-item-dir": {}},
        }
    }
    assert tool_marks(document(), ("kluctl",)) == {}
