"""The API server's own kinds: what runs pods (kstatus `core.go`), claims, Services, autoscalers, CRDs, Namespaces, API services.

What runs pods, but for the Job, is believed only once its controller has said which generation it saw.
"""

from __future__ import annotations

from handler.health.kinds.reading import HEALTHY, Condition, Object, as_said, condition, count, fails, moment, stands, waits, written
from handler.model.health import Health
from handler.model.manifest import at, items_at
from handler.model.numbers import many

_NO_DEADLINE = 2**31 - 1
_UNSEEN = "its controller hasn't looked at it yet"
_ON_DELETE = "updates a pod only when that is deleted (OnDelete)"


def deployment(live: Object, _now: float) -> Health:
    """Every replica is of the newest template and available, and none of an older one is left."""
    progressing, available = condition(live, "Progressing"), condition(live, "Available")
    if not _observed(live):
        return waits(_UNSEEN)
    if at(live, "spec", "paused") is True:
        return stands(f"is paused, so its rollout stands still: {_replicas(live, 'updatedReplicas', 'of the newest template')}")
    if progressing.reason == "ProgressDeadlineExceeded":
        return _overdue(live, progressing)
    missing = _missing_replicas(live)
    refused = condition(live, "ReplicaFailure")
    if missing:
        return waits(f"{missing}; {refused.said}" if refused.true else missing)
    deadline = count(live, "spec", "progressDeadlineSeconds", missing=_NO_DEADLINE)
    if deadline != _NO_DEADLINE and not (progressing.true and progressing.reason == "NewReplicaSetAvailable"):
        return waits(f"{_of_replicas(live)}; its rollout isn't said to be complete")
    return HEALTHY if available.true else waits(f"isn't available; {available.said}" if available.said else "isn't available")


def _overdue(live: Object, said: Condition) -> Health:
    """A deadline that passed before our last change was another template's."""
    last = written(live)
    if said.since is not None and last is not None and said.since <= last:
        return waits(f"{_of_replicas(live)}; its deadline passed before it was changed last")
    return fails(f"{_of_replicas(live)}; {said.said}")


def _missing_replicas(live: Object) -> str:
    wanted = _wanted(live)
    updated, there, available, ready = (
        count(live, "status", name) for name in ("updatedReplicas", "replicas", "availableReplicas", "readyReplicas")
    )
    if min(updated, there) < wanted:
        return f"{updated} of {many(wanted, 'replica')} updated, {available} available"
    if there > updated:
        return f"{many(there - updated, 'old replica')} still there, {available} of {wanted} available"
    if there > wanted:
        return f"{many(there - wanted, 'replica')} too many"
    if available < max(wanted, updated) or ready < wanted:
        return f"{min(available, ready)} of {many(wanted, 'replica')} available"
    return ""


def replica_set(live: Object, _now: float) -> Health:
    """As many pods as asked for, labelled, ready and available."""
    if not _observed(live):
        return waits(_UNSEEN)
    refused, wanted = condition(live, "ReplicaFailure"), _wanted(live)
    if refused.true:
        return waits(f"{_of_replicas(live)}; {refused.said}")
    if count(live, "status", "fullyLabeledReplicas") < wanted:
        return waits(_replicas(live, "fullyLabeledReplicas", "labelled"))
    if min(count(live, "status", "availableReplicas"), count(live, "status", "readyReplicas")) < wanted:
        return waits(_of_replicas(live))
    surplus = count(live, "status", "replicas") - wanted
    return waits(f"{many(surplus, 'replica')} too many") if surplus > 0 else HEALTHY


def stateful_set(live: Object, _now: float) -> Health:
    """Every pod is ready that its strategy updates by itself, and of the newest revision."""
    if not _observed(live):
        return waits(_UNSEEN)
    wanted, there, updated = _wanted(live), count(live, "status", "replicas"), count(live, "status", "updatedReplicas")
    on_delete, ready = at(live, "spec", "updateStrategy", "type") == "OnDelete", count(live, "status", "readyReplicas")
    left = wanted - updated if on_delete and _revisions_differ(live) else 0
    if there < wanted or (ready < wanted and (updated or not left)):
        return waits(f"{_replicas(live, 'readyReplicas', 'ready')}, {updated} updated")
    if there > wanted:
        return waits(f"{many(there - wanted, 'pod')} too many")
    if on_delete:
        return _older(left, wanted, ready)
    partition = count(live, "spec", "updateStrategy", "rollingUpdate", "partition")
    if partition:
        share = max(wanted - partition, 0)
        return waits(f"{updated} of {many(share, 'pod')} updated (partition {partition})") if updated < share else HEALTHY
    current = count(live, "status", "currentReplicas")
    older = _revisions_differ(live) or min(updated, current) < wanted  # they are alike, too, where a change was taken back halfway
    lack = f", {current} of the current revision" if updated >= wanted else ""
    return waits(f"{_replicas(live, 'updatedReplicas', 'updated')}{lack}") if older else HEALTHY


def _older(left: int, wanted: int, ready: int) -> Health:
    """What people replace; while no pod is of the newest revision, one that isn't ready is no failure of that."""
    lack = f", {ready} of {wanted} ready" if ready < wanted else ""
    return stands(f"{_ON_DELETE}: {left} of {wanted} are older{lack}") if left > 0 else HEALTHY


def _revisions_differ(live: Object) -> bool:
    return bool(at(live, "status", "currentRevision") != at(live, "status", "updateRevision"))


def daemon_set(live: Object, _now: float) -> Health:
    """A ready pod of the newest template on each Node that should have one."""
    if not _observed(live) or at(live, "status", "desiredNumberScheduled") is None:
        return waits(_UNSEEN)
    wanted, updated = count(live, "status", "desiredNumberScheduled"), count(live, "status", "updatedNumberScheduled")
    if count(live, "status", "currentNumberScheduled") < wanted:
        return waits(f"{count(live, 'status', 'currentNumberScheduled')} of {many(wanted, 'pod')} scheduled")
    on_delete = at(live, "spec", "updateStrategy", "type") == "OnDelete"
    if updated < wanted and not on_delete:
        return waits(f"{updated} of {many(wanted, 'pod')} updated, {count(live, 'status', 'numberReady')} ready")
    ready = min(count(live, "status", "numberAvailable"), count(live, "status", "numberReady"))
    if ready < wanted and (updated or not on_delete):
        return waits(f"{ready} of {many(wanted, 'pod')} available")
    return _older(wanted - updated, wanted, ready)


def job(live: Object, _now: float) -> Health:
    """It is complete. Unlike kstatus: one that merely runs has done nothing yet (what follows it would start too early)."""
    failed, target, suspended = (condition(live, kind) for kind in ("Failed", "FailureTarget", "Suspended"))
    if failed.true:
        return fails(failed.said or "failed")
    if condition(live, "Complete").true:
        return HEALTHY
    if at(live, "spec", "suspend") is True and suspended.true:
        return stands("is suspended: it runs once it is resumed")
    if target.true:
        return waits(f"is about to fail: {target.said}")
    wanted = count(live, "spec", "completions", missing=1)
    numbers = [f"{count(live, 'status', 'succeeded')} of {many(wanted, 'completion')}"]
    numbers += [f"{found} {word}" for word in ("active", "failed") if (found := count(live, "status", word))]
    return waits(", ".join(numbers))


def removes_itself(declared: Object) -> bool:
    """Whether a Job has a time to live: when it was there and is no longer, it had ended."""
    return count(declared, "spec", "ttlSecondsAfterFinished", missing=-1) >= 0


def _observed(live: Object) -> bool:
    return at(live, "status", "observedGeneration") is not None


def _wanted(live: Object) -> int:
    return count(live, "spec", "replicas", missing=1)


def _of_replicas(live: Object) -> str:
    return _replicas(live, "availableReplicas", "available")


def _replicas(live: Object, name: str, word: str) -> str:
    return f"{count(live, 'status', name)} of {many(_wanted(live), 'replica')} {word}"


UNCLAIMED = 10.0  # seconds after which a claim that nothing provisions is one that waits for its first pod
UNLOOKED = 5.0  # seconds that a controller has for its first look at an object that says nothing else about itself
LOOKED_AGAIN = 15.0  # seconds between two looks of the HorizontalPodAutoscalers' controller (`--horizontal-pod-autoscaler-sync-period`)
_NO_TARGET = "FailedGetScale"
_PROVISIONERS = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")


def claim(live: Object, now: float) -> Health:
    """It is bound. One that nothing provisions is bound with its first pod (WaitForFirstConsumer): waiting for that would never end."""
    phase = at(live, "status", "phase")
    if phase == "Bound":
        return HEALTHY
    if phase == "Lost":
        return fails("has lost its volume")
    marks = at(live, "metadata", "annotations")
    if isinstance(marks, dict) and any(marks.get(name) for name in _PROVISIONERS):
        return waits(f"is {as_said(phase) or 'Pending'}: its provisioner makes a volume")
    left, pending = _since_created(live, UNCLAIMED, now), f"is Pending: {_unbound(live)}"
    return waits(pending, left) if left > 0 else stands(pending)


def _unbound(live: Object) -> str:
    """Say why a claim that nothing provisions may be unbound; the API server fills in a default StorageClass."""
    name = at(live, "spec", "storageClassName")
    if name is None:
        return "it names no StorageClass, and there was no default one"
    if name == "":
        return "it waits for a volume that is made by hand (its StorageClass is empty)"
    return f"it is bound when its first pod is scheduled, or StorageClass {as_said(name)} isn't there or makes no volumes"


def service(live: Object, _now: float) -> Health:
    """A load balancer has its address in the cluster; one from outside may come much later, or never."""
    if at(live, "spec", "type") != "LoadBalancer":
        return HEALTHY
    if not at(live, "spec", "clusterIP"):
        return waits("has no address in the cluster")
    return HEALTHY if items_at(live, "status", "loadBalancer", "ingress") else stands("its load balancer has no address yet")


def ingress(live: Object, _now: float) -> Health:
    """It always is; some controllers never publish an address."""
    return HEALTHY if items_at(live, "status", "loadBalancer", "ingress") else stands("no controller has given it an address yet")


def disruption_budget(live: Object, _now: float) -> Health:
    """Its controller has looked at it."""
    return HEALTHY if at(live, "status", "observedGeneration") is not None else waits("its controller hasn't looked at it yet")


def autoscaler(live: Object, now: float) -> Health:
    """It can scale what it names, which may come after it; that it has no metrics yet stops nothing."""
    able, active = condition(live, "AbleToScale"), condition(live, "ScalingActive")
    if not able.status:
        left = _since_created(live, UNLOOKED, now)
        unseen = "its controller hasn't looked at it yet"
        return waits(unseen, left) if left > 0 else stands(unseen)
    if able.false and able.reason == _NO_TARGET:
        left = min((able.since or now) + LOOKED_AGAIN - now, LOOKED_AGAIN)
        return waits(able.said, left) if left > 0 else stands(able.said)
    if able.false and able.reason.startswith("Failed"):
        return waits(able.said)
    return stands(active.said) if active.false and active.reason != "ScalingDisabled" else HEALTHY


_COMING = ("Installing", "InvalidCABundle")  # the second: cert-manager, or its operator, puts the authority of the conversion webhook in


def definition(live: Object, _now: float) -> Health:
    """A CustomResourceDefinition is served under the names it asks for."""
    names, established = condition(live, "NamesAccepted"), condition(live, "Established")
    if names.false:
        return fails(names.said or "its names aren't accepted")
    if established.true:
        return HEALTHY
    if established.false and established.reason not in _COMING:
        return fails(established.said or "isn't established")
    return waits(f"isn't established yet: {established.said}" if established.reason == _COMING[1] else "isn't established yet")


def namespace(live: Object, _now: float) -> Health:
    """It takes objects."""
    phase = at(live, "status", "phase")
    return HEALTHY if phase == "Active" else waits(f"is {as_said(phase) or 'not active'}")


def api_service(live: Object, _now: float) -> Health:
    """Its server answers."""
    available = condition(live, "Available")
    return HEALTHY if available.true else waits(available.said or "its server hasn't been asked yet")


def _since_created(live: Object, seconds: float, now: float) -> float:
    created = moment(at(live, "metadata", "creationTimestamp"))
    return min(created + seconds - now, seconds) if created is not None else 0.0
