"""What a plan knows of canaries: which live ones belong to a rollout that is due, and what a new one would meet.

Law: while its rollout is due, a canary is its step's to remove; at any other time prune judges it as any member that git doesn't declare. A
rollout back (what is pinned, or recorded) goes without canaries: it was trusted before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from handler.cluster.api import Api
from handler.cluster.live import Object, probe
from handler.cluster.write import DryRunner
from handler.config.settings import Target
from handler.engine.planner.server_answers import MissingDependencies
from handler.model.errors import AccessDenied, ApiRefused, PlanRefused, Problem
from handler.model.names import Identity
from handler.model.plan import Action, Change
from handler.model.render import Where, nowhere, places
from handler.model.rollout import Rollout, Step
from handler.plan.admission import Desired
from handler.plan.compare import Comparison
from handler.plan.prune import PROTECTIONS
from handler.rollout import canary

ACTION = "Canary"  # the row of the table of actions
_CHANGES = (Action.UPDATE, Action.RECREATE)


@dataclass(frozen=True, slots=True)
class Canaries:
    """The canaries of a rollout that is due. `steps`: by the canary's identity; `gradual`: whether they are gone through."""

    steps: Mapping[Identity, Step] = field(default_factory=dict)
    gradual: bool = True

    @classmethod
    def of(cls, rollout: Rollout | None, *, due: bool, gradual: bool) -> Canaries:
        """Find them."""
        steps = steps_of(rollout) if due else ()
        return cls({canary.identity_of_canary(step.identity): step for step in steps}, gradual)

    def kept(self, change: Change, live: Object) -> Change:
        """Leave a canary of a rollout that is due to its step; a Deployment that merely has such a name is pruned like any other."""
        step = self.steps.get(change.identity)
        if step is None or not is_canary(live):
            return change
        return replace(change, action=Action.SKIP, reason=f"canary of {step.identity}; goes when its rollout ends", of_step=True)


def is_canary(live: Object) -> bool:
    """Whether one of ours was made to be a canary: git may have declared a Deployment of such a name before."""
    return canary.LABEL in (live["metadata"].get("labels") or {})


def steps_of(rollout: Rollout | None) -> tuple[Step, ...]:
    """Return the steps of a Rollout that go by canary."""
    return tuple(step for step in rollout.steps if step.action == ACTION) if rollout else ()


def refuse(rollout: Rollout | None, declared: Mapping[Identity, Desired], where: Where = nowhere) -> None:
    """Refuse what can't go by canary, and a document with a canary's name. `where`: of the Rollout's fields. Raises PlanRefused."""
    steps = steps_of(rollout)
    first = {step.identity: number for number, step in reversed(list(enumerate(steps)))}
    wrong = [(step, *each) for number, step in enumerate(steps) for each in _mistakes(step, again=first[step.identity] < number)]
    taken = [(step, found) for step in steps if (found := declared.get(canary.identity_of_canary(step.identity)))]
    fields = [*(f"{step.field}.{name}" for step, name, _, _ in wrong), *(step.field for step, _ in taken)]
    if rollout and fields:
        at = iter(places(where, rollout.place, fields))
        named = [Problem(str(step.identity), seen, next(at), fix) for step, _, seen, fix in wrong]
        raise PlanRefused(*named, *(_taken(step, found, next(at)) for step, found in taken))


def _taken(step: Step, found: Desired, place: str) -> Problem:
    seen = f"has the name that the canary of {step.identity} gets (step {step.name} of the Rollout at {place})"
    return Problem(str(found.identity), seen, found.manifest.place, "give it another name")


def _mistakes(step: Step, *, again: bool) -> list[tuple[str, str, str]]:
    found = []
    if step.identity.group_kind != canary.DEPLOYMENT:
        found.append(("action", f"can't go by canary (step {step.name}); only a Deployment of apps can", "write action: CreateOrUpdate"))
    if again:
        found.append(("object", f"goes by canary twice (again in step {step.name})", "keep one of the steps"))
    if step.continue_on_error:
        seen = f"goes by canary and on after an error (step {step.name}): a drift run would then write what the canary has refused"
        found.append(("continueOnError", seen, "remove continueOnError from that step"))
    return found


def foresee(canaries: Canaries, changes: Mapping[Identity, Change], missing: MissingDependencies, api: Api, target: Target) -> list[str]:
    """Note which Deployments a run would bring by canary. Raises PlanRefused, AccessDenied: the server takes none, or a name is taken."""
    notes: list[str] = []
    problems: list[Problem] = []
    denied: list[Problem] = []
    comparison = missing.comparison
    for identity, step in canaries.steps.items() if canaries.gradual else ():
        live = comparison.undecided.get(step.identity) or comparison.unowned.get(step.identity)
        change = changes.get(step.identity)
        if live is None or change is None or change.action not in _CHANGES:
            continue
        item = comparison.desired[step.identity]
        wanted = wanted_of(comparison, item, live, DryRunner(api))
        if not canary.is_needed(live, wanted):
            continue
        notes.append(f"{step.identity} goes by canary: {canary.steps_text(step.options)}")
        count = canary.replicas(canary.replicas_of(live), canary.weights(step.options)[0][0])
        try:
            known = identity in comparison.candidates and is_canary(comparison.candidates[identity])
            _check(composed(item, wanted, target.name, count), api, target, known=known)
        except AccessDenied as error:
            denied += _placed(error.problems, item)
        except (ApiRefused, PlanRefused) as error:
            if isinstance(error, PlanRefused) or not missing.first(item, error):
                problems += _placed(error.problems, item)
    if problems:
        raise PlanRefused(*problems, *denied)
    if denied:
        raise AccessDenied(*denied)
    return notes


def _check(made: Desired, api: Api, target: Target, *, known: bool) -> None:
    if not known and probe(api, [(made.resource, made.identity.namespace, made.identity.name)]):
        raise PlanRefused(taken(made.identity, made))
    if target.validate != "none":
        DryRunner(api).check(made.resource, made.manifest.body())


def taken(identity: Identity, made: Desired) -> Problem:
    """Say that a canary's name is another's."""
    fix = "delete or rename it: the canary needs its name"
    return Problem(str(identity), "exists already and isn't our canary", made.manifest.place, fix)


def _placed(problems: Sequence[Problem], item: Desired) -> list[Problem]:
    return [replace(problem, place=problem.place or item.manifest.place) for problem in problems]


def wanted_of(comparison: Comparison, item: Desired, live: Object, server: DryRunner) -> Object:
    """Return what a Deployment would become, in the server's words; as declared where those can't be had (an immutable field changes)."""
    applied = comparison.effective(item, live)
    taken = comparison.taken_over(item.identity, applied.manifest.body(), live, adopted=True)
    try:
        wanted = server.apply(applied.resource, applied.manifest.body())
    except (ApiRefused, AccessDenied):
        return applied.manifest.body()
    return taken.after(wanted) if taken else wanted


def composed(item: Desired, wanted: Object, target: str, count: int) -> Desired:
    """Return the canary of a declared Deployment as an object of its own. `wanted`: what the stable one would become."""
    made = canary.manifest(item.manifest, wanted, target, count, {name for name, _ in PROTECTIONS})
    return Desired(made, item.resource)
