"""The row of evidence: from a cause that the cluster shows to the record that tells it, while the run still waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from handler.build import Handler, Options
from handler.cluster.api import Api
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Wait
from handler.model.event import Job
from handler.state.record import State
from infra.bench.bed import Bed
from infra.bench.objects import Body
from infra.bench.rows import Row
from infra.controlplane.fates import FATE

_PATIENCE = 180.0
_CAUSES: Mapping[str, tuple[str, str]] = {
    # what the cluster shows it by: the reason of an event; a word of what is told
    "crash-loop": ("BackOff", "CrashLoopBackOff"),
    "no-image": ("Failed", "ImagePullBackOff"),
    "never-ready": ("Unhealthy", "Unhealthy"),
    "no-node": ("FailedScheduling", "Unschedulable"),
    "no-account": ("FailedCreate", "serviceaccount"),
    "no-quota": ("FailedCreate", "exceeded quota"),
}


@dataclass(slots=True)
class _Heard:
    """When each cause was told first, in monotonic seconds."""

    told: dict[str, float] = field(default_factory=dict)

    def saw(self, state: State) -> None:
        """Take note of a record that was written."""
        for cause, (_, word) in _CAUSES.items():
            if any(f"/{cause}: " in line and word in line for line in state.status.unhealthy):
                self.told.setdefault(cause, time.monotonic())


def told(bed: Bed) -> Iterator[Row]:
    """Six Deployments that can't get healthy, and one run that waits for them."""
    spaces = {cause: bed.namespace() if cause == "no-quota" else "" for cause in _CAUSES}
    common = bed.namespace()
    bed.kubectl("create", "quota", "none", "-n", spaces["no-quota"], "--hard=pods=0")
    shop = bed.shop([_deployment(cause, space or common) for cause, space in spaces.items()], wait=Wait(3600.0, 3600.0))
    heard, stop, settings = _Heard(), threading.Event(), Settings(targets=(shop.target,))
    handler = Handler(settings, Secrets(), bed.sandbox, {"KUBECONFIG": str(bed.kubeconfig)}, Options(seen=heard.saw))
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(handler.run, Job(shop.target.name, "push"), stop)
        try:
            shown = _shown(handler.api(shop.target), {space or common for space in spaces.values()}, heard)
        finally:
            stop.set()
        run.result(_PATIENCE)
    delays = {cause: max(heard.told[cause] - shown[cause], 0.0) for cause in _CAUSES}
    yield Row("cause visible to told, worst of six", max(delays.values()), 20, "s", details=delays)


def _shown(api: Api, namespaces: set[str], heard: _Heard) -> dict[str, float]:
    """Return when the cluster showed each cause first, once all of them are told."""
    shown: dict[str, float] = {}
    end = time.monotonic() + _PATIENCE
    while len(heard.told) < len(_CAUSES) or len(shown) < len(_CAUSES):
        if time.monotonic() > end:
            raise RuntimeError(f"of {len(_CAUSES)} causes {sorted(shown)} are shown and {sorted(heard.told)} told")
        for namespace in namespaces:
            for event in (api.get(f"/api/v1/namespaces/{namespace}/events") or {"items": []})["items"]:
                for cause, (reason, _) in _CAUSES.items():
                    if event["reason"] == reason and event["involvedObject"]["name"].startswith(f"{cause}-"):
                        shown.setdefault(cause, time.monotonic())
        time.sleep(0.2)
    return shown


def _deployment(cause: str, namespace: str) -> Body:
    specs: dict[str, dict[str, Any]] = {"no-node": {"nodeSelector": {"there": "is-none"}}, "no-account": {"serviceAccountName": "clerk"}}
    labels = {"app": cause}
    metadata = {"labels": labels, "annotations": {FATE: cause}}
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "app", "image": "app:1"}], **specs.get(cause, {})}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": cause, "namespace": namespace}, "spec": spec}
