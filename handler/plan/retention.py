"""What Kubernetes deletes by a policy because of a run: claims of StatefulSets, volumes, Jobs that have finished. Pure.

    whenDeleted: Delete           a StatefulSet takes its claims along where `prune.kinds` names claims; else it lets them go first
    whenScaled: Delete            the claims of the ordinals that a write takes away go, by the policy that it leaves
    reclaim policy Delete         a volume goes with its claim, a snapshot's content with it; one that its claim has left goes at once
    ttlSecondsAfterFinished       a Job that has finished goes once it gets a time to live; git says so, and it isn't counted

A StatefulSet that is made anew leaves its pods running, without an owner, and the new one adopts those that its selector matches. Others
would keep the names that the new pods need. Deleted with the old one, all would end at once, whatever its update strategy: refused instead.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#persistentvolumeclaim-retention. The controller puts owner
references on the claims of the pods that it has: a claim whose pod is gone keeps the one that it got, whatever the policy becomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from handler.config.settings import Target
from handler.health.kinds.built_in import removes_itself
from handler.model.manifest import at, items_at
from handler.model.names import GroupKind, Identity, group_of, identity_of, uid_and_version
from handler.model.plan import Action, Cause, Change, Gone
from handler.plan.admission import listed

STATEFUL_SET = GroupKind("apps", "StatefulSet")
CLAIM, VOLUME = GroupKind("", "PersistentVolumeClaim"), GroupKind("", "PersistentVolume")
STAY = "; its claims stay: whenDeleted is set to Retain first"
_JOB = GroupKind("batch", "Job")
_POLICY = ("spec", "persistentVolumeClaimRetentionPolicy")
_SNAPSHOTS = "snapshot.storage.k8s.io"
_CONTENT = GroupKind(_SNAPSHOTS, "VolumeSnapshotContent")
BACKED = {
    CLAIM: (VOLUME, ("spec", "volumeName")),
    GroupKind(_SNAPSHOTS, "VolumeSnapshot"): (_CONTENT, ("status", "boundVolumeSnapshotContentName")),
}
_RECLAIM = {VOLUME: ("spec", "persistentVolumeReclaimPolicy"), _CONTENT: ("spec", "deletionPolicy")}
_LEFT = ("Released", "Failed")  # phases of a volume that its claim has left
_MOST = 10_000  # ordinals whose claims are named
Object = Mapping[str, Any]


# --- claims
def deletes(body: Object, when: str) -> bool:
    """Whether a StatefulSet's policy deletes claims. `when`: `whenDeleted` or `whenScaled`."""
    return bool(at(body, *_POLICY, when) == "Delete")


def reduced(live: Object) -> dict[str, Any]:
    """Return what of a StatefulSet says which claims go with it, of a claim which volume does; of others nothing."""
    kind, spec = GroupKind(group_of(str(live.get("apiVersion"))), str(live.get("kind"))), live.get("spec") or {}
    if kind in BACKED:
        first, name = BACKED[kind][1]
        return {first: {name: at(live, first, name)}}
    if kind != STATEFUL_SET:
        return {}
    names = [{"metadata": {"name": at(each, "metadata", "name")}} for each in items_at(live, "spec", "volumeClaimTemplates")]
    kept = {key: spec[key] for key in (_POLICY[1], "replicas", "ordinals") if key in spec}
    return {"spec": {**kept, "volumeClaimTemplates": names}, "status": {"replicas": at(live, "status", "replicas")}}


def deleted(change: Change, live: Object, target: Target) -> Change:
    """Return the deletion of an object with the claims that go with it, by their names, or saying that they stay."""
    if change.identity.group_kind != STATEFUL_SET or not change.removes or not deletes(live, "whenDeleted"):
        return change
    if not listed(CLAIM, target.prune.kinds):
        return replace(change, reason=change.reason + STAY)
    return replace(change, takes=tuple(_lost(change.identity, each) for each in _claims(live, _there(live))))


def refers(claim: Object, uid: str) -> bool:
    """Whether a claim goes with the owner of this uid."""
    return any(at(each, "uid") == uid for each in items_at(claim, "metadata", "ownerReferences"))


def leaves_pods(live: Object, declared: Object) -> bool:
    """Whether the selector of a StatefulSet that is made anew matches the pods of the live one."""
    labels = at(live, "spec", "template", "metadata", "labels") or {}
    selector = at(declared, "spec", "selector")
    wanted = at(selector, "matchLabels")
    same = isinstance(wanted, dict) and all(labels.get(key) == value for key, value in wanted.items())
    return (wanted is None or same) and all(_matches(each, labels) for each in items_at(selector, "matchExpressions"))


def _matches(term: Any, labels: Mapping[str, Any]) -> bool:
    key, values = str(at(term, "key")), items_at(term, "values")
    return {
        "In": key in labels and labels[key] in values,
        "NotIn": key not in labels or labels[key] not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }.get(str(at(term, "operator")), False)


def _ordinals(body: Object) -> range:
    start, count = at(body, "spec", "ordinals", "start"), at(body, "spec", "replicas")
    first = start if isinstance(start, int) else 0
    return range(first, first + (max(count, 0) if isinstance(count, int) else 1))


def _there(live: Object) -> range:
    """Return the ordinals whose pods may be there: more than wanted while it is scaled down."""
    wanted, pods = _ordinals(live), at(live, "status", "replicas")
    return range(wanted.start, max(wanted.stop, wanted.start + (pods if isinstance(pods, int) else 0)))


def _claims(body: Object, ordinals: Iterable[int]) -> Iterator[Identity]:
    one = identity_of(dict(body))
    names = [str(at(each, "metadata", "name")) for each in items_at(body, "spec", "volumeClaimTemplates")]
    for number in islice(ordinals, _MOST):
        yield from (Identity(CLAIM.group, CLAIM.kind, one.namespace, f"{name}-{one.name}-{number}") for name in names)


def _lost(by: Identity, claim: Identity) -> Gone:
    return Gone(claim, "", Cause.VOLUME, by)


# --- what a write makes a controller delete
def lost_by_write(live: Object, wanted: Object) -> tuple[Gone, ...]:
    """Return what goes once a live object is as wanted; claims by their names alone: whether they are there isn't known."""
    identity = identity_of(dict(wanted))
    if identity.group_kind == STATEFUL_SET:
        return _scaled_away(identity, live, wanted)
    own = Gone(identity, uid_and_version(dict(live))[0], Cause.VOLUME, is_member=True)
    if identity.group_kind == VOLUME and at(live, "status", "phase") in _LEFT:
        turns = at(wanted, *_RECLAIM[VOLUME]) == "Delete" != at(live, *_RECLAIM[VOLUME])
        return (own,) if turns else ()
    if identity.group_kind == _JOB and is_finished(live) and removes_itself(dict(wanted)) and not removes_itself(dict(live)):
        return (replace(own, counted=False),)
    return ()


def _scaled_away(identity: Identity, live: Object, wanted: Object) -> tuple[Gone, ...]:
    """Return the claims of the pods that a write takes away; what an earlier write takes away goes without this one."""
    there, stay = _there(live), _ordinals(wanted)
    if not deletes(wanted, "whenScaled") or (deletes(live, "whenScaled") and stay == _ordinals(live)):
        return ()
    gone = chain(range(there.start, min(there.stop, stay.start)), range(max(there.start, stay.stop), there.stop))
    return tuple(_lost(identity, each) for each in _claims(wanted, gone))


def is_finished(job: Object) -> bool:
    """Whether a Job is Complete or Failed."""
    conditions = items_at(job, "status", "conditions")
    return any(at(each, "type") in ("Complete", "Failed") and at(each, "status") == "True" for each in conditions)


def unopened(changes: Iterable[Change], target: Target) -> dict[tuple[str, str, str], str]:
    """Return what goes by a policy once something is written, and `prune.kinds` doesn't name: it waits for a person, each with why."""
    written = [change for change in changes if change.action in (Action.UPDATE, Action.RECREATE)]
    lost = [gone for change in written for gone in change.takes if gone.cause is Cause.VOLUME and gone.counted]
    guarded = [kind for kind in (CLAIM, VOLUME) if not listed(kind, target.prune.kinds)]
    waits = [gone for gone in lost if gone.identity.group_kind in guarded]
    return {gone.key(): f"{gone}; prune.kinds of target {target.name} doesn't name {gone.identity.kind}" for gone in waits}


# --- volumes
def backing(live: Object) -> Identity | None:
    """Return what holds the data of a claim or a VolumeSnapshot; None: nothing, or it is no such object."""
    identity = identity_of(dict(live))
    kind, field = BACKED.get(identity.group_kind, (None, ()))
    name = str(at(live, *field) or "")
    return Identity(kind.group, kind.kind, "", name) if kind and name else None


def goes_along(backing_one: Object) -> bool:
    """Whether what holds data goes with the object that is bound to it."""
    policy = _RECLAIM.get(identity_of(dict(backing_one)).group_kind, ())
    return bool(at(backing_one, *policy) == "Delete")
