"""Exponential back-off: how long to pause after a failure. A pure value; the caller counts its failures."""

from __future__ import annotations

from dataclasses import dataclass

_STEPS = 64  # failures after which no pause grows any more: a power of a larger number is no float


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses in seconds: `first` after the first failure, `factor` times as long after each further one, `longest` at most."""

    first: float
    longest: float
    factor: float = 2

    def after(self, failures: int) -> float:
        """Return the pause after so many failures in a row; fewer than one count as one."""
        return min(self.first * self.factor ** min(max(failures, 1) - 1, _STEPS), self.longest)


TRANSIENT = Backoff(15, 300)  # the pace of what ends by itself: of a target's next tries, and of a queue's messages
