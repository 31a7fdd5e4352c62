"""Waiting inside a run: until what was applied is healthy, until a check holds. The one place where a run spends time on purpose.

Law: a wait ends as soon as it is without use: a newer head, a person's word, a lost Lease, the worker's end. It outlives the process:
since when it waits stands in the record, and the next run goes on with what time is left. While it waits its place is another run's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.cluster.wait import follow
from handler.config.settings import Wait
from handler.model.errors import Problem, RolloutFailed, StillWaiting
from handler.model.health import Health, Status
from handler.model.names import PART_OF, Identity
from handler.model.resource import Resource
from handler.plan.admit import Desired
from handler.rollout.health import ALWAYS_HEALTHY, judge
from handler.run.context import Context
from handler.run.looking import Lookout
from handler.state.record import Waiting
from handler.state.rules import seconds_of, stamp

_RECORD_AFTER = 0.5
"""Seconds after which a wait is worth a line in the record."""

Object = dict[str, Any]
Judge = Callable[[Identity, Object | None], bool]
Verdict = Callable[[Identity, Object | None], Health | None]


def _nothing() -> None:
    return


def _as_usual(_identity: Identity, _live: Object | None) -> Health | None:
    return None


@dataclass(slots=True)
class Waits:
    """The waits of one run; several threads may wait at once."""

    run: Context
    _lookout: Lookout = field(init=False)

    def __post_init__(self) -> None:
        """Look around from now on."""
        self._lookout = Lookout(self.run)

    def healthy(
        self,
        what: str,
        items: Sequence[Desired],
        generations: Mapping[Identity, int],
        limits: Wait,
        beat: Callable[[], None] = _nothing,
        since: float = 0.0,
        verdict: Verdict = _as_usual,
    ) -> None:
        """Wait until these objects are healthy.

        Args:
            what: what is waited for, as the record calls it: a wait of the same name goes on with what time is left.
            items: what was declared.
            generations: of the objects as the server returned them on this run's writes; their status must be of that generation.
            limits: how long.
            beat: see `follow`.
            since: see `follow`.
            verdict: how an object does, where that isn't what makes its kind healthy; None: as usual.

        Raises:
            RolloutFailed: some failed, or aren't healthy in time; each with why.
            NewerHead, StillWaiting, Stopping, Suspended, LeaseLost: the wait ended before that.

        """
        seen: dict[Identity, Health] = {item.identity: Health(Status.NOT_FOUND) for item in items}
        places = {item.identity: item.manifest.place for item in items}

        def told(identity: Identity, live: Object | None) -> bool:
            usual = partial(judge, live, generations.get(identity, 0), self.run.rooms.clock())
            found = seen[identity] = verdict(identity, live) or usual()
            if found.status is Status.FAILED:
                raise RolloutFailed(Problem(str(identity), found.message, places[identity]))
            return found.healthy

        asked = [(item.resource, item.identity) for item in items if item.identity.group_kind not in ALWAYS_HEALTHY]
        if asked and not self.follow(what, asked, told, limits.timeout, beat, since):
            left = [(identity, health) for identity, health in seen.items() if not health.healthy]
            raise RolloutFailed(*(Problem(str(one), health.message or str(health.status), places[one]) for one, health in left))

    def follow(
        self,
        what: str,
        wanted: Sequence[tuple[Resource, Identity]],
        judge: Judge,
        timeout: float,
        beat: Callable[[], None] = _nothing,
        since: float = 0.0,
    ) -> bool:
        """Feed `judge` with each state of these objects until it is content with all; False when the time is over.

        Args:
            what: see `healthy`.
            wanted: kinds and identities of members.
            judge: see `handler.cluster.wait.follow`.
            timeout: seconds in all, over restarts.
            beat: called several times a second; what it raises ends the wait.
            since: when a step of a rollout began (seconds since the epoch): the journal tells what is waited for; 0: `Waiting` does.

        Raises:
            NewerHead, StillWaiting, Stopping, Suspended, LeaseLost: the wait ended before that.

        """
        run, clock = self.run, self.run.rooms.clock
        told, since = not since, since or self._since(what)
        left = max(since + timeout - clock(), 0.0)
        planner = run.rooms.planner
        with run.meanwhile.resting() as may:
            patience = min(run.rooms.patience, may)
            tick = partial(self._beat, partial(self._note, what, since, over=False) if told else _nothing, time.monotonic(), beat)
            done = follow(planner.api, wanted, judge, min(left, patience), tick, f"{PART_OF}={planner.applyset}")
        if not done and left > patience:
            if told:
                self._note(what, since, over=False)
            raise StillWaiting.of(f"target {run.job.target}", f"waits until {what} is healthy, since {stamp(since)}")
        if not done and told:
            self._note(what, since, over=True)
        return done

    def _since(self, what: str) -> float:
        """Return since when this is waited for: an earlier run may have begun."""
        before = self.run.state.waiting
        known = before is not None and (before.commit, before.what) == (self.run.goal, what) and not (self.run.job.force and before.over)
        return seconds_of(before.since) if before is not None and known else self.run.rooms.clock()

    def _note(self, what: str, since: float, *, over: bool) -> None:
        waiting = Waiting(self.run.goal, what, stamp(since), over)
        if self.run.state.waiting != waiting:
            self.run.record(lambda state: replace(state, waiting=waiting))

    def _beat(self, note: Callable[[], None], began: float, beat: Callable[[], None]) -> None:
        """Several times a second: may we go on, and is it still of use? A wait that takes longer is told."""
        if time.monotonic() - began >= _RECORD_AFTER:
            note()
        self.look()
        beat()

    def look(self) -> None:
        """Ask, as anything that waits does several times a second, whether we may go on and whether it is still of use.

        Raises:
            NewerHead, Stopping, Suspended, LeaseLost: no.

        """
        self._lookout.look()
