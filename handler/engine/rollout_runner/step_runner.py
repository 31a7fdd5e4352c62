"""The steps of a Rollout, in their order or at once: act, check, record; and continue after a killed run.

Law: each transition stands in the record before what follows it. A step that has ended isn't begun again; one that has begun continues with
its time and its mark. An author's error fails the step; any other leaves it under way for the next run. The error that ends one step ends
its parallel steps.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from handler.engine.apply.apply import Applier
from handler.engine.rollout_runner.actions.stage import StepStage, StoppedByAnother
from handler.engine.rollout_runner.check_runner import check
from handler.engine.rollout_runner.journal import FAILED, SKIPPED, Journal
from handler.engine.rollout_runner.step_graph import carry_out
from handler.engine.run.errors import ROLLOUT_FAILURES, rollout_failure
from handler.engine.waits.wait import Waits
from handler.model.errors import AnnealError, AuthorError, LeaseError, Problem, QuotaExceeded, RolloutFailed, StillWaiting, TransientError
from handler.model.field_masking import without_credentials
from handler.model.names import Identity
from handler.model.plan import Action, Change
from handler.model.rollout import Group, Mode, Rollout, Step
from handler.rollout.interfaces import ActionRow
from handler.state.record_format import seconds_of


@dataclass(slots=True)
class StepRunner:
    """Carries one Rollout out."""

    applier: Applier
    waits: Waits
    journal: Journal
    actions: Mapping[str, ActionRow]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ending: AnnealError | None = None
    _changes: dict[Identity, Change] = field(init=False)

    def __post_init__(self) -> None:
        self._changes = {change.identity: change for change in self.applier.planned.plan.changes}

    def go(self, rollout: Rollout) -> None:
        """Carry out every group. Raises RolloutFailed, QuotaExceeded: a step failed that may not; else what the next run continues."""
        self.journal.expect([(group.name, step.name, str(step.identity), step.action) for group in rollout.groups for step in group.steps])
        self._ending = next(
            (self._failure(group, step) for group in rollout.groups for step in group.steps if self._has_failed(group, step)), None
        )
        errors = self._carried_out(rollout)
        if isinstance(self._ending, ROLLOUT_FAILURES) and any(isinstance(error, StillWaiting) for error in errors):
            errors += self._carried_out(rollout)  # whose wait was left to the next run, before another failed: it tidies up now
        if errors:
            raise min(errors, key=_rank)

    def _carried_out(self, rollout: Rollout) -> list[AnnealError]:
        errors = carry_out(rollout, self._step, self._settle)
        try:
            self.journal.flush()
        except AnnealError as error:
            errors.append(error)
        return errors

    def _settle(self) -> None:
        with contextlib.suppress(AnnealError):
            self.journal.settle()

    def _has_failed(self, group: Group, step: Step) -> bool:
        """Whether an earlier run has ended the rollout at this step; all that is left is to leave what is under way beside it."""
        found = self.journal.find(group.name, step.name)
        return found is not None and found.outcome == FAILED and not step.continue_on_error

    def _failure(self, group: Group, step: Step) -> RolloutFailed:
        found = self.journal.find(group.name, step.name)
        return RolloutFailed(_named(group, step, Problem(str(step.identity), found.message if found else "")))

    # --- one step
    def _step(self, group: Group, step: Step) -> None:
        found = self.journal.find(group.name, step.name)
        if found and found.outcome:
            return self._ended_before(group, step)
        if not (found and found.started):
            self._beat(looks=False)
        begun = self.journal.started(group.name, step.name, str(step.identity), step.action)
        since = seconds_of(begun.started)
        stage = StepStage(self.applier, self.waits, self.journal, group.name, step, self._changes.get(step.identity), since, self._beat)
        try:
            self._beat(looks=False)
            seen = self._carry_out(stage)
        except StoppedByAnother as error:
            self._leave(stage, error)
            raise
        except ROLLOUT_FAILURES as error:
            self._failed(group, step, error)
        except AnnealError as error:
            self._end(error)
            raise
        except BaseException:
            self._end(StoppedByAnother.of(f"step {step.name} of group {group.name}", "met a mistake of ours"))
            raise
        else:
            self.journal.done(group.name, step.name, seen)
        return None

    def _carry_out(self, stage: StepStage) -> str:
        """Act, then wait for what the step calls success; without any, for health where the target waits at all. Return what was seen."""
        step = stage.step
        if stage.change is not None and stage.change.withheld and stage.desired and stage.desired.mode is not Mode.KEEP:
            return stage.change.reason
        seen = self.actions[step.action].act(stage, step)
        if seen is not None:
            return seen
        if step.success or step.failure:
            return check(self.waits, stage.watched, self._beat, stage.report)
        theirs = stage.change is not None and stage.change.action is Action.SKIP  # it carries no label of ours: nothing would show it
        if stage.target.wait and stage.desired and not theirs:
            stage.healthy(stage.kept(stage.title), [stage.desired])
        return ""

    def _failed(self, group: Group, step: Step, error: AuthorError | QuotaExceeded) -> None:
        message = without_credentials("\n".join(f"{problem.subject}: {problem.message}" for problem in error.problems))
        self.journal.finished(group.name, step.name, FAILED, message)
        if step.continue_on_error:
            return self._unwritten(step, "its step failed, and the rollout may go on without it")
        failure = rollout_failure(error, *(_named(group, step, each) for each in error.problems))
        self._end(failure)
        raise failure from error

    def _ended_before(self, group: Group, step: Step) -> None:
        """Go past a step that an earlier run ended; what live differs by since is a drift run's to see, and wasn't written by this one."""
        self._unwritten(step, "its step ended before this run went on")
        if self._has_failed(group, step):
            raise self._failure(group, step)

    def _unwritten(self, step: Step, reason: str) -> None:
        change = self._changes.get(step.identity)
        if change and change.writes and change.identity not in self.applier.written:
            self.applier.outcomes.append(replace(change, action=Action.SKIP, reason=reason))

    def _leave(self, stage: StepStage, error: StoppedByAnother) -> None:
        """A step beside one that failed is over with the rollout; beside anything else that ends the run, it is under way still."""
        if not error.failed:
            return
        leave = getattr(self.actions[stage.step.action], "leave", None)
        if leave:
            leave(stage, stage.step)
        self.journal.finished(stage.group, stage.step.name, SKIPPED, str(error.problems[0].message))

    # --- together
    def _end(self, error: AnnealError) -> None:
        """End the parallel steps; a step that may only not wait longer ends none of them."""
        with self._lock:
            if self._ending is None and not isinstance(error, StillWaiting):
                self._ending = error

    def _beat(self, *, looks: bool = True) -> None:
        """Asked before each step and several times a second while one waits: may it go on? Raises if not."""
        if self._ending is not None:
            elsewhere = StoppedByAnother.of("rollout", f"ended because of {self._ending.problems[0].subject}")
            elsewhere.failed = isinstance(self._ending, RolloutFailed)
            raise elsewhere
        if looks:
            self.waits.look()
            self.journal.settle()


def _rank(error: AnnealError) -> int:
    """Order the errors of several steps: a lost Lease first, the echo of another step's end last."""
    if isinstance(error, LeaseError):
        return 0
    if isinstance(error, StoppedByAnother | StillWaiting):
        return 4 if isinstance(error, StoppedByAnother) else 3
    return 1 if isinstance(error, TransientError) else 2


def _named(group: Group, step: Step, problem: Problem) -> Problem:
    return replace(problem, message=f"{problem.message} (step {step.name} of group {group.name})")


def passed_over(rollout: Rollout, journal: Journal) -> frozenset[Identity]:
    """Return the objects whose steps failed and might: their health isn't waited for."""
    steps = ((step, journal.find(group.name, step.name)) for group in rollout.groups for step in group.steps)
    return frozenset(step.identity for step, found in steps if found and found.outcome == FAILED)


def repaired(stage: Iterable[Change]) -> list[Change]:
    """Return what a run that carries no rollout out writes of a group: whatever differs, but no deletion that is a step's act."""
    return [change for change in stage if change.action is not Action.PRUNE]
