"""Status of workloads as controllers write it: pods that fail, get ready or stand still."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Protocol

from infra.controlplane.pod_failures import FATE
from tests.e2e.documents import Document
from tests.e2e.one_target import Shop
from tests.e2e.serve_process import until
from tests.kubectl import Kubectl


def fated(document: Document, fate: str, **spec: int) -> Document:
    """Let the pods of a workload fare so."""
    document["spec"] |= spec
    document["spec"]["template"]["metadata"]["annotations"] = {FATE: fate}
    return document


class Watched(Protocol):
    """A namespace on a cluster."""

    @property
    def name(self) -> str: ...
    @property
    def kubectl(self) -> Kubectl: ...


def made_ready(shop: Watched, app: str) -> None:
    """Make the pods of a Deployment ready by hand, once they have come to their fate: what is written before is overwritten by it."""
    until(lambda: _pods_begun(shop, app))
    patch = {"status": {"conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]}}
    for pod in _pods(shop, app):
        shop.kubectl.run("patch", "pod", pod["metadata"]["name"], "-n", shop.name, "--subresource=status", "-p", json.dumps(patch))


def _pods(shop: Watched, app: str) -> list[Document]:
    found: list[Document] = shop.kubectl("get", "pods", "-n", shop.name, "-l", f"app={app}")["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def _pods_begun(shop: Watched, app: str) -> bool:
    """Whether the controllers have made all pods that a Deployment declares now, and each of them has begun."""
    live = shop.kubectl("get", "deployment", app, "-n", shop.name)
    status = live.get("status") or {}
    declared = (live["metadata"]["generation"], live["spec"]["replicas"])
    made = (status.get("observedGeneration"), status.get("updatedReplicas", 0)) == declared
    return made and all(pod["status"].get("startTime") for pod in _pods(shop, app))


def at_rest(shop: Shop, documents: Iterable[Document]) -> bool:
    """Whether their controller has seen these Deployments: it annotates them a moment after a write, which a plan would see halfway."""
    found = [shop.live(document) for document in documents if document["kind"] == "Deployment"]
    return all(live and (live.get("status") or {}).get("observedGeneration") == live["metadata"]["generation"] for live in found)


def stand_still(shop: Shop, *apps: str, reason: str = "Unhealthy") -> bool:
    """Whether the pods of Deployments have come to their fate, with an event of this reason, and the controller has reported so."""
    events = shop.kubectl("get", "events", "-n", shop.name, f"--field-selector=reason={reason}")["items"]
    begun = [pod for pod in shop.kubectl("get", "pods", "-n", shop.name)["items"] if pod["status"].get("startTime")]
    told = {pod["metadata"]["labels"].get("app") for pod in begun} & {event["involvedObject"]["name"].rsplit("-", 2)[0] for event in events}
    found = {each["metadata"]["name"]: each.get("status") or {} for each in shop.kubectl("get", "deployments", "-n", shop.name)["items"]}
    still = {app for app in apps if (found[app].get("updatedReplicas"), found[app].get("unavailableReplicas")) == (1, 1)}
    return still == set(apps) <= told
