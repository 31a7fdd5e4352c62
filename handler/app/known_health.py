"""How a target's recorded health is known now, by its record, and by the heartbeat of its cluster where that is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from handler.app.record_summaries import health_now
from handler.config.settings import Settings
from handler.model.errors import AnnealError
from handler.model.health import HealthState
from handler.state import soak_update
from handler.state.heartbeat import Heartbeat
from handler.state.record import State, TargetHealth


@dataclass(frozen=True, slots=True)
class HealthNow:
    """Knows the health of records of one place. `clock`: seconds since the epoch."""

    settings: Settings
    heartbeat: Heartbeat
    clock: Callable[[], float]

    def of(self, state: State) -> TargetHealth:
        """Return a record's health as it is known now; the heartbeat is read only where the record alone doesn't vouch for it."""
        now = self.clock()
        known = partial(health_now, state.health, state.attempt, now=now, settings=self.settings)
        alone = known(beat=None)
        if state.attempt or not state.health.state or alone.state != HealthState.UNKNOWN or not self.settings.health_interval:
            return alone
        with contextlib.suppress(AnnealError):  # what can't be read vouches for nothing
            return known(beat=self.heartbeat.read().watched)
        return alone

    def keep(self, before: State | None, after: State) -> State:
        """Return a record with its soaks brought up to date (`StateStore`)."""
        return soak_update.kept(before, after, self.of, self.clock())
