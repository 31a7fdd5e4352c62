"""Waits until what was deleted is gone; what takes longer is recorded (phase `pruning`) with what holds it.

Law: the record is written when that changes; once all are gone it stands as before. A write that fails ends no run: the fence decides.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.cluster.api import Api
from handler.cluster.wait_until import until_gone
from handler.engine.run import transitions
from handler.engine.run.context import RunContext
from handler.model.advice import advice
from handler.model.errors import AnnealError, Problem, StillDeleting
from handler.model.field_masking import without_credentials
from handler.model.manifest import at, items_at
from handler.model.names import Identity, Resource, kubectl
from handler.model.plan import Action, Change
from handler.state.record import RunStatus, State
from handler.state.record_format import is_recordable, stamp
from handler.state.run_history import PRUNING

TIMEOUT = 60.0  # seconds that a deletion may take before the run ends as `pruning`
_CLEARED_BY = {
    "kubernetes.io/pvc-protection": "the pods that use it must end",
    "kubernetes.io/pv-protection": "its claim must go",
    "foregroundDeletion": "the garbage collector, once its dependents are gone",
    "orphan": "the garbage collector",
    "customresourcecleanup.apiextensions.k8s.io": "the API server, once the CRD's instances are gone",
    "service.kubernetes.io/load-balancer-cleanup": "the cloud's service controller",
}


_HOLDS = (
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
    "NamespaceDeletionContentFailure",
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
)
"""Conditions of a Namespace that is being deleted, each with what holds it."""
_REPORT_AFTER, _REPORT_EVERY = 1.0, 2.0  # seconds after which a wait is worth a line in the record, and between two of them


@dataclass(frozen=True, slots=True)
class LingeringObject(Problem):
    """An object that isn't gone yet, `since` when, and what holds it."""

    identity: Identity | None = None
    since: str = ""
    finalizers: tuple[str, ...] = ()


Report = Callable[[Sequence[LingeringObject]], None]
"""Called with the objects that aren't gone yet, when they change; with none once all reported ones are gone."""


def unreported(_: Sequence[LingeringObject]) -> None:
    """Report nothing."""


def wait_until_gone(
    api: Api, wanted: Sequence[tuple[Resource, Identity, str]], stop: Callable[[], None], report: Report = unreported
) -> None:
    """Wait until none of these objects (kind, identity, uid) lives. Raises StillDeleting: some are not gone in time, each as reported.

    `stop`: called several times a second, may raise. `report`: called with each object that isn't gone after a moment, and what holds it.
    """
    reporter = _Reporter({uid: identity for _, identity, uid in wanted}, report)
    survivors = until_gone(api, wanted, TIMEOUT, stop, reporter.look)
    if survivors:
        reporter.end(survivors)
        raise StillDeleting(*reporter.reported)
    reporter.end()


@dataclass(slots=True)
class _Reporter:
    identities: Mapping[str, Identity]
    report: Report
    reported: tuple[LingeringObject, ...] = ()
    due: float = 0.0

    def __post_init__(self) -> None:
        self.due = time.monotonic() + _REPORT_AFTER

    def look(self, left: Sequence[dict[str, Any]]) -> None:
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + _REPORT_EVERY
            self._report(self.problems(left))

    def end(self, left: Sequence[dict[str, Any]] = ()) -> None:
        self._report(self.problems(left))

    def _report(self, left: tuple[LingeringObject, ...]) -> None:
        if left != self.reported:
            self.reported = left
            self.report(left)

    def problems(self, left: Sequence[dict[str, Any]]) -> tuple[LingeringObject, ...]:
        found = (_lingering(self.identities[str(live["metadata"]["uid"])], live) for live in left)
        return tuple(sorted(found, key=lambda problem: problem.subject))


def _lingering(identity: Identity, live: dict[str, Any]) -> LingeringObject:
    """Return why an object isn't gone: its finalizers and their usual controllers; of a Namespace, its remaining content."""
    finalizers = tuple(str(name) for name in live["metadata"].get("finalizers") or ())
    since = str(live["metadata"].get("deletionTimestamp") or stamp(time.time()))
    explained = [f"{name} ({_CLEARED_BY.get(name) or 'the controller of ' + name.partition('/')[0]})" for name in finalizers]
    holds = [
        str(each.get("message"))
        for each in items_at(live, "status", "conditions")
        if at(each, "type") in _HOLDS and at(each, "status") == "True"
    ]
    reasons = [*([f"finalizers: {', '.join(explained)}"] if explained else []), *holds]
    why = "; ".join(reasons) or "the server has not removed it yet"
    fix = advice("{text} shows who must act", kubectl("get", identity, "-o", "yaml"))
    return LingeringObject(str(identity), f"is not gone yet; {why}", fix=fix, identity=identity, since=since, finalizers=finalizers)


@dataclass(slots=True)
class Lingering:
    """What one run waits for, on several threads at once maybe."""

    run: RunContext
    _left: dict[int, tuple[LingeringObject, ...]] = field(default_factory=dict)
    _before: RunStatus | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def report(self, left: Sequence[LingeringObject]) -> None:
        """Record what the wait of this thread waits for; nothing: all of it is gone."""
        with self._lock:
            self._left[threading.get_ident()] = tuple(left)
        with contextlib.suppress(AnnealError):
            self.run.record(self._with_lines)

    def seen(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Return what a run has written, where an object that goes isn't gone yet with what it waits for."""
        left = {each.identity: each for found in self._left.values() for each in found}
        pending = ((change, left.get(change.identity) if change.action is Action.PRUNE else None) for change in changes)
        return tuple(replace(change, terminating=it.since, finalizers=it.finalizers) if it else change for change, it in pending)

    def _with_lines(self, state: State) -> State:
        with self._lock:
            left = [problem for each in self._left.values() for problem in each]
            first = next((each.identity for each in left if each.identity and is_recordable(each.identity)), None)
            lines = [without_credentials(str(problem)) for problem in left]
            if self._before is None or state.status.phase != PRUNING:
                self._before = state.status
            return transitions.lingering(state, lines, self._before, self.run.clock(), first)
