"""How several requests end as one: errors raised together, and why a deleted object is still there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from handler.model.errors import AnnealError, ApiRefused, LeaseError, PlanRefused, Problem
from handler.model.names import Identity
from handler.model.plan import Change

GONE_TIMEOUT = 60.0
"""Seconds that a deletion may take before the run ends as `pruning`."""


def raise_together(answers: Iterable[Any], changes: Sequence[Change]) -> None:
    """Raise the errors among answers: a lost Lease or a transient one as it is, refusals together, each with its place in git."""
    errors = [answer for answer in answers if isinstance(answer, AnnealError)]
    errors.sort(key=lambda error: not isinstance(error, LeaseError))
    for error in errors:
        if not isinstance(error, ApiRefused | PlanRefused):
            raise error
    problems = [problem for error in errors for problem in error.problems]
    places = {str(change.identity): change.manifest.place for change in changes if change.manifest}
    if problems:
        raise PlanRefused(*(replace(problem, place=problem.place or places.get(problem.subject, "")) for problem in problems))


_CLEARED_BY = {
    "kubernetes.io/pvc-protection": "the pods that use it must end",
    "kubernetes.io/pv-protection": "its claim must go",
    "foregroundDeletion": "the garbage collector, once its dependents are gone",
    "orphan": "the garbage collector",
    "customresourcecleanup.apiextensions.k8s.io": "the API server, once the CRD's instances are gone",
    "service.kubernetes.io/load-balancer-cleanup": "the cloud's service controller",
}


def lingering(identity: Identity, live: dict[str, Any]) -> Problem:
    """Say why an object isn't gone: its finalizers and who usually clears them."""
    finalizers = [str(name) for name in live["metadata"].get("finalizers") or []]
    told = [f"{name} ({_CLEARED_BY.get(name) or 'the controller of ' + name.partition('/')[0]})" for name in finalizers]
    why = f"finalizers: {', '.join(told)}" if told else "the server has not removed it yet"
    return Problem(
        str(identity), f"is not gone yet; {why}", fix=f"kubectl get {identity.kind.lower()} {identity.name} -o yaml shows who must act"
    )
