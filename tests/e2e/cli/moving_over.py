"""The walk-through of docs/migrate.md on one target: import, check, plan, apply; and objects as other tools leave them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from handler.model.names import PART_OF
from tests.e2e.cli.conftest import Shop
from tests.e2e.documents import Document, config_map, deployment, service
from tests.kubectl import Kubectl
from tests.patience import until

KINDS = ("configmap", "service", "deployment")


def declared(shop: Shop) -> tuple[Document, ...]:
    """What git declares: one of each kind, all called web."""
    return config_map("", "web"), service("", "web"), deployment("", "web")


def push(shop: Shop, folder: str = "deploy", **files: str) -> None:
    """Put it into git, without a namespace. `files`: more of the path, by their names without `.yaml`."""
    shop.work.remove("deploy")
    for each in declared(shop):
        bare = {**each, "metadata": {key: value for key, value in each["metadata"].items() if key != "namespace"}}
        shop.work.write(f"{folder}/{each['kind'].lower()}.yaml", json.dumps(bare, indent=1))
    for name, text in files.items():
        shop.work.write(f"deploy/{name}.yaml", text)
    shop.push("What the other tool deploys")


def push_chart(shop: Shop) -> None:
    """Put it into git as a chart that takes replicas and the name of its release."""
    push(shop, "deploy/templates", Chart="apiVersion: v2\nname: shop\nversion: 1.0.0\n", values="replicas: 3\n")
    file = shop.work.directory / "deploy" / "templates" / "deployment.yaml"
    text = file.read_text().replace('"replicas": 0', '"replicas": {{ .Values.replicas }}')
    file.write_text(text.replace('"name": "web"', '"name": {{ .Release.Name | quote }}', 1))
    shop.push("A chart of it")


def plant(shop: Shop, kubectl: Kubectl, verb: list[str], labels: Mapping[str, str], annotations: Mapping[str, str]) -> None:
    """Send what another tool sends, by its verb and field manager; the ConfigMap has a key that git lacks."""
    items = []
    for each in declared(shop):
        metadata = {"name": "web", "namespace": shop.namespace, "labels": dict(labels), "annotations": dict(annotations)}
        items.append({**each, "metadata": metadata, **({"data": {"key": "1", "dropped": "1"}} if each["kind"] == "ConfigMap" else {})})
    kubectl.run(*verb, "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    at_rest(shop, kubectl)


def at_rest(shop: Shop, kubectl: Kubectl) -> None:
    """Return once the Deployment's controller has written its last status; `kubectl rollout status` returns before that."""
    until(lambda: "NewReplicaSetAvailable" in json.dumps(kubectl("get", "deployment", "web", "-n", shop.namespace)))


def imported(shop: Shop, place: Path, *documents: Document) -> dict[str, Any]:
    """Let `anneal import` print the configuration of these objects, and take it; return its only target as printed."""
    place.write_text(yaml.safe_dump_all(documents))
    text = shop.cli("import", "-f", str(place)).stdout
    found: dict[str, Any] = yaml.safe_load(text)
    (target,) = found["targets"]
    shop.cli.config.write_text(json.dumps({**found, "stateNamespace": shop.namespace}))
    return dict(target)


def live(shop: Shop, kubectl: Kubectl) -> dict[str, Document]:
    return {kind: kubectl("get", kind, "web", "-n", shop.namespace, "--show-managed-fields") for kind in KINDS}


def pods_of(shop: Shop, kubectl: Kubectl) -> set[str]:
    """The uids of the ReplicaSets: a rollout would make another one."""
    return {each["metadata"]["uid"] for each in kubectl("get", "replicasets", "-n", shop.namespace)["items"]}


def take_over(shop: Shop, kubectl: Kubectl, name: str) -> None:
    """Check, plan, apply as the page says; the objects are the same ones, of Anneal alone, and nothing was rolled out."""
    before, sets = live(shop, kubectl), pods_of(shop, kubectl)
    shop.cli("check", name)
    assert "3 to update" in shop.cli("plan", name).stdout
    assert live(shop, kubectl) == before
    shop.cli("apply", name)
    at_rest(shop, kubectl)
    after = live(shop, kubectl)
    for kind, was in before.items():
        metadata = after[kind]["metadata"]
        assert metadata["uid"] == was["metadata"]["uid"]
        assert metadata["labels"].keys() == {PART_OF}
        assert {each["manager"] for each in metadata["managedFields"] if each["operation"] == "Apply"} == {"anneal"}
    assert after["configmap"]["data"] == {"key": "1"}
    assert pods_of(shop, kubectl) == sets
    shop.cli("plan", name, "--exit-code")
