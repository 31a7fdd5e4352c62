"""`CreateIfNotExist`: create the object where it's missing, and leave it alone from then on."""

from __future__ import annotations

from handler.engine.rollout_runner.actions.create_or_update import CreateOrUpdate
from handler.model.rollout import Mode


class CreateIfNotExist(CreateOrUpdate):
    """Carried out alike, but exempt from updates and from drift: the plan's change is a create, or nothing."""

    mode = Mode.KEEP
