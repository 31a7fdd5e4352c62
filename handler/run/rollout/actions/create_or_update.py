"""`CreateOrUpdate`: bring the object to what git declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handler.model.rollout import Mode, Step
from handler.run.rollout.actions.stage import StepStage


class CreateOrUpdate:
    """The plan's change of the object, as any run would carry it out: one that is as declared isn't written."""

    mode = Mode.APPLY
    keys: Sequence[str] = ()

    def read(self, raw: Mapping[str, Any], field: str) -> Mapping[str, Any]:  # noqa: ARG002 - every action is asked the same way
        """It has no keys of its own."""
        return {}

    def act(self, stage: StepStage, step: Step) -> None:  # noqa: ARG002 - the stage knows the step
        """Write it, unless it is so already."""
        stage.apply()
