"""Records of configured targets as far as their summaries show them: for ticks and overviews of many that follow each other.

Law: one metadata LIST and one look at the heartbeat a cluster, at the first need, also where that fails. A summary that isn't certainly
that target's shows nothing.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from handler.app.connections import Connections
from handler.app.record_summaries import TOOLING, health_now, listed
from handler.config.settings import Settings, Target
from handler.config.target_order import promoters
from handler.engine import summary_shortcuts
from handler.engine.run.other_records import OtherRecord
from handler.engine.run.promotion_claims import Awaited, Claims
from handler.model.errors import AnnealError, ClusterUnavailable, StateInvalid
from handler.model.names import state_name
from handler.state.heartbeat import UNREAD, Heartbeat, Pulse
from handler.state.record import Attempt, State, TargetHealth
from handler.state.record_format import stamp
from handler.state.soak import glimpsed
from handler.state.summary import Summary, home_of

Metadata = Mapping[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Seen:
    states: Metadata
    uid: str
    pulse: Pulse


class SummarisedRecords:
    """What one look at clusters shows of targets' records. Safe to share between threads.

    `listed`: what LISTs of clusters have shown, each with the cluster's uid: they aren't asked for again; None: one can't be listed.
    """

    def __init__(self, settings: Settings, ways: Connections) -> None:
        self._settings = settings
        self._targets = {each.name: each for each in settings.targets}
        self._ways = ways
        self._seen: dict[Hashable, _Seen | AnnealError] = {}
        self.listed: dict[Hashable, tuple[Metadata, str] | None] = {}
        self._lock = threading.Lock()
        self._turns: dict[Hashable, threading.Lock] = defaultdict(threading.Lock)

    @property
    def now(self) -> float:
        """The time by the clock of records, in seconds since the epoch."""
        return self._ways.now()

    def read(self, target: str) -> OtherRecord:
        """Return a target's record, its newest soaks without their reads. Raises AnnealError: it can't be seen, or shows nothing."""
        configured = self._targets.get(target)
        if configured is None:
            raise StateInvalid.of(f"target {target}", "is not configured")
        seen = self._of(configured)
        metadata = seen.states.get(state_name(target))
        if metadata is None:
            return OtherRecord(target)
        settings = self._settings
        summary = summary_shortcuts.own_summary(metadata, settings.state_namespace, target, TOOLING)
        homes = {
            home_of(url, settings.installation, seen.uid) for url in (configured.repository.url, "")
        }  # nowhere: nothing is recorded yet
        if summary is None or summary.home not in homes:
            raise StateInvalid.of(f"target {target}", "the summary of its record can't be read, or is of another repository or cluster")
        state = recorded(summary, configured, seen.uid, settings)
        beat = None if summary.attempt else seen.pulse.watch(target)
        return OtherRecord(target, state, health_now(state.health, state.attempt, beat, self.now, settings))

    def _of(self, target: Target) -> _Seen:
        with self._lock:
            turn = self._turns[target.cluster]
        with turn:
            if target.cluster not in self._seen:
                self._seen[target.cluster] = self._looked(target)
        found = self._seen[target.cluster]
        if isinstance(found, AnnealError):
            raise found
        return found

    def _looked(self, target: Target) -> _Seen | AnnealError:
        settings, objects = self._settings, self._ways.records(target)
        try:
            known = self.listed.get(target.cluster)
            states, uid = known or (listed(objects, settings), self._ways.cluster_uid(target))
            heartbeat = Heartbeat(objects, settings.state_namespace, settings.installation)
            return _Seen(states, uid, heartbeat.read() if settings.health_interval else UNREAD)
        except AnnealError as error:
            return error


def recorded(summary: Summary, target: Target, uid: str, settings: Settings) -> State:
    """Return as much of a record as its summary shows. Raises StateInvalid: its soaks can't be read."""
    try:
        soaks = tuple(map(glimpsed, summary.soaks))
    except (ValueError, OverflowError) as wrong:
        raise StateInvalid.of(f"target {target.name}", f"the summary of its record can't be read: {wrong}") from None
    attempt = Attempt(summary.attempt, "", "", "", stamp(0)) if summary.attempt else None  # since when isn't shown: it proves nothing
    health = TargetHealth(summary.health, summary.health_since, summary.judged)
    return State(
        target.name, settings.installation, uid, target.repository.url, commit=summary.commit, soaks=soaks, attempt=attempt, health=health
    )


def holding(records: SummarisedRecords, settings: Settings, target: Target, commit: str) -> tuple[Awaited, ...] | None:
    """Return what the next commit waits for while a target that follows others certainly stays on this one; None: it may have to move."""
    promoted = target.revision.promoted
    if promoted is None or promoted.is_elsewhere:
        return None
    try:
        read = [records.read(name) for name in promoters(settings, target)]
    except ClusterUnavailable as error:
        return (Awaited("", f"a record can't be read: {error}"),)  # so its run would stay, too
    except AnnealError:
        return None
    return Claims(read, target.repository.keys, promoted.soak, records.now).holding(commit)
