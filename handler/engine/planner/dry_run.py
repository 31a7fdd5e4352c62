"""What the server says of the objects that the LISTs couldn't decide: dry-runs in parallel, all mistakes at once.

Deferred to their stage are only objects whose Namespace or CRD this run creates (checked by git's own schema or in a stand-in namespace
now), and those that name what this run creates before them. Whatever else the server says is final.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import probe
from handler.cluster.parallel import parallel
from handler.cluster.write import DryRunner
from handler.config.settings import Target
from handler.engine.planner.dead_webhooks import DeadWebhooks
from handler.engine.planner.expired_jobs import RecordedJobs, asks_siblings, done, has_run
from handler.engine.planner.live_dry_run import LiveDryRun
from handler.engine.planner.server_answers import NO_DRY_RUN, Finding, MissingDependencies, is_by_schema, placed
from handler.engine.planner.siblings import SiblingQuestions
from handler.engine.planner.stand_in import StandIn, check_elsewhere, mistakes_of
from handler.model.errors import AccessDenied, AnnealError, ApiRefused, ClusterUnavailable, Moved, Problem
from handler.model.names import Identity, Resource
from handler.model.plan import Action, Change
from handler.model.rollout import Mode
from handler.plan import crd_schema
from handler.plan import missing_objects as missing
from handler.plan.admission import CRD, Desired
from handler.plan.compare import Comparison
from handler.plan.handover import marks_taken_from, relabelled, taken_from
from handler.plan.inventory import Membership, as_ours, is_member, marks_of
from handler.plan.judge import Judge, skipped, terminating
from handler.plan.steering import note
from handler.plan.write_order import WriteOrder


@dataclass
class DryRun:
    """One round of questions to the server. `ran`: Jobs that may have removed themselves."""

    target: Target
    ours: Membership
    api: Api
    is_served: Callable[[Resource], bool]
    coming: WriteOrder
    comparison: Comparison
    handover: SiblingQuestions
    notes: list[str]
    ran: RecordedJobs = field(default_factory=RecordedJobs)
    missing: MissingDependencies = field(init=False)
    stand_in: StandIn = field(init=False)

    def __post_init__(self) -> None:
        self.stand_in = StandIn(self.target, self.api)
        self.missing = MissingDependencies(self.target, self.comparison, self.coming, self.notes, DeadWebhooks(self.api, self.comparison))

    def decide(self) -> list[Finding]:
        """Dry-run, in parallel, everything that isn't known to be the same."""
        needs = {need for item in self.comparison.absent() for need in item.needs}
        self._probe([item for item in self.comparison.absent() if item.identity in needs or item.mode is Mode.LEAVE])
        if self.target.validate == "none" or self.target.adopt == "never":
            self._probe(self.comparison.absent())
        # What may have run under a sibling may live under it still: then it is taken over.
        self._probe([item for item in self.comparison.absent() if asks_siblings(item, self.ran, self.handover)])
        gone = [self.gone(item) for item in self.comparison.absent()]
        over = {change.identity for change in gone if not change.writes}
        absent = [item for item in self.comparison.absent() if item.identity not in over]
        self.missing.absent = self.stand_in.absent = frozenset(item.identity for item in absent if item.mode is not Mode.LEAVE)
        known = {**self.comparison.undecided, **self.comparison.unowned, **self.comparison.left}
        tasks = [partial(self._absent, item) for item in absent]
        tasks += [partial(self.present, self.comparison.desired[identity], live) for identity, live in known.items()]
        found: list[Finding] = [change for change in gone if not change.writes]
        for answer in parallel(tasks):
            if isinstance(answer, AnnealError):
                raise answer
            found += [self.missing.dead.by_two_commits(each) if isinstance(each, Problem) else each for each in answer]
        return found

    def _probe(self, absent: Sequence[Desired]) -> None:
        wanted = [(i.resource, i.identity.namespace, i.identity.name) for i in absent if self.is_served(i.resource)]
        self.comparison.probe(probe(self.api, wanted).values())

    @property
    def judge(self) -> Judge:
        """The judge of one object."""
        return Judge(self.target, self.ours)

    def gone(self, item: Desired) -> Change:
        """Return the change of an object that isn't there: it is created, or is done. Raises what `expired_jobs.done` does."""
        reason = done(item, self.ran, self.handover)
        return Change(Action.UNCHANGED, item.identity, reason=reason, manifest=item.manifest) if reason else self.judge.absent(item)

    def refuse_if_run(self, item: Desired) -> None:
        """Before an object is created: raise Moved if a sibling has run it since this was planned."""
        if asks_siblings(item, self.ran, self.handover) and not self.again().gone(item).writes:
            raise Moved.of(str(item.identity), "a sibling has run it since this was planned")

    def again(self) -> DryRun:
        """Return one for an object that has moved since the plan: what siblings say is asked anew."""
        again = replace(self, handover=self.handover.again())
        again.missing, again.stand_in = self.missing, self.stand_in
        return again

    def _absent(self, item: Desired) -> list[Finding]:
        if item.mode is Mode.LEAVE:
            return [skipped(item, {}, item.reason)]
        waits_for = next((need for need in item.needs if need in self.missing.absent), None)
        try:
            if waits_for is not None:
                return [*self._deferred_problems(item, waits_for), self.judge.absent(item, deferred=True)]
            return self._asked(item)
        except ClusterUnavailable as error:
            why = self.missing.dead.unjudged(item, error, partial(self._absent, item))
            return self._lives_already(item) or [replace(self.judge.absent(item, deferred=True), reason=why)]

    def _asked(self, item: Desired) -> list[Finding]:
        if self.target.validate == "none":
            return [self.judge.absent(item)]
        try:
            answer = DryRunner(self.api).check(item.resource, item.manifest.body())
        except (ApiRefused, AccessDenied) as error:
            return self._absent_refused(item, error)
        if not answer["metadata"].get("resourceVersion"):
            return [self.judge.absent(item)]
        return self._lives_already(item) or [self.judge.absent(item)]

    def _absent_refused(self, item: Desired, error: ApiRefused | AccessDenied) -> list[Finding]:
        if NO_DRY_RUN in error.words:
            self.notes.append(f"{item.identity}: an admission webhook does not support dry run; checked when it is applied")
            return [self.judge.absent(item)]
        there = self._there_already(item, error)
        if there:
            return there
        if self.missing.first(item, error):
            return [*mistakes_of(self.api, item, missing.without(item)), self.judge.absent(item, deferred=True)]
        changing = self.missing.changing_crd(item)
        if changing and is_by_schema(error):
            return [*crd_schema.check(item, self.comparison.desired[changing].manifest), self.judge.absent(item, deferred=True)]
        return self.missing.mistakes(item, error)

    def _there_already(self, item: Desired, error: ApiRefused | AccessDenied) -> list[Finding]:
        """Judge what lives under a declared name without our label, where that may be why it was refused; else nothing."""
        if not isinstance(error, ApiRefused) or (error.status != 422 and not self.missing.named(item, error)):
            return []
        return self._lives_already(item)

    def _lives_already(self, item: Desired) -> list[Finding]:
        found = probe(self.api, [(item.resource, item.identity.namespace, item.identity.name)])
        return [outcome for live in found.values() for outcome in self.present(item, live)]

    def postponed(self, item: Desired) -> list[Finding]:
        """Check what can be checked now of a hook's object that can't be dry-run before its CRD or Namespace is there."""
        need = next((need for need in item.needs if need in self.missing.absent), None)
        return self._deferred_problems(item, need) if need else []

    def _deferred_problems(self, item: Desired, need: Identity) -> list[Finding]:
        if self.target.validate == "none":
            return []
        if need.group_kind == CRD:
            return list(crd_schema.check(item, self.comparison.desired[need].manifest))
        stand_in = self.stand_in.name
        if not stand_in:
            self.notes.append(f"{item.identity}: checked by the server once {need} exists")
            return []
        body = item.manifest.body()
        body["metadata"]["namespace"] = stand_in
        try:
            check_elsewhere(self.api, item.resource, body)
        except (ApiRefused, AccessDenied) as error:
            return self._refused_in_stand_in(item, need, error)
        return []

    def _refused_in_stand_in(self, item: Desired, need: Identity, error: ApiRefused | AccessDenied) -> list[Finding]:
        """Take a refusal in another namespace than the object's own, which is only being created: what holds there, too, is a mistake."""
        found = self.missing.named(item, error)
        if found and not all(one and self.coming.is_before(one, item.identity) for _, one in found):
            return [
                replace(each, message=_elsewhere(need, found)) if isinstance(each, Problem) else each
                for each in self.missing.mistakes(item, error)
            ]
        if not found and is_by_schema(error, 422):
            return placed(error, item)
        self.notes.append(f"{item.identity}: checked by the server once {need} exists")
        return [*mistakes_of(self.api, item, missing.without(item), self.stand_in.name)] if found else []

    def present(self, item: Desired, live: dict[str, Any]) -> list[Finding]:
        """Judge an object that is there; where it is being deleted, and is created again once it is gone, the change says so."""
        found = self._present(item, live)
        if self.comparison.adoptions is not None:
            self.comparison.adoptions.see(item, live, self.ours, found)
        if item.mode is Mode.LEAVE or has_run(item, self.ran):
            return found
        return [terminating(live, each) if isinstance(each, Change) else each for each in found]

    def _present(self, item: Desired, live: dict[str, Any], *, settled: bool = False) -> list[Finding]:
        ours, kept = is_member(live, item.identity, self.ours), self.judge.kept(item, live)
        former = self.ours.is_former(live, item.identity)
        if kept:
            return [kept] if ours and not former else self._kept(item, live, kept, former=former)
        giver = "" if ours else self.handover.giver(item, live, self.ours.own_label(live))
        refusal = giver if isinstance(giver, Problem | Change) else None if ours or giver else self.judge.refusal_to_adopt(item, live)
        if refusal:
            return [refusal]
        odd = "" if ours or giver else note(live)
        if odd:
            self.notes.append(f"{item.identity}: {odd}")
        judged = as_ours(live, item.identity, self.ours.marks) if giver else live
        effective = self.comparison.effective(item, live)
        asked = LiveDryRun(self.api, self.judge, self.missing, self.is_served, effective, live, judged, adopted=not ours, settled=settled)
        try:
            found = asked.findings()
        except Moved:
            if settled:
                raise
            again = probe(self.api, [(item.resource, item.identity.namespace, item.identity.name)])
            return self._present(item, again.get(item.identity, live), settled=True)
        except ClusterUnavailable as error:
            found = [asked.later(self.missing.dead.unjudged(item, error, partial(self._present, item, live)))]
        if former:
            return [relabelled(self.ours, each) if isinstance(each, Change) else each for each in found]
        return [taken_from(str(giver), each) if giver and isinstance(each, Change) else each for each in found]

    def _kept(self, item: Desired, live: dict[str, Any], kept: Change, *, former: bool) -> list[Finding]:
        """Judge what is left as it lives and isn't ours: where a sibling gives it up, or it was ours before, its marks become ours."""
        giver = "" if former else self.handover.giver(item, live, self.ours.own_label(live), kept=True)
        if isinstance(giver, Problem | Change) or not (giver or former):
            return [giver or kept]
        why = ""
        try:
            wanted = DryRunner(self.api).merge(item.resource, marks_of(item.manifest).body())
        except (ApiRefused, AccessDenied) as error:
            if NO_DRY_RUN not in error.words:
                return placed(error, item)
            self.notes.append(f"{item.identity}: an admission webhook does not support dry run; its marks are written as they are")
            wanted = as_ours(live, item.identity, self.ours.marks)
        except ClusterUnavailable as error:
            why = self.missing.dead.unjudged(item, error, partial(self._kept, item, live, kept, former=former))
            wanted = as_ours(live, item.identity, self.ours.marks)
        change = self.judge.present(item, live, wanted)
        change = relabelled(self.ours, change, marks_of(item.manifest)) if former else marks_taken_from(giver, change, item)
        return [replace(change, reason=why, deferred=True) if why else change]


def _elsewhere(need: Identity, found: Sequence[tuple[missing.MissingObject, Identity | None]]) -> str:
    absent = ", ".join(str(each) for each, _ in found)
    return f"names {absent}, which isn't there when it is created: {need} is only being made"
