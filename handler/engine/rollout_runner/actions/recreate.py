"""`Recreate`: delete the object, wait until it is gone, create it as declared; once a rollout.

Law: the uid is remembered (the step's mark) before the deletion, so that a run killed anywhere neither deletes twice nor leaves the object
out. What can be known to refuse the new object is asked before the old one goes.
"""

from __future__ import annotations

from typing import Any

from handler.cluster.access_review import AccessRule, allowed
from handler.engine.rollout_runner.actions.stage import Object, PlainAction, StepStage
from handler.model.errors import AccessDenied, ApiRefused, Moved, PlanRefused, Problem, RolloutFailed
from handler.model.names import GroupKind
from handler.model.plan import Action
from handler.model.rollout import Mode, Step
from handler.plan.admission import Desired
from handler.plan.inventory import is_member
from handler.plan.judge import lift
from handler.plan.prune import kept_by_itself
from handler.plan.quoted_refusal import told_refusal

_ABSENT = "absent"  # the mark of a step that found nothing to delete
_SERVICE = GroupKind("", "Service")
_LONGEST = 52  # letters of a name that leave room for what marks the scratch one: pods and Jobs may have 63
_SAYS_NOTHING = ("does not support dry run", "exceeded quota")  # only a scratch copy meets these: they refuse nothing


class Recreate(PlainAction):
    """A member like any other between rollouts; each rollout makes it anew."""

    mode = Mode.RECREATE

    def act(self, stage: StepStage, step: Step) -> None:
        """Make it anew, unless that is done."""
        item = stage.desired
        assert item is not None  # noqa: S101 - the mode makes it desired
        if not stage.mark:
            self._begin(stage, item)
        else:
            self._go_on(stage, item)
        if stage.mark != _ABSENT:
            stage.remove(item.resource, step.identity, stage.mark)
        self._create(stage, item)

    def _begin(self, stage: StepStage, item: Desired) -> None:
        """Remember what goes, if the plan showed just that one and its successor would be taken."""
        live, change = stage.live(item.resource, item.identity), stage.change
        if live is None or change is None or change.action is not Action.RECREATE or change.uid != live["metadata"]["uid"]:
            stage.remember(_ABSENT)
            return
        _raise_if_kept(stage, item, live)
        _raise_if_refused(stage, item)
        stage.remember(str(live["metadata"]["uid"]))

    def _go_on(self, stage: StepStage, item: Desired) -> None:
        """Look once more at what an earlier run was about to delete: since then it may have become another's, or protected."""
        live = stage.live(item.resource, item.identity)
        if live is not None and live["metadata"]["uid"] == stage.mark and not live["metadata"].get("deletionTimestamp"):
            _raise_if_kept(stage, item, live)

    def _create(self, stage: StepStage, item: Desired) -> None:
        gone = stage.mark != _ABSENT
        try:
            stage.put()
        except (AccessDenied, ApiRefused, PlanRefused) as error:
            if not gone or stage.live(item.resource, item.identity) is not None:
                raise
            kind = type(error) if isinstance(error, AccessDenied) else RolloutFailed
            raise kind(*(_lost(item, problem) for problem in error.problems)) from error


def _raise_if_kept(stage: StepStage, item: Desired, live: Object) -> None:
    """Refuse to delete what has become another's since it was planned, or is protected by now. Raises RolloutFailed."""
    if not is_member(live, item.identity, stage.ours):
        raise RolloutFailed.of(str(item.identity), "is no longer ours, so it isn't deleted", place=item.manifest.place)
    kept = kept_by_itself(live, stage.applier.planned.decision.judge.target.instance)
    if kept:
        seen, fix = f"was to be made anew, but by now: {kept}", lift(item.identity.group_kind, "write action: CreateOrUpdate")
        raise RolloutFailed.of(str(item.identity), seen, place=item.manifest.place, fix=fix)


def _raise_if_refused(stage: StepStage, item: Desired) -> None:
    """Dry-run the create under a scratch name: while the old object lives, its name can't be dry-run."""
    body = _scratch(item)
    try:
        stage.dry_runner.check(item.resource, body)
    except AccessDenied:
        _raise_if_denied(stage, item)
    except Moved:
        return
    except ApiRefused as error:
        if any(word in error.words for word in _SAYS_NOTHING):
            return
        place = item.manifest.place
        said = told_refusal(error, item.manifest).problems
        refusals = [Problem(str(item.identity), f"would be refused once it is deleted: {p.message}", place, p.fix) for p in said]
        raise RolloutFailed(*refusals) from error


def _raise_if_denied(stage: StepStage, item: Desired) -> None:
    """Ask for the rights under the object's own name, which may be all that they are given for. Raises AccessDenied."""
    resource, identity = item.resource, item.identity
    rules = [AccessRule(verb, resource.group, resource.plural, identity.namespace, identity.name) for verb in ("create", "patch")]
    try:
        lacking = [rule for rule, has in zip(rules, allowed(stage.applier.planner.api, rules), strict=True) if not has]
    except (AccessDenied, ApiRefused):
        return  # the review is denied: the server decides at the create
    if lacking:
        seen, fix = f"isn't deleted, for it couldn't be made anew: no right to {lacking[0].verb} it", "; ".join(map(str, lacking))
        raise AccessDenied.of(str(identity), seen, place=item.manifest.place, fix=fix)


def _scratch(item: Desired) -> dict[str, Any]:
    """Return a copy that lives nowhere: another name, and none of the addresses that only one Service can have."""
    body = item.manifest.body()
    body["metadata"]["name"] = f"{body['metadata']['name'][:_LONGEST].rstrip('.-')}-anew"
    if item.identity.group_kind == _SERVICE:
        spec = body.get("spec") or {}
        for key in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
            if spec.get(key) not in ("None", ["None"]):
                spec.pop(key, None)
        for port in spec.get("ports") or []:
            port.pop("nodePort", None)
    return body


def _lost(item: Desired, problem: Problem) -> Problem:
    message = f"IS MISSING NOW: it was deleted to be created anew, and the server refuses the new one: {problem.message}"
    return Problem(str(item.identity), message, item.manifest.place, problem.fix or "push a manifest that the server takes")
