"""Three clocks at once. A Lease must not outlive a pause, and no single clock counts every kind of pause."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment on three clocks, in seconds. Monotonic stands still while a machine sleeps; wall may be set by anyone."""

    monotonic: float
    boot: float
    wall: float

    def since(self, earlier: Instant) -> float:
        """Return the longest time that can have passed: what a holder must assume of its own Lease."""
        return max(self.monotonic - earlier.monotonic, self.boot - earlier.boot, self.wall - earlier.wall)


class Clock(Protocol):
    """What tells the time and waits."""

    def now(self) -> Instant:
        """Read all clocks."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set (True) or the time is over (False)."""


class SystemClock:
    """The machine's clocks. Where CLOCK_BOOTTIME is missing (macOS), monotonic stands in for it."""

    _boot = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now(self) -> Instant:
        """Read all clocks."""
        return Instant(time.monotonic(), time.clock_gettime(self._boot), time.time())

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set (True) or the time is over (False)."""
        return event.wait(seconds)
