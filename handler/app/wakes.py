"""Wakes the targets that wait for one that has just recorded, or become healthy: by a tick of their own, long before their next.

    it is in sync and healthy     those of its dependants whose summaries say that they wait
    it has something to prove     all that follow it: what they wait for begins to soak then
    a watch found it healthy      both

Law: who waits is read from one metadata LIST a cluster, so any process may wake what another one has let wait; a target that nothing
waits for costs nothing. What a wake that fails or is lost would have run is found by the clock.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar

from handler.app import record_summaries
from handler.app.record_summaries import Readable
from handler.config import target_order
from handler.config.settings import Cluster, Settings, Target
from handler.model.errors import AnnealError
from handler.model.event import Job
from handler.model.health import HealthState
from handler.model.result import IN_SYNC, Outcome
from handler.model.run_event import HealthChanged, RunEnded

_LOG = logging.getLogger("anneal.run")


class Wakes:
    """A subscriber of events. `records`: the way to a target's cluster; `wake`: takes ticks of those that wait. Both raise AnnealError."""

    hears: ClassVar[tuple[type, ...]] = (RunEnded, HealthChanged)

    def __init__(self, settings: Settings, records: Callable[[Target], Readable], wake: Callable[[Sequence[Job]], object]) -> None:
        self._settings = settings
        self._records = records
        self._wake = wake
        self._followers = target_order.followers(settings)
        self._dependants: dict[str, dict[Cluster, list[Target]]] = defaultdict(lambda: defaultdict(list))
        for target in settings.targets:
            for name in target.depends_on:
                self._dependants[name][target.cluster].append(target)

    def hear(self, event: Any) -> None:
        """Wake what waits for the target that an event is about, if there may be something to do for it now."""
        name = event.target if isinstance(event, HealthChanged) else event.result.target
        if _proves(event) and (followers := self._followers.get(name)):
            self._woken(name, lambda: followers)
        if _is_ready(event):
            for targets in self._dependants.get(name, {}).values():
                self._woken(name, partial(self._waiting, targets))

    def _woken(self, after: str, waiting: Callable[[], Sequence[str]]) -> None:
        try:
            if names := waiting():
                self._wake([Job(name, "tick") for name in names])
                _LOG.info("wakes", extra={"fields": {"after": after, "targets": names}})
        except AnnealError as error:
            fields = {"after": after, "why": str(error), "code": error.code}
            _LOG.warning("targets that may wait aren't woken; their ticks look again", extra={"fields": fields})
        except Exception:  # noqa: BLE001 - no run that has ended is to fail by what follows it
            _LOG.exception("targets that may wait aren't woken", extra={"fields": {"after": after}})

    def _waiting(self, targets: Sequence[Target]) -> list[str]:
        found = record_summaries.listed(self._records(targets[0]), self._settings)
        summaries = ((each.name, record_summaries.of_target(found, self._settings, each.name)) for each in targets)
        return [name for name, summary in summaries if summary and summary.awaits]


def _is_ready(event: RunEnded | HealthChanged) -> bool:
    """Whether an event says that its target is in sync and healthy."""
    if isinstance(event, HealthChanged):
        return _is_seen_healthy(event)
    standing = event.result.standing
    return _is_recorded(event, IN_SYNC) and standing is not None and standing.health == HealthState.HEALTHY


def _proves(event: RunEnded | HealthChanged) -> bool:
    """Whether a target has something new to prove. A tick or drift run that wrote nothing has if it recorded another commit."""
    if isinstance(event, HealthChanged):
        return _is_seen_healthy(event)
    looks = event.job.trigger in ("tick", "drift") and not event.result.moved
    return _is_recorded(event, (Outcome.APPLIED,) if looks else (Outcome.APPLIED, Outcome.UNCHANGED))


def _is_seen_healthy(event: HealthChanged) -> bool:
    return event.after == HealthState.HEALTHY and not event.run  # a run's own end says more


def _is_recorded(event: RunEnded, outcomes: Iterable[Outcome]) -> bool:
    return event.result.outcome in outcomes and event.result.recorded and not event.job.dry_run
