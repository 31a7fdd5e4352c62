"""A claim that a person has grown: git's size is refused, and the refusal says what lives, who wrote it, and what to write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.documents import Document, config_map
from tests.e2e.one_target import Shop
from tests.e2e.takeover import refusal, written
from tests.patience import until


@pytest.fixture
def claim(shop: Shop) -> Iterator[Document]:
    """A bound claim of 1Gi, deployed, of a class that lets claims grow."""
    name = shop.name
    spec: Document = {"accessModes": ["ReadWriteOnce"], "storageClassName": name}
    document = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": name}}
    document["spec"] = {**spec, "resources": {"requests": {"storage": "1Gi"}}}
    volume = {**spec, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp"}, "claimRef": {"name": "data", "namespace": name}}
    objects: list[Document] = [
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.com/none", "allowVolumeExpansion": True},
        {"apiVersion": "v1", "kind": "PersistentVolume", "spec": volume},
    ]
    for each in objects:
        shop.kubectl.apply({**each, "metadata": {"name": name}})
    shop.push(document)
    shop.applied()
    until(lambda: (shop.live(document) or {})["status"]["phase"] == "Bound")
    yield document
    shop.kubectl.run("delete", "storageclass,pv", name, "--wait=false")


def test_a_claim_that_was_grown_is_declared_as_it_lives(shop: Shop, claim: Document) -> None:
    grown: dict[str, Any] = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    shop.kubectl.run("patch", "pvc", "data", "-n", shop.name, "-p", json.dumps(grown))
    shop.push(claim, config_map(shop.name, "beside"))
    problem = refusal(shop)
    assert "the live object has spec.resources.requests.storage: 2Gi (by kubectl-patch)" in problem.message
    assert written(problem) == grown
    spec = {**claim["spec"], **written(problem)["spec"]}
    shop.push({**claim, "spec": spec}, config_map(shop.name, "beside"))
    shop.applied()
    assert shop.live(config_map(shop.name, "beside"))
