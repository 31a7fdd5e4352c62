"""A target with an exclusive namespace on a cluster in memory: planned, pruned and recorded as drift runs do, by the test's clock."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from handler.engine.planner.exclusive_look import ExclusiveRequest
from handler.engine.planner.planner import Planned
from handler.engine.run.transitions import unmarked_orphans
from handler.model.plan import Action
from handler.state.record import Orphan
from tests.unit.engine.apply.planned_target import MAPS, TARGET, PlannedTarget, config_map, outcomes

EXCLUSIVE = replace(TARGET, exclusive=("shop",), orphan_grace=3600.0)
NOON = 1_800_000_000.0
HOUR = 3600.0


@dataclass
class Watched:
    """A target with an exclusive namespace, the record of its orphans, and a clock."""

    shop: PlannedTarget = field(default_factory=lambda: PlannedTarget(EXCLUSIVE))
    now: float = NOON
    orphans: tuple[Orphan, ...] = ()
    ask: ExclusiveRequest = field(default_factory=lambda: ExclusiveRequest(looks=True, records=True))

    def plan(self, *bodies: dict[str, Any], **ask: Any) -> Planned:
        """Plan as a drift run does."""
        return self.shop.plan(*bodies, exclusive=replace(self.ask, known=self.orphans, now=self.now, **ask))

    def run(self, *bodies: dict[str, Any], **ask: Any) -> list[tuple[Action, str, str]]:
        """Plan, delete, and record as a drift run does; return what came of what isn't declared."""
        planned = self.plan(*bodies, **ask)
        pruner = self.shop.pruner(planned)
        pruner.prune()
        plan = planned.plan.with_outcomes(pruner.outcomes)
        self.orphans = unmarked_orphans(replace(planned, plan=plan))
        return outcomes(plan.prunes)

    def names(self) -> list[str]:
        return [each.identity.name for each in self.orphans]


def stray(watched: Watched, name: str = "stray", **metadata: Any) -> dict[str, Any]:
    body = config_map(name)
    return watched.shop.post(MAPS, {**body, "metadata": {**body["metadata"], **metadata}})


def due(watched: Watched) -> None:
    watched.run(config_map("web"))
    watched.now += HOUR


def fates(watched: Watched) -> dict[str, tuple[Action, str]]:
    """Run twice, the second time after the grace; return what became of each object, and why."""
    due(watched)
    return {name: (action, reason) for action, name, reason in watched.run(config_map("web"))}
