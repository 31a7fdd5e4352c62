"""What the garbage collector deletes because of a plan: what lives by an owner that goes. Pure.

    a declared member     made anew by the same run, before its owner goes
    anything else         named with its owner's change, and counted; what a controller makes again isn't
    what must stay        keeps its owner: it is protected, or it holds data and isn't opted in

What lives in a Namespace, and what a CRD defines, goes like what these own.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents. An object with several owners goes with the
last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from handler.model.manifest import at, items_at
from handler.model.names import ACTS, GroupKind, Identity, identity_of
from handler.model.plan import OF_ITS_OWN, Action, Cause, Change, Gone

REMADE = frozenset(
    {
        GroupKind("", "Pod"),
        GroupKind("", "Endpoints"),
        GroupKind("apps", "ReplicaSet"),
        GroupKind("apps", "ControllerRevision"),
        GroupKind("batch", "Job"),
        GroupKind("discovery.k8s.io", "EndpointSlice"),
    }
)
"""What controllers of Kubernetes make of the objects that own it: its loss isn't counted."""
_CONTROLLED = frozenset({"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "Service", "StatefulSet"})
_OF_THESE = ("v1", "apps/v1", "batch/v1")
_SECRET, _SERVICE = GroupKind("", "Secret"), GroupKind("", "Service")
_ACCOUNT = "kubernetes.io/service-account.uid"
_NAMED = 3  # objects that one note names


@dataclass(frozen=True, slots=True)
class Dependant:
    """A live object that goes with others. `owners`: their uids; `kept`: why it may not be deleted; `cause`: why it goes with them.

    `stays_away`: made anew without them it would go again; `remade`: a controller makes it again; `dropped`: the uids of owners that it has
    until the run writes it.
    """

    identity: Identity
    uid: str
    owners: tuple[str, ...]
    is_member: bool = False
    kept: str = ""
    cause: Cause = Cause.OWNER
    stays_away: bool = False
    remade: bool = False
    dropped: tuple[str, ...] = ()

    def goes_with(self, going: Set[str], early: Set[str]) -> bool:
        """Whether it goes once these uids do. `early`: those of them that may go before the run has written it."""
        later = self.owners and going >= {*self.owners}
        return bool(later or (early & {*self.dropped} and going >= {*self.owners, *self.dropped}))

    def merged(self, other: Dependant) -> Dependant:
        """Return what two LISTs know of one object: that it lives in what goes, else what is known first, and all that keeps it."""
        first = other if self.cause is Cause.OWNER and other.cause is not Cause.OWNER else self
        kept, stays_away = self.kept or other.kept, self.stays_away or other.stays_away
        return replace(first, is_member=self.is_member or other.is_member, kept=kept, stays_away=stays_away)


@dataclass(frozen=True, slots=True)
class GarbageCollection:
    """What changes of a plan by its owners. `changes`: in place of those of the same objects; `kept`: owners that must stay, with why."""

    changes: Mapping[Identity, Change] = field(default_factory=dict)
    kept: Mapping[Identity, str] = field(default_factory=dict)


def dependant_of(
    live: Mapping[str, Any], *, is_member: bool = False, kept: str = "", owners: Collection[str] | None = None
) -> Dependant | None:
    """Return a live object as one that goes with its owners; None: it has none. `owners`: their uids after the run; None: as it lives.

    The token of a ServiceAccount goes with that
    (https://kubernetes.io/docs/concepts/security/service-accounts/#manually-create-an-api-token-for-a-serviceaccount).
    """
    there = owners_of(live)
    uids = there if owners is None else tuple(owners)
    account = "" if there or uids else str(at(live, "metadata", "annotations", _ACCOUNT) or "")
    if not (there or uids or account):
        return None
    identity, uid = identity_of(dict(live)), str(at(live, "metadata", "uid") or "")
    if account and identity.group_kind == _SECRET:
        return Dependant(identity, uid, (account,), is_member, kept, stays_away=True)
    controlled = any(at(each, "controller") is True for each in items_at(live, "metadata", "ownerReferences"))
    remade, dropped = controlled and identity.group_kind in REMADE, tuple(each for each in there if each not in uids)
    return Dependant(identity, uid, uids, is_member, kept, remade=remade, dropped=dropped) if there or uids else None


def owners_of(live: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the uids of what owns a live object."""
    return tuple(str(at(each, "uid") or "") for each in items_at(live, "metadata", "ownerReferences"))


def is_owned_within(live: Mapping[str, Any]) -> bool:
    """Whether all that owns a live object is of Kubernetes' own kinds with controllers, which live in its Namespace, or did."""
    owners = items_at(live, "metadata", "ownerReferences")
    return all(at(each, "kind") in _CONTROLLED and at(each, "apiVersion") in _OF_THESE for each in owners)


def endpoints_of(service: Change, live: Mapping[Identity, str], declared: Collection[Identity]) -> Iterator[Dependant]:
    """Yield the Endpoints that go with a Service: their controller deletes them by its name. `live`: uids."""
    space, name = service.identity.namespace, service.identity.name
    if service.removes and service.identity.group_kind == _SERVICE and (one := Identity("", "Endpoints", space, name)) in live:
        kept = "git declares it" if one in declared else ""
        yield Dependant(one, live[one], (service.uid,), is_member=True, kept=kept, stays_away=True)


def collected(changes: Sequence[Change], listed: Iterable[Dependant], remade: Callable[[Identity], Change | None]) -> GarbageCollection:
    """Return what becomes of a plan's changes by what goes with them.

    `changes`: those of the plan that write; `listed`: whatever was listed and may go with others, what knows most of an object first;
    `remade`: returns the change of a declared member that may be made anew, None: it can't be, or git doesn't declare it.
    """
    dependants, kept = dict[str, Dependant](), dict[Identity, str]()
    for each in listed:
        dependants[each.uid] = dependants[each.uid].merged(each) if each.uid in dependants else each
    while True:
        found, held = _round([change for change in changes if change.identity not in kept], dependants, remade)
        if not held:
            before = {change.identity: change for change in changes}
            return GarbageCollection({one: change for one, change in found.items() if before.get(one) != change}, kept)
        kept |= held


def _round(
    changes: Sequence[Change], dependants: Mapping[str, Dependant], remade: Callable[[Identity], Change | None]
) -> tuple[dict[Identity, Change], dict[Identity, str]]:
    """Return the changes with what goes with them, and the owners that must stay."""
    found = {change.identity: change for change in changes}
    owner_of = {gone.uid: change.identity for change in changes for gone in change.gone if gone.uid}
    early = {gone.uid for change in changes if change.action is not Action.PRUNE or change.cause for gone in change.gone}
    roots, held = {**owner_of}, dict[Identity, str]()  # which change of the plan takes each; which of these must stay
    while more := [each for uid, each in dependants.items() if uid not in owner_of and each.goes_with(owner_of.keys(), early)]:
        for each in more:
            above = (*each.owners, *each.dropped)[0]
            owner = owner_of[each.uid] = owner_of[above]
            roots[each.uid] = roots[above]
            anew = None if each.stays_away else remade(each.identity)
            early |= {each.uid} if anew or above in early else set()
            if anew is not None:
                reason = f"{'its owner' if each.cause is Cause.OWNER else 'what holds it,'} {owner} goes"
                found[each.identity] = replace(anew, action=Action.RECREATE, cause=each.cause, reason=reason, managed_fields=b"")
                owner_of[each.uid] = each.identity
            elif each.kept:
                held[roots[each.uid]] = f"{each.identity} would go with it: {each.kept}"
            else:
                gone = Gone(each.identity, each.uid, each.cause, owner, each.is_member or not each.remade, each.is_member)
                found[owner] = replace(found[owner], takes=(*found[owner].takes, gone))
    return found, held


def may_own_more(changes: Iterable[Change]) -> tuple[str, ...]:
    """Return one line of what goes and may own what no LIST has shown."""
    acts = {change.identity for change in changes if change.cause in OF_ITS_OWN and change.identity.group_kind in ACTS}
    going = sorted({change.identity for change in changes if change.removes} - acts)  # what acts own is their pods
    if not going:
        return ()
    named = ", ".join(map(str, going[:_NAMED])) + (f" and {len(going) - _NAMED} more" if len(going) > _NAMED else "")
    return (f"{named} may own more: what isn't the target's, and is owned by what goes, goes, too",)
