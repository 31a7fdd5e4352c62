"""Why objects of a target aren't healthy, read from their pods and events by the target's own rights; few reads, no log of a container."""

from __future__ import annotations

import math
from collections.abc import Iterable

from handler.cluster.api import Api
from handler.cluster.evidence import Evidence
from handler.engine.health.target_health import SHOWN
from handler.engine.waits.evidence import explain
from handler.health.diagnosis import Finding, Subject
from handler.model.health import HealthState
from handler.model.names import Identity
from handler.state.record_format import seconds_of
from handler.worker.health_watch.watched_target import GRACE, WatchedTarget

EXPLAINED = 3  # targets whose pods and events one turn reads
FIRST_LOOK = 2.0  # seconds after which something unhealthy is worth a look at its pods and events
_SECOND_LOOK = GRACE + 0.5
_APART = 8.0  # seconds between two looks at least, however often what is seen changes
_LONGEST_PAUSE = 600.0  # seconds between two looks at why something isn't healthy that has been so for long


def due(watched: WatchedTarget, last: float, interval: float, now: float) -> float:
    """Return when a target's reasons are to be read: soon after each change, once that has stood, then in pauses that double.

    Of one that is well only while a note of it is new. `last`: when they were read (monotonic, as `now`); `interval`: the least pause.
    """
    begun = watched.begun(now)
    soon = [at + after for at in begun for after in (FIRST_LOOK, _SECOND_LOOK)]
    pause = max(interval, min(last - watched.since, _LONGEST_PAUSE))
    later = [last + pause] if watched.since and last > watched.since else []
    return min((max(each, last + _APART) for each in (*soon, *later) if each > last), default=math.inf)


def reasons(api: Api, watched: WatchedTarget, now: float, clock: float) -> dict[Identity, Finding]:
    """Read, as the target's identity, what explains how it does. `now`: monotonic; `clock`: the API server's, seconds since the epoch."""
    wanted = watched.wants(now)[:SHOWN]
    return explain(Evidence(api), wanted, _since(watched, wanted, now, clock), clock) if wanted else {}


def _since(watched: WatchedTarget, wanted: Iterable[Subject], now: float, clock: float) -> float:
    """Return since when what is seen of these objects may be its cause: since they aren't well, by the record or by this process."""
    health, stood = watched.health, max(watched.stood(each.identity, now) for each in wanted)
    recorded = seconds_of(health.since) if health.since and health.state != HealthState.HEALTHY else clock
    return min(recorded, clock - stood)
