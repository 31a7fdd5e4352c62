"""Configurations of admission webhooks: which one keeps a record from being written, and the command that exempts its namespace."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any

from handler.cluster.api import Api
from handler.model.advice import advice, together
from handler.model.errors import AnnealError, ClusterUnavailable
from handler.model.manifest import at, items_at
from handler.model.names import Identity, Resource

CONFIGURATIONS = {
    kind: Resource("admissionregistration.k8s.io", "v1", kind, f"{kind.lower()}s", namespaced=False)
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
}
_LOOK = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide shows which configuration has it"


def with_way_out(api: Api, error: ClusterUnavailable, namespace: str) -> ClusterUnavailable:
    """Return the failure of a write with the configurations whose webhook doesn't answer, and how each exempts a namespace."""
    found = []
    with contextlib.suppress(AnnealError):  # where they may not be listed, a person looks
        called = [each for each in webhooks(api) if each[2].get("name") == error.webhook and each[2].get("failurePolicy") == "Fail"]
        found = [_exempting(one, number, hook, namespace) for one, number, hook in called]
    fix = advice("webhook {text} doesn't answer: repair what it calls, or {text}", error.webhook, together(", and ", found) or _LOOK)
    return ClusterUnavailable(*(replace(problem, fix=fix) for problem in error.problems))


def webhooks(api: Api) -> list[tuple[Identity, int, dict[str, Any]]]:
    """Return each webhook of all configurations that live, and its place in its own. Raises AccessDenied, ClusterUnavailable."""
    return [
        (Identity(resource.group, kind, "", str(at(live, "metadata", "name"))), number, hook)
        for kind, resource in CONFIGURATIONS.items()
        for live in items_at(api.get(resource.path()), "items")
        for number, hook in enumerate(items_at(live, "webhooks"))
    ]


def _exempting(one: Identity, number: int, hook: dict[str, Any], namespace: str) -> str:
    path, kind = f"/webhooks/{number}", one.kind.lower()
    not_here = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace]}
    selector = {
        **(at(hook, "namespaceSelector") or {}),
        "matchExpressions": [*items_at(hook, "namespaceSelector", "matchExpressions"), not_here],
    }
    patch = [
        {"op": "test", "path": f"{path}/name", "value": at(hook, "name")},
        {"op": "add", "path": f"{path}/namespaceSelector", "value": selector},
    ]
    return advice("exempt namespace {text}: kubectl patch {} {} --type=json -p {}", namespace, kind, one.name, json.dumps(patch))
