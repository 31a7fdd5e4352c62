"""Status of workloads as controllers write it: pods that fail, get ready or stand still."""

from __future__ import annotations

import json
from collections.abc import Iterable

from infra.controlplane.pod_failures import FATE
from tests.e2e.documents import Document
from tests.e2e.one_target import Shop
from tests.kubectl import Kubectl
from tests.patience import until


def fated(document: Document, fate: str, **spec: int) -> Document:
    """Let the pods of a workload fare so."""
    document["spec"] |= spec
    document["spec"]["template"]["metadata"]["annotations"] = {FATE: fate}
    return document


def made_ready(kubectl: Kubectl, namespace: str, app: str) -> None:
    """Make the pods of a Deployment ready by hand, once they have come to their fate: that would overwrite what is written before."""
    until(lambda: _have_begun(kubectl, namespace, app))
    patch = {"status": {"conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]}}
    for pod in _pods(kubectl, namespace, app):
        kubectl.run("patch", "pod", pod["metadata"]["name"], "-n", namespace, "--subresource=status", "-p", json.dumps(patch))


def _pods(kubectl: Kubectl, namespace: str, app: str) -> list[Document]:
    found: list[Document] = kubectl("get", "pods", "-n", namespace, "-l", f"app={app}")["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def _have_begun(kubectl: Kubectl, namespace: str, app: str) -> bool:
    """Whether the controllers have made all pods that a Deployment declares now, and each of them has begun."""
    live = kubectl("get", "deployment", app, "-n", namespace)
    made = _is_seen(live) and live["status"].get("updatedReplicas", 0) == live["spec"]["replicas"]
    return made and all(pod["status"].get("startTime") for pod in _pods(kubectl, namespace, app))


def _is_seen(live: Document) -> bool:
    """Whether its controller knows what was written last."""
    return bool((live.get("status") or {}).get("observedGeneration") == live["metadata"]["generation"])


def deployments_seen(shop: Shop, documents: Iterable[Document]) -> bool:
    """Whether the controller has seen the Deployments of these: after a write it annotates them, which a plan may see halfway."""
    found = [shop.live(document) for document in documents if document["kind"] == "Deployment"]
    return all(live and _is_seen(live) for live in found)


def stand_still(shop: Shop, *apps: str, reason: str = "Unhealthy") -> bool:
    """Whether the pods of Deployments have come to their fate, with an event of this reason, and the controller has reported so."""
    events = shop.kubectl("get", "events", "-n", shop.name, f"--field-selector=reason={reason}")["items"]
    begun = [pod for pod in shop.kubectl("get", "pods", "-n", shop.name)["items"] if pod["status"].get("startTime")]
    told = {pod["metadata"]["labels"].get("app") for pod in begun} & {event["involvedObject"]["name"].rsplit("-", 2)[0] for event in events}
    found = {each["metadata"]["name"]: each.get("status") or {} for each in shop.kubectl("get", "deployments", "-n", shop.name)["items"]}
    still = {app for app in apps if (found[app].get("updatedReplicas"), found[app].get("unavailableReplicas")) == (1, 1)}
    return still == set(apps) <= told
