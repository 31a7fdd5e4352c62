"""Watches the health of a configuration's targets while a worker lives: one thread a cluster, which judges what its WATCHes report.

    the states' metadata     which records there are, and whether a run is open     a WATCH, by our own identity
    a record that moved      what is declared, which health is recorded             one GET
    members                  each judged with each change of it                     a WATCH a kind and identity (`scopes`)
    pods and events          why something isn't healthy                            few reads, bounded

That a cluster is watched is said by the worker's heartbeat (`handler.worker.heartbeat_renewal`), as often as this calls `vouch`.

Law: it only looks. Another verdict is written by a swap without the Lease, never while a run is open; a 409 drops it, and no run is asked
for. A cluster that doesn't answer delays its own targets alone.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from handler.cluster.watch import Scope
from handler.config.settings import Settings, Target
from handler.engine.health.target_health import judged, patience_of
from handler.model.errors import AnnealError, Busy, ClusterUnavailable, Moved
from handler.model.health import HealthState
from handler.model.names import PART_OF, GroupKind, Identity, Resource, state_name
from handler.model.run_event import Announce, HealthChanged, HealthFound, unheard
from handler.plan.inventory import Membership, TargetMarks
from handler.state.configmap import INSTALLATION
from handler.state.heartbeat import INTERVALS
from handler.state.known_summaries import summary_in
from handler.state.record import TargetHealth
from handler.state.record_format import stamp
from handler.worker.health_watch.arrivals import UNREAD, Arrivals
from handler.worker.health_watch.reasons import EXPLAINED, due, reasons
from handler.worker.health_watch.scopes import Scopes, WatchConnections, account_of, holds
from handler.worker.health_watch.watched_target import WatchedTarget

_LOG = logging.getLogger("anneal.health")
_TURN = 0.5  # seconds between two turns of a cluster's thread
_DELAY = 5.0  # seconds that a worker has for what its start asks of it
_ANEW = 5.0  # seconds between two LISTs that newcomers ask for
_RECORDS = 20  # records that one turn reads
_READING = 3.0  # seconds after which one turn reads no further target's reasons
_WORDINGS = 3
"""Times that a verdict is written in other words in one interval: what is missing, why, and what an inference adds."""
_OUTAGE = 5.0  # seconds until a record is tried again, where its cluster didn't answer
_STATES = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
Vouch = Callable[[Target], None]  # called at each pass: the health of all targets on this one's cluster is watched


class HealthWatch:
    """The health of all targets of one configuration; none is watched where `healthInterval` is 0.

    `vouch`: called at each pass; `announce`: takes what a pass found, and the changes of recorded health.
    """

    def __init__(self, settings: Settings, ways: WatchConnections, vouch: Vouch, announce: Announce = unheard) -> None:
        grouped: dict[Hashable, list[Target]] = defaultdict(list)
        for target in settings.targets if settings.health_interval > 0 else ():
            grouped[target.cluster].append(target)
        self._stop = threading.Event()
        self.clusters = [ClusterWatch(settings, ways, targets, vouch, announce, self._stop) for targets in grouped.values()]

    def start(self) -> None:
        """Begin to watch."""
        for cluster in self.clusters:
            threading.Thread(target=cluster.run, name="health", daemon=True).start()

    def stop(self) -> None:
        """End it; nothing is waited for."""
        self._stop.set()

    def add(self, target: Target) -> None:
        """Watch an instance, too, or its object as it is by now; from any thread."""
        for cluster in self.clusters:
            if cluster.targets[0].cluster == target.cluster:
                cluster.arrivals.add(target)

    def remove(self, name: str) -> None:
        """Watch an instance no longer; from any thread."""
        for cluster in self.clusters:
            cluster.arrivals.remove(name)


@dataclass(slots=True)
class ClusterWatch:
    """The targets of one cluster; see `HealthWatch`."""

    settings: Settings
    ways: WatchConnections
    targets: list[Target]
    vouch: Vouch
    announce: Announce
    stop: threading.Event
    scopes: Scopes = field(default_factory=Scopes)
    watched: dict[str, WatchedTarget] = field(default_factory=dict)
    members: dict[str, WatchedTarget] = field(default_factory=dict)
    owners: dict[tuple[str, Identity], WatchedTarget] = field(default_factory=dict)
    states: Scope = field(init=False)
    judging: bool = False
    passed: float = -math.inf
    lapsed: float = math.inf
    resolved: float = -math.inf
    anew: float = -math.inf
    unserved: frozenset[GroupKind] = frozenset()
    cut: bool = False
    worded: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """When each target's verdict was last written in other words."""
    found: dict[str, HealthState] = field(default_factory=dict)
    """How this turn has found targets; announced as one event."""
    refused: dict[str, float] = field(default_factory=dict)
    explained: dict[str, float] = field(default_factory=dict)
    """When each target's reasons were read last."""
    arrivals: Arrivals = field(default_factory=Arrivals)

    def __post_init__(self) -> None:
        """Know the targets by the names of their states, and by the label of their members; a template has no members."""
        for target in self.targets:
            if not target.is_template:
                self._know(target)
        selector = f"{INSTALLATION}={self.settings.installation}"
        self.states = Scope(_STATES, self.settings.state_namespace, partial=True, selector=selector)

    def _know(self, target: Target) -> WatchedTarget:
        marks = TargetMarks.of(target.name, self.settings.state_namespace)
        known = WatchedTarget(target, Membership(marks), self._clock, self.ways.custom_health(target))
        self.watched[state_name(target.name)] = self.members[marks.applyset] = known
        return known

    def _change_targets(self) -> bool:
        """Take what has come and gone; return whether anything has gone."""
        gone: set[str] = set()
        for name, target in self.arrivals.taken():
            if target is None:
                gone |= {name} if state_name(name) in self.watched else set()
            elif state_name(name) not in self.watched:
                self._know(target).seen = UNREAD
                self.arrivals.joined.add(name)
        for name in gone:
            known = self.watched.pop(state_name(name))
            self.members.pop(known.ours.marks.applyset, None)
            self.arrivals.joined.discard(name)
            for kept in (self.worded, self.refused, self.explained, self.found):
                kept.pop(name, None)
        if gone:
            self.owners = {key: owner for key, owner in self.owners.items() if owner.target.name not in gone}
        return bool(gone)

    def _look_anew(self, now: float) -> None:
        """LIST again, not too often, where those that have come may have members that were seen before; until then they aren't judged."""
        keys, waits = self.scopes.keys, now - self.anew < min(_ANEW, self.settings.health_interval)
        read = {name for name in self.arrivals.joined if not self.watched[state_name(name)].is_stale}
        read = {name for name in read if not keys.get(name) or (not waits and self.scopes.are_whole(name))}
        if anew := {key for name in read for key in keys.get(name, ())}:
            self.anew = now
            self.scopes.restart(anew, self.owners)
        self.arrivals.joined -= read

    def _clock(self) -> float:
        try:
            return self.ways.api(self.targets[0], impersonated=False).server_time()
        except AnnealError:
            return time.time()

    def run(self) -> None:
        """Watch until `stop`; what goes wrong costs a pass. What a start has to do comes first."""
        self.stop.wait(min(self.settings.health_interval / 4, _DELAY))
        self.lapsed = time.monotonic() + INTERVALS * self.settings.health_interval
        while not self.stop.is_set():
            try:
                if not self.scopes.followed:
                    self.scopes.keep(("", "", "", ""), self.ways.api(self.targets[0], impersonated=False), self.states)
                self._turn()
            except AnnealError as error:
                _LOG.warning("health can't be watched", extra={"fields": {"why": str(error), "code": error.code}})
                self._rest()
            except Exception:  # noqa: BLE001 - a mistake of ours may not end the watch
                _LOG.exception("a pass of health failed")
                self._rest()
        self.scopes.close()

    def _rest(self) -> None:
        """Wait after a turn that failed; what no turn has judged for too long isn't known."""
        for known in self.watched.values() if time.monotonic() >= self.lapsed else ():
            self.found[known.target.name] = HealthState.UNKNOWN
        self._announce_found()
        self.stop.wait(self.settings.health_interval)

    def _announce_found(self) -> None:
        if self.found:
            self.announce(HealthFound(self.found))
            self.found = {}

    # --- one turn
    def _turn(self) -> None:
        self.cut = False
        gone = self._change_targets()
        self.scopes.go_on(time.monotonic(), self.settings.health_interval)
        self._take(time.monotonic() + _TURN)
        now = time.monotonic()
        passes = now - self.passed >= self.settings.health_interval
        moved = [each for each in self.watched.values() if each.is_stale or (passes and each.trouble)]
        stale = [each for each in moved if now >= self.refused.get(each.target.name, 0.0)]
        for known in stale[:_RECORDS]:
            if not self.cut:
                self._read(known, now)
        if stale or passes or gone:
            self._adjust(now)
        for known in self.watched.values():
            known.beat(now)
            if passes or known.moved or known.since:
                self._judge(known, now, passes=passes)
        self._announce_found()
        self._explain(now)
        if passes:
            self.passed, self.lapsed = now, now + INTERVALS * self.settings.health_interval
        if passes or not self.judging:
            self._beat(now)
        self._look_anew(now)  # last: what a LIST makes unknown for a moment was judged before, however many come

    def _beat(self, now: float) -> None:
        """Say that health is watched: once each target was judged, and as long as records can be read."""
        since = now - INTERVALS * self.settings.health_interval
        if not self.scopes.stood(self.states, since):
            return
        self.judging = self.judging or all(
            not each.is_stale
            and (not each.kinds or self.scopes.are_whole(each.target.name) or self.scopes.trouble(each.target.name, since))
            for each in self.watched.values()
        )
        if self.judging:
            self.vouch(self.targets[0])

    def _take(self, end: float) -> None:
        """Take lines until a moment (monotonic seconds), or as many as there are by then."""
        while not self.stop.is_set():
            try:
                scope, line = self.scopes.lines.get(timeout=max(end - time.monotonic(), 0.0))
            except queue.Empty:
                return
            if line is None:
                self.scopes.stands(scope)
            elif isinstance(line, BaseException):
                self.scopes.ended(scope, line)
            elif scope is self.states:
                self._record_moved(*line)
            elif (account := self.scopes.account(scope)) is not None:
                self._seen(account, *line)
            if time.monotonic() >= end:
                return

    def _record_moved(self, identity: Identity, metadata: dict[str, Any] | None) -> None:
        known = self.watched.get(identity.name)
        if known is None:
            return
        if metadata is None:
            known.read(None, "")
            if known.target.instance is None:  # that of an instance that has ended goes, too
                self.found[known.target.name] = HealthState.UNKNOWN
            return
        meta = metadata["metadata"]
        summary = summary_in(meta)
        busy = summary is not None and bool(summary.attempt or summary.former or summary.renamed_to)
        known.seen, known.busy = str(meta.get("resourceVersion") or ""), busy

    def _seen(self, account: str, identity: Identity, live: dict[str, Any] | None) -> None:
        """Judge a member by what its own target's account saw; what is gone, or another's by now, isn't its old target's."""
        label = str((live["metadata"].get("labels") or {}).get(PART_OF)) if live else ""
        owner, before = self.members.get(label), self.owners.pop((account, identity), None)
        if before is not None and before is not owner:
            before.see(identity, None)
        if owner is not None and account_of(owner) == account:
            self.owners[account, identity] = owner
            owner.see(identity, live)

    def _read(self, known: WatchedTarget, now: float) -> None:
        """Read a record that has moved; after an outage again, and what can't be read for another reason with each pass."""
        version = known.seen
        try:
            stored = self.ways.brief_store(known.target).read()
            known.read(stored.state, stored.resource_version)
        except ClusterUnavailable:  # it stays stale
            self.cut, known.behind = True, known.behind or now
            self.refused[known.target.name] = now + _OUTAGE
        except AnnealError as error:
            known.read(None, version, error)

    def _adjust(self, now: float) -> None:
        """Follow what the records declare; a kind that isn't known is asked for at once, then again once a pass."""
        known = [each for each in self.watched.values() if each.kinds or each.target.name in self.scopes.keys]
        discovery = self.ways.discovery(self.targets[0])
        unknown = frozenset(kind for each in known for kind in each.kinds if discovery.preferred(kind) is None)
        if unknown - self.unserved or (unknown and now - self.resolved >= self.settings.health_interval):
            self.resolved = now
            discovery.refresh()
        self.unserved = unknown
        ended = self.scopes.adjust((each, self.ways.api(each.target), self.ways.discovery(each.target)) for each in known)
        for account, identity in {seen for key in ended for seen in self.owners if holds(key, *seen)}:
            self.owners.pop((account, identity)).see(identity, None)  # what isn't followed any more isn't known

    # --- verdicts
    def _judge(self, known: WatchedTarget, now: float, *, passes: bool) -> None:
        """Judge a target as a whole, and write another verdict; the same in other words so many times an interval."""
        name, known.moved = known.target.name, False
        if known.is_stale or not known.version:
            if passes and known.behind and now - known.behind >= INTERVALS * self.settings.health_interval:
                self.found[name] = HealthState.UNKNOWN
            return
        found = self._health(known, now)
        writes = found is not known.health and not known.busy and not known.trouble and now >= self.refused.get(name, 0.0)
        if writes and (found.state != known.health.state or self._may_reword(name, now)):
            self._write(known, now)
        if passes and found.state:  # as it was found, though that can't be recorded
            self.found[name] = HealthState(found.state)

    def _may_reword(self, name: str, now: float) -> bool:
        before = self.worded.get(name, ())[-_WORDINGS:]
        if len(before) == _WORDINGS and now - before[0] < self.settings.health_interval:
            return False
        self.worded[name] = (*before, now)
        return True

    def _health(self, known: WatchedTarget, now: float) -> TargetHealth:
        """Return how a target does by what was seen."""
        trouble = known.trouble or self.scopes.trouble(known.target.name, now - INTERVALS * self.settings.health_interval)
        if trouble is not None:
            return self._unknown(known, trouble)
        if known.kinds and (known.target.name in self.arrivals.joined or not self.scopes.are_whole(known.target.name)):
            known.moved = True  # judged as soon as its kinds are LISTed
            return known.health
        if not (known.commit or known.declared):
            return known.health
        look, settling = known.look(now), known.settling(now)
        if not self.scopes.show(known.target.name, known.applied) or known.lags(look, now):
            return known.health
        if settling and look.without(settling).state() is not HealthState.DEGRADED:
            return known.health
        return judged(known.health, look, self._clock(), patience_of(known.target), known.health.closed)

    def _unknown(self, known: WatchedTarget, trouble: AnnealError) -> TargetHealth:
        """Say that a target can't be looked at."""
        seen, now = f"can't be judged: {trouble}", stamp(self._clock())
        before = known.health
        if (before.state, before.worst) == (HealthState.UNKNOWN, (seen,)):
            return before
        since = before.since if before.state == HealthState.UNKNOWN else now
        return replace(before, state=str(HealthState.UNKNOWN), since=since, judged=now, worst=(seen,))

    def _write(self, known: WatchedTarget, now: float) -> None:
        """Record another verdict, unless a run is open, or the record has moved: then it is judged by that, next turn."""
        before = known.health.state
        if self.cut:
            return
        try:
            store = self.ways.brief_store(known.target)
            stored = store.read()
            if stored.resource_version != known.version or stored.state is None:  # what it declares by now may not be followed yet
                known.seen = stored.resource_version
                return
            stored = store.swap(stored, replace(stored.state, health=self._health(known, now)))
        except (Moved, Busy):
            return
        except AnnealError as error:
            self.cut = isinstance(error, ClusterUnavailable)  # none of the others can be written now either
            fields = {"target": known.target.name, "why": str(error), "code": error.code}
            _LOG.warning("health can't be recorded", extra={"fields": fields})
            self.refused[known.target.name] = now + (_OUTAGE if self.cut else self.settings.health_interval)
            return
        self.refused.pop(known.target.name, None)
        known.read(stored.state, stored.resource_version)
        if known.health.state != before:
            self.announce(HealthChanged(known.target.name, before, known.health.state, known.health.worst))

    # --- reasons
    def _explain(self, now: float) -> None:
        interval, last, end = self.settings.health_interval, defaultdict(float, self.explained), time.monotonic() + _READING
        noted = [each for each in self.watched.values() if not (each.is_quiet or each.busy)]
        wanting = [each for each in noted if now >= due(each, last[each.target.name], interval, now)]
        for known in sorted(wanting, key=lambda each: last[each.target.name])[:EXPLAINED]:
            if time.monotonic() < end:
                self.explained[known.target.name] = now
                known.explain(reasons(self.ways.api(known.target), known, now, self._clock()))
