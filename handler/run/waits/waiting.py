"""Waiting inside a run: until what was applied is healthy, until a check holds. The one place where a run spends time on purpose.

Law: a wait ends as soon as it is without use: a newer head, a person's word, a lost Lease, the worker's end. It outlives the process:
since when it waits stands in the record, and the next run goes on with what time is left. While it waits its place is another run's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.cluster.following import Stop
from handler.cluster.wait import follow
from handler.config.forms import duration
from handler.config.settings import Wait
from handler.model.errors import StillWaiting
from handler.model.names import PART_OF, Identity
from handler.model.resource import Resource
from handler.model.tree import printable
from handler.plan.admit import Desired
from handler.rollout.health import ALWAYS_HEALTHY
from handler.run.context import Context
from handler.run.waits.looking import Lookout
from handler.run.waits.unhealthy import UNHEALTHY, Telling
from handler.run.waits.vigil import Ended, Verdict, Vigil, as_usual
from handler.state.record import Waiting
from handler.state.rules import seconds_of, stamp

_RECORD_AFTER = 0.5
"""Seconds after which a wait is worth a line in the record."""
_TELL_EVERY = 10.0
"""Seconds between two times that the record is told what is still missing."""

Object = dict[str, Any]
Judge = Callable[[Identity, Object | None], bool]


def _nothing() -> None:
    return


@dataclass(slots=True)
class Waits:
    """The waits of one run; several threads may wait at once. `notes`: what should be known of what is healthy."""

    run: Context
    notes: list[str] = field(default_factory=list)
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
        verdict: Verdict = as_usual,
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
        what = printable(what)  # as the record keeps it: a wait is known by its name
        asked = [item for item in items if item.identity.group_kind not in ALWAYS_HEALTHY]
        vigil = Vigil(asked, generations, limits.progress_timeout, self.run.rooms.planner.api.server_time, verdict)
        if asked:
            self._watch(what, vigil, limits, beat, since)
        notes = [printable(self.run.mask(note)) for note in vigil.notes()]
        self.notes += [note for note in notes if note not in self.notes]

    def _watch(self, what: str, vigil: Vigil, limits: Wait, beat: Callable[[], None], since: float) -> None:
        """Follow the objects of a vigil to its end; see `healthy`."""
        wanted = [(item.resource, item.identity) for item in vigil.items]
        telling, told = Telling(self.run), [time.monotonic() + _RECORD_AFTER]

        def tick() -> list[Identity]:
            beat()
            if time.monotonic() >= told[0] and not since:  # of a step the journal tells
                told[0] = time.monotonic() + _TELL_EVERY
                self._tell(telling, vigil)
            return vigil.beat()

        why = f"{UNHEALTHY} after {duration(limits.timeout)}"
        still = f"{UNHEALTHY}, and nothing has changed for {duration(limits.progress_timeout)}"
        try:
            if self.follow(what, wanted, vigil.judge, limits.timeout, tick, since):
                self.run.unhealthy = self.run.unhealthy or ()
                return
        except Ended as ended:
            why = still if ended.stuck else ""
            if ended.stuck and not since:
                self._note_end(what)
        except StillWaiting:
            if not self._stands_still(what, vigil.digest(), limits.progress_timeout):
                telling.leave(telling.lines(vigil.unhealthy()))
                raise
            why = still
        raise telling.failure(vigil.unhealthy(), why)

    def _tell(self, telling: Telling, vigil: Vigil) -> None:
        """Let the record say what is missing, where an earlier run of this commit hasn't said it better."""
        lines = telling.lines(vigil.unhealthy())
        if not telling.known and self.run.state.status.unhealthy != lines:
            self.run.record(lambda state: replace(state, status=replace(state.status, unhealthy=lines)))

    def _stands_still(self, what: str, seen: str, patience: float) -> bool:
        """Compare with what the record says was seen by the last run of a wait that goes from run to run; True: for too long the same."""
        before, now = self.run.state.waiting, self.run.rooms.clock()
        if before is None or before.what != what or before.commit != self.run.goal:
            return False  # a step's wait: the journal says since when, and its time-out ends it
        if before.seen != seen or not before.moved:
            self.run.record(lambda state: replace(state, waiting=replace(before, seen=seen, moved=stamp(now))))
            return False
        still = now - seconds_of(before.moved) >= patience
        if still:
            self._note_end(what)
        return still

    def _note_end(self, what: str) -> None:
        """Record that a wait has ended before its time: from now on it is only looked at."""
        before = self.run.state.waiting
        known = before is not None and (before.commit, before.what) == (self.run.goal, what)
        self._note(what, seconds_of(before.since) if before is not None and known else self.run.rooms.clock(), over=True)

    def follow(
        self,
        what: str,
        wanted: Sequence[tuple[Resource, Identity]],
        judge: Judge,
        timeout: float,
        beat: Stop = _nothing,
        since: float = 0.0,
    ) -> bool:
        """Feed `judge` with each state of these objects until it is content with all; False when the time is over.

        Args:
            what: see `healthy`.
            wanted: kinds and identities of members.
            judge: see `handler.cluster.wait.follow`.
            timeout: seconds in all, over restarts.
            beat: called several times a second; what it raises ends the wait. It may return what time alone has made content by now.
            since: when a step of a rollout began (seconds since the epoch): the journal tells what is waited for; 0: `Waiting` does.

        Raises:
            NewerHead, StillWaiting, Stopping, Suspended, LeaseLost: the wait ended before that.

        """
        run, clock = self.run, self.run.rooms.clock
        told, since = not since, since or self._since(what)
        earlier = self._earlier(what) if told else None
        left = 0.0 if earlier and earlier.over else max(min(since - clock(), 0.0) + timeout, 0.0)  # a clock that ran ahead gives no more
        planner = run.rooms.planner
        with run.meanwhile.resting() as may:
            patience = min(run.rooms.patience, may)
            tick = partial(self._beat, partial(self._note, what, since, over=False) if told else _nothing, time.monotonic(), beat)
            selector = f"{PART_OF}={planner.applyset}"
            done = follow(planner.api, wanted, judge, min(left, patience), tick, selector, everywhere=planner.scopes is None)
        if not done and left > patience:
            if told:
                self._note(what, since, over=False)
            raise StillWaiting.of(f"target {run.job.target}", f"waits until {what} is healthy, since {stamp(since)}")
        if not done and told:
            self._note(what, since, over=True)
        return done

    def _earlier(self, what: str) -> Waiting | None:
        """Return what is recorded of this wait: an earlier run may have begun it. A person who asks again begins anew after its end."""
        before = self.run.state.waiting
        if before is None or (before.commit, before.what) != (self.run.goal, what):
            return None
        ended = before.over or self.run.state.status.phase == "failed"
        return None if ended and self.run.force else before

    def _since(self, what: str) -> float:
        """Return since when this is waited for."""
        before = self._earlier(what)
        return seconds_of(before.since) if before else self.run.rooms.clock()

    def _note(self, what: str, since: float, *, over: bool) -> None:
        fresh = Waiting(self.run.goal, what, stamp(since))
        before = self.run.state.waiting
        same = before is not None and (before.commit, before.what, before.since) == (fresh.commit, fresh.what, fresh.since)
        waiting = replace(before if before is not None and same else fresh, over=over)
        if before != waiting:
            self.run.record(lambda state: replace(state, waiting=waiting))

    def _beat(self, note: Callable[[], None], began: float, beat: Stop) -> Iterable[Identity] | None:
        """Several times a second: may we go on, and is it still of use? A wait that takes longer is told."""
        if time.monotonic() - began >= _RECORD_AFTER:
            note()
        self.look()
        return beat()

    def look(self) -> None:
        """Ask, as anything that waits does several times a second, whether we may go on and whether it is still of use.

        Raises:
            NewerHead, Stopping, Suspended, LeaseLost: no.

        """
        self._lookout.look()
