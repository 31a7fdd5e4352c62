"""`DeleteIfExist`: delete the object in the foreground, and wait until it is gone; an absent object is as good.

Law: only what the plan showed is deleted, and it is judged again right before: earlier steps may have taken hours.
"""

from __future__ import annotations

from handler.engine.planner.due import FAILED
from handler.engine.rollout_runner.actions.stage import Object, PlainAction, StepStage
from handler.model.errors import PlanRefused, Problem
from handler.model.plan import Action
from handler.model.rollout import Mode, Step
from handler.plan.inventory import is_member
from handler.plan.judge import lift


class DeleteIfExist(PlainAction):
    """The object isn't desired: it lives until its step deletes it."""

    mode = Mode.DELETE

    def act(self, stage: StepStage, step: Step) -> None:
        """Delete exactly what the plan showed, under its uid, which is remembered first: a run that goes on here waits for the rest."""
        change, resource = stage.change, stage.resource
        uid = stage.mark or (change.uid if change is not None and change.action is Action.PRUNE else "")
        if not uid or resource is None:
            return
        live = stage.live(resource, step.identity)
        if live is None or live["metadata"]["uid"] != uid:
            return
        if not live["metadata"].get("deletionTimestamp"):
            _raise_if_kept(stage, step, live)
        stage.remember(uid)
        stage.remove(resource, step.identity, uid)


def _raise_if_kept(stage: StepStage, step: Step, live: Object) -> None:
    """Refuse to delete what has become another's since it was planned, or is protected or inhabited by now. Raises PlanRefused."""
    planned, item = stage.applier.planned, stage.journal.inputs.prepared.planned_rollout.doomed[step.identity]
    if not is_member(live, step.identity, stage.ours):
        raise PlanRefused(Problem(str(step.identity), "is no longer ours", item.manifest.place, "remove the step"))
    found = stage.applier.planner.prune_judge.judged(live, planned.desired, _leaving(stage))
    _, doubt = planned.decision.handover.doubt(step.identity)
    if not found.writes or doubt:
        seen = f"was to be deleted, but by now: {doubt or found.reason}"
        raise PlanRefused(Problem(str(step.identity), seen, item.manifest.place, lift(step.identity.group_kind, "remove the step")))


def _leaving(stage: StepStage) -> frozenset[str]:
    """Return the uids that don't keep what holds them: what steps delete, and what is pruned, which isn't certain after a failed step."""
    plan, known = stage.applier.planned.plan, stage.journal.run.state.rollout
    failed = known is not None and any(each.outcome == FAILED for each in known.steps)
    changes = [change for each in plan.stages for change in each] if failed else plan.changes
    return frozenset(change.uid for change in changes if change.action is Action.PRUNE)
