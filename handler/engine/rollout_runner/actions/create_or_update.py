"""`CreateOrUpdate`: bring the object to what git declares."""

from __future__ import annotations

from handler.engine.rollout_runner.actions.stage import PlainAction, StepStage
from handler.model.rollout import Mode, Step


class CreateOrUpdate(PlainAction):
    """The plan's change of the object, as any run would carry it out: one that is as declared isn't written."""

    mode = Mode.APPLY

    def act(self, stage: StepStage, step: Step) -> None:  # noqa: ARG002 - the stage knows the step
        """Write it, unless it is so already."""
        stage.apply()
