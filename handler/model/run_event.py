"""Events: what doors, runs and watches announce, as values; `handler.app.run_events` hands them to feedback. Pure.

Law: an event states a fact; nothing is answered. A run's end holds no manifest, for feedback may keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from handler.model.event import Decision, Event, Job
from handler.model.health import HealthState
from handler.model.plan import Change, Hold, Plan
from handler.model.result import Result


@dataclass(frozen=True, slots=True)
class DeliveryDecided:
    """A delivery of a git host, and its outcome: unread (its form or size), refused (unverified or not understood), untaken (none queued).

    `code`, `seen`: why, of those. `event`, `decisions`: of an understood one; `runs`: ids by target; `more`: fields of its log line.
    """

    provider: str
    outcome: Literal["matched", "ignored", "unread", "refused", "untaken"]
    code: str = ""
    seen: str = ""
    event: Event | None = None
    decisions: Sequence[Decision] = ()
    runs: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counted(self) -> str:
        """The outcome as counted: matched, ignored or refused."""
        return self.outcome if self.outcome in ("matched", "ignored") else "refused"


@dataclass(frozen=True, slots=True)
class OpenWait:
    """A wait of a run, and what is missing of it, a line each."""

    what: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunPhase:
    """The phase of a run with an open attempt, announced after each write of its record. `since`: of its wait for health; 0: none.

    `generation`: as of a `Result`.
    """

    target: str
    run: str
    commit: str
    phase: str
    since: float = 0.0
    waits: tuple[OpenWait, ...] = ()
    generation: int = 0


@dataclass(frozen=True, slots=True)
class RunPlanned:
    """A run begins to carry out its plan. `stages`: of (object, action), in their order; deletions are the last, and what goes beside."""

    target: str
    run: str
    commit: str
    stages: tuple[tuple[tuple[str, str], ...], ...]

    @classmethod
    def of(cls, run: str, plan: Plan) -> RunPlanned:
        """Return the event of a plan."""
        found = (
            [(str(each.identity), str(each.action)) for each in stage if each.writes]
            for stage in (plan.relabelled, *plan.stages, plan.prunes)
        )
        lost = [(str(each.identity), "lose") for each in plan.lost]
        return cls(plan.target, run, plan.commit, tuple(tuple(stage) for stage in (*found, lost) if stage))


@dataclass(frozen=True, slots=True)
class ObjectsWritten:
    """Objects that a run has just written or pruned, as the plan had them."""

    target: str
    run: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The end of a run, or of a look that comes again (`Outcome.LAGGING`). `seconds`: its duration.

    `result.rounds`: how each round ended; a commit that was rolled back from, or superseded, has its end there alone.
    Announced by `handler.app.run_guard.announced`, in which worker, functions and commands run every job.
    """

    job: Job
    result: Result
    seconds: float

    @classmethod
    def of(cls, job: Job, result: Result, seconds: float) -> RunEnded:
        """Return the event of a result, without plan and manifests."""
        written = tuple(replace(change, manifest=None, managed_fields=b"") for change in result.written)
        return cls(job, replace(result, plan=None, written=written), seconds)


@dataclass(frozen=True, slots=True)
class HealthChanged:
    """The health in a target's record changed. `before`, `after`: a `HealthState`, empty: never judged; `run`: empty: a watch judged."""

    target: str
    before: str
    after: str
    worst: tuple[str, ...] = ()
    run: str = ""


@dataclass(frozen=True, slots=True)
class HealthFound:
    """The health of targets as a pass of the watch found it, also where no record can say so. One event for all: queues are short."""

    targets: Mapping[str, HealthState]


@dataclass(frozen=True, slots=True)
class InstanceGone:
    """An instance isn't known any more; an event, so that all announced of it before is heard before."""

    target: str


@dataclass(frozen=True, slots=True)
class PlanHeld:
    """A plan waits for approval from now on."""

    target: str
    run: str
    commit: str
    hold: Hold


RunEvent = DeliveryDecided | RunPhase | RunPlanned | ObjectsWritten | RunEnded | HealthChanged | HealthFound | InstanceGone | PlanHeld
Announce = Callable[[RunEvent], None]  # takes an event. It never waits and never raises; any thread may call it


def unheard(_event: RunEvent) -> None:
    """Drop an event: there is no feedback."""
