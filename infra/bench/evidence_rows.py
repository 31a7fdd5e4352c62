"""The rows of evidence: from a cause that the cluster shows to the record that holds it, while a run waits, and where none does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from handler.app.build import Handler, Options
from handler.cluster.api import Api
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Wait
from handler.model.event import Job
from handler.model.run_event import RunEvent, RunPhase
from handler.worker.health_watch.cluster_watch import HealthWatch
from infra.bench.bed import Bed, Shop
from infra.bench.objects import Body
from infra.bench.rows import Row
from infra.controlplane.pod_failures import FATE

_PATIENCE = 180.0
_CAUSES: Mapping[str, tuple[str, str]] = {
    # what the cluster shows it by: the reason of an event; a word of the message
    "crash-loop": ("BackOff", "CrashLoopBackOff"),
    "no-image": ("Failed", "ImagePullBackOff"),
    "never-ready": ("Unhealthy", "Unhealthy"),
    "no-node": ("FailedScheduling", "Unschedulable"),
    "no-account": ("FailedCreate", "serviceaccount"),
    "no-quota": ("FailedCreate", "exceeded quota"),
}


@dataclass(slots=True)
class _Heard:
    """When each cause was reported first, in monotonic seconds."""

    told: dict[str, float] = field(default_factory=dict)

    def announce(self, event: RunEvent) -> None:
        """Take the events of a run."""
        if isinstance(event, RunPhase):
            self.saw([line for each in event.waits for line in each.missing])

    def saw(self, lines: Sequence[str]) -> None:
        """Note the causes in a record's lines."""
        for cause, (_, word) in _CAUSES.items():
            if any(f"/{cause}: " in line and word in line for line in lines):
                self.told.setdefault(cause, time.monotonic())


@dataclass(frozen=True, slots=True)
class _Ills:
    """Six Deployments that can't get healthy. `namespaces`: theirs."""

    shop: Shop
    namespaces: frozenset[str]

    def handler(self, heard: _Heard) -> Handler:
        """Return a handler, all of whose records are heard."""
        environment = {"KUBECONFIG": str(self.shop.bed.kubeconfig)}
        return Handler(
            Settings(targets=(self.shop.target,)), Secrets(), self.shop.bed.sandbox, environment, Options(announce=heard.announce)
        )


def evidence(bed: Bed) -> Iterator[Row]:
    """One run that waits for them; then one that doesn't, and a worker that watches their health once a minute."""
    yield _row("cause visible to reported, worst of six", _waited_for(_ills(bed, Wait(3600.0, 3600.0))))
    yield _row("cause visible to reported between runs, worst of six", _watched(_ills(bed, None)))


def _row(name: str, delays: dict[str, float]) -> Row:
    return Row(name, max(delays.values()), 20, "s", details=delays)


def _waited_for(ills: _Ills) -> dict[str, float]:
    """Return by how much each cause is reported later than it was visible."""
    heard, stop = _Heard(), threading.Event()
    handler = ills.handler(heard)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(handler.run, Job(ills.shop.target.name, "push"), stop)
        try:
            return _delays(ills, handler.api(ills.shop.target), heard, lambda: None)
        finally:
            stop.set()
            run.result(_PATIENCE)


def _watched(ills: _Ills) -> dict[str, float]:
    """Return the same of a watch, and of what it records."""
    heard = _Heard()
    handler = ills.handler(heard)
    watch = HealthWatch(handler.settings, handler, lambda _: None)
    watch.start()
    handler.run(Job(ills.shop.target.name, "push"))

    def read() -> None:
        state = handler.store(ills.shop.target).read().state
        heard.saw([*state.status.unhealthy, *state.health.worst]) if state else None

    try:
        return _delays(ills, handler.api(ills.shop.target), heard, read)
    finally:
        watch.stop()


def _ills(bed: Bed, wait: Wait | None) -> _Ills:
    spaces = {cause: bed.namespace() if cause == "no-quota" else "" for cause in _CAUSES}
    common = bed.namespace()
    bed.kubectl("create", "quota", "none", "-n", spaces["no-quota"], "--hard=pods=0")
    shop = bed.shop([_deployment(cause, space or common) for cause, space in spaces.items()], wait=wait)
    return _Ills(shop, frozenset(space or common for space in spaces.values()))


def _delays(ills: _Ills, api: Api, heard: _Heard, read: Callable[[], None]) -> dict[str, float]:
    """Return by how many seconds each cause is reported later than the cluster shows it, once all of them are; `read`: hears the record."""
    shown: dict[str, float] = {}
    end = time.monotonic() + _PATIENCE
    while len(heard.told) < len(_CAUSES) or len(shown) < len(_CAUSES):
        if time.monotonic() > end:
            raise RuntimeError(f"of {len(_CAUSES)} causes {sorted(shown)} are shown and {sorted(heard.told)} reported")
        read()
        for namespace in ills.namespaces:
            for event in (api.get(f"/api/v1/namespaces/{namespace}/events") or {"items": []})["items"]:
                for cause, (reason, _) in _CAUSES.items():
                    if event["reason"] == reason and event["involvedObject"]["name"].startswith(f"{cause}-"):
                        shown.setdefault(cause, time.monotonic())
        time.sleep(0.2)
    return {cause: max(heard.told[cause] - shown[cause], 0.0) for cause in _CAUSES}


def _deployment(cause: str, namespace: str) -> Body:
    specs: dict[str, dict[str, Any]] = {"no-node": {"nodeSelector": {"there": "is-none"}}, "no-account": {"serviceAccountName": "clerk"}}
    labels = {"app": cause}
    metadata = {"labels": labels, "annotations": {FATE: cause}}
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "app", "image": "app:1"}], **specs.get(cause, {})}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": cause, "namespace": namespace}, "spec": spec}
