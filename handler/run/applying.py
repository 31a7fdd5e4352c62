"""The writing half of a run: stages in parallel, then prune in reverse, every write behind the fence.

Law: nothing is written that the plan didn't show. A write that meets a moved object is planned again for that object,
three times at most; a lost Lease stops everything; a failed apply means that nothing is pruned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.live import probe
from handler.cluster.parallel import parallel
from handler.cluster.wait import until, until_gone
from handler.cluster.write import DryRunner, Writer
from handler.model.errors import AnnealError, ApiRefused, LeaseError, Moved, NotReady, PlanRefused, Problem, StillDeleting
from handler.model.names import PART_OF, GroupKind, Identity
from handler.model.plan import Action, Change
from handler.model.resource import Resource
from handler.plan.admit import CRD, NAMESPACE, Desired
from handler.plan.judge import Judge
from handler.plan.prune import prune_stages
from handler.run.planning import Planned, Planner

_TRIES = 3
_READY_TIMEOUT = 60.0
_GONE_TIMEOUT = 60.0
_JOB = GroupKind("batch", "Job")


@dataclass(slots=True)
class Applier:
    """Carries out one plan under one Lease. `between`: called before each stage (suspend, shutdown)."""

    planner: Planner
    planned: Planned
    fence: Callable[[], None]
    between: Callable[[], None]
    applied: list[Change] = field(default_factory=list)
    uids: set[str] = field(default_factory=set)
    settling: set[Identity] = field(default_factory=set)

    @property
    def _api(self) -> Api:
        return self.planner.api

    @property
    def _discovery(self) -> Discovery:
        return self.planner.discovery

    @property
    def _writer(self) -> Writer:
        return Writer(self._api, self.fence)

    @property
    def _judge(self) -> Judge:
        return Judge(self.planner.target, self.planner.applyset)

    def apply(self) -> None:
        """Apply every stage in order.

        Raises:
            PlanRefused: a deferred object didn't pass its dry-run; the server refused an object.
            NotReady: a CRD or Namespace doesn't stand in time.
            LeaseLost: at once, whatever is under way.

        """
        for stage in self.planned.plan.stages:
            writes = [change for change in stage if change.writes]
            if not writes:
                continue
            self.between()
            self._wait_for(writes)
            self._check_deferred(writes)
            self._collect(parallel([partial(self._write, change) for change in writes]))
            self.settling |= {change.identity for change in writes if change.identity.group_kind in (CRD, NAMESPACE)}

    def _check_deferred(self, writes: Sequence[Change]) -> None:
        """Dry-run what had to be deferred, before the first write of its stage."""
        deferred = [change for change in writes if change.deferred]
        if self.planner.target.validate != "none":
            self._raise_problems(parallel([partial(self._dry_run, change) for change in deferred]), deferred)

    def _dry_run(self, change: Change) -> None:
        desired = self._desired(change)
        DryRunner(self._api).check(desired.resource, desired.manifest.body())

    def _desired(self, change: Change) -> Desired:
        return self.planned.desired[change.identity]

    def _collect(self, answers: Sequence[Change | AnnealError]) -> None:
        """Keep what was written; raise what wasn't, all of it together."""
        self.applied += [answer for answer in answers if isinstance(answer, Change)]
        self._raise_problems(answers, ())

    def _raise_problems(self, answers: Iterable[Any], changes: Sequence[Change]) -> None:
        """Raise the errors among answers: a lost Lease or a transient one as it is, refusals together."""
        errors = [answer for answer in answers if isinstance(answer, AnnealError)]
        errors.sort(key=lambda error: not isinstance(error, LeaseError))
        for error in errors:
            if not isinstance(error, ApiRefused | PlanRefused):
                raise error
        problems = [problem for error in errors for problem in error.problems]
        places = {str(change.identity): change.manifest.place for change in changes if change.manifest}
        if problems:
            raise PlanRefused(*(replace(p, place=p.place or places.get(p.subject, "")) for p in problems))

    # --- one object
    def _write(self, change: Change, tries: int = _TRIES) -> Change:
        """Write one change; a moved object is planned again."""
        try:
            return self._send(change)
        except Moved:
            self.fence()
            if tries == 1:
                raise
            again = self._again(change)
            return self._write(again, tries - 1) if again.writes else again

    def _send(self, change: Change) -> Change:
        """Send the request(s) of one create, update or recreate."""
        resource, manifest = self._resource(change), change.manifest
        assert manifest is not None  # noqa: S101 - only prunes have none, and they go another way
        uid, version = change.uid, change.resource_version
        if change.action is Action.RECREATE:
            self._remove_first(change, resource)
            uid = version = ""
        if change.managed_fields:
            merged = self._writer.replace_managed_fields(resource, change.identity, version, json.loads(change.managed_fields))
            version = str(merged["metadata"]["resourceVersion"])
        written = self._writer.apply(resource, manifest.body(), uid, version)
        self.uids.add(str(written["metadata"]["uid"]))
        return change

    def _remove_first(self, change: Change, resource: Resource) -> None:
        """Delete what is recreated and wait until it's gone; Jobs in the foreground, so that their pods go too."""
        propagation: Literal["Foreground", "Background"] = "Foreground" if change.identity.group_kind == _JOB else "Background"
        self._writer.delete(resource, change.identity, change.uid, change.resource_version, propagation)
        survivors = until_gone(self._api, [(resource, change.identity, change.uid)], _GONE_TIMEOUT, self.fence)
        if survivors:
            raise StillDeleting(_lingering(change.identity, survivors[0]))

    def _again(self, change: Change) -> Change:
        """Plan one object again from what is live now."""
        item = self._desired(change)
        found = probe(self._api, [(item.resource, item.identity.namespace, item.identity.name)])
        live = next(iter(found.values()), None)
        if live is None:
            return self._judge.absent(item)
        refusal = self._judge.refusal_to_adopt(item, live) if live["metadata"]["uid"] != change.uid else None
        if refusal:
            raise PlanRefused(refusal)
        try:
            wanted = DryRunner(self._api).apply(item.resource, item.manifest.body())
        except ApiRefused as error:
            outcome = self._judge.refused(item, live, error)
            if isinstance(outcome, Problem):
                raise PlanRefused(outcome) from None
            return outcome
        return self._judge.present(item, live, wanted)

    def _resource(self, change: Change) -> Resource:
        """Return how the server serves a change's kind."""
        if change.identity in self.planned.desired:
            return self.planned.desired[change.identity].resource
        found = self._discovery.preferred(change.identity.group_kind)
        if found is None:
            raise Moved.of(str(change.identity), "its kind is no longer served")
        return found

    def _wait_for(self, writes: Sequence[Change]) -> None:
        """Wait for what this stage needs of the CRDs and Namespaces just written: Established, Active. Then read discovery again."""
        needed = {need for change in writes for need in self._desired(change).needs}
        wanted = sorted(needed & self.settling)
        if not wanted:
            return
        self.settling -= set(wanted)
        asked = [(self.planned.desired[identity].resource, identity) for identity in wanted]
        missing = until(self._api, asked, _stands, _READY_TIMEOUT, self.fence, f"{PART_OF}={self.planner.applyset}")
        if missing:
            problems = [
                Problem(
                    str(identity), f"does not stand after {_READY_TIMEOUT:.0f} s", fix=f"kubectl describe {identity.kind} {identity.name}"
                )
                for identity, _ in missing
            ]
            raise NotReady(*problems)
        if any(identity.group_kind == CRD for identity in wanted):
            self._discovery.refresh()

    # --- prune
    def prune(self) -> list[Change]:
        """Delete the plan's candidates in stages and wait until they're gone; return what was kept after a second look.

        Raises:
            StillDeleting: some are not gone; their finalizers are named. The next run goes on.

        """
        going = [change for change in self.planned.plan.prunes if change.writes and change.uid not in self.uids]
        kept: list[Change] = []
        lingering: list[Problem] = []
        for stage in prune_stages(going, self.planned.bodies):
            self.between()
            answers = parallel([partial(self._prune_one, change) for change in stage])
            self._raise_problems(answers, ())
            outcomes = [answer for answer in answers if isinstance(answer, Change)]
            kept += [change for change in outcomes if not change.writes]
            pruned = [change for change in outcomes if change.writes]
            self.applied += pruned
            lingering += self._wait_gone(pruned)
        if lingering:
            raise StillDeleting(*lingering)
        return kept

    def _prune_one(self, change: Change, tries: int = _TRIES) -> Change:
        """Delete one object under its uid and resourceVersion; a moved one is looked at and judged again."""
        resource = self._resource(change)
        if change.identity.group_kind in (CRD, NAMESPACE):
            change = self._looked_at_again(change, resource)
        if not change.writes or change.reason == "is being deleted already":
            return change
        try:
            self._writer.delete(resource, change.identity, change.uid, change.resource_version, "Background")
        except Moved:
            self.fence()
            if tries == 1:
                raise
            again = self._looked_at_again(change, resource)
            return self._prune_one(again, tries - 1) if again.writes else again
        return change

    def _looked_at_again(self, change: Change, resource: Resource) -> Change:
        """Judge a candidate from what is live now; one that is gone or no longer ours is left alone."""
        found = probe(self._api, [(resource, change.identity.namespace, change.identity.name)])
        live = next(iter(found.values()), None)
        if live is None or live["metadata"]["uid"] != change.uid:
            return replace(change, action=Action.SKIP, reason="gone already")
        return self.planner.judged_again(live, self.planned.desired)

    def _wait_gone(self, changes: Sequence[Change]) -> list[Problem]:
        """Return a problem for everything that is still there after the time-out, naming its finalizers."""
        wanted = [(self._resource(change), change.identity, change.uid) for change in changes]
        survivors = until_gone(self._api, wanted, _GONE_TIMEOUT, self.fence)
        by_uid = {change.uid: change.identity for change in changes}
        return [_lingering(by_uid[str(live["metadata"]["uid"])], live) for live in survivors]


_CLEARED_BY = {
    "kubernetes.io/pvc-protection": "the pods that use it must end",
    "kubernetes.io/pv-protection": "its claim must go",
    "foregroundDeletion": "the garbage collector, once its dependents are gone",
    "orphan": "the garbage collector",
    "customresourcecleanup.apiextensions.k8s.io": "the API server, once the CRD's instances are gone",
    "service.kubernetes.io/load-balancer-cleanup": "the cloud's service controller",
}


def _lingering(identity: Identity, live: dict[str, Any]) -> Problem:
    """Say why an object isn't gone: its finalizers and who usually clears them."""
    finalizers = [str(name) for name in live["metadata"].get("finalizers") or []]
    told = [f"{name} ({_CLEARED_BY.get(name) or 'the controller of ' + name.partition('/')[0]})" for name in finalizers]
    why = f"finalizers: {', '.join(told)}" if told else "the server has not removed it yet"
    return Problem(
        str(identity), f"is not gone yet; {why}", fix=f"kubectl get {identity.kind.lower()} {identity.name} -o yaml shows who must act"
    )


def _stands(live: dict[str, Any]) -> bool:
    """Whether a CRD is Established, a Namespace Active."""
    status = live.get("status") or {}
    if live.get("kind") == NAMESPACE.kind:
        return bool(status.get("phase") == "Active")
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in status.get("conditions") or [])
