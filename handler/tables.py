"""What Anneal can do, by name: one literal table a kind of part. A program of its own adds rows; nothing is looked up anywhere else.

renderers   what turns a commit into objects             `renderer.type` of a target
triggers    whose webhooks are understood                `/webhooks/<name>`, `webhooks.<name>`
actions     what a step does with its object             `action` of a Rollout's step
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handler.render import RENDERERS, Renderer
from handler.rollout.checks import CHECKS
from handler.rollout.tables import CheckType
from handler.triggers import TRIGGERS, Trigger

if TYPE_CHECKING:
    from handler.run.actions import ActionType


def _actions() -> Mapping[str, ActionType]:
    """Return the literal table; it reaches clusters, so only a program that carries steps out loads it."""
    from handler.run.actions import ACTIONS  # noqa: PLC0415 - see above

    return ACTIONS


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one program."""

    renderers: Mapping[str, Renderer] = field(default_factory=lambda: RENDERERS)
    triggers: Mapping[str, Trigger] = field(default_factory=lambda: TRIGGERS)
    actions: Mapping[str, ActionType] = field(default_factory=_actions)
    checks: Mapping[str, CheckType] = field(default_factory=lambda: CHECKS)
