"""Canaries of an open attempt that a newer head has overtaken while that head itself is refused: without a watch, they are withdrawn.

Law: the stable Deployment isn't touched, and the recorded failure stays the head's own, with a line for each canary. Deleted is only what
carries our label, our identity and the canary's mark, and what prune wouldn't keep; under its uid, the Lease and an attempt that is ours.
All of it can be repeated: the record forgets how far a canary was before it goes, and its rollout, once gone on with, begins it anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from handler.cluster.live import Object, probe
from handler.cluster.write import Writer
from handler.engine import outcomes
from handler.engine.planner import canaries
from handler.engine.run.context import RunContext
from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError, AuthorError, LeaseError, Problem, RefNotFound, RenderFailed, Stopping
from handler.model.names import Identity, Resource
from handler.plan.inventory import is_member
from handler.plan.prune import PruneFacts, judge
from handler.rollout import canary
from handler.rollout.canary import CanaryMark, CanaryPhase
from handler.state.record import State, StepRecord

_WITHDRAWN = "withdrawn"
"""The mark of a step whose canary was taken away: no `CanaryMark` of a canary's phase, so that the step begins anew."""


@dataclass(frozen=True, slots=True)
class _Left:
    """A canary that an overtaken rollout has left. `live`: None: it is gone by now; `kept`: what keeps it from being deleted."""

    step: StepRecord
    identity: Identity
    resource: Resource
    live: Object | None
    kept: str = ""


def withdrawn(run: RunContext, error: AnnealError) -> AnnealError:
    """Take away what an overtaken rollout has left, if a run fails by this error; return it, amended. Raises LeaseLost, Stopping."""
    rollout = run.state.rollout if run.stored.state else None
    if rollout is None or not _is_overtaken(run, error):
        return error
    try:
        left = _left(run)
        _forget(run, [each.step for each in left if each.live and not each.kept])
        seen = {each.identity: each.kept or _removed(run, each) for each in left}
    except (LeaseError, Stopping):
        raise
    except AnnealError as trouble:
        seen = dict.fromkeys(known(run.state), trouble.problems[0].message)
    error.problems = (*error.problems, *(_problem(run, rollout.commit, one, kept) for one, kept in seen.items()))
    return error


def _problem(run: RunContext, commit: str, identity: Identity, kept: str) -> Problem:
    if not kept:
        seen = f"the canary of {commit[:12]} is withdrawn, for {run.revision.commit[:12]} has overtaken it"
        return Problem(str(identity), seen, fix="it begins anew with a commit that brings it")
    seen = f"the canary of {commit[:12]} stays as it is, unwatched: {kept}"
    fix = advice("each tick tries to withdraw it; anneal rollback {} takes it away, too", run.job.target)
    return Problem(str(identity), seen, fix=fix)


def _is_overtaken(run: RunContext, error: AnnealError) -> bool:
    """Whether what every next run aims at is another commit than the open attempt's, and is refused until a person mends it."""
    attempt = run.state.attempt
    # a branch that has vanished, a commit that isn't there and a renderer that was stopped say nothing of what the next runs meet
    passes = isinstance(error, RefNotFound) or (isinstance(error, RenderFailed) and error.reason != "output")
    refused = isinstance(error, AuthorError | AccessDenied) and not passes and not run.round.opened
    # the next run doesn't aim at a commit that a person asked for once; a run without prune withdraws nothing
    mine = run.lease is not None and run.job.prune and not run.job.dry_run and not run.job.commit
    return refused and mine and attempt is not None and run.revision.commit not in ("", attempt.commit)


def known(state: State) -> dict[Identity, StepRecord]:
    """Return the canaries that the record knows of, without a look at them: of steps under way that haven't promoted theirs."""
    rollout = state.rollout
    if rollout is None or rollout.outcome:
        return {}
    under_way = [step for step in rollout.steps if step.action == canaries.ACTION and step.started and not step.outcome]
    return {canary.identity_of_canary(stable): step for step in under_way if (stable := _stable(step))}


def _stable(step: StepRecord) -> Identity | None:
    """Return the Deployment that a step brings; None: it is being promoted, or was, or the record doesn't name one."""
    mark, (kind, _, rest) = CanaryMark.of(step.mark), step.object.partition("/")
    namespace, _, name = rest.partition("/")
    promoted = mark is not None and (mark.phase is CanaryPhase.PROMOTE or (mark.phase is CanaryPhase.REMOVE and not mark.reason))
    if promoted or kind != canary.DEPLOYMENT.kind or not (namespace and name):
        return None
    return Identity(canary.DEPLOYMENT.group, kind, namespace, name)


def _left(run: RunContext) -> list[_Left]:
    steps, planner = known(run.state), run.deps.planner
    resource = planner.discovery.preferred(canary.DEPLOYMENT) if steps else None
    if resource is None:
        return []
    found = probe(planner.api, [(resource, one.namespace, one.name) for one in steps])
    seen = [_Left(step, one, resource, _ours(run, one, found.get(one))) for one, step in steps.items()]
    return [replace(each, kept=_kept(run, each.live)) for each in seen if each.live or each.step.mark == _WITHDRAWN]


def _kept(run: RunContext, live: Object | None) -> str:
    change = judge(live, run.deps.target, (), PruneFacts()) if live else None
    return change.reason if change and not change.writes else ""


def _ours(run: RunContext, identity: Identity, live: Object | None) -> Object | None:
    if live is None or live["metadata"].get("deletionTimestamp") or not canaries.is_canary(live):
        return None
    return live if is_member(live, identity, run.deps.planner.ours) else None


def _forget(run: RunContext, steps: Sequence[StepRecord]) -> None:
    """Let the record forget how far these canaries were, before they go; the attempt becomes ours with that."""
    names = {
        (step.group, step.step) for step in steps if (mark := CanaryMark.of(step.mark)) is None or mark.phase is not CanaryPhase.REMOVE
    }
    message = f"the canary is withdrawn: {run.revision.commit[:12]} has overtaken it, and is refused"

    def changed(step: StepRecord) -> StepRecord:
        return replace(step, mark=_WITHDRAWN, message=message, stood=(), share=0) if (step.group, step.step) in names else step

    def forgotten(state: State) -> State:
        rollout = state.rollout
        return replace(state, rollout=replace(rollout, steps=tuple(map(changed, rollout.steps)))) if rollout else state

    if steps:
        outcomes.swap(run, forgotten(run.state))


def _removed(run: RunContext, left: _Left) -> str:
    """Ask for a canary's deletion, its pods included, without a wait. Return why it stays; empty: it goes."""
    if left.live is None:
        return ""
    uid = str(left.live["metadata"]["uid"])
    try:
        Writer(run.deps.planner.api, run.fence).delete(left.resource, left.identity, uid, propagation="Foreground")
    except (LeaseError, Stopping):
        raise
    except AnnealError as trouble:
        return trouble.problems[0].message
    return ""
