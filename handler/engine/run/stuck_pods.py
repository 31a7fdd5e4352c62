"""The pods that keep a StatefulSet from another revision: named by the plan of a target with `rollback.onFailure`, deleted by its wait.

    planned    of a set that isn't healthy, or that gets another template, the pods that aren't ready: one GET and one LIST a set
    deleted    once the controller has said which revision is due, what is of another one still, isn't ready, and won't be in a moment

Law: what the plan doesn't name stays, and so does what people replace (`OnDelete`) or protect; each deletion carries uid and
resourceVersion. A pod is made again by the controller, and its claims stay: guards don't count it, and `prune` says nothing of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from handler.cluster.live import Listing, pages, probe
from handler.cluster.write import Writer
from handler.engine.planner.planner import Planned
from handler.engine.run.context import RunContext
from handler.health.kinds.pods import selector_of
from handler.health.stuck_pods import DueRevision, is_stuck
from handler.model.advice import advice
from handler.model.errors import AccessDenied, ApiRefused, Moved
from handler.model.names import Identity, Resource, identity_of, uid_and_version
from handler.model.plan import SAID, Action, Cause, Change, Gone
from handler.plan.prune import kept_by_mark
from handler.plan.retention import STATEFUL_SET

_POD = Resource("", "v1", "Pod", "pods", namespaced=True)
_EVERY = 2.0  # seconds between two looks of a wait
_TEMPLATE = "spec.template"
_LOG = logging.getLogger("anneal.run")


def named(run: RunContext, planned: Planned, *, steps: bool) -> tuple[tuple[Gone, ...], tuple[str, ...]]:
    """Return the pods that the wait of a run may delete, and notes of them. `steps`: it has some, which wait whatever the target does."""
    plan, target, found, notes = planned.plan, run.job.target, list[Gone](), list[str]()
    waits = (run.deps.target.wait or steps) and (plan.works or run.state.attempt)
    if not (waits and run.deps.target.rollback.on_failure):
        return (), ()
    for change in plan.changes:
        unwell = change.identity in planned.health and not planned.health[change.identity].healthy
        if change.identity.group_kind == STATEFUL_SET and change.action in (Action.UPDATE, Action.UNCHANGED) and unwell:
            try:
                for pod in _of(run, planned, change):
                    if kept := kept_by_mark(pod["metadata"]):
                        notes.append(f"{identity_of(pod)} isn't replaced, though its set may wait for that: it is {kept}")
                    else:
                        found.append(Gone(identity_of(pod), uid_and_version(pod)[0], Cause.STUCK, change.identity, counted=False))
            except AccessDenied as denied:
                why = denied.problems[0].message
                notes.append(advice("pods can't be listed, so none that is stuck is replaced: {text}; anneal rbac {}", why, target))
    notes += [f"{gone.identity} is deleted while the run waits for {gone.by}, if it stays: {SAID[gone.cause]}" for gone in found]
    return tuple(found), tuple(notes)


def _of(run: RunContext, planned: Planned, change: Change) -> Iterator[dict[str, Any]]:
    api, one = run.deps.planner.api, change.identity
    live = probe(api, [(planned.desired[one].resource, one.namespace, one.name)]).get(one)
    due = DueRevision.of(live)
    if live is None or not due.revision or due.on_delete:
        return
    turns = change.action is Action.UPDATE and (not change.fields or any(each.path.startswith(_TEMPLATE) for each in change.fields))
    for pod in (each for page in pages(api, Listing(_POD, one.namespace, selector_of(live))) for each in page):
        if due.is_past(pod) or (turns and due.lags(pod)):
            yield pod


@dataclass(slots=True)
class StuckPods:
    """What a run's waits may delete, on several threads. `left`: named by the plan; `notes`: takes what was deleted."""

    run: RunContext
    left: list[Gone]
    notes: list[str]
    _sets: dict[Identity, DueRevision] = field(default_factory=dict)
    _looks: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def saw(self, identity: Identity, live: dict[str, Any] | None) -> None:
        """Take a new state of a set."""
        if any(gone.by == identity for gone in self.left):
            self._sets[identity] = DueRevision.of(live)

    def beat(self) -> None:
        """Delete what is stuck, every few seconds, on one thread at a time. Raises LeaseLost."""
        if not self._sets or time.monotonic() < self._looks or not self._lock.acquire(blocking=False):
            return
        try:
            self._looks = time.monotonic() + _EVERY
            self.left = [gone for gone in self.left if self._stays(gone)]
        finally:
            self._lock.release()

    def _stays(self, gone: Gone) -> bool:
        """Whether a pod is still to be looked at."""
        due = self._sets.get(gone.by or gone.identity, DueRevision())
        if not due.revision or due.on_delete:
            return True
        api, one = self.run.deps.planner.api, gone.identity
        try:
            pod = probe(api, [(_POD, one.namespace, one.name)]).get(one)
            if pod is None or uid_and_version(pod)[0] != gone.uid:
                return False
            if not due.is_past(pod) or kept_by_mark(pod["metadata"]) or not is_stuck(pod, api.server_time()):
                return True
            Writer(api, self.run.fence).delete(_POD, one, *uid_and_version(pod))
            done, said = "deleted", f"{one} was deleted, so that {gone.by} makes it anew: {SAID[gone.cause]}"
        except Moved:
            return True
        except (AccessDenied, ApiRefused) as error:
            done, said = "not deleted", f"{one} isn't deleted, though {gone.by} waits for that: {error.problems[0].message}"
        self.notes.append(said)
        _LOG.info(done, extra={"fields": {"target": self.run.job.target, "run": self.run.run, "subject": str(one), "why": gone.why}})
        return False
