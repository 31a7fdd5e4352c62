"""`CreateIfNotExist`: create the object where it's missing, and leave it alone from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handler.model.rollout import Mode, Step
from handler.run.rollout.actions.stage import StepStage


class CreateIfNotExist:
    """A member like any other, but exempt from updates and from drift: the plan's change is a create, or nothing."""

    mode = Mode.KEEP
    keys: Sequence[str] = ()

    def read(self, raw: Mapping[str, Any], field: str) -> Mapping[str, Any]:  # noqa: ARG002 - every action is asked the same way
        """It has no keys of its own."""
        return {}

    def act(self, stage: StepStage, step: Step) -> None:  # noqa: ARG002 - the stage knows the step
        """Create it, unless it is there."""
        stage.apply()
