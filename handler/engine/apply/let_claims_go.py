"""Has a StatefulSet let its claims go before it is deleted, unless the plan names them.

    whenDeleted: Retain     set on the live object, under its uid and resourceVersion
    observed                its controller puts no owner reference on a claim any more, and takes off those of its pods' claims
    what still refers       such as claims of pods that are gone, which no controller looks at: taken off here

Law: nothing here deletes. Killed anywhere, the same again goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import probe
from handler.cluster.wait_until import until
from handler.cluster.write import Writer
from handler.engine.apply import wait_deleted
from handler.engine.planner.retention_look import CLAIMS, claims_of
from handler.model.advice import advice
from handler.model.errors import Moved, StillDeleting
from handler.model.manifest import at, items_at
from handler.model.names import Identity, Resource, kubectl, uid_and_version
from handler.plan.retention import STATEFUL_SET, deletes_claims, refers

_JUDGED = ("generation", "labels", "annotations", "ownerReferences", "finalizers", "deletionTimestamp")
"""What of an object's metadata decides whether it may be deleted; its status is its controller's."""
_RETAIN = {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}}
Object = dict[str, Any]


def let_claims_go(
    api: Api, fence: Callable[[], None], resource: Resource, identity: Identity, uid: str, version: str, named: Collection[Identity] = ()
) -> str:
    """Return the resourceVersion by which an object may be deleted without loss of a claim that isn't `named`; empty as it is given.

    Raises Moved: it changed, or a claim did; StillDeleting: its controller doesn't follow; AccessDenied: its claims can't be listed.
    """
    live = probe(api, [(resource, identity.namespace, identity.name)]).get(identity) if identity.group_kind == STATEFUL_SET else None
    if live is None or live["metadata"]["uid"] != uid:
        return version
    takes = _referring(api, identity, uid)
    if not (takes or deletes_claims(live, "whenDeleted")) or (named and takes.keys() <= {*named}):
        return version
    writer = Writer(api, fence)
    if deletes_claims(live, "whenDeleted"):
        patched = writer.merge(resource, _body(resource, identity, spec=_RETAIN), uid, version or uid_and_version(live)[1])
        retained = _observed(api, fence, resource, identity, patched["metadata"])
        version = version and retained
        takes = _referring(api, identity, uid)
    for one, claim in takes.items():
        others = [each for each in items_at(claim, "metadata", "ownerReferences") if at(each, "uid") != uid]
        writer.merge(CLAIMS, _body(CLAIMS, one, {"ownerReferences": others}), *uid_and_version(claim))
    return version


def _referring(api: Api, identity: Identity, uid: str) -> dict[Identity, Object]:
    return {one: claim for one, claim in claims_of(api, identity.namespace).items() if refers(claim, uid)}


def _body(resource: Resource, one: Identity, metadata: Object | None = None, **fields: Object) -> Object:
    named = {"namespace": one.namespace, "name": one.name, **(metadata or {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": named, **fields}


def _observed(api: Api, fence: Callable[[], None], resource: Resource, identity: Identity, patched: Object) -> str:
    """Wait until the controller has seen what was written; return the resourceVersion of then. Raises StillDeleting; Moved: it changed."""
    seen, generation = Object(), int(patched.get("generation") or 0)

    def is_observed(live: Object) -> bool:
        seen.update(live["metadata"])
        return bool((at(live, "status", "observedGeneration") or 0) >= generation)

    if until(api, [(resource, identity)], is_observed, wait_deleted.TIMEOUT, fence):
        why = (
            f"isn't deleted, for its claims may go with it: its controller hasn't seen whenDeleted: Retain in {wait_deleted.TIMEOUT:.0f} s"
        )
        raise StillDeleting.of(
            str(identity), why, fix=advice("see to its controller: {text}; the next run goes on", kubectl("describe", identity))
        )
    if any(seen.get(key) != patched.get(key) for key in _JUDGED):
        raise Moved.of(str(identity), "changed while its claims were let go")
    return str(seen["resourceVersion"])
