"""What Anneal can do, by name: one literal table a kind of part. A program of its own adds rows; nothing is looked up anywhere else.

renderers   what turns a commit into objects             `renderer.type` of a target
triggers    whose webhooks are understood                `/webhooks/<name>`, `webhooks.<name>`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from handler.render import RENDERERS, Renderer
from handler.triggers import TRIGGERS, Trigger


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one program."""

    renderers: Mapping[str, Renderer] = field(default_factory=lambda: RENDERERS)
    triggers: Mapping[str, Trigger] = field(default_factory=lambda: TRIGGERS)
