"""When targets are looked at without a push: start-up tick, tick, drift run, due retries. Pure: the clock is an argument.

The tick heals lost pushes; all targets' ticks fall together, to be surveyed with few requests, and their runs are spread. The slower drift
run sees what changed behind git's back; each target has its place in the interval by the wall clock and the machine's name, moving a
little each round. Without a lasting process moments follow from names (`due_between`): windows that touch share none and lose none.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterable, Sequence

from handler.model.event import Job

SPREAD = 0.2  # seconds between two runs that ticks of the same moment ask for; of many it is less
JITTER = 0.1


class Schedule:
    """The next tick of all, and per target its next drift run and its next retry if one is due."""

    def __init__(
        self,
        targets: Sequence[str],
        drifting: Sequence[str],
        intervals: tuple[float, float],
        now: float,
        epoch: float,
        place: str = "",
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`intervals`: of tick and drift run, seconds. `now`: monotonic, `epoch`: the same since the epoch; `place`: the machine's name."""
        self._targets = tuple(targets)
        self._interval, self._drift_interval = intervals
        self._uniform = uniform
        self._place, self._offset = place, epoch - now
        self._tick = now if targets else math.inf
        self._needed: dict[str, float] = {}
        self._free = -math.inf
        self._shares = {target: number / len(drifting) for number, target in enumerate(drifting)}
        self._drifts = {target: self._slot(target, now) for target in drifting}
        self._retries: dict[str, float] = {}

    def retry(self, target: str, at: float | None) -> None:
        """Look at a target again at that time; None: no retry is due any more."""
        if at is None:
            self._retries.pop(target, None)
        else:
            self._retries[target] = at

    def forget(self, target: str) -> None:
        """Look at a target no more."""
        self._retries.pop(target, None)
        self._needed.pop(target, None)

    def ticks(self, now: float) -> tuple[Job, ...]:
        """Return the ticks of all targets if their time has come, and set the next one."""
        if self._tick > now:
            return ()
        self._tick = now + self._interval * self._uniform(1 - JITTER, 1 + JITTER)
        return tuple(Job(target, "tick") for target in self._targets)

    def need(self, target: str, now: float) -> bool:
        """Note that a target's tick needs a run; return whether it may begin at once, else it is `due` a little later."""
        at = max(self._free, now)
        self._free = at + min(SPREAD, self._interval * JITTER / len(self._targets))
        if at > now:
            self._needed.setdefault(target, at)
        return at <= now

    def due(self, now: float) -> tuple[Job, ...]:
        """Return the jobs that are to be run now, and set the next time of each."""
        jobs: list[Job] = []
        for times in (self._retries, self._needed):
            for target in [target for target, at in times.items() if at <= now]:
                del times[target]
                jobs.append(Job(target, "tick"))
        for target in [target for target, at in self._drifts.items() if at <= now]:
            self._drifts[target] = self._slot(target, now)
            jobs.append(Job(target, "drift"))
        return tuple(jobs)

    def next(self) -> float:
        """Return the time of the next job; infinity when there are no targets."""
        return min((self._tick, *self._needed.values(), *self._drifts.values(), *self._retries.values()))

    def _slot(self, target: str, now: float) -> float:
        interval, phase = self._drift_interval, (self._shares[target] + fraction(self._place)) % 1.0
        wall = now + self._offset
        cycle, at = math.floor(wall / interval) - 2, wall
        while at <= wall:
            moved = JITTER * (2 * fraction(self._place, target, str(cycle)) - 1)
            cycle, at = cycle + 1, (cycle + phase + moved) * interval
        return at - self._offset


def due_between(names: Iterable[str], interval: float, start: float, end: float) -> dict[str, float]:
    """Return those of the names that have a moment in `start` <= t < `end` (seconds since the epoch), each with its last one there."""
    found: dict[str, float] = {}
    for name in names:
        phase = fraction(name)
        count = _moments(phase, interval, end)
        if count > _moments(phase, interval, start):
            found[name] = (count - 1 + phase) * interval
    return found


def _moments(phase: float, interval: float, before: float) -> int:
    return math.ceil(before / interval - phase)


def fraction(*parts: str) -> float:
    """Return a number from 0 to 1 that is always the same for these words."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:8]) / 2**64
