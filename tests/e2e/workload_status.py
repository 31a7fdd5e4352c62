"""Status of workloads as controllers write it: pods that fail, get ready or stand still."""

from __future__ import annotations

import json
from typing import Protocol

from infra.controlplane.pod_failures import FATE
from tests.e2e.documents import Document
from tests.e2e.one_target import Shop
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
    """Make the pods of a Deployment ready by hand."""
    pods = shop.kubectl("get", "pods", "-n", shop.name, "-l", f"app={app}")["items"]
    patch = {"status": {"conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]}}
    for pod in pods:
        shop.kubectl.run("patch", "pod", pod["metadata"]["name"], "-n", shop.name, "--subresource=status", "-p", json.dumps(patch))


def stand_still(shop: Shop, *apps: str, reason: str = "Unhealthy") -> bool:
    """Whether the pods of Deployments have come to their fate, with an event of this reason, and the controller has reported so."""
    events = shop.kubectl("get", "events", "-n", shop.name, f"--field-selector=reason={reason}")["items"]
    begun = [pod for pod in shop.kubectl("get", "pods", "-n", shop.name)["items"] if pod["status"].get("startTime")]
    told = {pod["metadata"]["labels"].get("app") for pod in begun} & {event["involvedObject"]["name"].rsplit("-", 2)[0] for event in events}
    found = {each["metadata"]["name"]: each.get("status") or {} for each in shop.kubectl("get", "deployments", "-n", shop.name)["items"]}
    still = {app for app in apps if (found[app].get("updatedReplicas"), found[app].get("unavailableReplicas")) == (1, 1)}
    return still == set(apps) <= told
