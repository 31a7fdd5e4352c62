"""What Anneal can do, by name: one literal table a kind of part. A program of its own adds rows; nothing is looked up anywhere else.

renderers   what turns a commit into objects             `renderer.type` of a target
triggers    whose webhooks are understood                `/webhooks/<name>`, `webhooks.<name>`
            and what asks for runs by itself             `anneal run --trigger <name>`
actions     what a step does with its object             `action` of a Rollout's step
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from handler.config.load import ReadInclude, load
from handler.config.settings import Settings
from handler.config.webhook_providers import webhooks_of
from handler.model.errors import ConfigInvalid, Problem
from handler.render import RENDERERS, Renderer

if TYPE_CHECKING:
    from handler.engine.rollout_runner.actions import ActionType
    from handler.rollout.interfaces import CheckType
    from handler.triggers import Trigger, Webhook

R = TypeVar("R")


class LazyTable(Mapping[str, R]):
    """A table that is loaded when it is first looked into. Safe to share between threads."""

    def __init__(self, load: Callable[[], Mapping[str, R]]) -> None:
        self._load = load

    @cached_property
    def _rows(self) -> Mapping[str, R]:
        return self._load()

    def __getitem__(self, name: str) -> R:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _actions() -> Mapping[str, ActionType]:
    from handler.engine.rollout_runner import actions

    return actions.ACTIONS


def _checks() -> Mapping[str, CheckType]:
    from handler.rollout import checks

    return checks.CHECKS


def _triggers() -> Mapping[str, Trigger]:
    from handler import triggers

    return triggers.TRIGGERS


ACTIONS: Mapping[str, ActionType] = LazyTable(_actions)
CHECKS: Mapping[str, CheckType] = LazyTable(_checks)
TRIGGERS: Mapping[str, Trigger] = LazyTable(_triggers)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one program."""

    renderers: Mapping[str, Renderer] = field(default_factory=lambda: RENDERERS)
    triggers: Mapping[str, Trigger] = field(default_factory=lambda: TRIGGERS)
    actions: Mapping[str, ActionType] = field(default_factory=lambda: ACTIONS)
    checks: Mapping[str, CheckType] = field(default_factory=lambda: CHECKS)

    @property
    def webhooks(self) -> Mapping[str, Webhook]:
        """The triggers that have a path."""
        from handler.triggers import webhook_rows

        return webhook_rows(self.triggers)

    def read(self, path: Path, read_include: ReadInclude | None = None) -> Settings:
        """Read a configuration that may name what these tables have. Raises ConfigInvalid with every mistake."""
        return load(path, read_include, renderers=self.renderers, providers=self.webhooks)

    def admitted(self, settings: Settings) -> Settings:
        """Return settings that a program has made itself, fit for these tables. Raises ConfigInvalid for a renderer that they lack."""
        known = ", ".join(self.renderers)
        wrong = [
            Problem(f"target {target.name}", f"renderer {target.renderer.type!r} isn't known here", fix=f"known are: {known}")
            for target in settings.targets
            if target.renderer.type not in self.renderers
        ]
        if wrong:
            raise ConfigInvalid(*wrong)
        wanted = webhooks_of(self.webhooks)
        if isinstance(settings.webhooks, wanted):
            return settings
        given = {each.name: getattr(settings.webhooks, each.name) for each in fields(settings.webhooks)}
        return replace(settings, webhooks=wanted(**given))
