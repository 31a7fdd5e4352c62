"""What the original Kubernixos has deployed and the closure now lacks: which labelled objects that is, and what keeps one. Pure.

Its label says neither which closure an object is of nor who wrote it: controllers copy labels onto what they make (Endpoints), people
copy whole objects. Law: a leftover carries the label with another checksum, no mark of a target or of another owner, and proof that
`kubectl apply` put the label on exactly this object. Whatever else speaks for an object (`handler.plan.prune`) keeps it, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from handler.config.settings import Target
from handler.model.api_groups import is_certainly_custom
from handler.model.manifest import at
from handler.model.names import IDENTITY, KUBERNIXOS, PART_OF, Identity, Resource, identity_of
from handler.plan.admission import NAMESPACE, allows, listed
from handler.plan.managed_fields import managed_fields
from handler.plan.ownership import Manager, foreign_owner, owns_label

VERBS = frozenset({"get", "list", "update", "patch", "delete"})
"""What a kind must be served with to be looked through, as upstream."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_APPLY = (Manager("kubectl-client-side-apply", ("Update",)), Manager("kubectl", ("Apply",)))
"""The field managers of `kubectl apply`, by the client and by the server; an older kubectl updates so whatever a person does."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What counts as one for a target. `checksum`: of what it declares."""

    target: Target
    applyset: str
    checksum: str

    def kept(self, live: Mapping[str, Any]) -> str | None:
        """Return what keeps a labelled object, empty: nothing of this; None: it isn't unwanted at all, and no word is lost about it."""
        metadata = live["metadata"]
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        if labels.get(KUBERNIXOS, self.checksum) == self.checksum or PART_OF in labels:
            return None
        if IDENTITY in annotations:
            return "is on its way from one target to another"
        if metadata.get("ownerReferences"):
            return ""  # `handler.plan.prune` names its owner, which may be any
        if not is_applied(live):
            return "kubectl apply hasn't put the label on it: something has copied it"
        adopted = {KUBERNIXOS} & set(self.target.adopts)  # another tool's objects are taken over where they are declared, never deleted
        owner = foreign_owner(dict(live), identity_of(dict(live)), self.applyset, adopted)
        return f"belongs to {owner.name}" if owner else ""


def is_applied(live: Mapping[str, Any]) -> bool:
    """Whether `kubectl apply` has put the label on exactly this object, by what the server or kubectl itself has recorded of that."""
    entries = managed_fields(dict(live))
    return any(owns_label(each, KUBERNIXOS) and any(one.wrote(each) for one in _APPLY) for each in entries) or _is_last_applied(live)


def _is_last_applied(live: Mapping[str, Any]) -> bool:
    text = (live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    try:
        applied = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return False
    if not isinstance(applied, dict) or not isinstance(applied.get("metadata"), dict):
        return False
    one, other = identity_of(dict(live)), identity_of(applied)
    moved = one.group != other.group and not any(map(is_certainly_custom, (one.group, other.group)))  # as from extensions to apps
    named = replace(other, group=one.group if moved else other.group) == one
    return named and at(applied, "metadata", "labels", KUBERNIXOS) == at(live, "metadata", "labels", KUBERNIXOS)


def is_looked_through(resource: Resource, target: Target) -> bool:
    """Whether a kind is searched for leftovers of a target: as upstream each that has the verbs, as far as the whitelist reaches."""
    return resource.verbs >= VERBS and (resource.namespaced or listed(resource.group_kind, target.cluster_scoped))


def is_inside(identity: Identity, target: Target) -> bool:
    """Whether a target's whitelist reaches an object."""
    namespace = identity.name if identity.group_kind == NAMESPACE else identity.namespace
    return not namespace or allows(target, namespace)
