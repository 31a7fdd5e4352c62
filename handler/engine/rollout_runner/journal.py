"""The record of a rollout under way: each step and hook, its begin, its end, its action's mark, and its wait.

Law: a transition stands in the record before what follows it begins, so that the next run continues at its step. A good end is written with
the begin of what follows it, progress with whatever comes next. A failed rollout isn't retried by itself: its steps act.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.engine.planner.desired import Inputs
from handler.engine.planner.due import DONE, FAILED, SKIPPED, under_way
from handler.engine.run.context import RunContext
from handler.model.advice import advice
from handler.model.errors import AnnealError, RolloutFailed
from handler.model.tree import printable
from handler.state.record import Progress, Stalled, State, StepRecord
from handler.state.record_format import seconds_of, stamp

__all__ = ["DONE", "FAILED", "SKIPPED", "Journal"]

_LONGEST = 1200  # characters of a step's message: a thousand of them are read again, whatever they are written in
_WRITE_EVERY = 1.0  # seconds between two writes of progress alone
_Name = tuple[str, str]  # A step's group, and its name there
_Noted = dict[_Name, dict[str, Any]]


@dataclass(slots=True)
class Journal:
    """The record of one rollout; several threads may write."""

    run: RunContext
    inputs: Inputs
    _places: dict[_Name, int] = field(default_factory=dict)
    _noted: _Noted = field(default_factory=dict)
    _written: float = -math.inf
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Continue what an earlier run of the same rendered set began, or begin anew. Raises RolloutFailed: it failed before, unforced."""
        digest, known = self.inputs.prepared.digest, self.run.state.rollout
        if under_way(self.run.state, digest, force=self.run.force):
            return
        if known is not None and (known.digest, known.outcome) == (digest, FAILED) and not self.run.force:
            raise RolloutFailed.of(
                f"target {self.run.job.target}",
                f"the rollout of {known.commit[:12]} failed; {self._first_failure(known)}",
                fix=advice("push what mends it, or try it once more: anneal apply {}", self.run.job.target),
            )
        fresh = Progress(self.inputs.commit.sha, digest, stamp(self.run.clock()), id=secrets.token_hex(6))
        self.run.record(lambda state: replace(state, rollout=fresh))

    @staticmethod
    def _first_failure(known: Progress) -> str:
        failed = next((step for step in known.steps if step.outcome == FAILED), None)
        return f"{failed.group}, {failed.step}: {failed.message}" if failed else "see its history"

    def expect(self, steps: Sequence[tuple[str, str, str, str]]) -> None:
        """Record what there is to do, as (group, step, object, action), in its order; what is known already stays as it is."""
        known = self.run.state.rollout
        there = {(each.group, each.step) for each in known.steps} if known else set()
        fresh = [StepRecord(*each, started="") for each in steps if (each[0], each[1]) not in there]
        if fresh:
            self._write(lambda known: replace(known, steps=(*known.steps, *fresh)))

    def find(self, group: str, step: str) -> StepRecord | None:
        """Return what is recorded of a step of this rollout."""
        known = self.run.state.rollout
        place = self._place(known, (group, step)) if known else None
        return known.steps[place] if known and place is not None else None

    def _place(self, known: Progress, name: _Name) -> int | None:
        """Return where a step stands among the others: it stays there while steps are only added."""
        place = self._places.get(name)
        if place is None or place >= len(known.steps) or (known.steps[place].group, known.steps[place].step) != name:
            places = self._places = {(each.group, each.step): number for number, each in enumerate(known.steps)}
            return places.get(name)
        return place

    def started(self, group: str, step: str, what: str, action: str) -> StepRecord:
        """Record that a step begins; one that has begun before keeps its mark, and its time unless that lies ahead. `what`: its object."""
        found, now = self.find(group, step), self.run.clock()
        if found and found.started and seconds_of(found.started) <= now:
            return found
        begun = found if found and found.started else StepRecord(group, step, what, action)
        fresh = replace(begun, started=stamp(now))
        if found:
            self._change(group, step, lambda _: fresh)
        else:
            self._write(lambda known: replace(known, steps=(*known.steps, fresh)))
        return fresh

    def mark(self, group: str, step: str, mark: str, share: int = 0) -> None:
        """Record what a step's action must know after a restart, before it does what makes that true; `share`: see `StepRecord`."""
        self._change(group, step, lambda found: replace(found, mark=mark, share=share))

    def progressed(self, group: str, step: str, message: str) -> None:
        """Note the progress of a step under way, if it has changed. It is written soon (`settle`)."""
        found, message = self.find(group, step), message[:_LONGEST]
        if found and found.message != message:
            self._note(group, step, message=message)
            self.settle()

    def stalled(self, group: str, step: str, stalled: tuple[Stalled, ...]) -> None:
        """Note which parts of a step's wait have stood still since when. It is written with the next write, at the latest by `close`."""
        found = self.find(group, step)
        if found and found.stood != stalled:
            self._note(group, step, stood=stalled)

    def _note(self, group: str, step: str, **fields: Any) -> None:
        with self._lock:
            self._noted[group, step] = self._noted.get((group, step), {}) | fields

    def settle(self) -> None:
        """Write the noted progress, unless some was written just now; called several times a second by every wait."""
        with self._lock:
            now = time.monotonic()
            if not self._noted or now - self._written < _WRITE_EVERY:
                return
            self._written = now
        self.flush()

    def flush(self) -> None:
        """Write the noted progress before anything that isn't a step follows it."""
        if self._noted:
            self._write(lambda known: known)

    def close(self) -> None:
        """Write the noted progress at the end. A record that can't be written is left."""
        with contextlib.suppress(AnnealError):
            self.flush()

    def done(self, group: str, step: str, message: str = "") -> None:
        """Note that a step has ended well. The next begin in the record is written after that (`flush`)."""
        now = stamp(self.run.clock())
        self._note(group, step, finished=now, outcome=DONE, message=message[:_LONGEST], stood=())

    def finished(self, group: str, step: str, outcome: str, message: str = "") -> None:
        """Record how a step ended that hasn't ended well: `FAILED` or `SKIPPED`."""
        now, message = stamp(self.run.clock()), message[:_LONGEST]
        self._change(group, step, lambda found: replace(found, finished=now, outcome=outcome, message=message, stood=(), share=0))

    def end(self, outcome: str) -> None:
        """Record how the whole rollout ended: `DONE` or `FAILED`."""
        now = stamp(self.run.clock())
        self._write(lambda known: replace(known, finished=now, outcome=outcome))

    def _change(self, group: str, step: str, change: Callable[[StepRecord], StepRecord]) -> None:
        self._write(lambda known: self._changed(known, (group, step), change))

    def _changed(self, known: Progress, name: _Name, change: Callable[[StepRecord], StepRecord]) -> Progress:
        place = self._place(known, name)
        if place is None:
            return known
        return replace(known, steps=(*known.steps[:place], change(known.steps[place]), *known.steps[place + 1 :]))

    def _write(self, change: Callable[[Progress], Progress]) -> None:
        taken: _Noted = {}

        def written(state: State) -> State:
            if state.rollout is None:
                return state
            self._take(taken)
            known = state.rollout
            for name, fields in taken.items():
                known = self._changed(known, name, partial(_with_noted, fields))
            return replace(state, rollout=change(known))

        try:
            self.run.record(written)
        except BaseException:
            self._give_back(taken)
            raise

    def _take(self, taken: _Noted) -> None:
        with self._lock:
            for name, fields in self._noted.items():
                taken[name] = taken.get(name, {}) | fields
            if self._noted:
                self._noted, self._written = {}, time.monotonic()

    def _give_back(self, taken: _Noted) -> None:
        with self._lock:
            for name, fields in taken.items():
                self._noted[name] = fields | self._noted.get(name, {})


def _with_noted(fields: Mapping[str, Any], found: StepRecord) -> StepRecord:
    return found if found.outcome else replace(found, **fields)


_DIGITS = 12  # of a digest: a thousand steps may wait at once
_MOST = 20  # things of one step whose standstill counts over runs


@dataclass(slots=True)
class JournalWaitRecord:
    """A wait of one step (`name`: its group and name), whose own time-out ends it. `since`: seconds since the epoch."""

    journal: Journal
    name: tuple[str, str]
    what: str
    since: float
    over: bool = False

    def __post_init__(self) -> None:
        self.what = printable(self.what)

    def note(self) -> None:
        """Nothing to do: the journal recorded it when the step began."""

    def end(self) -> None:
        """Nothing to do: the step fails, and the journal records that."""

    def report(self, unhealthy: tuple[str, ...]) -> None:
        """Record each object's line as the message of its hook, or of this step."""
        group, own = self.name
        for line in unhealthy:
            subject, _, said = line.partition(": ")
            self.journal.progressed(group, subject if self.journal.find(group, subject) else own, said)

    def moved(self, seen: str) -> float | None:
        """Compare with what the journal has."""
        found = self.journal.find(*self.name)
        return next((seconds_of(each.moved) for each in (found.stood if found else ()) if each.seen == seen[:_DIGITS]), None)

    def keep(self, seen: Mapping[str, float]) -> None:
        """Pass it to the journal, for its next write."""
        stalled = tuple(Stalled(digest[:_DIGITS], stamp(moved)) for digest, moved in seen.items())[:_MOST]
        self.journal.stalled(*self.name, stalled)
