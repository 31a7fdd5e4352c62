"""What the due steps of a Rollout would delete or make anew, in the plan of a pull request: as a run plans it, without its looks.

    a member                  by what lives of it, judged as a run judges it; a refused step is a Problem
    what no member is         isn't deleted: a step deletes members only
    a Namespace, a CRD        as if it held nothing: what is in it isn't asked

Law: nothing is read here but members, by our label. Where values that aren't in git may decide what lives, what is made anew, and what git
doesn't declare now, is said by its name alone as well: a step could else ask whether a guessed name lives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.engine.planner.planner import Planner
from handler.engine.planner.prune_check import PruneCheck
from handler.engine.planner.rollout_actions import RolloutActions
from handler.engine.planner.siblings import SiblingQuestions
from handler.model.errors import PlanRefused, Problem
from handler.model.names import Identity, Resource
from handler.model.plan import Action, Change, Due, Hold
from handler.model.rollout import Mode
from handler.plan.admission import CRD, NAMESPACE
from handler.plan.compare import SECRET
from handler.plan.prune import PruneFacts, questions

IF_THERE = "if it is there"
Object = dict[str, Any]


@dataclass(slots=True)
class PreviewedSteps:
    """What due steps do. `deleted`: in the stages of their groups; `recreated`: in place of other changes; `problems`: refused steps.

    `refused`: the objects of those.
    """

    deleted: dict[Identity, Change] = field(default_factory=dict)
    recreated: dict[Identity, Change] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    refused: set[Identity] = field(default_factory=set)

    def over(self, changes: Mapping[Identity, Change]) -> dict[Identity, Change]:
        """Return the changes of what is declared, with what steps make of it."""
        return {identity: change for identity, change in {**changes, **self.recreated}.items() if identity not in self.refused}

    def without(self, prunes: Iterable[Change]) -> tuple[Change, ...]:
        """Return the prunes that no step decides over: for what one deletes, `prune: {enabled: false}` says nothing."""
        return tuple(change for change in prunes if change.identity not in self.deleted and change.identity not in self.refused)


@dataclass(frozen=True, slots=True)
class StepPreviewer:
    """Previews the due steps of one plan. `by_name`: whether a member is deleted by its name alone; `guessed`: what is made anew is."""

    planner: Planner
    acting: RolloutActions
    by_name: Callable[[Identity], bool]
    guessed: bool = False

    def steps(self, changes: Mapping[Identity, Change]) -> PreviewedSteps:
        """Return what they do. `changes`: what becomes of declared objects without them."""
        found = PreviewedSteps()
        for identity, step in self.acting.steps.items():
            if identity in self.acting.planned_rollout.doomed:
                self._delete(identity, step, found)
            elif identity in changes and self._is_made_anew(identity, changes[identity]):
                self._recreate(changes[identity], step, found)
        return found

    def _delete(self, identity: Identity, step: Due, found: PreviewedSteps) -> None:
        if self.by_name(identity):
            if self.planner.is_served(self.acting.planned_rollout.doomed[identity].resource):
                found.deleted[identity] = Change(Action.PRUNE, identity, reason=f"{_named(step)} deletes it, {IF_THERE}", adopted=True)
            return
        if identity not in self.acting.comparison.candidates:
            return
        planner = self.planner
        check = _AsIfEmpty(planner.target, planner.ours, planner.api, planner.discovery)
        try:
            going = self._alone(identity).deleted(_unseen, check, SiblingQuestions(planner.target), prunes=False)
        except PlanRefused as error:
            _refuse(identity, error, found)
            return
        holds = identity.group_kind in (NAMESPACE, CRD)
        found.deleted |= {
            each: replace(change, reason=f"{change.reason}, if nothing else is in it") if holds else change
            for each, change in going.items()
        }

    def _recreate(self, change: Change, step: Due, found: PreviewedSteps) -> None:
        identity = change.identity
        if self.guessed:
            reason = f"{_named(step)} makes it anew, {IF_THERE}"
            found.recreated[identity] = Change(Action.RECREATE, identity, reason=reason, manifest=change.manifest, adopted=True)
            return
        live = self.acting.comparison.undecided.get(identity) or self.acting.comparison.bodies.get(identity)
        seen = replace(change, uid=change.uid or str(live["metadata"]["uid"])) if live else change  # the previewer leaves a Secret's out
        try:
            made = self._alone(identity).recreated(lambda _: self.acting.comparison.bodies, {identity: seen})
        except PlanRefused as error:
            _refuse(identity, error, found)
            return
        if identity.group_kind == SECRET:  # a version would tell whether it equals live
            made = {each: replace(one, uid="", resource_version="") for each, one in made.items()}
        found.recreated |= made

    def _is_made_anew(self, identity: Identity, change: Change) -> bool:
        """Whether a step may make it anew; one that would be refused for what lives doesn't, where that isn't known."""
        item = self.acting.comparison.desired.get(identity)
        if item is None or item.mode is not Mode.RECREATE or not (change.lives or (self.guessed and change.action is Action.CREATE)):
            return False
        can = self.planner.is_served(item.resource) and not self.acting.judge.recreating_loses(identity.group_kind)
        return can or not self.guessed

    def _alone(self, identity: Identity) -> RolloutActions:
        """Return the actions of one object's step: a refusal of one hides no other."""
        return replace(self.acting, steps={identity: self.acting.steps[identity]})


class _AsIfEmpty(PruneCheck):
    """Judges deletions as if Namespaces and CRDs held nothing."""

    def facts(
        self,
        candidates: Iterable[Object],
        gone: frozenset[str],  # noqa: ARG002 - what goes before isn't counted, and nothing is
        before: frozenset[str] | None = None,  # noqa: ARG002 - as for `gone`
    ) -> PruneFacts:
        """Ask nothing."""
        namespaces, crds = questions(candidates, self.target)
        return PruneFacts(dict.fromkeys(namespaces, ()), {crd.name: 0 for crd in crds})


def _unseen(_: Sequence[tuple[Resource, str, str]]) -> Mapping[Identity, Object]:
    """Look at nothing."""
    return {}


def _named(step: Due) -> str:
    return f"step {step.step} in {step.group}"


def _refuse(identity: Identity, error: PlanRefused, found: PreviewedSteps) -> None:
    found.problems += error.problems
    found.refused.add(identity)


def held_for(changes: Sequence[Change], living: int, hold_for: Callable[[Sequence[Change]], Hold | None]) -> Hold | None:
    """Return why a plan would wait: for what is certain; else for what goes if it is there, which its reasons then say."""
    maybe = [change for change in changes if _is_maybe(change)]
    sure = [change for change in changes if not _is_maybe(change)]
    made = [replace(change, action=Action.CREATE) for change in maybe if change.action is Action.RECREATE]
    hold = hold_for([*sure, *made])
    if hold or not maybe:
        return hold
    pruned = [change for change in maybe if change.action is Action.PRUNE]
    rest = max(living - sum(change.action is Action.PRUNE for change in sure), 0)
    # One guard holds from a number on, so all are counted; the other where exactly as many go as live, so some are.
    hold = hold_for([*sure, *maybe]) or hold_for([*sure, *made, *pruned[:rest]])
    return replace(hold, reasons=tuple(f"{reason}, if what steps name is there" for reason in hold.reasons)) if hold else None


def _is_maybe(change: Change) -> bool:
    return change.removes and change.adopted
