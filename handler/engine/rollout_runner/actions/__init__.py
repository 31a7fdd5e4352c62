"""The actions that a step of a Rollout may name: one file, one row.

An outside package adds its own by handing a longer table to `handler.library.build`.
"""

from __future__ import annotations

from collections.abc import Mapping

from handler.engine.rollout_runner.actions.canary import Canary
from handler.engine.rollout_runner.actions.create_if_not_exist import CreateIfNotExist
from handler.engine.rollout_runner.actions.create_or_update import CreateOrUpdate
from handler.engine.rollout_runner.actions.delete_if_exist import DeleteIfExist
from handler.engine.rollout_runner.actions.recreate import Recreate
from handler.engine.rollout_runner.actions.stage import ActionType, StepStage

__all__ = ["ACTIONS", "ActionType", "StepStage"]

ACTIONS: Mapping[str, ActionType] = {
    "CreateOrUpdate": CreateOrUpdate(),
    "CreateIfNotExist": CreateIfNotExist(),
    "DeleteIfExist": DeleteIfExist(),
    "Recreate": Recreate(),
    "Canary": Canary(),
}
