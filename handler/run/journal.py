"""What the record tells of a rollout under way: each step and hook, when it began, how it ended, and what its action must remember.

Law: a transition stands in the record before what follows it begins, so that a killed run is gone on with at its step. A rollout that
failed isn't tried again by itself: its steps act (they migrate, they delete), and neither a tick nor a redelivery is a reason to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from handler.model.errors import RolloutFailed
from handler.run.context import Context
from handler.run.due import DONE, FAILED, SKIPPED, under_way
from handler.run.recording import Inputs
from handler.state.record import Progress, State, StepRecord
from handler.state.rules import stamp

__all__ = ["DONE", "FAILED", "SKIPPED", "Journal"]

_LONGEST = 1200
"""Characters of a step's message: a thousand of them are read again, whatever they are written in."""


@dataclass(slots=True)
class Journal:
    """The record of one rollout; several threads may write."""

    run: Context
    inputs: Inputs

    def begin(self) -> None:
        """Go on with what an earlier run of the same rendered set began, or begin anew.

        Raises:
            RolloutFailed: it failed before, and nobody asked for it again.

        """
        digest, known = self.inputs.prepared.digest, self.run.state.rollout
        if under_way(self.run.state, digest, force=self.run.force):
            return
        if known is not None and (known.digest, known.outcome) == (digest, FAILED) and not self.run.force:
            raise RolloutFailed.of(
                f"target {self.run.job.target}",
                f"the rollout of {known.commit[:12]} failed; {self._first_failure(known)}",
                fix=f"push what mends it, or try it once more: anneal apply {self.run.job.target}",
            )
        now = stamp(self.run.rooms.clock())
        self.run.record(lambda state: replace(state, rollout=Progress(self.inputs.commit.sha, digest, now)))

    @staticmethod
    def _first_failure(known: Progress) -> str:
        failed = next((step for step in known.steps if step.outcome == FAILED), None)
        return f"{failed.group}, {failed.step}: {failed.message}" if failed else "see its history"

    def expect(self, steps: Sequence[tuple[str, str, str, str]]) -> None:
        """Record what there is to do, as (group, step, object, action), in its order; what is known already stays as it is."""
        fresh = [StepRecord(*each, started="") for each in steps if self.find(each[0], each[1]) is None]
        if fresh:
            self._write(lambda known: replace(known, steps=(*known.steps, *fresh)))

    def find(self, group: str, step: str) -> StepRecord | None:
        """Return what is recorded of a step of this rollout."""
        known = self.run.state.rollout
        return next((each for each in known.steps if (each.group, each.step) == (group, step)), None) if known else None

    def started(self, group: str, step: str, what: str, action: str) -> StepRecord:
        """Record that a step begins; one that has begun before keeps its time and its mark. `what`: its object."""
        found = self.find(group, step)
        if found and found.started:
            return found
        fresh = StepRecord(group, step, what, action, stamp(self.run.rooms.clock()))
        if found:
            self._change(group, step, lambda _: fresh)
        else:
            self._write(lambda known: replace(known, steps=(*known.steps, fresh)))
        return fresh

    def mark(self, group: str, step: str, mark: str) -> None:
        """Record what a step's action must know after a restart, before it does what makes that true."""
        self._change(group, step, lambda found: replace(found, mark=mark))

    def told(self, group: str, step: str, message: str) -> None:
        """Record how far a step under way has come, if that isn't what is recorded; `message` is masked."""
        found, message = self.find(group, step), message[:_LONGEST]
        if found and found.message != message:
            self._change(group, step, lambda found: replace(found, message=message))

    def finished(self, group: str, step: str, outcome: str, message: str = "") -> None:
        """Record how a step ended: `DONE`, `FAILED` or `SKIPPED`; `message` is masked."""
        now = stamp(self.run.rooms.clock())
        self._change(group, step, lambda found: replace(found, finished=now, outcome=outcome, message=message[:_LONGEST]))

    def end(self, outcome: str) -> None:
        """Record how the whole rollout ended: `DONE` or `FAILED`."""
        now = stamp(self.run.rooms.clock())
        self._write(lambda known: replace(known, finished=now, outcome=outcome))

    def _change(self, group: str, step: str, change: Callable[[StepRecord], StepRecord]) -> None:
        def changed(known: Progress) -> Progress:
            return replace(known, steps=tuple(change(each) if (each.group, each.step) == (group, step) else each for each in known.steps))

        self._write(changed)

    def _write(self, change: Callable[[Progress], Progress]) -> None:
        def written(state: State) -> State:
            return replace(state, rollout=change(state.rollout)) if state.rollout else state

        self.run.record(written)
