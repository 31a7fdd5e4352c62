"""Why objects of a target aren't healthy, read from their pods and events by the target's own rights; few reads, no log of a container."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.evidence import Evidence
from handler.model.health import Health
from handler.model.names import Identity
from handler.rollout.diagnosis import STILL, Finding, Live, Subject, diagnose
from handler.run.waits.diagnosing import seen
from handler.run.waits.explaining import pods_of
from handler.serve.health.watched import Watched
from handler.state.rules import seconds_of


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reads about one target. `clock`: the API server's time, in seconds since the epoch."""

    api: Api
    discovery: Discovery
    watched: Watched
    clock: float

    def of(self, wanted: Iterable[tuple[Identity, Health]], now: float) -> dict[Identity, Finding]:
        """Return what explains these objects. `now`: monotonic seconds."""
        evidence, spaces = Evidence(self.api), defaultdict[str, list[Subject]](list)
        for identity, found in wanted:
            spaces[identity.namespace].append(self._subject(evidence, identity, found, now))
        explained: dict[Identity, Finding] = {}
        for namespace, subjects in spaces.items():
            sight = seen(evidence, namespace, subjects, self._since(subjects, now), self.clock)
            explained |= {each.identity: diagnose(each, sight) for each in subjects}
        return {} if evidence.broken else explained

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
