"""Has a StatefulSet let its claims go before it is deleted, unless the plan names them: data stays unless someone says that it goes.

    whenDeleted: Retain     set on the live object, under its uid and resourceVersion
    observed                its controller puts no owner reference on a claim any more, and takes off those of its pods' claims
    what still refers       such as claims of pods that are gone, which no controller looks at: taken off here

Law: nothing here deletes. Killed anywhere, the same again goes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import probe
from handler.cluster.wait_until import until
from handler.cluster.write import Writer
from handler.engine.apply import wait_deleted
from handler.engine.planner.retention_look import CLAIMS, claims_of
from handler.model.errors import Moved, Problem, StillDeleting
from handler.model.manifest import at, items_at
from handler.model.names import Identity, Resource, kubectl
from handler.plan.retention import STATEFUL_SET, deletes, refers

_RETAIN = {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}}}
_PASSES = 5  # looks at claims that something else writes meanwhile


def let_claims_go(
    api: Api, fence: Callable[[], None], resource: Resource, identity: Identity, uid: str, version: str, named: Collection[Identity] = ()
) -> str:
    """Return the resourceVersion by which an object may be deleted without loss of a claim that isn't `named`.

    Raises Moved: it changed, or is being written; StillDeleting: its controller doesn't follow; AccessDenied: its claims can't be listed.
    """
    if identity.group_kind != STATEFUL_SET:
        return version
    live = probe(api, [(resource, identity.namespace, identity.name)]).get(identity)
    if live is None or live["metadata"]["uid"] != uid:
        return version
    mine = _referring(api, identity, uid)
    if not (mine or deletes(live, "whenDeleted")) or (named and mine.keys() <= {*named}):
        return version
    if deletes(live, "whenDeleted"):
        retained = _retained(api, Writer(api, fence), resource, identity, uid, version or str(live["metadata"]["resourceVersion"]), fence)
        version = retained if version else ""
    for _ in range(_PASSES):
        for one, claim in _referring(api, identity, uid).items():
            _take_off(Writer(api, fence), one, claim, uid)
        if not _referring(api, identity, uid):
            return version
    raise StillDeleting(_stuck(identity, "something puts its owner reference on its claims again and again"))


def _referring(api: Api, identity: Identity, uid: str) -> dict[Identity, dict[str, Any]]:
    return {one: claim for one, claim in claims_of(api, identity.namespace).items() if refers(claim, uid)}


def _retained(api: Api, writer: Writer, resource: Resource, identity: Identity, uid: str, version: str, fence: Callable[[], None]) -> str:
    """Set the policy, and wait until the controller has seen that; return the resourceVersion that it has then."""
    metadata = {"namespace": identity.namespace, "name": identity.name}
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **_RETAIN}
    generation, seen = writer.merge(resource, body, uid, version)["metadata"]["generation"], dict[str, Any]()

    def is_observed(live: dict[str, Any]) -> bool:
        seen.update(live["metadata"])
        return bool(live["metadata"]["uid"] != uid or (at(live, "status", "observedGeneration") or 0) >= generation)

    if until(api, [(resource, identity)], is_observed, wait_deleted.TIMEOUT, fence):
        raise StillDeleting(_stuck(identity, f"its controller hasn't seen `whenDeleted: Retain` within {wait_deleted.TIMEOUT:.0f} s"))
    return str(seen["resourceVersion"])


def _take_off(writer: Writer, one: Identity, claim: dict[str, Any], uid: str) -> None:
    metadata = claim["metadata"]
    others = [each for each in items_at(claim, "metadata", "ownerReferences") if at(each, "uid") != uid]
    sent = {"name": one.name, "namespace": one.namespace, "ownerReferences": others}
    body = {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind, "metadata": sent}
    with contextlib.suppress(Moved):  # it is looked at once more
        writer.merge(CLAIMS, body, str(metadata["uid"]), str(metadata["resourceVersion"]))


def _stuck(identity: Identity, why: str) -> Problem:
    seen = f"isn't deleted, for its claims would go with it: {why}"
    return Problem(str(identity), seen, fix=f"see to its controller: {kubectl('describe', identity)}; the next run goes on")
