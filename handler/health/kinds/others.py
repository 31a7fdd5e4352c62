"""What isn't a workload: claims, Services, autoscalers, CRDs, Namespaces, API services."""

from __future__ import annotations

from handler.health.kinds.reading import HEALTHY, Object, condition, fails, moment, said, stands, waits
from handler.model.health import Health
from handler.model.manifest import at, items_at

UNCLAIMED = 10.0  # seconds after which a claim that nothing provisions is one that waits for its first pod
UNLOOKED = 5.0  # seconds that a controller has for its first look at an object that says nothing else about itself
LOOKED_AGAIN = 15.0
"""Seconds between two looks of the HorizontalPodAutoscalers' controller (`--horizontal-pod-autoscaler-sync-period`)."""
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
        return waits(f"is {said(phase) or 'Pending'}: its provisioner makes a volume")
    left, pending = _since_created(live, UNCLAIMED, now), f"is Pending: {_unbound(live)}"
    return waits(pending, left) if left > 0 else stands(pending)


def _unbound(live: Object) -> str:
    """Say why a claim that nothing provisions may be unbound; the API server fills in a default StorageClass."""
    name = at(live, "spec", "storageClassName")
    if name is None:
        return "it names no StorageClass, and there was no default one"
    if name == "":
        return "it waits for a volume that is made by hand (its StorageClass is empty)"
    return f"it is bound when its first pod is scheduled, or StorageClass {said(name)} isn't there or makes no volumes"


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


def definition(live: Object, _now: float) -> Health:
    """A CustomResourceDefinition is served under the names it asks for."""
    names, established = condition(live, "NamesAccepted"), condition(live, "Established")
    if names.false:
        return fails(names.said or "its names aren't accepted")
    if established.true:
        return HEALTHY
    if established.false and established.reason != "Installing":
        return fails(established.said or "isn't established")
    return waits("isn't established yet")


def namespace(live: Object, _now: float) -> Health:
    """It takes objects."""
    phase = at(live, "status", "phase")
    return HEALTHY if phase == "Active" else waits(f"is {said(phase) or 'not active'}")


def api_service(live: Object, _now: float) -> Health:
    """Its server answers."""
    available = condition(live, "Available")
    return HEALTHY if available.true else waits(available.said or "its server hasn't been asked yet")


def _since_created(live: Object, seconds: float, now: float) -> float:
    """Return what is left of so many seconds after an object's creation; a clock that runs behind makes it no longer."""
    created = moment(at(live, "metadata", "creationTimestamp"))
    return min(created + seconds - now, seconds) if created is not None else 0.0
