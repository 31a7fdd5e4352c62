"""Wakes the targets that follow one that has just recorded a commit, or become healthy: what they wait for begins to soak then.

Law: what a lost or failed wake would have run is found by the clock. A target that none follows costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from handler.config import promotion_order
from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.health import HealthState
from handler.model.result import Outcome
from handler.model.run_event import HealthChanged, RunEnded


class Followers:
    """A subscriber of events. `wake`: takes a tick of each target that follows the one of an event."""

    hears: ClassVar[tuple[type, ...]] = (RunEnded, HealthChanged)

    def __init__(self, settings: Settings, wake: Callable[[Sequence[Job]], object]) -> None:
        self._followers = promotion_order.followers(settings)
        self._wake = wake

    def hear(self, event: Any) -> None:
        """Wake the followers of the target that an event is about, if there may be something new to follow."""
        names = self._followers.get(_proving(event), ())
        if names:
            self._wake([Job(name, "tick") for name in names])


def _proving(event: RunEnded | HealthChanged) -> str:
    """Return the target that has something new to prove; empty: none has. Looks that find nothing new are ticks and drift runs."""
    if isinstance(event, HealthChanged):
        return event.target if event.after == HealthState.HEALTHY and not event.run else ""  # a run's own end says more
    result, job = event.result, event.job
    new = result.outcome is Outcome.APPLIED or (result.outcome is Outcome.UNCHANGED and job.trigger not in ("tick", "drift"))
    return result.target if new and result.recorded and not job.dry_run else ""
