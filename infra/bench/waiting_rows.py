"""The rows of waiting: from the last pod's readiness to the recorded commit, and what a wait for 300 Deployments costs meanwhile."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handler.cluster.api import Api
from infra.bench.bed import Bed, Shop
from infra.bench.objects import Body
from infra.bench.rows import Row
from infra.controlplane.pod_failures import FATE

_ROOT = Path(__file__).resolve().parents[2]
_COUNT, _A_SECOND, _ROUNDS = 300, 15, 5
_PATIENCE = 180.0
_READY = {"status": {"conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]}}


def waiting(bed: Bed) -> Iterator[Row]:
    """Pods that get ready one after the other, at the times we choose; the run that waits is a process of its own."""
    delays = [_wait(bed, 1)["delay"] for _ in range(_ROUNDS)]
    found = _wait(bed, _COUNT)
    name = "last pod ready to healthy recorded"
    yield Row(name, statistics.median(delays), 0.3, "s", details={"longest": max(delays), f"of {_COUNT} Deployments": found["delay"]})
    share = found["cpu"] / found["seconds"] * 100
    yield Row(f"waiting for {_COUNT} Deployments, of one core", share, 5, "%", details={"s": found["seconds"], "cpu s": found["cpu"]})


def _wait(bed: Bed, count: int) -> dict[str, float]:
    """Let a run wait for so many Deployments, make their pods ready, and return how long it took after the last one."""
    namespace = bed.namespace()
    shop = bed.shop([_deployment(number, namespace) for number in range(count)])
    api = shop.handler().api(shop.target)
    run = _started(bed, shop)
    assert run.stdout is not None  # noqa: S101 - it is a pipe
    while run.stdout.readline().strip() != "waiting":
        if run.poll() is not None:
            raise RuntimeError("the run ended before it waited")
    pods = _pods(api, namespace, count)
    for pod in pods[:-1]:
        _make_ready(api, namespace, pod)
        time.sleep(1 / _A_SECOND)
    time.sleep(2.0)  # the Deployments' controller has reported all the others
    ready = _make_ready(api, namespace, pods[-1])
    report: dict[str, Any] = json.loads(run.communicate()[0].split("\n")[-2])
    return {"delay": report["at"] - ready, "seconds": report["seconds"], "cpu": report["cpu"]}


def _started(bed: Bed, shop: Shop) -> subprocess.Popen[str]:
    facts = {"kubeconfig": str(bed.kubeconfig), "name": shop.target.name, "url": shop.target.repository.url}
    return subprocess.Popen([sys.executable, "-m", "infra.bench.waited", json.dumps(facts)], stdout=subprocess.PIPE, text=True, cwd=_ROOT)


def _pods(api: Api, namespace: str, count: int) -> list[str]:
    """Return the pods' names when all of them run."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        items = (api.get(f"/api/v1/namespaces/{namespace}/pods") or {"items": []})["items"]
        running = [item["metadata"]["name"] for item in items if (item.get("status") or {}).get("phase") == "Running"]
        if len(running) == count:
            return running
        time.sleep(0.5)
    raise RuntimeError(f"{count} pods don't run after {_PATIENCE:.0f} s")


def _make_ready(api: Api, namespace: str, pod: str) -> float:
    """Say of a pod that it is ready, as its kubelet would; return when that was."""
    api.patch(f"/api/v1/namespaces/{namespace}/pods/{pod}/status", _READY, "application/strategic-merge-patch+json")
    return time.time()


def _deployment(number: int, namespace: str) -> Body:
    labels = {"app": f"wait-{number:03}"}
    pod = {
        "metadata": {"labels": labels, "annotations": {FATE: "never-ready"}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": labels["app"], "namespace": namespace}, "spec": spec}
