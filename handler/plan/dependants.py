"""What the garbage collector deletes because of a plan: what lives by an owner that goes. Pure.

    a declared member     made anew by the same run, before its owner goes
    anything else         named with its owner's change, and counted; what a controller makes again isn't
    what must stay        keeps its owner: it is protected, or it holds data and isn't opted in

What lives in a Namespace, and what a CRD defines, goes like what these own.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents. An object with several owners goes with the
last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.model.manifest import at, items_at
from handler.model.names import GroupKind, Identity, identity_of
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
_SECRET, _SERVICE = GroupKind("", "Secret"), GroupKind("", "Service")
_ACCOUNT = "kubernetes.io/service-account.uid"
_NAMED = 3  # objects that one note names


@dataclass(frozen=True, slots=True)
class Dependant:
    """A live object that goes with others. `owners`: their uids; `kept`: why it may not be deleted; `cause`: why it goes with them.

    `stays_away`: made anew without them it would go again.
    """

    identity: Identity
    uid: str
    owners: tuple[str, ...]
    is_member: bool = False
    kept: str = ""
    cause: Cause = Cause.OWNER
    stays_away: bool = False

    @property
    def is_counted(self) -> bool:
        """Whether its loss counts: no controller makes it again."""
        return self.is_member or self.identity.group_kind not in REMADE


@dataclass(frozen=True, slots=True)
class GarbageCollection:
    """What changes of a plan by its owners. `changes`: in place of those of the same objects; `kept`: owners that must stay, with why."""

    changes: Mapping[Identity, Change] = field(default_factory=dict)
    kept: Mapping[Identity, str] = field(default_factory=dict)


def dependant_of(live: Mapping[str, Any], *, is_member: bool = False, kept: str = "", owners: Iterable[str] = ()) -> Dependant | None:
    """Return a live object as one that goes with its owners; None: it has none. `owners`: their uids; none: those that live.

    The token of a ServiceAccount goes with that
    (https://kubernetes.io/docs/concepts/security/service-accounts/#manually-create-an-api-token-for-a-serviceaccount).
    """
    uids = tuple(owners) or owners_of(live)
    account = "" if uids else str(at(live, "metadata", "annotations", _ACCOUNT) or "")
    identity, uid = identity_of(dict(live)), str(at(live, "metadata", "uid") or "")
    if account and identity.group_kind == _SECRET:
        return Dependant(identity, uid, (account,), is_member, kept, stays_away=True)
    return Dependant(identity, uid, uids, is_member, kept) if uids else None


def owners_of(live: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the uids of what owns a live object."""
    return tuple(str(at(each, "uid") or "") for each in items_at(live, "metadata", "ownerReferences"))


def endpoints_of(service: Change, live: Mapping[Identity, str], declared: Collection[Identity]) -> Iterator[Dependant]:
    """Yield the Endpoints that go with a Service: their controller deletes them by its name. `live`: uids."""
    one = Identity("", "Endpoints", service.identity.namespace, service.identity.name)
    if service.removes and service.identity.group_kind == _SERVICE and one in live:
        kept = "git declares it" if one in declared else ""
        yield Dependant(one, live[one], (service.uid,), is_member=True, kept=kept, stays_away=True)


def collected(changes: Sequence[Change], listed: Iterable[Dependant], remade: Callable[[Identity], Change | None]) -> GarbageCollection:
    """Return what becomes of a plan's changes by what goes with them.

    `changes`: all of the plan; `listed`: whatever was listed and may go with others; `remade`: returns the change of a declared member that
    may be made anew, None: it can't be, or git doesn't declare it.
    """
    dependants, kept = {each.uid: each for each in listed}, dict[Identity, str]()
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
    roots, held = {**owner_of}, dict[Identity, str]()  # which change of the plan takes each; which of these must stay
    while more := [each for uid, each in dependants.items() if uid not in owner_of and owner_of.keys() >= {*each.owners}]:
        for each in more:
            owner = owner_of[each.uid] = owner_of[each.owners[0]]
            roots[each.uid] = roots[each.owners[0]]
            anew = None if each.stays_away else remade(each.identity)
            if anew is not None:
                reason = f"{'its owner' if each.cause is Cause.OWNER else 'what holds it,'} {owner} goes"
                found[each.identity] = replace(anew, action=Action.RECREATE, cause=each.cause, reason=reason, managed_fields=b"")
                owner_of[each.uid] = each.identity
            elif each.kept:
                held[roots[each.uid]] = f"{each.identity} would go with it: {each.kept}"
            else:
                gone = Gone(each.identity, each.uid, each.cause, owner, each.is_counted, each.is_member)
                found[owner] = replace(found[owner], takes=(*found[owner].takes, gone))
    return found, held


def may_own_more(changes: Iterable[Change]) -> tuple[str, ...]:
    """Return one line of what goes and may own what no LIST has shown."""
    going = sorted(change.identity for change in changes if change.removes and change.cause not in OF_ITS_OWN)
    if not going:
        return ()
    named = ", ".join(map(str, going[:_NAMED])) + (f" and {len(going) - _NAMED} more" if len(going) > _NAMED else "")
    return (f"{named} may own more: what isn't the target's, and is owned by what goes, goes, too",)
