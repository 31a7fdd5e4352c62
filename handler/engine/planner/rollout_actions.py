"""What the due steps of a Rollout do to live objects, as changes of the plan: shown, counted by the guards, refused before the first write.

Law: a step deletes members only, whatever `adopt` says; never what another object owns, nor what an annotation or its kind protects from
pruning. Such a step is refused, not skipped. What isn't ours yet is taken over by `Recreate`, in its place; the next rollout makes it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.config.settings import Target
from handler.engine.planner.prune_check import PruneCheck
from handler.engine.planner.siblings import SiblingQuestions
from handler.model.advice import advice
from handler.model.errors import PlanRefused, Problem
from handler.model.names import LASTING, Identity, Resource, kubectl
from handler.model.plan import Action, Cause, Change, Due
from handler.model.rollout import Mode
from handler.plan.compare import Comparison
from handler.plan.inventory import is_member
from handler.plan.judge import Judge, lift
from handler.plan.prune import judge, kept_by_itself, leaving, left_to
from handler.plan.retention import with_its_claims
from handler.plan.rollout import PlannedRollout

Object = dict[str, Any]
Probe = Callable[[Sequence[tuple[Resource, str, str]]], Mapping[Identity, Object]]


@dataclass(frozen=True, slots=True)
class RolloutActions:
    """The due steps of one plan, by the object that each acts on."""

    planned_rollout: PlannedRollout
    judge: Judge
    comparison: Comparison
    steps: Mapping[Identity, Due] = field(default_factory=dict)

    @classmethod
    def of(cls, planned_rollout: PlannedRollout, due: Iterable[Due], judges: Judge, comparison: Comparison) -> RolloutActions:
        """Take the steps of the Rollout from what is due."""
        groups = planned_rollout.rollout.groups if planned_rollout.rollout else ()
        names = {(group.name, step.name) for group in groups for step in group.steps}
        return cls(planned_rollout, judges, comparison, {one.identity: one for one in due if (one.group, one.step) in names})

    @property
    def target(self) -> Target:
        """The target's settings."""
        return self.judge.target

    def _refuse_unseen(self, changes: Mapping[Identity, Change]) -> None:
        """Refuse checks of what another has: it doesn't carry our label, by which objects are followed."""
        theirs = {identity for identity, change in changes.items() if change.action is Action.SKIP} - self.comparison.left.keys()
        fix = "let CreateOrUpdate adopt it, or remove those checks"
        problems = [
            Problem(
                str(identity),
                f"isn't ours, so that its checks can't follow it ({_named(step)})",
                self.comparison.desired[identity].manifest.place,
                fix,
            )
            for identity, step in self.steps.items()
            if identity in theirs and identity in self.planned_rollout.watched
        ]
        if problems:
            raise PlanRefused(*problems)

    def recreated(self, probe: Probe, changes: Mapping[Identity, Change]) -> dict[Identity, Change]:
        """Return the changes of what is made anew by a due step. Raises PlanRefused: it holds data, is protected, or isn't ours."""
        self._refuse_unseen(changes)
        found: dict[Identity, Change] = {}
        problems = []
        for identity, step in self.steps.items():
            item, change = self.comparison.desired.get(identity), changes.get(identity)
            if item is None or change is None or item.mode is not Mode.RECREATE or not change.lives:
                continue
            if change.adopted or (step.mark and step.mark != change.uid):
                continue  # it isn't ours yet; or it was made anew already, before the run was killed
            fix = self.judge.recreating_loses(identity.group_kind)
            if fix:
                problems.append(Problem(str(identity), f"{_named(step)} would delete it and all it holds", item.manifest.place, fix))
            reason = f"{_named(step)} makes it anew"
            made = replace(change, action=Action.RECREATE, reason=reason, manifest=item.manifest, managed_fields=b"")
            found[identity] = replace(made, cause=Cause.STEP, takes=())  # its pods end, and so none is scaled away
        problems += self._protected(probe, found)
        if problems:
            raise PlanRefused(*problems)
        return found

    def _protected(self, probe: Probe, found: Iterable[Identity]) -> list[Problem]:
        known = {**self.comparison.undecided, **self.comparison.unowned}
        items = [self.comparison.desired[identity] for identity in found]
        unseen = [(item.resource, item.identity.namespace, item.identity.name) for item in items if item.identity not in known]
        known |= probe(unseen) if unseen else {}
        seen = [(item, known[item.identity]) for item in items if item.identity in known]
        return [
            Problem(
                str(item.identity),
                f"{_named(self.steps[item.identity])} would delete it, but: {mark}",
                item.manifest.place,
                lift(item.identity.group_kind, "write action: CreateOrUpdate"),
            )
            for item, live in seen
            if (mark := kept_by_itself(live, self.judge.target.instance))
        ]

    def deleted(self, probe: Probe, prune_judge: PruneCheck, handover: SiblingQuestions, *, prunes: bool) -> dict[Identity, Change]:
        """Return the changes of what lives and is deleted by a due step. Raises PlanRefused: each that may not go, and why.

        `probe`: looks for objects by name, for no LIST has shown what isn't ours; `prunes`: whether the run prunes, too: else what git no
        longer declares stays, and what holds that isn't deleted.
        """
        live = self._doomed(probe)
        gone = leaving([*live.values(), *(self.comparison.candidates.values() if prunes else ())], self.target)
        facts = prune_judge.facts(live.values(), gone, leaving(live.values(), self.target))  # pruned is only after the steps
        claims = handover.claims(live)
        found, problems = {}, []
        for identity, body in live.items():
            step, place = self.steps[identity], self.planned_rollout.doomed[identity].manifest.place
            judged = judge(body, self.target, self.comparison.desired, facts)
            change = left_to(body, *claims[identity]) if identity in claims else judged
            if not self._is_ours(identity, body):
                seen = f"isn't a member of target {self.target.name}, and {_named(step)} would delete it"
                problems.append(Problem(str(identity), seen, place, _adopt_first(identity)))
            elif not change.writes:
                seen = f"{_named(step)} would delete it, but: {change.reason}"
                problems.append(Problem(str(identity), seen, place, lift(identity.group_kind, "remove the step")))
            change = replace(change, reason=f"{_named(step)} deletes it", cause=Cause.STEP)
            found[identity] = with_its_claims(change, body, self.target)
        if problems:
            raise PlanRefused(*problems)
        return found

    def _is_ours(self, identity: Identity, body: Object) -> bool:
        return identity in self.comparison.candidates or is_member(body, identity, self.judge.ours)

    def _doomed(self, probe: Probe) -> dict[Identity, Object]:
        wanted = {identity: item for identity, item in self.planned_rollout.doomed.items() if identity in self.steps}
        found = {identity: self.comparison.candidates[identity] for identity in wanted if identity in self.comparison.candidates}
        unseen = [(item.resource, identity.namespace, identity.name) for identity, item in wanted.items() if identity not in found]
        return {**found, **(probe(unseen) if unseen else {})}

    def staged(self, stages: Sequence[tuple[Change, ...]], going: Mapping[Identity, Change]) -> tuple[tuple[Change, ...], ...]:
        """Return the plan's stages with the deletions in those of their groups, which are the last ones."""
        first = len(stages) - len(self.planned_rollout.stages)
        found = [list(stage) for stage in stages]
        for identity in sorted(going):
            found[first + self.planned_rollout.group_of(identity)].append(going[identity])
        return tuple(map(tuple, found))


def _adopt_first(identity: Identity) -> str:
    fix = "write action: CreateOrUpdate first: an apply takes it over, as adopt allows"
    return fix if identity.group_kind in LASTING else advice("{text}; or delete it by hand: {text}", fix, kubectl("delete", identity))


def _named(step: Due) -> str:
    return f"step {step.step} in {step.group}"
