"""How a run ended: what CLI, queue, history and feedback all report."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from handler.model.errors import Problem
from handler.model.event import Job
from handler.model.plan import Change, Plan


class Outcome(StrEnum):
    """The end of a run."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    HELD = "held"
    PRUNING = "pruning"
    FAILED = "failed"
    BUSY = "busy"
    SUPERSEDED = "superseded"
    LAGGING = "lagging"
    SUSPENDED = "suspended"
    DRIFTED = "drifted"
    PLANNED = "planned"
    WAITING = "waiting"
    ROLLED_BACK = "rolled-back"
    REFUSED = "refused"


ONLY_PLANNED = frozenset({Outcome.HELD, Outcome.PLANNED, Outcome.DRIFTED})
"""Ends at which a plan is only a plan: its counts say what is still to do."""
IN_SYNC = frozenset({Outcome.APPLIED, Outcome.UNCHANGED})
"""Ends at which the target equals git."""
FAILURES = frozenset({Outcome.FAILED, Outcome.PRUNING, Outcome.ROLLED_BACK})
"""Ends at which it doesn't because something failed."""
INTERNAL = "internal"
"""The code of a run that ended as none of our errors."""


@dataclass(frozen=True, slots=True)
class TargetStanding:
    """How a target stands after a run, for metrics and alerts.

    `failures` in a row; `next_try`, `succeeded`, `waiting` (since when) in seconds since the epoch, 0: none; `orphans`, `drifted`: objects.
    `health`: a `HealthState`, empty: never judged. `refused`: a commit is, until what that follows from changes.
    """

    failures: int = 0
    next_try: float = 0.0
    succeeded: float = 0.0
    refused: bool = False
    held: bool = False
    suspended: bool = False
    pinned: bool = False
    rolled_back: bool = False
    waiting: float = 0.0
    orphans: int = 0
    drifted: int = 0
    health: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One run's end. `duration` in seconds; `who` must act if it failed (operator | author | sender | nobody).

    `plan`: the newest; `written`: what the run has changed in the cluster however it ended, each object once. `standing`: as the run left
    the target; None where no state could be read. `again`: what this run, ended as it is, leaves to another one from `again_at` on, in
    seconds since the epoch: a look for a pushed commit that the git host doesn't show yet. `recorded`: the target's state has this end.
    """

    target: str
    outcome: Outcome
    commit: str = ""
    trigger: str = ""
    message: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    who: str = ""
    code: str = ""
    duration: float = 0.0
    run: str = ""
    plan: Plan | None = None
    written: tuple[Change, ...] = ()
    next_try: float = 0.0
    standing: TargetStanding | None = None
    again: Job | None = None
    again_at: float = 0.0
    recorded: bool = False

    @property
    def left(self) -> tuple[Change, ...]:
        """What is planned and not done."""
        return self.plan.writes if self.plan and self.outcome in ONLY_PLANNED else ()
