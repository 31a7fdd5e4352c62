"""Kubernixos' words on a target of a configuration: its git, its whitelists and its guards."""

from __future__ import annotations

import json

from handler.model.names import KUBERNIXOS
from tests.e2e.cli.conftest import Shop
from tests.kubectl import Kubectl

OLD = "0a1b2c3d"


def by_original(kubectl: Kubectl, namespace: str, *names: str) -> None:
    items = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, "labels": {KUBERNIXOS: OLD}}}
        for name in names
    ]
    kubectl.run("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def labels(kubectl: Kubectl, namespace: str) -> dict[str, str]:
    found = kubectl("get", "configmaps", "-n", namespace, "-l", KUBERNIXOS)["items"]
    return {each["metadata"]["name"]: each["metadata"]["labels"][KUBERNIXOS] for each in found}


def test_a_target_is_taken_over_and_pruned_by_the_word_alone(shop: Shop, kubectl: Kubectl) -> None:
    space = shop.namespace
    by_original(kubectl, space, "one", "left")
    by_original(kubectl, "default", f"left-{space}")
    shop.configure("compat: kubernixos\nadopt: [kubernixos]\nprune: {enabled: false}")
    planned = shop.cli("plan").stdout
    assert f"~ update ConfigMap/{space}/one  (adopted)" in planned
    assert shop.cli("kubernixos", "--target", "shop").output == ""
    assert set(labels(kubectl, space).values()) == {OLD}
    shop.cli("run")
    known = labels(kubectl, space)
    assert known.keys() == {"one", "two", "three", "left"}
    assert known["left"] == OLD, "no run deletes it"
    assert len({known[name] for name in ("one", "two", "three")} - {OLD}) == 1
    listed = shop.cli("kubernixos", "apply", "--target", "shop").stdout
    assert listed.splitlines()[-1] == f"Pruning: /api/v1/namespaces/{space}/configmaps/left, checksum: {OLD} (dry-run)"
    gone = shop.cli("kubernixos", "prune", "--target", "shop", "--yes").stdout
    assert gone.splitlines()[-1] == f"Pruning: /api/v1/namespaces/{space}/configmaps/left, checksum: {OLD}"
    assert labels(kubectl, space).keys() == {"one", "two", "three"}
    assert labels(kubectl, "default")[f"left-{space}"] == OLD, "outside of the whitelist"
    kubectl.run("delete", "configmap", f"left-{space}", "-n", "default")


def test_a_paused_target_prunes_nothing(shop: Shop, kubectl: Kubectl) -> None:
    shop.configure("compat: kubernixos\nadopt: [kubernixos]")
    shop.cli("run")
    by_original(kubectl, shop.namespace, "left")
    shop.cli("suspend", "shop", "--reason", "holiday")
    done = shop.cli("kubernixos", "prune", "--target", "shop", "--yes", code=1)
    assert 'Error occurred during stage "all-resources": target shop: suspended by ' in done.stderr
    assert "left" in labels(kubectl, shop.namespace)


def test_another_server_than_the_targets_closure_names_is_no_setting_of_files(shop: Shop) -> None:
    """Only a closure names one: files have no place for it, and `cluster.server` pins theirs."""
    shop.configure("compat: kubernixos\ncluster: {server: 'https://k8s.example.com:6443'}")
    done = shop.cli("kubernixos", "apply", "--target", "shop", code=1)
    assert 'Error occurred during stage "kube-config": ' in done.stderr
