"""Time as a test sets it. `wait` moves it on; a renewal thread only parks, so that tests renew by hand."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import pytest

from handler.state.lease import Instant, SystemClock

NEVER = 31_536_000
"""Seconds between drift runs, as many as can be set: their slots lie on the wall clock, and a usual one falls into some test, some day."""


@dataclass
class World:
    """The true time, which every machine shares."""

    now: float = 1_800_000_000.0

    def advance(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class FakeClock:
    """One machine's clocks. `slept`: seconds its monotonic clock stood still; `jumped`: how far its wall clock is off."""

    world: World = field(default_factory=World)
    slept: float = 0.0
    jumped: float = 0.0

    def now(self) -> Instant:
        return Instant(self.world.now - self.slept, self.world.now, self.world.now + self.jumped)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if threading.current_thread().name.startswith("renew "):
            return event.wait()
        self.world.advance(seconds)
        return event.is_set()


@pytest.fixture
def lease_clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of every Lease without one of its own: a dead holder's time is over as soon as it is waited for."""
    clock = FakeClock(World(time.time()))
    monkeypatch.setattr(SystemClock, "now", lambda _: clock.now())
    monkeypatch.setattr(SystemClock, "wait", lambda _, event, seconds: clock.wait(event, seconds))
    return clock
