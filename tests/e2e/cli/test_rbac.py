"""What `anneal rbac` prints is enough for every kind of run, and for nothing more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.cli.conftest import Shop, document
from tests.kubectl import Kubectl


@pytest.fixture
def crd(shop: Shop, kubectl: Kubectl) -> Iterator[str]:
    """The plural of a kind of the test's own, with its manifest in git."""
    group = f"{shop.namespace}.example.com"
    names = {"plural": "cups", "singular": "cup", "kind": "Cup"}
    schema = {
        "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    }
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": versions}
    shop.work.write("deploy/crd.yaml", document("CustomResourceDefinition", f"cups.{group}", "apiextensions.k8s.io/v1", spec=spec))
    yield f"cups.{group}"
    kubectl.run("delete", "crd", f"cups.{group}", "--ignore-not-found", "--wait=false")


@pytest.fixture
def account(shop: Shop, kubectl: Kubectl, tmp_path: Path) -> Path:
    """The kubeconfig of a ServiceAccount without any right."""
    return kubectl.account(f"{shop.namespace}/anneal", tmp_path)


@pytest.fixture
def granted(shop: Shop, kubectl: Kubectl, account: Path, crd: str) -> Iterator[Path]:
    """That kubeconfig, once it has exactly what is printed."""
    group = crd.partition(".")[2]
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    shop.work.write("deploy/cup.yaml", document("Cup", "blue", f"{group}/v1", spec={"size": 2}))
    shop.work.write("deploy/role.yaml", document("Role", "reader", "rbac.authorization.k8s.io/v1", rules=rules))
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": shop.namespace}]
    binding = document("RoleBinding", "reader", "rbac.authorization.k8s.io/v1", roleRef=reference, subjects=subjects)
    shop.work.write("deploy/binding.yaml", binding)
    shop.push("A kind, a role, a binding")
    shop.configure("clusterScoped: [CustomResourceDefinition]")
    printed = shop.cli("rbac", "--service-account", f"{shop.namespace}/anneal").stdout
    kubectl.grant(_renamed(printed, shop.namespace))
    yield account
    kubectl.run("delete", "clusterrole,clusterrolebinding", f"anneal-{shop.namespace}")


def _renamed(printed: str, name: str) -> str:
    """Give the cluster-wide ones a name of the test's own."""
    found = [one for one in yaml.safe_load_all(printed) if one]
    for each in found:
        if each["kind"].startswith("Cluster"):
            each["metadata"]["name"] = f"anneal-{name}"
        if each["kind"] == "ClusterRoleBinding":
            each["roleRef"]["name"] = f"anneal-{name}"
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": found})


def test_an_impersonated_target_has_its_own_rights_and_the_handler_none_of_them(shop: Shop, kubectl: Kubectl, account: Path) -> None:
    kubectl.run("create", "serviceaccount", "deployer", "-n", shop.namespace)
    shop.configure(f"impersonate: {{serviceAccount: {shop.namespace}/deployer}}")
    printed = shop.cli("rbac", "--service-account", f"{shop.namespace}/anneal").stdout
    kubectl.grant(_renamed(printed, shop.namespace))
    try:
        shop.cli("check", kubeconfig=account)
        assert shop.cli.json("apply", kubeconfig=account)["counts"] == {"created": 4}
        asked = ("auth", "can-i", "list", "secrets", "-n", shop.namespace)
        can = [
            kubectl.tried(*asked, f"--as=system:serviceaccount:{shop.namespace}:{name}").stdout.strip() for name in ("anneal", "deployer")
        ]
        assert can == ["no", "yes"]
    finally:
        kubectl.run("delete", "clusterrole,clusterrolebinding", f"anneal-{shop.namespace}")


DENIED = (
    ("list", "secrets", "-A"),
    ("get", "deployments.apps"),
    ("delete", "namespaces"),
    ("update", "configmaps/other"),
    ("get", "namespaces/default"),
    ("escalate", "roles.rbac.authorization.k8s.io/other"),
    ("bind", "clusterroles.rbac.authorization.k8s.io/cluster-admin"),
    ("create", "configmaps", "-n", "default"),
    ("impersonate", "serviceaccounts"),
)


def test_the_printed_rights_are_for_nothing_more(shop: Shop, kubectl: Kubectl, granted: Path) -> None:
    user = f"--as=system:serviceaccount:{shop.namespace}:anneal"
    scoped = (asked if asked[2:] else (*asked, "-n", shop.namespace) for asked in DENIED)
    answers = {" ".join(asked): kubectl.tried("auth", "can-i", *asked, user).stdout.strip() for asked in scoped}
    assert set(answers.values()) == {"no"}, answers


def test_rbac_binds_a_group_or_a_user_where_the_handler_is_no_service_account(shop: Shop, kubectl: Kubectl) -> None:
    for kind in ("Group", "User"):
        bindings = [each for each in shop.cli.json("rbac", f"--{kind.lower()}", "system:worker")["items"] if "subjects" in each]
        group = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "system:worker"}
        assert {each["kind"] for each in bindings} == {"RoleBinding", "ClusterRoleBinding"}
        assert all(each["subjects"] == [group] for each in bindings)
        found = {"apiVersion": "v1", "kind": "List", "items": bindings}
        kubectl.run("apply", "--dry-run=server", "-f", "-", given=json.dumps(found))
