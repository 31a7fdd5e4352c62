"""What a worker knows of one target's health: what its record names, and how each of its members did when it changed last.

Law: verdicts are kept, not objects; of one that only time may make healthy, what it is judged by. What isn't declared says nothing. What
was healthy and no longer is, though it was left unchanged, doesn't come forward by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handler.config.settings import Target
from handler.engine.health.custom_health import CustomHealth
from handler.engine.health.target_health import MISSING, HealthLook, expressed, judged_absent, judged_live, removed_jobs
from handler.health.diagnosis import STILL, STOOD, Finding, Live, Subject
from handler.health.kinds.pods import pods_of
from handler.health.kstatus import judge, remnant
from handler.model.errors import AnnealError
from handler.model.health import Health, Status
from handler.model.names import GroupKind, Identity
from handler.plan.inventory import Membership, is_member
from handler.state.record import State, TargetHealth

GRACE = 15.0
"""Seconds for which an object may have lost its health before that is said: a pod that moves to another Node takes a moment."""
_PASSING = {STOOD, "Unhealthy", "FailedScheduling", "Unschedulable"}
"""Causes that come and go where all is well: a pod whose probe fails may only be starting, and a Node may be on its way for one without."""
_UNASKED = Health(Status.UNKNOWN, "its healthCheckExprs haven't been evaluated yet")
Object = dict[str, Any]


@dataclass(slots=True)
class WatchedTarget:
    """One target.

    `clock`: by which live objects are stamped, in seconds since the epoch; `custom`: the operator's expressions. `seen`: the newest version
    of its record, `busy`: a run or takeover is open in it; `version`: the one that was read, `trouble`: why it couldn't be; `behind`: since
    when an outage keeps it from being read. `moved`: something is judged otherwise than before. `since`: when it last became unhealthy,
    `applied`: when the record of another run was first read (monotonic seconds). `evidence`, `hard`: why objects aren't healthy, and which
    of them have a cause that doesn't go by itself.
    """

    target: Target
    ours: Membership
    clock: Callable[[], float]
    custom: CustomHealth
    seen: str = ""
    version: str = ""
    busy: bool = False
    moved: bool = True
    since: float = 0.0
    applied: float = 0.0
    trouble: AnnealError | None = None
    behind: float = 0.0
    health: TargetHealth = field(default_factory=TargetHealth)
    commit: str = ""
    declared: frozenset[Identity] = frozenset()
    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    evidence: dict[Identity, str] = field(default_factory=dict)
    hard: set[Identity] = field(default_factory=set)
    _run: str = ""
    _live: frozenset[Identity] = frozenset()
    _removed: frozenset[Identity] = frozenset()
    _absent: frozenset[Identity] = frozenset()
    _verdicts: dict[Identity, Health] = field(default_factory=dict)
    _versions: dict[Identity, tuple[str, int]] = field(default_factory=dict)
    _well: set[Identity] = field(default_factory=set)
    _lost: dict[Identity, float] = field(default_factory=dict)
    _settling: dict[Identity, tuple[float, Object]] = field(default_factory=dict)
    _living: dict[Identity, tuple[Live, str]] = field(default_factory=dict)
    """Of what may want a reason what is kept of it, and the selector of its pods."""
    _changed: dict[Identity, float] = field(default_factory=dict)
    _expressed: dict[Identity, Object] = field(default_factory=dict)
    _asks: float = 0.0

    @property
    def is_stale(self) -> bool:
        """Whether its record has moved since it was read, and no run is open in it."""
        return self.seen != self.version and not self.busy

    def read(self, state: State | None, version: str, trouble: AnnealError | None = None) -> None:
        """Take what the record says now; None: there is none, or (`trouble`) it says nothing that can be read."""
        self.seen, self.version, self.trouble, self.behind = version, version, trouble, 0.0
        self.busy, self.moved = state is not None and bool(state.attempt or state.former or state.renamed_to), True
        if state is None or state.commit != self.commit:
            self.since = 0.0
        run = state.history[0].id if state and state.history else ""
        if run != self._run:
            self._run, self.applied = run, time.monotonic()
        self.health = state.health if state else TargetHealth()
        self.commit, self.declared = (state.commit, frozenset(state.declared)) if state else ("", frozenset())
        self._live = judged_live(state, self.custom) if state else frozenset()
        self._absent = judged_absent(state, self.custom) if state else frozenset()
        self._removed = removed_jobs(state, self.custom) if state else frozenset()
        self.kinds = frozenset(each.group_kind for each in self._live)
        self.namespaces = frozenset(each.namespace for each in self._live if each.namespace)

    def see(self, identity: Identity, live: Object | None) -> None:
        """Judge a member anew; None: it isn't there any more, or no member."""
        if live is None or not is_member(live, identity, self.ours):
            self._drop(identity)
        elif self.custom.covers(identity.group_kind):
            self._expressed[identity] = live
        else:
            self._judge(identity, live)
            self._note(identity, live)

    def _drop(self, identity: Identity) -> None:
        self.moved = self._verdicts.pop(identity, None) is not None or self.moved
        for known in (self._settling, self._living, self._changed, self._expressed, self._versions):
            known.pop(identity, None)
        self._forget(identity)

    def _judge(self, identity: Identity, live: Object, found: Health | None = None) -> None:
        found = found or judge(live, 0, self.clock())
        self._keep(identity, found, (str(live["metadata"].get("uid")), int(live["metadata"].get("generation") or 0)))
        if found.again:
            self._settling[identity] = (time.monotonic() + found.again, remnant(live))

    def _note(self, identity: Identity, live: Object) -> None:
        """Keep what finds the reasons of what isn't well, or may not be in a while."""
        found = self._verdicts[identity]
        if found.healthy and not found.message and not found.again:
            self._living.pop(identity, None)
        else:
            self._living[identity] = Live.of(live), pods_of(identity, live)

    def _keep(self, identity: Identity, found: Health, version: tuple[str, int]) -> None:
        if self._versions.get(identity) != version:  # what was seen of it as it was declared before says nothing of it now
            self._versions[identity] = version
            self._forget(identity)
            if identity in self._changed:
                self._changed[identity] = time.monotonic()
        before = self._verdicts.get(identity)
        if before is None or (before.status, before.message) != (found.status, found.message):
            self.moved = True
            self._stand(identity, found)
        if before is not None and before.healthy and not found.healthy:  # what was noted of it is no reason for that
            self.hard.discard(identity)
        self._verdicts[identity] = found
        self._settling.pop(identity, None)
        if found.healthy:
            self._well.add(identity)
            self._lost.pop(identity, None)
        elif identity in self._well:
            self._lost.setdefault(identity, time.monotonic())

    def _forget(self, identity: Identity) -> None:
        self._well.discard(identity)
        self.hard.discard(identity)
        self._lost.pop(identity, None)
        self.evidence.pop(identity, None)

    def _stand(self, identity: Identity, found: Health) -> None:
        """Note since when a verdict stands that wants a reason; what is well has none of what it had before."""
        if found.healthy:
            self.evidence.pop(identity, None)
            self.hard.discard(identity)
        if found.message or not found.healthy:
            self._changed[identity] = time.monotonic()
        else:
            self._changed.pop(identity, None)

    @property
    def is_quiet(self) -> bool:
        """Whether it is well and nothing of it has a note: no reason is due (`handler.worker.health_watch.reasons`)."""
        return not (self.since or self._changed)

    def begun(self, now: float) -> list[float]:
        """Return when what wants a reason began to, in monotonic seconds: the target's being ill, and what has changed a moment ago."""
        noted = [at for each, at in self._changed.items() if each in self._live and now - at < 2 * GRACE]
        return [*filter(None, [self.since]), *noted]

    def explain(self, found: Mapping[Identity, Finding]) -> None:
        """Take the reasons that were found, and which of them don't go by themselves."""
        for identity, reason in found.items():
            self.moved |= self.evidence.get(identity, "") != reason.text
            self.evidence[identity] = reason.text
            (self.hard.add if set(reason.causes) - _PASSING else self.hard.discard)(identity)

    def _failing(self, now: float) -> set[Identity]:
        """Return what hasn't come forward for a while, for a cause that doesn't go by itself."""
        return {each for each in self.hard if self.stood(each, now) >= STILL}

    def stood(self, identity: Identity, now: float) -> float:
        """Return for how many seconds the verdict over an object has stood."""
        return now - self._changed.get(identity, now)

    def wants(self, now: float) -> list[Subject]:
        """Return what wants a reason, what has none first, then what is worst; what is healthy with a note, while that is new."""
        look = self.look(now)
        noted = (each for each in self._changed if each in self._live and self.stood(each, now) < 2 * GRACE)
        found = [each for each in dict.fromkeys((*look.worst(), *noted)) if each in self._living and each in look.verdicts]
        return [self._subject(each, look.verdicts[each], now) for each in sorted(found, key=lambda each: bool(self.evidence.get(each)))]

    def _subject(self, identity: Identity, found: Health, now: float) -> Subject:
        live, selector = self._living[identity]
        closed = identity in self.health.closed
        said = "" if closed else found.message
        return Subject(identity, live, said, not found.healthy and self.stood(identity, now) >= STILL, selector, closed)

    def beat(self, now: float) -> None:
        """Judge what expressions judge, all at once, and again what time has changed. `now`: monotonic seconds."""
        if self._expressed and now >= self._asks:
            self._ask(now)
        for identity, (due, live) in [*self._settling.items()]:
            if due <= now:
                self._judge(identity, live)

    def _ask(self, now: float) -> None:
        """Ask the operator's expressions; what they can't be asked of now is asked again in a while."""
        asked, self._expressed = self._expressed, {}
        for identity, found in expressed(self.custom, asked.values()).items():
            self._judge(identity, asked[identity], replace(found, again=0.0))
            self._note(identity, asked[identity])
            if found.again:
                self._expressed[identity], self._asks = asked[identity], now + found.again

    def look(self, now: float) -> HealthLook:
        """Return how the declared objects do, each kind of which was LISTed: what was not seen isn't there."""
        verdicts = {each: found for each in self._live if (found := self._verdicts.get(each) or (each in self._expressed and _UNASKED))}
        verdicts |= dict.fromkeys(self._absent - verdicts.keys(), MISSING)
        lost = {each for each, since in self._lost.items() if now - since >= GRACE}
        look = HealthLook(
            verdicts, {each: said for each, said in self.evidence.items() if each in verdicts}, frozenset(lost | self._failing(now))
        )
        self.since = self.since or now if look.worst() else 0.0
        return look.completed(self._removed - verdicts.keys())

    def lags(self, look: HealthLook, now: float) -> bool:
        """Whether something isn't there that was applied a moment ago, and may not have been seen yet."""
        return now - self.applied < GRACE and any(found is MISSING for found in look.verdicts.values())

    def settling(self, now: float) -> frozenset[Identity]:
        """Return what has just lost its health, and may have it again in a moment."""
        lost = {each for each, since in self._lost.items() if now - since < GRACE}
        return frozenset(lost & self._live - self._failing(now))
