"""Configurations of admission webhooks: which one keeps a record from being written, and the command that exempts its namespace."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

from handler.cluster.api import Api
from handler.model.advice import advice, together
from handler.model.errors import AnnealError, ClusterUnavailable
from handler.model.manifest import at, items_at
from handler.model.names import Resource

CONFIGURATIONS = {
    kind: Resource("admissionregistration.k8s.io", "v1", kind, f"{kind.lower()}s", namespaced=False)
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
}
_LOOK = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide shows which configuration has it"


def with_way_out(api: Api, error: ClusterUnavailable, namespace: str) -> ClusterUnavailable:
    """Return the failure of a write with the configurations whose webhook doesn't answer, and how each exempts a namespace."""
    found = []
    with contextlib.suppress(AnnealError):  # where they may not be listed, a person looks
        listed = [(kind, live) for kind, resource in CONFIGURATIONS.items() for live in items_at(api.get(resource.path()), "items")]
        found = [_exempting(kind, live, number, namespace) for kind, live in listed for number in _numbers(live, error.webhook)]
    fix = advice("webhook {text} doesn't answer: repair what it calls, or {text}", error.webhook, together(", and ", found) or _LOOK)
    return ClusterUnavailable(*(replace(problem, fix=fix) for problem in error.problems))


def _numbers(live: object, webhook: str) -> list[int]:
    hooks = enumerate(items_at(live, "webhooks"))
    return [number for number, each in hooks if (at(each, "name"), at(each, "failurePolicy")) == (webhook, "Fail")]


def _exempting(kind: str, live: object, number: int, namespace: str) -> str:
    path, name = f"/webhooks/{number}", str(at(live, "metadata", "name"))
    hook = items_at(live, "webhooks")[number]
    not_here = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace]}
    selector = {
        **(at(hook, "namespaceSelector") or {}),
        "matchExpressions": [*items_at(hook, "namespaceSelector", "matchExpressions"), not_here],
    }
    patch = [
        {"op": "test", "path": f"{path}/name", "value": at(hook, "name")},
        {"op": "add", "path": f"{path}/namespaceSelector", "value": selector},
    ]
    return advice("exempt namespace {text}: kubectl patch {} {} --type=json -p {}", namespace, kind.lower(), name, json.dumps(patch))
