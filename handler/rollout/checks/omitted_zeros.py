"""What Kubernetes leaves out of an object because it is zero: the counters of workloads, and a few fields of their specs.

Law: a field counts as its zero only where Kubernetes' own types say that they omit it there, and only once the controller has counted:
it has observed the object, which either asks for no pods or has some. A Deployment that was just created omits `replicas` and
`updatedReplicas`, too, and these equal each other before there is any pod. Elsewhere (a misspelt path, a custom resource) missing stays
missing.

The rows are the fields of k8s.io/api that are neither pointers nor without `omitempty`; what a kind writes even at zero isn't among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handler.model.manifest import at
from handler.model.names import GroupKind


@dataclass(frozen=True, slots=True)
class Zeros:
    """One kind's. `status`, `spec`: fields and the value at which each is omitted; `wanted`, `counted`: where the numbers of pods are."""

    status: Mapping[str, Any]
    spec: Mapping[str, Any]
    wanted: tuple[str, str] = ("spec", "replicas")
    counted: tuple[str, str] = ("status", "replicas")

    def known(self, live: Mapping[str, Any]) -> bool:
        """Whether the controller has counted."""
        if not isinstance(at(live, "status", "observedGeneration"), int):
            return False
        return at(live, *self.wanted) == 0 or (at(live, *self.counted) or 0) > 0


@dataclass(frozen=True, slots=True)
class JobZeros(Zeros):
    """A Job's: its status has no generation, and its counters are written together with its start or its first condition."""

    def known(self, live: Mapping[str, Any]) -> bool:
        """Whether the controller has counted."""
        return bool(at(live, "status", "startTime") or at(live, "status", "conditions"))


_DEPLOYMENT = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
_STATEFUL_SET = ("readyReplicas", "currentReplicas", "updatedReplicas")
_DAEMON_SET = ("updatedNumberScheduled", "numberAvailable", "numberUnavailable")
_REPLICAS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_DELAY = {"minReadySeconds": 0}
ZEROS: Mapping[GroupKind, Zeros] = {
    GroupKind("apps", "Deployment"): Zeros(dict.fromkeys(_DEPLOYMENT, 0), {**_DELAY, "paused": False}),
    GroupKind("apps", "StatefulSet"): Zeros(dict.fromkeys(_STATEFUL_SET, 0), _DELAY),
    GroupKind("apps", "DaemonSet"): Zeros(
        dict.fromkeys(_DAEMON_SET, 0), _DELAY, ("status", "desiredNumberScheduled"), ("status", "currentNumberScheduled")
    ),
    GroupKind("apps", "ReplicaSet"): Zeros(dict.fromkeys(_REPLICAS, 0), _DELAY),
    GroupKind("", "ReplicationController"): Zeros(dict.fromkeys(_REPLICAS, 0), _DELAY),
    GroupKind("batch", "Job"): JobZeros(dict.fromkeys(("active", "succeeded", "failed"), 0), {}),
}


def filled(live: Mapping[str, Any], kind: GroupKind) -> dict[str, Any] | None:
    """Return an object with the zeros that Kubernetes has omitted; None: its kind omits none, or its controller hasn't counted yet."""
    zeros = ZEROS.get(kind)
    if zeros is None or not zeros.known(live):
        return None
    return {**live, "status": {**zeros.status, **live["status"]}, "spec": {**zeros.spec, **(live.get("spec") or {})}}
