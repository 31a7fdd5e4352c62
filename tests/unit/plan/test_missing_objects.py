"""What a refusal says is missing, and whether that is an object which the refused one names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.model.errors import Problem
from handler.model.names import Identity
from handler.plan.admission import Desired
from handler.plan.missing_objects import MissingObject, among, declare, is_told, put_before, read, without, without_namespace
from tests.unit.plan.samples import desired, document, target

RBAC = "rbac.authorization.k8s.io"


def pod(**spec: Any) -> Desired:
    (item,) = desired(document("Pod", "p", spec=spec))
    return item


def binding(role: str = "reader") -> Desired:
    reference = {"apiGroup": RBAC, "kind": "Role", "name": role}
    (item,) = desired(document("RoleBinding", "readers", f"{RBAC}/v1", roleRef=reference))
    return item


def account(name: str, namespace: str = "shop") -> Desired:
    (item,) = desired(document("ServiceAccount", name, metadata={"namespace": namespace}), namespaces=("shop", "bank"))
    return item


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            'pods "p" is forbidden: error looking up service account shop/web: serviceaccount "web" not found',
            (MissingObject("serviceaccount", "", "web"),),
        ),
        ('pods "p" is forbidden: no PriorityClass with name high was found', (MissingObject("PriorityClass", "", "high"),)),
        ('pods "p" is forbidden: pod rejected: RuntimeClass "gvisor" not found', (MissingObject("RuntimeClass", "", "gvisor"),)),
        ('rolebindings.rbac.authorization.k8s.io "reader" not found', (MissingObject("rolebindings", RBAC, "reader"),)),
        ('admission webhook "v.example.com" denied the request: secrets "db" not found', (MissingObject("secrets", "", "db"),)),
        ('spec.secret: Invalid value: "db": secret "db" not found', (MissingObject("secret", "", "db"),)),
        ('Pod "p" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "data"', ()),
        ('spec.secret: Invalid value: "db": secret "db" not found, spec.tier: Required value', ()),
        ("exceeded quota: none, requested: services=1", ()),
        ("failed to create typed patch object (shop/p; /v1, Kind=Pod): .spec.hostPIDs: field not declared in schema", ()),
        ("the server could not find the requested resource", ()),
    ],
)
def test_only_words_that_name_an_object_say_that_it_is_missing(text: str, found: tuple[MissingObject, ...]) -> None:
    assert read(text) == found


def test_what_is_missing_is_named_unless_its_name_may_be_a_value_that_isnt_in_git() -> None:
    missing, named = MissingObject("serviceaccount", "", "hunter2"), pod(serviceAccountName="hunter2")
    hidden = replace(named, manifest=replace(named.manifest, hidden=("/spec/serviceAccountName",)))
    other = replace(named, manifest=replace(named.manifest, hidden=("/spec/nodeName",)))
    assert [is_told(missing, each) for each in (named, hidden, other)] == [True, False, True]


@pytest.mark.parametrize(
    ("item", "found", "declared", "meant"),
    [
        (pod(serviceAccountName="web"), MissingObject("serviceaccount", "", "web"), account("web"), True),
        (pod(serviceAccountName="web"), MissingObject("serviceaccount", "", "web"), account("web", "bank"), False),
        (pod(serviceAccountName="web"), MissingObject("secret", "", "web"), account("web"), False),
        (pod(serviceAccountName="other"), MissingObject("serviceaccount", "", "web"), account("web"), False),
        (pod(), MissingObject("serviceaccount", "", "default"), account("default"), True),
        (binding(), MissingObject("rolebindings", RBAC, "reader"), binding("reader"), False),
    ],
    ids=["named", "elsewhere", "another kind", "not named", "the one of every pod", "a binding isn't its role"],
)
def test_a_missing_object_is_matched_by_name_kind_and_namespace_of_a_reference(
    item: Desired, found: MissingObject, declared: Desired, *, meant: bool
) -> None:
    assert among(found, item, [declared]) == (declared.identity if meant else None)


def test_rbac_calls_a_role_by_the_kind_of_its_binding() -> None:
    (role,) = desired(document("Role", "reader", f"{RBAC}/v1"))
    assert among(MissingObject("rolebindings", RBAC, "reader"), binding(), [role]) == role.identity
    assert among(MissingObject("rolebindings", RBAC, "reader"), binding("writer"), [role]) is None
    assert (
        declare(MissingObject("rolebindings", RBAC, "reader"), binding())
        == "declare Role/shop/reader in the same path, or correct the name"
    )


def test_fixes_for_a_missing_object_can_be_pasted() -> None:
    block = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, namespace: shop}}"
    assert block in declare(MissingObject("serviceaccount", "", "web"), pod())


@pytest.mark.parametrize(
    ("kinds", "more"), [((), ", and add to target shop: clusterScoped: [Namespace]"), (("Namespace",), ""), (("*",), "")]
)
def test_a_namespace_that_isnt_there_names_both_ways_to_one(kinds: tuple[str, ...], more: str) -> None:
    refusal = Problem("Pod/bank/p", 'namespaces "bank" not found', "p.yaml:1")
    told = without_namespace(MissingObject("namespaces", "", "bank"), target(cluster_scoped=kinds), refusal)
    block = "{apiVersion: v1, kind: Namespace, metadata: {name: bank}}"
    assert str(told) == (
        'p.yaml:1: Pod/bank/p: namespaces "bank" not found; '
        f"create it: kubectl create namespace bank; or declare it in the same path: {block}{more}"
    )
    assert "declare it in the same path" in declare(MissingObject("PriorityClass", "", "high"), pod())
    account_of, priority = Identity("", "ServiceAccount", "shop", "web"), Identity("scheduling.k8s.io", "PriorityClass", "", "high")
    assert "{config.kubernetes.io/depends-on: /namespaces/shop/ServiceAccount/web}" in put_before(account_of, pod().identity)
    assert "{config.kubernetes.io/depends-on: scheduling.k8s.io/PriorityClass/high}" in put_before(priority, pod().identity)


@pytest.mark.parametrize(
    ("found", "is_one"),
    [
        (MissingObject("namespaces", "", "bank"), True),
        (MissingObject("Namespace", "", "bank"), True),
        (MissingObject("namespaces", "acme.io", "bank"), False),
        (MissingObject("secret", "", "bank"), False),
    ],
)
def test_only_a_namespace_of_the_core_group_is_a_namespace(found: MissingObject, *, is_one: bool) -> None:
    assert found.is_namespace is is_one


def test_a_missing_object_is_printed_as_the_server_calls_it() -> None:
    assert str(MissingObject("rolebindings", RBAC, "reader")) == f'rolebindings.{RBAC} "reader"'
    assert str(MissingObject("serviceaccount", "", "web")) == 'serviceaccount "web"'


def test_an_object_is_tried_without_what_it_names() -> None:
    found = without(pod(serviceAccountName="web", priorityClassName="high", restartPolicy="Never"))
    assert found
    assert found["spec"] == {"restartPolicy": "Never"}
    bound = without(binding())
    assert bound
    assert bound["roleRef"] == {"apiGroup": RBAC, "kind": "ClusterRole", "name": "system:public-info-viewer"}
    assert without(account("web")) is None, "it names nothing that the server looks for"
    (odd,) = desired(document("Pod", "p", spec="none"))
    assert without(odd) == odd.manifest.body()
