"""What a cluster makes by itself, and makes again once it is deleted: the one list of it. Pure.

    never deleted or made anew      prune, recreate, steps and hooks      `handler.plan.prune.kept_by_itself`
    no orphan                       exclusive namespaces                  `handler.plan.exclusive.left_alone`
    no content                      a Namespace that is deleted           `handler.engine.planner.prune_check`, with `comes_with_namespace`
    not even written                `kube-root-ca.crt`                    `handler.plan.steering.asked`

What git declares of the rest is applied: people give the ServiceAccount `default` its imagePullSecrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handler.model.names import GroupKind, Identity

MADE_AGAIN = "the cluster makes it, and would make it again"
ROOT_CA = ("", "ConfigMap", "kube-root-ca.crt")  # its publisher replaces whatever data others write
_RBAC = "rbac.authorization.k8s.io"
_BOOTSTRAPPING = "kubernetes.io/bootstrapping"
_FACING_USERS = ("cluster-admin", "admin", "edit", "view")
_KINDS = frozenset(
    {
        GroupKind("", "Event"),
        GroupKind("events.k8s.io", "Event"),
        GroupKind("coordination.k8s.io", "Lease"),
        GroupKind("coordination.k8s.io", "LeaseCandidate"),
        GroupKind("apps", "ControllerRevision"),
        GroupKind("certificates.k8s.io", "PodCertificateRequest"),
        GroupKind("storage.k8s.io", "CSIStorageCapacity"),
        GroupKind("image.openshift.io", "ImageStreamTag"),  # these four are views of other objects
        GroupKind("image.openshift.io", "ImageTag"),
        GroupKind("authorization.openshift.io", "Role"),
        GroupKind("authorization.openshift.io", "RoleBinding"),
    }
)
_GROUPS = ("metrics.k8s.io", "wgpolicyk8s.io", "reports.kyverno.io")  # how the names of groups end: metrics, reports on policies
_IN_EACH_NAMESPACE = frozenset(
    {
        ROOT_CA,
        ("", "ServiceAccount", "default"),
        ("", "ConfigMap", "openshift-service-ca.crt"),
        ("", "ConfigMap", "istio-ca-root-cert"),
        ("", "ConfigMap", "istio-ca-crl"),
    }
)
ACCOUNTS_OF_OPENSHIFT = frozenset({"builder", "deployer"})
_BINDINGS_OF_OPENSHIFT = frozenset({"system:deployers", "system:image-builders", "system:image-pullers"})
_TOKEN_OF = ("kubernetes.io/service-account.name", "openshift.io/internal-registry-auth-token.service-account")
_ONCE = frozenset(
    {
        Identity("", "Service", "default", "kubernetes"),
        Identity("", "Endpoints", "default", "kubernetes"),
        Identity("discovery.k8s.io", "EndpointSlice", "default", "kubernetes"),
        Identity("", "ConfigMap", "kube-system", "extension-apiserver-authentication"),
        Identity("", "ConfigMap", "kube-system", "kube-apiserver-legacy-service-account-token-tracking"),
        Identity("scheduling.k8s.io", "PriorityClass", "", "system-cluster-critical"),
        Identity("scheduling.k8s.io", "PriorityClass", "", "system-node-critical"),
    }
)


def is_silent(group: str) -> bool:
    """Whether the objects of an API group neither name nor own others' and are never orphans: metrics, reports on policies."""
    return group.endswith(_GROUPS)


def is_system_kind(kind: GroupKind) -> bool:
    """Whether controllers alone make the objects of a kind, or they are views of others."""
    return kind in _KINDS or is_silent(kind.group)


def is_system_object(live: Mapping[str, Any], identity: Identity) -> bool:
    """Whether the cluster makes a live object, by its name; roles and bindings also by their label, for people name their own `view`, too.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings
    """
    if identity.group == _RBAC:
        labelled = (live["metadata"].get("labels") or {}).get(_BOOTSTRAPPING) == "rbac-defaults"
        return labelled and (identity.name.startswith("system:") or identity.name in _FACING_USERS)
    return (identity.group, identity.kind, identity.name) in _IN_EACH_NAMESPACE or identity in _ONCE


def comes_with_namespace(live: Mapping[str, Any], identity: Identity) -> bool:
    """Whether a live object is there because its Namespace is: also the accounts and bindings of OpenShift, and such accounts' tokens.

    People use these; nothing of theirs is lost once the Namespace goes.
    """
    if identity.group_kind == GroupKind("", "Secret"):
        marks = live["metadata"].get("annotations") or {}
        owners = {str(marks[key]) for key in _TOKEN_OF if key in marks} & {"default", *ACCOUNTS_OF_OPENSHIFT}
        return any(identity.name.startswith((f"{owner}-token-", f"{owner}-dockercfg-")) for owner in owners)
    if identity.group_kind == GroupKind("", "ServiceAccount") and identity.name in ACCOUNTS_OF_OPENSHIFT:
        return True
    binding = identity.group_kind == GroupKind(_RBAC, "RoleBinding") and identity.name in _BINDINGS_OF_OPENSHIFT
    return binding or is_system_object(live, identity)
