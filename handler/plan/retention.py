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
from handler.model.names import GroupKind, Identity, identity_of
from handler.model.plan import Action, Cause, Change, Gone
from handler.plan.admission import listed

STATEFUL_SET = GroupKind("apps", "StatefulSet")
CLAIM, VOLUME = GroupKind("", "PersistentVolumeClaim"), GroupKind("", "PersistentVolume")
STAY = "; its claims stay: whenDeleted is set to Retain first"
_JOB, _AUTOSCALER = GroupKind("batch", "Job"), GroupKind("autoscaling", "HorizontalPodAutoscaler")
_SNAPSHOT, _CONTENT = (GroupKind("snapshot.storage.k8s.io", kind) for kind in ("VolumeSnapshot", "VolumeSnapshotContent"))
BACKED = {CLAIM: (VOLUME, ("spec", "volumeName")), _SNAPSHOT: (_CONTENT, ("status", "boundVolumeSnapshotContentName"))}
"""What holds the data of another object, and the field that names it there."""
_RECLAIM = {VOLUME: ("spec", "persistentVolumeReclaimPolicy"), _CONTENT: ("spec", "deletionPolicy")}
_POLICY = "persistentVolumeClaimRetentionPolicy"
_SECRET, _TOKEN = GroupKind("", "Secret"), "kubernetes.io/service-account-token"
_ACCOUNT, _TTL = ("kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"), ("spec", "ttlSecondsAfterFinished")
_CLAIMED, _RECLAIMING = "claimRef", ("Delete", "Recycle")
_LEFT = ("Released", "Failed")  # phases of a volume that its claim has left
_MOST = 10_000  # ordinals whose claims are named
Object = Mapping[str, Any]


# --- claims
def deletes_claims(body: Object, when: str) -> bool:
    """Whether a StatefulSet's policy deletes claims. `when`: `whenDeleted` or `whenScaled`."""
    return bool(at(body, "spec", _POLICY, when) == "Delete")


def reduced(live: Object) -> dict[str, Any]:
    """Return what of an object says which claims or volumes go with it, or whether it goes once it is written; of most nothing."""
    kind = identity_of(dict(live)).group_kind
    if kind == VOLUME:
        spec = {key: at(live, "spec", key) for key in (_RECLAIM[VOLUME][1], _CLAIMED)}
        return {"spec": spec, "status": {"phase": at(live, "status", "phase")}}
    if kind == _SECRET:
        return {"type": _TOKEN} if at(live, "type") == _TOKEN else {}
    if kind in BACKED:
        first, name = BACKED[kind][1]
        return {first: {name: at(live, first, name)}}
    kept = (_POLICY, "replicas", "ordinals") if kind == STATEFUL_SET else ()
    names = [{"metadata": {"name": name}} for name in _templates(live)] if kept else []
    spec = {key: at(live, "spec", key) for key in kept} | {"volumeClaimTemplates": names}
    return {"spec": spec, "status": {"replicas": at(live, "status", "replicas")}} if kept else {}


def with_its_claims(change: Change, live: Object, target: Target) -> Change:
    """Return the deletion of an object with the claims that go with it, by their names, or saying that they stay."""
    is_ours_to_delete = change.removes and not change.terminating
    if change.identity.group_kind != STATEFUL_SET or not is_ours_to_delete or not deletes_claims(live, "whenDeleted"):
        return change
    if not listed(CLAIM, target.prune.kinds):
        return replace(change, reason=change.reason + STAY)
    return replace(change, takes=_lost(change.identity, live, _there(live)))


def kept_by_claims(live: Object) -> str:
    """Return why a StatefulSet may not go with its owner: nothing lets its claims go first; empty: it may."""
    takes = identity_of(dict(live)).group_kind == STATEFUL_SET and deletes_claims(live, "whenDeleted")
    return "its claims would go, too" if takes else ""


def refers(claim: Object, uid: str) -> bool:
    """Whether a claim goes with the owner of this uid."""
    return any(at(each, "uid") == uid for each in items_at(claim, "metadata", "ownerReferences"))


def leaves_pods(live: Object, declared: Object) -> bool:
    """Whether the selector of a StatefulSet that is made anew certainly matches the pods of the live one."""
    selector, labels = at(declared, "spec", "selector"), at(live, "spec", "template", "metadata", "labels") or {}
    wanted, status = at(selector, "matchLabels"), at(live, "status")
    is_rolled_out = at(status, "currentRevision") == at(status, "updateRevision")  # else some pods are of an earlier template
    matches = isinstance(wanted, dict) and wanted.items() <= labels.items() and not items_at(selector, "matchExpressions")
    return (matches and bool(is_rolled_out)) or selector == at(live, "spec", "selector")


def _templates(body: Object) -> list[str]:
    return [str(at(each, "metadata", "name")) for each in items_at(body, "spec", "volumeClaimTemplates")]


def _ordinals(body: Object) -> range:
    start, count = at(body, "spec", "ordinals", "start"), at(body, "spec", "replicas")
    first = start if isinstance(start, int) else 0
    return range(first, first + (max(count, 0) if isinstance(count, int) else 1))


def _there(live: Object) -> range:
    """Return the ordinals whose pods may be there: more than wanted while it is scaled down."""
    wanted, pods = _ordinals(live), at(live, "status", "replicas")
    return range(wanted.start, max(wanted.stop, wanted.start + (pods if isinstance(pods, int) else 0)))


def _lost(one: Identity, body: Object, ordinals: Iterable[int]) -> tuple[Gone, ...]:
    names = (f"{template}-{one.name}-{number}" for number in islice(ordinals, _MOST) for template in _templates(body))
    return tuple(Gone(Identity(CLAIM.group, CLAIM.kind, one.namespace, name), "", Cause.VOLUME, one) for name in names)


# --- what a write makes a controller delete
def lost_by_write(live: Object, wanted: Object) -> tuple[Gone, ...]:
    """Return what goes once a live object is as wanted; claims by their names alone: whether they are there isn't known."""
    identity = identity_of(dict(live))
    own = Gone(identity, str(at(live, "metadata", "uid") or ""), Cause.WRITTEN, is_member=True)
    if at(live, "metadata", "deletionTimestamp") and at(live, "metadata", "finalizers") and not at(wanted, "metadata", "finalizers"):
        return (own,)
    if identity.group_kind == STATEFUL_SET:
        return _lost(identity, wanted, _scaled_away(live, wanted))
    if identity.group_kind == VOLUME:
        return (replace(own, cause=Cause.VOLUME),) if _reclaims(live, wanted) else ()
    is_over = identity.group_kind == _JOB and is_finished(live)
    if is_over and removes_itself(dict(wanted)) and at(wanted, *_TTL) != at(live, *_TTL):
        return (replace(own, counted=False),)
    is_token = identity.group_kind == _SECRET and at(live, "type") == _TOKEN
    named = {key: at(wanted, "metadata", "annotations", key) for key in _ACCOUNT}
    moved = [key for key, said in named.items() if said and said != at(live, "metadata", "annotations", key)]
    return (own,) if is_token and (moved or not named[_ACCOUNT[0]]) else ()


def _reclaims(live: Object, wanted: Object) -> bool:
    """Whether a volume is deleted, or emptied, once it is as wanted: its claim has left it, or is another one by its uid."""
    policy = at(wanted, *_RECLAIM[VOLUME])
    is_left = at(live, "status", "phase") in _LEFT and policy != at(live, *_RECLAIM[VOLUME])
    before, after = ([at(each, "spec", _CLAIMED, key) for key in ("uid", "namespace", "name")] for each in (live, wanted))
    return policy in _RECLAIMING and bool(is_left or (after[0] and after != before))


def _scaled_away(live: Object, wanted: Object) -> Iterator[int]:
    """Yield the ordinals whose claims go because of a write; what an earlier write takes away goes without this one."""
    there, stay = _there(live), _ordinals(wanted)
    if deletes_claims(wanted, "whenScaled") and not (deletes_claims(live, "whenScaled") and stay == _ordinals(live)):
        yield from chain(range(there.start, min(there.stop, stay.start)), range(max(there.start, stay.stop), there.stop))


def scales(change: Change) -> Identity | None:
    """Return the StatefulSet that a change may scale down beside its own writes: as it is made, or by an autoscaler; None: none.

    A new one adopts the pods that an earlier one has left; the maximum of an autoscaler holds at once.
    """
    one, is_new = change.identity, change.action is Action.CREATE
    if one.group_kind == STATEFUL_SET:
        return one if is_new else None
    scaled = at(change.manifest.body(), "spec", "scaleTargetRef") if one.group_kind == _AUTOSCALER and change.manifest else None
    is_other = is_new or any(each.path.startswith(("spec.maxReplicas", "spec.scaleTargetRef")) for each in change.fields)
    is_set = at(scaled, "kind") == STATEFUL_SET.kind and is_other
    return Identity(STATEFUL_SET.group, STATEFUL_SET.kind, one.namespace, str(at(scaled, "name"))) if is_set else None


def pod_of(claim: Identity, name: str) -> Identity:
    """Return the pod of a StatefulSet of this name that a claim is for."""
    return Identity("", "Pod", claim.namespace, f"{name}-{claim.name.rpartition('-')[2]}")


def scaled_by(change: Change, body: Object, claims: Iterable[Identity]) -> tuple[Gone, ...]:
    """Return which claims of a StatefulSet (`body`) go because of a change that scales it so: those of the ordinals above its replicas."""
    own = change.identity.group_kind == STATEFUL_SET
    most = None if own or change.manifest is None else at(change.manifest.body(), "spec", "maxReplicas")
    stay = _ordinals(body) if own else range(_ordinals(body).start, _ordinals(body).start + (most if isinstance(most, int) else 0))
    prefixes = {f"{template}-{at(body, 'metadata', 'name')}" for template in _templates(body)}
    named = ((one, *one.name.rpartition("-")[::2]) for one in claims) if deletes_claims(body, "whenScaled") else ()
    beyond = (one for one, above, number in named if above in prefixes and number.isdecimal() and int(number) not in stay)
    return tuple(Gone(one, "", Cause.VOLUME, change.identity) for one in beyond)


def is_finished(job: Object) -> bool:
    """Whether a Job is Complete or Failed."""
    conditions = items_at(job, "status", "conditions")
    return any(at(each, "type") in ("Complete", "Failed") and at(each, "status") == "True" for each in conditions)


def unopened(changes: Iterable[Change], target: Target) -> dict[tuple[str, str, str], str]:
    """Return what goes once something is written, and `prune.kinds` doesn't name: it waits for a person, each with why."""
    written = (change for change in changes if change.action in (Action.CREATE, Action.UPDATE, Action.RECREATE))
    waits = [gone for change in written for gone in change.takes if gone.identity.group_kind == (CLAIM if gone.by else VOLUME)]
    said = {gone: f"{gone}; prune.kinds of target {target.name} doesn't name {gone.identity.kind}" for gone in waits}
    return {gone.key(): why for gone, why in said.items() if not listed(gone.identity.group_kind, target.prune.kinds)}


# --- volumes
def backing(live: Object) -> Identity | None:
    """Return what holds the data of an object of `BACKED`; None: nothing."""
    kind, field = BACKED[identity_of(dict(live)).group_kind]
    name = str(at(live, *field) or "")
    return Identity(kind.group, kind.kind, "", name) if name else None


def goes_along(live: Object) -> bool:
    """Whether what holds data goes with the object that is bound to it."""
    return bool(at(live, *_RECLAIM[identity_of(dict(live)).group_kind]) == "Delete")
