"""Live object -> Health, by kstatus' rules.

    being deleted                        terminating
    a generation not observed yet        in progress
    Reconciling / Stalled                in progress / failed (the conditions of kstatus' own convention)
    the kind's row in KINDS, or READY    as it says; one of `kinds.custom.READY` once its controller has had time for a look
    Ready                                current / in progress
    else                                 current, once its controller has had time for a look (`SETTLE`)

Stricter than kstatus where a release would be called healthy that isn't (a running Job, a failed Pod, an object not looked at yet). Laxer
where a wait would never end (a paused Deployment, a suspended Job, OnDelete, a claim without a pod): healthy, with a note. Another kind
is one function in `kinds`, one row here, and its samples in `tests/unit/health/samples`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from handler.health.kinds import built_in, custom, pods
from handler.health.kinds.reading import HEALTHY, Condition, condition, fails, number, waits, written
from handler.model.health import Health, Status
from handler.model.manifest import at, items_at
from handler.model.names import GroupKind, identity_of

SETTLE = 5.0  # seconds that a controller has to say something about a new object, before silence means that it has nothing to say

Object = dict[str, Any]
Rule = Callable[[Object, float], Health]
"""How one kind does at a time (seconds since the epoch), of an object that lives and whose generation is observed."""

JOB = GroupKind("batch", "Job")
_APPS = "apps"
_ADMISSION = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

KINDS: dict[GroupKind, Rule] = {
    GroupKind(_APPS, "Deployment"): built_in.deployment,
    GroupKind(_APPS, "ReplicaSet"): built_in.replica_set,
    GroupKind("", "ReplicationController"): built_in.replica_set,
    GroupKind(_APPS, "StatefulSet"): built_in.stateful_set,
    GroupKind(_APPS, "DaemonSet"): built_in.daemon_set,
    JOB: built_in.job,
    GroupKind("", "Pod"): pods.pod,
    GroupKind("", "PersistentVolumeClaim"): built_in.claim,
    GroupKind("", "Service"): built_in.service,
    GroupKind("", "Namespace"): built_in.namespace,
    GroupKind("networking.k8s.io", "Ingress"): built_in.ingress,
    GroupKind("policy", "PodDisruptionBudget"): built_in.disruption_budget,
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): built_in.autoscaler,
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): built_in.definition,
    GroupKind("apiregistration.k8s.io", "APIService"): built_in.api_service,
}

ALWAYS_HEALTHY = frozenset(
    GroupKind(group, kind)
    for group, kinds in {
        "": ("ConfigMap", "Secret", "ServiceAccount", "LimitRange", "ResourceQuota", "Endpoints", "PodTemplate", "Event"),
        _APPS: ("ControllerRevision",),
        "batch": ("CronJob",),
        "discovery.k8s.io": ("EndpointSlice",),
        "networking.k8s.io": ("NetworkPolicy", "IngressClass"),
        "node.k8s.io": ("RuntimeClass",),
        "scheduling.k8s.io": ("PriorityClass",),
        "storage.k8s.io": ("StorageClass", "CSIDriver"),
        "coordination.k8s.io": ("Lease",),
        _RBAC: ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
        _FLOW: ("FlowSchema", "PriorityLevelConfiguration"),
        _ADMISSION: (
            "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
        ),
    }.items()
    for kind in kinds
)
"""Kinds that do what they do as soon as they are stored: no run needs to LIST them."""
SELF_REMOVED = Health(Status.CURRENT, "JobSelfRemoved: it has ended, and its ttlSecondsAfterFinished removed it; how isn't known any more")
"""How a Job does that isn't there because it removes itself."""


def judge(live: Object | None, generation: int, now: float, declared: Mapping[str, Any] | None = None) -> Health:
    """Judge a live object; None: it isn't there. `generation`: the least that it, and its status, must be of; 0: its own.

    `now`: seconds since the epoch by the API server's clock. `declared`: the manifest of an object that was certainly created.
    """
    if live is None:
        return _absent(declared)
    if at(live, "metadata", "deletionTimestamp"):
        return Health(Status.TERMINATING, "is being deleted")
    kind = identity_of(live).group_kind
    if kind in ALWAYS_HEALTHY:
        return HEALTHY
    early = _unobserved(live, generation) or _by_convention(live)
    if early:
        return early
    if kind in KINDS:
        return KINDS[kind](live, now)
    rule = custom.rule(live, kind)
    return _settled(live, now, rule(live, now)) if rule else _other(live, now)


def premature(live: Object, generation: int) -> Health | None:
    """Judge what holds of any object before its kind is asked: it goes, or its status is of another generation than the one written."""
    if at(live, "metadata", "deletionTimestamp"):
        return Health(Status.TERMINATING, "is being deleted")
    return _unobserved(live, generation)


def remnant(live: Object) -> Object:
    """Return what is left of an object that only time may make healthy (`Health.again`): all that its verdict can hang on, and no more."""
    metadata = live["metadata"]
    entries = [{key: at(entry, key) for key in ("manager", "subresource", "time")} for entry in items_at(live, "metadata", "managedFields")]
    kept = {key: value for key, value in metadata.items() if key not in ("managedFields", "labels")}
    name = at(live, "spec", "storageClassName")
    whole = identity_of(live).group_kind in custom.READY
    spec = live.get("spec") if whole else {"storageClassName": name} if name is not None else None
    kept_spec = {} if spec is None else {"spec": spec}
    return {**{key: live.get(key) for key in ("apiVersion", "kind", "status")}, **kept_spec, "metadata": {**kept, "managedFields": entries}}


def _absent(declared: Mapping[str, Any] | None) -> Health:
    given = dict(declared or {})
    if identity_of(given).group_kind == JOB and built_in.removes_itself(given):
        return SELF_REMOVED
    return Health(Status.NOT_FOUND, "is not there")


def _unobserved(live: Object, generation: int) -> Health | None:
    shown = number(at(live, "metadata", "generation")) or 0
    wanted, observed = max(generation, shown), number(at(live, "status", "observedGeneration"))
    if shown and shown < generation:
        return waits(f"is shown as of generation {shown}, {generation} was written")
    if observed is not None and observed < wanted:
        return waits(f"its controller hasn't seen the newest change yet (generation {wanted}, seen: {observed})")
    return None


def _by_convention(live: Object) -> Health | None:
    reconciling, stalled = condition(live, "Reconciling"), condition(live, "Stalled")
    if reconciling.true:
        return waits(reconciling.said or "is being reconciled")
    return fails(stalled.said or "is stalled") if stalled.true else None


def _other(live: Object, now: float) -> Health:
    ready = condition(live, "Ready")
    if ready.status and _is_stale(ready, live):
        return waits("its Ready is of an older generation")
    if ready.status and not ready.true:
        return waits(ready.said or "isn't ready")
    left = 0.0 if _has_answered(live, ready) else _settling(live, now)
    return waits("its controller has said nothing about the newest change yet", left) if left > 0 else HEALTHY


def _settled(live: Object, now: float, found: Health) -> Health:
    """Believe that a custom resource is healthy once its status is of the newest generation, or its controller had time."""
    if not found.healthy:
        return found
    types = [at(each, "type") for each in items_at(live, "status", "conditions")]
    dated = [each for each in (condition(live, kind) for kind in types) if each.observed is not None]
    newest = max(dated, key=lambda each: each.observed or 0, default=Condition("Ready"))
    if _is_stale(newest, live):
        return waits(f"its {newest.type} is of an older generation")
    left = 0.0 if _has_answered(live, newest) else _settling(live, now)
    return waits("its controller has said nothing about the newest change yet", left) if left > 0 else found


def _is_stale(found: Condition, live: Object) -> bool:
    unsaid = number(at(live, "status", "observedGeneration")) is None
    return unsaid and found.observed is not None and found.observed < (number(at(live, "metadata", "generation")) or 0)


def _has_answered(live: Object, ready: Condition) -> bool:
    """Whether something in the status is certainly about the newest generation: it says so, or there was never an older one."""
    observed = number(at(live, "status", "observedGeneration"))
    first = (number(at(live, "metadata", "generation")) or 0) <= 1
    return observed is not None or ready.observed is not None or (first and bool(at(live, "status")))


def _settling(live: Object, now: float) -> float:
    last = written(live)
    return min(last + SETTLE - now, SETTLE) if last is not None else 0.0
