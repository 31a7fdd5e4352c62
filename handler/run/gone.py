"""What was deleted is waited for until it is gone; what isn't gone in time is named, with why it is still there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from handler.cluster.api import Api
from handler.cluster.wait import until_gone
from handler.model.errors import Problem, StillDeleting
from handler.model.names import Identity, kubectl
from handler.model.resource import Resource

TIMEOUT = 60.0
"""Seconds that a deletion may take before the run ends as `pruning`."""
_CLEARED_BY = {
    "kubernetes.io/pvc-protection": "the pods that use it must end",
    "kubernetes.io/pv-protection": "its claim must go",
    "foregroundDeletion": "the garbage collector, once its dependents are gone",
    "orphan": "the garbage collector",
    "customresourcecleanup.apiextensions.k8s.io": "the API server, once the CRD's instances are gone",
    "service.kubernetes.io/load-balancer-cleanup": "the cloud's service controller",
}


def wait_until_gone(api: Api, wanted: Sequence[tuple[Resource, Identity, str]], stop: Callable[[], None]) -> None:
    """Wait until none of these objects lives.

    Args:
        api: with the right to list and watch these kinds.
        wanted: kind, identity and uid; another object of the same name isn't waited for.
        stop: called several times a second; what it raises ends the wait.

    Raises:
        StillDeleting: some are not gone in time; each with its finalizers, and who clears them.

    """
    identities = {uid: identity for _, identity, uid in wanted}
    survivors = until_gone(api, wanted, TIMEOUT, stop)
    if survivors:
        raise StillDeleting(*(_lingering(identities[str(live["metadata"]["uid"])], live) for live in survivors))


def _lingering(identity: Identity, live: dict[str, Any]) -> Problem:
    """Say why an object isn't gone: its finalizers and who usually clears them."""
    finalizers = [str(name) for name in live["metadata"].get("finalizers") or []]
    told = [f"{name} ({_CLEARED_BY.get(name) or 'the controller of ' + name.partition('/')[0]})" for name in finalizers]
    why = f"finalizers: {', '.join(told)}" if told else "the server has not removed it yet"
    return Problem(str(identity), f"is not gone yet; {why}", fix=f"{kubectl('get', identity, '-o', 'yaml')} shows who must act")
