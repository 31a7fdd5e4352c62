"""Pods that fare badly: kwok's Stages for those whose annotation asks for it, and what their containers have logged.

    kwok.anneal.dev/fate: crash-loop     restarts for ever, ended last with exit code 1
    kwok.anneal.dev/fate: never-ready    runs, and its readiness probe never succeeds
    kwok.anneal.dev/fate: no-image       its image can't be pulled
    kwok.anneal.dev/fate: failed         ends with exit code 3: a Job's pod

kwok's own stages have no weight, so these come first where both match. Standard library only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FATE = "kwok.anneal.dev/fate"
LOG = (
    "starting",
    "GET /ready 503",
    "signed in with eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzaG9wIn0.c2lnbmF0dXJl",
    "postgres: no pg_hba entry for shop with mackerel-0815",
    "no table `orders`; password was swordfish-4711",
)
"""What every container wrote last; before its restart, too: a token, and passwords of its database."""
_RUNNING = "running: {startedAt: {{ Now | Quote }}}"
_FATES: dict[str, tuple[str, str, str, int, tuple[str, str]]] = {
    # phase, state, lastState, restarts, event
    "crash-loop": (
        "Running",
        "waiting: {reason: CrashLoopBackOff, message: back-off 5m0s restarting failed container}",
        "terminated: {exitCode: 1, reason: Error}",
        5,
        ("BackOff", "Back-off restarting failed container main"),
    ),
    "never-ready": ("Running", _RUNNING, "{}", 0, ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")),
    "no-image": (
        "Pending",
        "waiting: {reason: ImagePullBackOff, message: Back-off pulling image}",
        "{}",
        0,
        ("Failed", "Failed to pull image: not found"),
    ),
    "failed": ("Failed", "terminated: {exitCode: 3, reason: Error}", "{}", 0, ("Failed", "the container ended")),
}


def write(directory: Path) -> Path:
    """Write kwok's configuration of all fates, and the log; return the configuration."""
    log, path = directory / "container.log", directory / "fates.json"
    log.write_text("".join(f"2026-01-01T00:00:00.000000000Z stdout F {line}\n" for line in LOG))
    documents = [_stage(fate, *row) for fate, row in _FATES.items()]
    documents.append(_held())
    documents.append(_kwok("ClusterLogs", "all", {"logs": [{"logsFile": str(log), "previousLogsFile": str(log)}]}))
    path.write_text("\n---\n".join(json.dumps(document) for document in documents))
    return path


def _stage(fate: str, phase: str, state: str, last: str, restarts: int, event: tuple[str, str]) -> dict[str, Any]:
    """Return the Stage that a new pod of this fate passes once."""
    fresh = [{"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}, {"key": ".status.startTime", "operator": "DoesNotExist"}]
    template = (
        f"phase: {phase}\n"
        "startTime: {{ Now | Quote }}\n"
        "conditions:\n"
        "- {type: Initialized, status: 'True', lastTransitionTime: {{ Now | Quote }}}\n"
        "- {type: Ready, status: 'False', reason: ContainersNotReady, message: 'containers with unready status: [main]', "
        "lastTransitionTime: {{ Now | Quote }}}\n"
        "containerStatuses:\n"
        "{{ range .spec.containers }}\n"
        "- name: {{ .name | Quote }}\n"
        "  image: {{ .image | Quote }}\n"
        "  ready: false\n"
        f"  restartCount: {restarts}\n"
        f"  state: {{{state}}}\n"
        f"  lastState: {last if last.startswith('{') else '{' + last + '}'}\n"
        "{{ end }}\n"
    )
    selector = {"matchAnnotations": {FATE: fate}, "matchExpressions": fresh}
    reason, message = event
    next_ = {"statusTemplate": template, "event": {"type": "Warning", "reason": reason, "message": message}}
    reference = {"apiGroup": "v1", "kind": "Pod"}
    return _kwok("Stage", f"pod-{fate}", {"resourceRef": reference, "selector": selector, "weight": 1, "next": next_})


def _held() -> dict[str, Any]:
    """Return the Stage that keeps a pod whose fate has come, and that is Pending still, from being made ready."""
    come = [{"key": ".status.startTime", "operator": "Exists"}, {"key": f'.metadata.annotations["{FATE}"]', "operator": "Exists"}]
    come.append({"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"})
    spec = {"resourceRef": {"apiGroup": "v1", "kind": "Pod"}, "selector": {"matchExpressions": come}, "weight": 1, "next": {}}
    return _kwok("Stage", "pod-held", {**spec, "delay": {"durationMilliseconds": 86_400_000}})


def _kwok(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
