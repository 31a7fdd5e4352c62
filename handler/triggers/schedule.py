"""When targets are looked at although nobody pushed: start-up tick, tick, drift run, due retries. Pure: the clock is an argument.

The tick heals lost pushes; the drift run, slower, sees what changed behind git's back. Both are spread, so that fifty targets
don't ask one git host in the same second. Times are monotonic seconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from handler.model.event import Job

STARTUP_SPREAD = 0.2
"""Seconds of start-up a target adds, so that the first tick of a few targets is immediate."""
JITTER = 0.1


class Schedule:
    """Three times per target: its next tick, its next drift run, and its next retry if one is due."""

    def __init__(
        self,
        targets: Sequence[str],
        drifting: Sequence[str],
        intervals: tuple[float, float],
        now: float,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`targets`: all names; `drifting`: those with drift runs; `intervals`: of the tick and of the drift run, in seconds."""
        self._interval, self._drift_interval = intervals
        self._uniform = uniform
        spread = min(STARTUP_SPREAD * (len(targets) - 1), self._interval * JITTER)
        self._ticks = {target: now + uniform(0.0, spread) for target in targets}
        self._drifts = {target: now + self._drift_interval * (number + 1) / len(drifting) for number, target in enumerate(drifting)}
        self._retries: dict[str, float] = {}

    def retry(self, target: str, at: float | None) -> None:
        """Look at a target again at that time; None: no retry is due any more."""
        if at is None:
            self._retries.pop(target, None)
        else:
            self._retries[target] = at

    def due(self, now: float) -> tuple[Job, ...]:
        """Return the jobs whose time has come, and set the next time of each."""
        jobs: list[Job] = []
        for target in [target for target, at in self._retries.items() if at <= now]:
            del self._retries[target]
            jobs.append(Job(target, "tick"))
        for times, interval, trigger in ((self._ticks, self._interval, "tick"), (self._drifts, self._drift_interval, "drift")):
            for target in [target for target, at in times.items() if at <= now]:
                times[target] = now + interval * self._uniform(1 - JITTER, 1 + JITTER)
                jobs.append(Job(target, trigger))
        return tuple(jobs)

    def next(self) -> float:
        """Return the time of the next job; infinity when there are no targets."""
        return min((*self._ticks.values(), *self._drifts.values(), *self._retries.values()), default=float("inf"))
