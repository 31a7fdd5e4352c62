"""Wakes the targets that wait for one that has just recorded, or become healthy: by a tick of their own, long before their next.

    a run ended as its record says, and its target is healthy     those of its dependants whose summaries say that they wait
    a watch found a target healthy again                          the same

Law: who waits is read from one metadata LIST a cluster, so any process may wake what another one has let wait; a target that nothing
depends on costs nothing. What a wake that fails or is lost would have run is found by the clock.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from handler.app import record_summaries
from handler.app.record_summaries import Readable
from handler.config.settings import Cluster, Settings, Target
from handler.model.errors import AnnealError
from handler.model.event import Job
from handler.model.health import HealthState
from handler.model.result import IN_SYNC
from handler.model.run_event import HealthChanged, RunEnded

_LOG = logging.getLogger("anneal.run")


class Dependants:
    """A subscriber of events. `records`: the way to a target's cluster; `wake`: takes ticks of those that wait. Both raise AnnealError."""

    hears: ClassVar[tuple[type, ...]] = (RunEnded, HealthChanged)

    def __init__(self, settings: Settings, records: Callable[[Target], Readable], wake: Callable[[Sequence[Job]], object]) -> None:
        self._settings = settings
        self._records = records
        self._wake = wake
        self._dependants: dict[str, list[Target]] = defaultdict(list)
        for target in settings.targets:
            for name in target.depends_on:
                self._dependants[name].append(target)

    def hear(self, event: Any) -> None:
        """Wake what waits for the target that an event is about, if it may be ready now."""
        name = _readied(event)
        clusters: dict[Cluster, list[Target]] = defaultdict(list)
        for target in self._dependants.get(name, ()):
            clusters[target.cluster].append(target)
        for targets in clusters.values():
            try:
                jobs = [Job(each.name, "tick") for each in self._waiting(targets)]
                if jobs:
                    self._wake(jobs)
                    _LOG.info("wakes", extra={"fields": {"after": name, "targets": [job.target for job in jobs]}})
            except AnnealError as error:
                fields = {"after": name, "targets": len(targets), "why": str(error), "code": error.code}
                _LOG.warning("targets that may wait aren't woken; their ticks look again", extra={"fields": fields})
            except Exception:  # noqa: BLE001 - no run that has ended is to fail by what follows it
                _LOG.exception("targets that may wait aren't woken", extra={"fields": {"after": name}})

    def _waiting(self, targets: Sequence[Target]) -> list[Target]:
        found = record_summaries.listed(self._records(targets[0]), self._settings)
        summaries = ((each, record_summaries.of_target(found, self._settings, each.name)) for each in targets)
        return [each for each, summary in summaries if summary and summary.awaits]


def _readied(event: RunEnded | HealthChanged) -> str:
    """Return the target that an event says to be in sync and healthy; empty: it says that of none."""
    if isinstance(event, HealthChanged):
        return event.target if event.after == HealthState.HEALTHY and not event.run else ""  # a run's own end says more
    result = event.result
    healthy = result.standing is not None and result.standing.health == HealthState.HEALTHY
    return result.target if result.outcome in IN_SYNC and result.recorded and healthy and not event.job.dry_run else ""
