"""Why objects of a target aren't healthy, read from their pods and events by the target's own rights; few reads, no log of a container."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.evidence import Evidence
from handler.model.health import Health
from handler.model.names import Identity
from handler.rollout.diagnosis import STILL, Finding, Live, Subject
from handler.rollout.kinds.pods import pods_of
from handler.run.waits.explaining import explain
from handler.serve.health.watched import GRACE, Watched
from handler.state.rules import seconds_of

EXPLAINED = 3
"""Objects of a target, and targets of one turn, whose pods and events are read."""
FIRST_LOOK = 2.0
"""Seconds after which something unhealthy is worth a look at its pods and events."""
_SECOND_LOOK = GRACE + 0.5
_LONGEST_PAUSE = 600.0
"""Seconds between two looks at why something isn't healthy that has been so for long."""


def due(watched: Watched, last: float, interval: float, now: float) -> float:
    """Return when a target's reasons are to be read: soon, once its verdict has stood, then in pauses that double.

    Args:
        watched: the target; of one that is well reasons are read only while a note of it is new.
        last: when that was done last, in monotonic seconds as `now`.
        interval: seconds of one pause at least.
        now: for what is new.

    """
    begun = watched.begun(now)
    if not begun:
        return math.inf
    pause = max(interval, min(last - begun, _LONGEST_PAUSE))
    moments = [begun + FIRST_LOOK, begun + _SECOND_LOOK, *([last + pause] if watched.since and last > begun else [])]
    return min((each for each in moments if each > last), default=math.inf)


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reads about one target. `clock`: the API server's time, in seconds since the epoch."""

    api: Api
    discovery: Discovery
    watched: Watched
    clock: float

    def of(self, wanted: Iterable[tuple[Identity, Health]], now: float) -> dict[Identity, Finding]:
        """Return what explains these objects. `now`: monotonic seconds."""
        evidence = Evidence(self.api)
        subjects = [self._subject(evidence, identity, found, now) for identity, found in wanted]
        return explain(evidence, subjects, self._since(subjects, now), self.clock)

    def _subject(self, evidence: Evidence, identity: Identity, found: Health, now: float) -> Subject:
        resource = self.discovery.preferred(identity.group_kind)
        live = (evidence.live(resource, identity) if resource else None) or {}
        still = not found.healthy and self.watched.stood(identity, now) >= STILL
        return Subject(identity, Live.of(live), found.message, still, pods_of(identity, live))

    def _since(self, subjects: Iterable[Subject], now: float) -> float:
        """Return since when what is seen of these objects may be its cause: since they aren't well, by the record or by this process."""
        health, stood = self.watched.health, max((self.watched.stood(each.identity, now) for each in subjects), default=0.0)
        recorded = seconds_of(health.since) if health.since and health.state != "healthy" else self.clock
        return min(recorded, self.clock - stood)
