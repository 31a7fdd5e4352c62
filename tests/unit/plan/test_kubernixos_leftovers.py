"""Which labelled objects the original Kubernixos has left, from what lives alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.model.names import IDENTITY, KUBERNIXOS, PART_OF, Identity, Resource
from handler.plan.kubernixos_leftovers import VERBS, Leftovers, is_applied, is_inside, is_looked_through

TARGET = Target("shop", Repository("https://git.example.com/shop.git"), ("shop",), cluster_scoped=("Namespace",), adopt=("kubernixos",))
RULE = Leftovers(TARGET, "applyset-shop-v1", "new")
COPIED = "kubectl apply hasn't put the label on it: something has copied it"
LABELLED: dict[str, Any] = {"f:metadata": {"f:labels": {f"f:{KUBERNIXOS}": {}}}}
LAST = "kubectl.kubernetes.io/last-applied-configuration"


def entry(manager: str, operation: str = "Update", fields: Any = None, subresource: str = "") -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": fields or LABELLED, "apiVersion": "v1", "subresource": subresource}


CLIENT_SIDE = entry("kubectl-client-side-apply")


def live(*entries: dict[str, Any], checksum: str = "old", labels: Any = None, **metadata: Any) -> dict[str, Any]:
    known = {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "1", "managedFields": list(entries)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": known | {"labels": {KUBERNIXOS: checksum, **(labels or {})}} | metadata}


def applied(checksum: str = "old", **metadata: Any) -> dict[str, str]:
    named = {"name": "web", "namespace": "shop", "labels": {KUBERNIXOS: checksum}} | metadata
    return {LAST: json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named})}


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (live(CLIENT_SIDE), ""),
        (live(CLIENT_SIDE, checksum="new"), None),
        (live(CLIENT_SIDE, labels={PART_OF: "applyset-shop-v1"}), None),
        (live(CLIENT_SIDE, labels={PART_OF: "applyset-other-v1"}), None),
        (live(CLIENT_SIDE, annotations={IDENTITY: "other:/ConfigMap:shop/web"}), "is on its way from one target to another"),
        (live(CLIENT_SIDE, ownerReferences=[{"kind": "Service", "name": "web"}]), ""),
        (live(entry("endpointslice-controller")), COPIED),
        (live(CLIENT_SIDE, labels={"kapp.k14s.io/app": "1"}), "belongs to kapp app 1"),
        ({"metadata": {"labels": {}}}, None),
        ({"metadata": {}}, None),
    ],
)
def test_a_leftover_has_another_checksum_no_other_owner_and_was_applied(found: dict[str, Any], kept: str | None) -> None:
    assert RULE.kept(found) == kept


def test_what_another_tool_has_is_kept_though_the_target_takes_its_objects_over_where_it_declares_them() -> None:
    rule = replace(RULE, target=replace(TARGET, adopt=("kubernixos", "helm")))
    assert rule.kept(live(CLIENT_SIDE, annotations={"meta.helm.sh/release-name": "web"})) == "belongs to Helm release web"


def test_a_target_that_doesnt_adopt_leaves_them_to_kubernixos() -> None:
    assert replace(RULE, target=replace(TARGET, adopt="unowned")).kept(live(CLIENT_SIDE)) == "belongs to Kubernixos checksum old"


@pytest.mark.parametrize(
    ("found", "is_so"),
    [
        (live(CLIENT_SIDE), True),
        (live(entry("kubectl", "Apply")), True),
        (live(entry("kubectl", "Update")), False),
        (live(entry("kubectl-label")), False),
        (live(entry("kubectl-edit")), False),
        (live(entry("kubectl-create")), False),
        (live(entry("kubectl-client-side-apply", "Apply")), False),
        (live(entry("kubectl", "Apply", {"f:data": {}})), False),
        (live(entry("kubectl", "Update", subresource="status")), False),
        (live(annotations=applied()), True),
        (live(entry("kubectl", "Update"), annotations=applied()), True),
        (live(annotations=applied(namespace="")), False),
        (live(annotations=applied("older")), False),
        (live(annotations=applied(name="other")), False),
        (live(annotations=applied(namespace="other")), False),
        (live(annotations=applied(labels=None)), False),
        (live(annotations={LAST: "{"}), False),
        (live(annotations={LAST: "[]"}), False),
        (live(annotations={LAST: '{"metadata": 1}'}), False),
        (live(annotations={LAST: ""}), False),
        (live(annotations={LAST: "[" * 100_000}), False),
        (live(), False),
    ],
)
def test_only_an_apply_of_exactly_this_object_proves_it(found: dict[str, Any], is_so: bool) -> None:
    assert is_applied(found) is is_so


@pytest.mark.parametrize(
    ("group", "applied_as", "is_so"),
    [
        ("apps", "extensions", True),
        ("networking.k8s.io", "extensions", True),
        ("traefik.io", "traefik.containo.us", False),
        ("serving.knative.dev", "", False),
        ("", "serving.knative.dev", False),
    ],
)
def test_an_object_that_moved_to_another_group_is_the_same_one_among_kubernetes_own(group: str, applied_as: str, is_so: bool) -> None:
    one, other = (f"{each}/v1".lstrip("/") for each in (group, applied_as))
    last = {**json.loads(applied()[LAST]), "apiVersion": other}
    assert is_applied({**live(annotations={LAST: json.dumps(last)}), "apiVersion": one}) is is_so


@pytest.mark.parametrize(
    ("kind", "namespaced", "verbs", "is_so"),
    [
        ("ConfigMap", True, VERBS | {"watch"}, True),
        ("ConfigMap", True, VERBS - {"patch"}, False),
        ("ConfigMap", True, VERBS - {"update"}, False),
        ("Namespace", False, VERBS, True),
        ("Node", False, VERBS, False),
    ],
)
def test_kinds_are_searched_that_have_the_verbs_and_are_allowed(kind: str, namespaced: bool, verbs: frozenset[str], is_so: bool) -> None:
    assert is_looked_through(Resource("", "v1", kind, f"{kind.lower()}s", namespaced, verbs), TARGET) is is_so


@pytest.mark.parametrize(
    ("identity", "is_so"),
    [
        (Identity("", "ConfigMap", "shop", "web"), True),
        (Identity("", "ConfigMap", "other", "web"), False),
        (Identity("", "Namespace", "", "shop"), True),
        (Identity("", "Namespace", "", "other"), False),
        (Identity("rbac.authorization.k8s.io", "ClusterRole", "", "web"), True),
    ],
)
def test_the_whitelist_reaches_objects_and_namespaces(identity: Identity, is_so: bool) -> None:
    assert is_inside(identity, TARGET) is is_so
