"""What a worker knows of one target's health: what its record names, and how each of its members did when it changed last.

Law: verdicts are kept, not objects; of one that only time may make healthy, what it is judged by. What isn't declared says nothing. What
was healthy and no longer is, though it was left unchanged, doesn't come forward by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from handler.config.settings import Target
from handler.model.health import Health, Status
from handler.model.names import GroupKind, Identity
from handler.plan.membership import is_member
from handler.rollout.health import judge, remnant
from handler.run.health import Look, judged_absent, judged_live
from handler.state.record import State, TargetHealth

GRACE = 15.0
"""Seconds for which an object may have lost its health before that is said: a pod that moves to another Node takes a moment."""
_MISSING = Health(Status.NOT_FOUND, "is not there")
Object = dict[str, Any]


@dataclass(slots=True)
class Watched:
    """One target.

    `clock`: by which live objects are stamped, in seconds since the epoch. `seen`: the newest version of its record, `busy`: a run is open
    in it; `version`: the one that was read. `moved`: something is judged otherwise than before. `since`: when it last became unhealthy, in
    monotonic seconds. `evidence`, `failing`: why objects aren't healthy, and which of them don't come forward.
    """

    target: Target
    applyset: str
    clock: Callable[[], float]
    seen: str = ""
    version: str = ""
    busy: bool = False
    moved: bool = True
    since: float = 0.0
    health: TargetHealth = field(default_factory=TargetHealth)
    commit: str = ""
    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    evidence: dict[Identity, str] = field(default_factory=dict)
    failing: set[Identity] = field(default_factory=set)
    _live: frozenset[Identity] = frozenset()
    _absent: frozenset[Identity] = frozenset()
    _verdicts: dict[Identity, Health] = field(default_factory=dict)
    _well: dict[Identity, int] = field(default_factory=dict)
    _lost: dict[Identity, float] = field(default_factory=dict)
    _settling: dict[Identity, tuple[float, Object]] = field(default_factory=dict)

    @property
    def is_stale(self) -> bool:
        """Whether its record has moved since it was read, and no run is open in it."""
        return self.seen != self.version and not self.busy

    def read(self, state: State | None, version: str) -> None:
        """Take what the record says now; None: there is none."""
        self.seen = self.version = version
        self.busy, self.moved = state is not None and state.attempt is not None, True
        self.health = state.health if state else TargetHealth()
        self.commit = state.commit if state else ""
        self._live = judged_live(state) if state else frozenset()
        self._absent = judged_absent(state) if state else frozenset()
        self.kinds = frozenset(each.group_kind for each in self._live)
        self.namespaces = frozenset(each.namespace for each in self._live if each.namespace)

    def see(self, identity: Identity, live: Object | None) -> None:
        """Judge a member anew; None: it isn't there any more."""
        if live is None:
            self.moved = self._verdicts.pop(identity, None) is not None or self.moved
            self._settling.pop(identity, None)
        elif is_member(live, identity, self.target.name, self.applyset):
            found = judge(live, 0, self.clock())
            self._keep(identity, found, int(live["metadata"].get("generation") or 0))
            if found.again:
                self._settling[identity] = (time.monotonic() + found.again, remnant(live))

    def _keep(self, identity: Identity, found: Health, generation: int) -> None:
        before = self._verdicts.get(identity)
        self.moved |= before is None or (before.status, before.message) != (found.status, found.message)
        self._verdicts[identity] = found
        self._settling.pop(identity, None)
        if found.healthy:
            self._well[identity] = generation
            self._lost.pop(identity, None)
            self.evidence.pop(identity, None)
            self.failing.discard(identity)
        elif self._well.get(identity) == generation:
            self._lost.setdefault(identity, time.monotonic())

    def beat(self, now: float) -> None:
        """Judge again what time has changed. `now`: monotonic seconds."""
        for identity, (due, live) in [*self._settling.items()]:
            if due <= now:
                self.see(identity, live)

    def look(self, now: float) -> Look:
        """Return how the declared objects do, each kind of which was LISTed: what was not seen isn't there."""
        verdicts = {each: found for each in self._live if (found := self._verdicts.get(each))}
        verdicts |= dict.fromkeys(self._absent - verdicts.keys(), _MISSING)
        lost = {each for each, since in self._lost.items() if now - since >= GRACE}
        look = Look(verdicts, {each: said for each, said in self.evidence.items() if each in verdicts}, frozenset(lost | self.failing))
        self.since = self.since or now if look.worst() else 0.0
        return look

    def is_settling(self, now: float) -> bool:
        """Whether something has just lost its health, and may have it again in a moment."""
        return any(now - since < GRACE for each, since in self._lost.items() if each in self._live and each not in self.failing)
