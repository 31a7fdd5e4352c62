"""How a target's recorded health is known now, by its record, and by the heartbeat of its cluster where that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from handler.app.record_summaries import health_now
from handler.config.settings import Settings
from handler.model.errors import AnnealError
from handler.model.health import HealthState
from handler.state import soak_update
from handler.state.heartbeat import INTERVALS, Heartbeat
from handler.state.record import State, TargetHealth
from handler.state.record_format import seconds_of


@dataclass(frozen=True, slots=True)
class HealthNow:
    """Knows the health of records of one place. `clock`: seconds since the epoch."""

    settings: Settings
    heartbeat: Heartbeat
    clock: Callable[[], float]

    def of(self, state: State) -> TargetHealth:
        """Return a record's health as it is known now; the heartbeat is read where a watch should have judged it again by now."""
        now, interval = self.clock(), INTERVALS * self.settings.health_interval
        known = partial(health_now, state.health, state.attempt, now=now, settings=self.settings)
        judged = seconds_of(state.health.judged) if state.health.judged else 0.0
        if not state.attempt and state.health.state and interval and now - judged > interval:
            try:
                return known(beat=self.heartbeat.read().watch(state.target))
            except AnnealError as error:
                seen = f"whether it is watched can't be seen: {error}"
                return replace(state.health, state=str(HealthState.UNKNOWN), since=state.health.judged, worst=(seen,))
        return known(beat=None)

    def keep(self, before: State | None, after: State) -> State:
        """Return a record with its soaks brought up to date (`StateStore`)."""
        return soak_update.kept(before, after, self.of, self.clock())
