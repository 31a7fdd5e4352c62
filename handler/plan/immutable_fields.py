"""The fields that the API server never lets change, where git alone says that a merge changes one. Pure.

Law: live is never looked at: a server's refusal would tell whether a value equals it. Only what is certain is said: both declarations name
the field, with different values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from handler.health.kstatus import JOB
from handler.model.errors import ApiRefused, Problem
from handler.model.manifest import at
from handler.model.names import GroupKind
from handler.plan.managed_fields import equal

_FIELDS = {
    "ClusterRoleBinding.rbac.authorization.k8s.io": "roleRef.kind roleRef.name",
    "DaemonSet.apps": "spec.selector",
    "Deployment.apps": "spec.selector",
    "Job.batch": "spec.completionMode spec.selector spec.template",
    "PersistentVolumeClaim": "spec.accessModes spec.dataSource spec.selector spec.storageClassName spec.volumeMode spec.volumeName",
    "PriorityClass.scheduling.k8s.io": "value",
    "ReplicaSet.apps": "spec.selector",
    "RoleBinding.rbac.authorization.k8s.io": "roleRef.kind roleRef.name",
    "Secret": "type",
    "Service": "spec.clusterIP",
    "StatefulSet.apps": "spec.podManagementPolicy spec.selector spec.serviceName spec.volumeClaimTemplates",
    "StorageClass.storage.k8s.io": "parameters provisioner reclaimPolicy volumeBindingMode",
}
"""Kind -> fields, as Kubernetes' validation of updates has them (pkg/apis/*/validation, 1.36)."""
_DATA = frozenset({GroupKind("", "ConfigMap"), GroupKind("", "Secret")})
_OF_DATA = ("data", "binaryData", "immutable")


def is_data(kind: GroupKind, now: Mapping[str, Any]) -> bool:
    """Whether all that an object holds is immutable."""
    return kind in _DATA and now.get("immutable") is True


def refusal(kind: GroupKind, now: Mapping[str, Any], then: Mapping[str, Any], unsure: Collection[str] = ()) -> ApiRefused | None:
    """Return what the API server says of a merge, in its words; None: that isn't certain. `now`, `then`: what git declares.

    `unsure`: texts that stand for other values: what holds one may be anything.
    """

    def differ(field: str) -> bool:
        was, becomes = (at(body, *field.split(".")) for body in (now, then))
        is_certain = was is not None and becomes is not None and not any(text in f"{was}{becomes}" for text in unsure)
        return is_certain and not equal(was, becomes)

    fields = [field for field in _FIELDS.get(str(kind), "").split() if differ(field)]
    if kind == JOB and any(at(body, "spec", "suspend") for body in (now, then)):
        fields = []  # of one that hasn't started some may change
    if is_data(kind, now):
        fields += [field for field in _OF_DATA if not equal(now.get(field) or {}, then.get(field) or {})]
    if not fields:
        return None
    return ApiRefused(Problem("", "; ".join(f"{field}: field is immutable" for field in fields)), status=422, reason="Invalid")
