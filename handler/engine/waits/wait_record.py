"""How a wait is kept, so that it outlives its run: for what, since when, and since when nothing of it has changed.

A stage's wait stands in the record's `waiting` (`StateWaitRecord`), a step's or hook's in its journal (`JournalWaitRecord`).
Law: a wait that goes from run to run has the time of one; once ended it stays ended until a person asks again. One that seems to begin
later, by another clock, begins now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from handler.engine.run.context import RunContext
from handler.model.tree import printable
from handler.state.record import WaitingFor
from handler.state.record_format import seconds_of, stamp


class WaitRecord(Protocol):
    """How one wait is kept."""

    @property
    def what(self) -> str:
        """What is waited for, in one line."""

    @property
    def since(self) -> float:
        """Since when, in seconds since the epoch, over restarts."""

    @property
    def over(self) -> bool:
        """Whether it has ended, so that it is only looked at."""

    def note(self) -> None:
        """Keep that it goes on; called again and again, once it takes longer than a moment."""

    def end(self) -> None:
        """Keep that it has ended without success."""

    def report(self, unhealthy: tuple[str, ...]) -> None:
        """Record what is still missing, a line an object."""

    def moved(self, seen: str) -> float | None:
        """Return since when something stands as it does, by what the runs before this one saw; None: it stood otherwise."""

    def keep(self, seen: Mapping[str, float]) -> None:
        """Keep, for the next run, how things stand (digests), each with since when."""


def time_left(kept: WaitRecord, timeout: float, now: float) -> float:
    """Return how many of the `timeout` seconds of a wait are left; one that seems to begin later, by another's clock, gets no more."""
    return 0.0 if kept.over else max(min(kept.since - now, 0.0) + timeout, 0.0)


@dataclass(slots=True)
class StateWaitRecord:
    """A wait in the record's `waiting`. One of the same name and commit continues; a request after its end begins anew."""

    run: RunContext
    what: str
    since: float = field(init=False)
    over: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.what = printable(self.what)  # as the record keeps it: a wait is known by its name
        self.since, before = self.run.clock(), self._before()
        if before is not None and not (self.run.force and (before.over or self.run.state.status.phase == "failed")):
            self.since, self.over = min(seconds_of(before.since), self.since), before.over

    def _before(self) -> WaitingFor | None:
        before = self.run.state.waiting
        return before if before is not None and (before.commit, before.what) == (self.run.revision.commit, self.what) else None

    def note(self) -> None:
        """Record it."""
        fresh, before = WaitingFor(self.run.revision.commit, self.what, stamp(self.since)), self._before()
        self._write(replace(before if before and before.since == fresh.since else fresh, over=self.over))

    def end(self) -> None:
        """Record that it is over: from now on it is only looked at."""
        self.over = True
        self.note()

    def _write(self, waiting: WaitingFor) -> None:
        if self.run.state.waiting != waiting:
            self.run.record(lambda state: replace(state, waiting=waiting))

    def report(self, unhealthy: tuple[str, ...]) -> None:
        """Record it as the target's status."""
        if self.run.state.status.unhealthy != unhealthy:
            self.run.record(lambda state: replace(state, status=replace(state.status, unhealthy=unhealthy)))

    def moved(self, seen: str) -> float | None:
        """Compare with what was seen last."""
        before = self._before()
        return seconds_of(before.moved) if before is not None and before.seen == seen and before.moved else None

    def keep(self, seen: Mapping[str, float]) -> None:
        """Record how it stands as a whole: that is one digest."""
        before = self._before()
        for digest, moved in seen.items():
            if before is not None:
                self._write(replace(before, seen=digest, moved=stamp(moved)))
