"""Which API groups are Kubernetes' own. Pure.

Source: https://kubernetes.io/docs/reference/kubernetes-api/; its subprojects' groups end in `.k8s.io`, too, and are brought by CRDs.
"""

from __future__ import annotations

_WITHOUT_DOMAIN = frozenset({"", "apps", "autoscaling", "batch", "extensions", "policy"})
_OF_K8S_IO = frozenset(
    {
        *("admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates", "coordination"),
        *("discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "networking", "node", "rbac.authorization", "resource"),
        *("scheduling", "storage", "storagemigration"),
    }
)


def is_kubernetes_own(group: str) -> bool:
    """Whether the API server itself has the kinds of a group; others come by a CRD or an APIService."""
    return group in _WITHOUT_DOMAIN or (group.endswith(".k8s.io") and group.removesuffix(".k8s.io") in _OF_K8S_IO)


def is_certainly_custom(group: str) -> bool:
    """Whether a group is no server's of any version: those to come are called `.k8s.io`, as well as those of subprojects."""
    return group not in _WITHOUT_DOMAIN and not group.endswith(".k8s.io")
