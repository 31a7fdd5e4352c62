"""`DeleteIfExist`: delete the object in the foreground, and wait until it is gone; one that isn't there is as good.

Law: only what the plan showed is deleted: it carries our label and identity, or the target may adopt it; the guards have counted it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handler.model.plan import Action
from handler.model.rollout import Mode, Step
from handler.run.actions.stage import StepStage


class DeleteIfExist:
    """The object isn't desired: it lives until its step deletes it."""

    mode = Mode.DELETE
    keys: Sequence[str] = ()

    def read(self, raw: Mapping[str, Any], field: str) -> Mapping[str, Any]:  # noqa: ARG002 - every action is asked the same way
        """It has no keys of its own."""
        return {}

    def act(self, stage: StepStage, step: Step) -> None:
        """Delete exactly what the plan showed, under its uid; what came since under that name is left to the next run's plan.

        The uid is remembered first: a run that goes on here waits for the rest of a deletion that was asked for already.
        """
        change, resource = stage.change, stage.resource
        uid = stage.mark or (change.uid if change is not None and change.action is Action.PRUNE else "")
        if not uid or resource is None:
            return
        stage.remember(uid)
        stage.remove(resource, step.identity, uid)
