"""From an open attempt to everything applied, healthy and pruned: the parts of a rollout in their order.

    hooks before            PreSync                                  hooking
    the automatic stages    what no step names                       applying, each waited for where the next asks for it
    the Rollout's groups    if the target names one                  stepping
    all healthy             where the target waits                   waiting
    prune                   in reverse                               pruning
    hooks after             PostSync; SyncFail if anything failed    hooking

Law: everything is idempotent. A walk that was cut anywhere is walked again by the next run: what is done is seen in the plan and in the
record, and costs a look.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from handler.model.plan import Plan
from handler.run.applying import Applier
from handler.run.context import Context
from handler.run.planning import Planned
from handler.run.pruning import Pruner
from handler.run.recording import Inputs
from handler.run.waiting import Waits


@dataclass(slots=True)
class Walk:
    """Carries out one plan under an open attempt."""

    run: Context
    inputs: Inputs
    planned: Planned
    applier: Applier = field(init=False)
    waits: Waits = field(init=False)

    def __post_init__(self) -> None:
        """Put the hands together."""
        self.applier = Applier(self.run.rooms.planner, self.planned, self.run.fence, self.run.between)
        self.waits = Waits(self.run)

    def go(self) -> Plan:
        """Walk to the end; return the plan as it came out.

        Raises:
            RolloutFailed: it doesn't work, and why.
            NewerHead, StillWaiting: it isn't healthy yet, and is left as it is.
            AnnealError: whatever a write meets.

        """
        for stage in self.planned.plan.stages:
            self.applier.apply(stage)
        self.applier.settle()
        wait = self.run.rooms.target.wait
        if wait:
            self.waits.healthy("everything", tuple(self.planned.desired.values()), self.applier.generations, wait)
        pruner = Pruner(self.run.rooms.planner, self.planned, self.run.fence, self.run.between, self.applier.uids)
        pruner.prune()
        return self.planned.plan.with_outcomes([*self.applier.outcomes, *pruner.outcomes])
