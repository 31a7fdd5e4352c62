"""The kinds that are served, and how each is distinguished: one row a kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from handler.model.names import Resource

VERBS = frozenset({"create", "delete", "get", "list", "patch", "update", "watch"})


@dataclass(frozen=True, slots=True)
class Served:
    """`fields`: what may stand beside apiVersion, kind and metadata."""

    resource: Resource
    fields: frozenset[str]


def _row(group: str, kind: str, plural: str, fields: str, *, namespaced: bool = True) -> Served:
    return Served(Resource(group, "v1", kind, plural, namespaced, VERBS), frozenset(fields.split()))


SERVED = (
    _row("", "Namespace", "namespaces", "spec status", namespaced=False),
    _row("", "ConfigMap", "configmaps", "data binaryData immutable"),
    _row("", "Secret", "secrets", "data stringData type immutable"),
    _row("rbac.authorization.k8s.io", "Role", "roles", "rules"),
    _row("coordination.k8s.io", "Lease", "leases", "spec"),
)
WORKLOADS = (
    *SERVED,
    _row("apps", "Deployment", "deployments", "spec status"),
    _row("apps", "StatefulSet", "statefulsets", "spec status"),
    _row("batch", "Job", "jobs", "spec status"),
    _row("", "PersistentVolumeClaim", "persistentvolumeclaims", "spec status"),
    _row("", "PersistentVolume", "persistentvolumes", "spec status", namespaced=False),
    _row("", "Pod", "pods", "spec status"),
    _row("", "Service", "services", "spec status"),
    _row("", "ServiceAccount", "serviceaccounts", "secrets imagePullSecrets"),
    _row("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", "roleRef subjects"),
)
"""Those, and what runs: no controller runs it, only the test does."""
_GONE_WHEN_EMPTY = ("data", "binaryData", "stringData")


def by_place(served: Sequence[Served]) -> dict[tuple[str, str, str], Served]:
    """Return each kind by group, version and plural."""
    return {(row.resource.group, row.resource.version, row.resource.plural): row for row in served}


BY_PLACE = by_place(SERVED)


def discovery(core: bool, served: Sequence[Served] = SERVED) -> dict[str, Any]:
    """Answer `/api` or `/apis` in the aggregated form (KEP-3352)."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in served:
        resource = row.resource
        if (resource.group == "") is core:
            groups.setdefault(resource.group, []).append(
                {
                    "resource": resource.plural,
                    "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
                    "scope": "Namespaced" if resource.namespaced else "Cluster",
                    "verbs": sorted(resource.verbs),
                    **({"subresources": [{"subresource": "status", "verbs": ["get", "patch", "update"]}]} if resource.status else {}),
                }
            )
    items = [
        {"metadata": {"name": group} if group else {}, "versions": [{"version": "v1", "freshness": "Current", "resources": rows}]}
        for group, rows in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def normal(body: dict[str, Any], row: Served) -> dict[str, Any]:
    """Return an object as a typed server stores it: empty maps left out, defaults filled in."""
    metadata = {key: value for key, value in body["metadata"].items() if value or key not in ("labels", "annotations", "finalizers")}
    kept = {key: value for key, value in body.items() if value is not None and (value or key not in _GONE_WHEN_EMPTY)}
    made = {**kept, "metadata": metadata}
    if row.resource.kind == "Secret":
        made.setdefault("type", "Opaque")
    if row.resource.kind == "Role":
        made.setdefault("rules", None)
    if row.resource.kind == "Namespace":
        labels = {**metadata.get("labels", {}), "kubernetes.io/metadata.name": metadata["name"]}
        made |= {"metadata": {**metadata, "labels": labels}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    return made
