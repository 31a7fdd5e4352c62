"""Carries a rollout out from an open attempt until everything is applied, healthy and pruned.

    dead webhooks           configurations that git drops and that keep what they guard from being judged
    hooks' needs            Namespaces and CRDs that a PreSync hook needs
    hooks before            PreSync
    the automatic stages    what no step names, with each stage's Sync hooks; an explicit edge is waited for
    the Rollout's groups    if the target names one
    all healthy             where the target waits, or hooks come after
    prune                   in reverse
    hooks after             PostSync; SyncFail if anything failed

Law: everything is idempotent; the next run continues a killed one. A recovery and a drift repair carry out neither hooks nor groups. A
repair waits for what it has written, and for explicit edges. A failure by the author, or a full quota, ends the rollout: nothing is pruned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from handler.config.settings import Wait
from handler.engine.apply.apply import Applier
from handler.engine.apply.prune import Pruner, doubted
from handler.engine.apply.wait_deleted import Lingering
from handler.engine.apply.webhooks_first import clear_the_way
from handler.engine.health.target_health import after_writing
from handler.engine.planner import expired_jobs
from handler.engine.planner.desired import Inputs
from handler.engine.planner.due import carries_out
from handler.engine.planner.planner import Planned
from handler.engine.rollout_runner.hook_runner import HookRunner
from handler.engine.rollout_runner.journal import FAILED, Journal
from handler.engine.rollout_runner.step_runner import StepRunner, passed_over, repaired
from handler.engine.run.context import RunContext
from handler.engine.run.errors import ROLLOUT_FAILURES, ApplyFailed
from handler.engine.waits.wait import Waits
from handler.engine.waits.wait_record import StateWaitRecord
from handler.model.errors import (
    ApiRefused,
    AuthorError,
    NewerHead,
    OperatorError,
    PlanRefused,
    Problem,
    QuotaExceeded,
    TransientError,
)
from handler.model.names import Identity
from handler.model.plan import Action, Change, Plan
from handler.model.rollout import Mode, Phase
from handler.plan.admission import Desired
from handler.plan.hooks import PlannedHooks

_NAMED = 3  # objects in the name of a wait, at most
_UNMADE = "was deleted to be made anew, and isn't yet"


@dataclass(slots=True)
class RolloutRunner:
    """Carries out one plan under an open attempt. `due`: with hooks or groups; `repairs`: it brings back what is recorded, nothing else."""

    run: RunContext
    inputs: Inputs
    planned: Planned
    repairs: bool = False
    applier: Applier = field(init=False)
    pruner: Pruner = field(init=False)
    waits: Waits = field(init=False)
    journal: Journal = field(init=False)
    hooks: HookRunner = field(init=False)
    due: bool = field(init=False)
    lingering: Lingering = field(init=False)

    def __post_init__(self) -> None:
        run, deps = self.run, self.run.deps
        self.lingering = Lingering(run)
        linger = self.lingering.report
        self.applier = Applier(deps.planner, self.planned, run.fence, run.between, noted=self._note, lingering=linger, wrote=run.wrote)
        self.applier.unsettled = run.hindered
        self.pruner = Pruner(deps.planner, self.planned, run.fence, run.between, self.applier.stored.uids, linger, run.wrote)
        self.waits = Waits(self.run, self.planned.plan.stuck)
        self.journal = Journal(self.run, self.inputs)
        self.hooks = HookRunner(self.run, self.planned_hooks, self.applier, self.waits, self.journal)
        prepared = self.inputs.prepared
        self.due = carries_out(self.run.state, prepared.digest, prepared.planned_hooks, prepared.rollout, force=self.run.force)

    @property
    def planned_hooks(self) -> PlannedHooks:
        """The hooks of the commit."""
        return self.inputs.prepared.planned_hooks

    def go(self) -> Plan:
        """Walk to the end; return the plan as it came out. Raises ApplyFailed; or what hooks, waits and writes raise."""
        self.run.begins(self.planned.plan)
        try:
            return self._go()
        finally:
            desired = self.planned.desired
            waited = [(desired[one], found) for one, found in self.waits.seen.items() if one in desired]
            written = [desired[one] for one in self.applier.written]
            self.run.round.looked = after_writing(self.planned.health, written, waited, self.run.clock())

    def _go(self) -> Plan:
        if not self.due:
            return self._told()
        self.journal.begin()
        self.hooks.expect(Phase.PRE_SYNC, Phase.SYNC)
        try:
            return self._told()  # the write that records the commit ends the rollout, too
        except ROLLOUT_FAILURES as error:
            self._fail(error)
            raise
        finally:
            self.journal.close()

    def written(self) -> tuple[Change, ...]:
        """Return what of the plan has been written so far; what was deleted to be made anew, and isn't yet, is pruned."""
        done = {change.identity: change for change in (*self.applier.outcomes, *self.pruner.outcomes)}
        removed = {
            change.identity: change if change.action is Action.PRUNE else replace(change, action=Action.PRUNE, reason=_UNMADE)
            for change in self.planned.plan.changes
            if change.identity in self.applier.removed
        }
        found = removed | done
        planned = dict.fromkeys(change.identity for change in self.planned.plan.changes)
        return self.lingering.seen((*(found[each] for each in planned if each in found and found[each].writes), *self.hooks.lost.values()))

    def _told(self) -> Plan:
        try:
            return self._carry_out()
        except (ApiRefused, PlanRefused) as error:
            if self.written():
                raise ApplyFailed(*error.problems) from error
            raise

    def _carry_out(self) -> Plan:
        clear_the_way(self.pruner)
        stages = self.planned.plan.stages
        early = 1 if self.planned_hooks.first else 0
        for stage in stages[:early]:
            self.applier.apply(stage)
        if self.due:
            self.applier.settle()
            self.hooks.phase(Phase.PRE_SYNC)
        for number in range(early, self.inputs.prepared.automatic):
            self._stage(number)
        self.applier.settle()
        if self.due:
            self.hooks.clear(Phase.SYNC)
        self._groups()
        if self.due:
            self.hooks.expect(Phase.POST_SYNC)
        self._all_healthy()
        unwritten = self._unwritten()
        if unwritten:
            self.pruner.keep_all(unwritten)
        else:
            self.pruner.prune()
        if self.due:
            self.hooks.phase(Phase.POST_SYNC)
        plan = self.planned.plan.with_outcomes([*self.applier.outcomes, *self.pruner.outcomes])
        notes = (*plan.notes, *self.waits.notes, *filter(None, [doubted(plan)]))
        return replace(plan, prunes=(*plan.prunes, *self.hooks.lost.values()), notes=notes)

    def _unwritten(self) -> list[Identity]:
        """Return what steps that may fail were to write, and haven't: a failed apply, after which nothing is pruned."""
        rollout = self.inputs.prepared.rollout
        over = passed_over(rollout, self.journal) - self.applier.written if rollout else frozenset()
        return sorted(each.identity for each in self.planned.plan.writes if each.identity in over and each.action is not Action.PRUNE)

    def _stage(self, number: int) -> None:
        stage = self.planned.plan.stages[number]
        hooks = [item.identity for item in self.inputs.prepared.stages[number] if item.mode is Mode.HOOK] if self.due else []
        todo = self.hooks.open(Phase.SYNC, hooks)
        self._await(number, [*(change.identity for change in stage if change.writes), *todo])
        self.applier.apply(stage)
        self.hooks.wave(Phase.SYNC, hooks)

    def _note(self, written: Sequence[Desired]) -> None:
        """Keep which Jobs were applied that remove themselves: the next run mustn't take them for missing."""
        fresh = expired_jobs.applied(written)
        if fresh:
            self.run.record(lambda state: expired_jobs.noted(state, fresh))

    def _await(self, number: int, coming: Iterable[Identity]) -> None:
        awaits = self.inputs.prepared.awaits
        needed = sorted({need for one in coming for need in awaits.get(one, ())} - self._kept())
        if needed:
            self.applier.settle()
            more = f" and {len(needed) - _NAMED} more" if len(needed) > _NAMED else ""
            what = f"{', '.join(map(str, needed[:_NAMED]))}{more} (before stage {number + 1} of {len(self.planned.plan.stages)})"
            items = [self.planned.desired[one] for one in needed]
            self._healthy(what, items, self.run.deps.target.wait or Wait())

    def _groups(self) -> None:
        rollout = self.inputs.prepared.rollout
        if self.due and rollout:
            StepRunner(self.applier, self.waits, self.journal, self.run.deps.actions).go(rollout)
        for stage in () if self.due else self.planned.plan.stages[self.inputs.prepared.automatic :]:
            self.applier.apply(repaired(stage))
        self.applier.settle()

    def _all_healthy(self) -> None:
        after = self.due and self.hooks.open(Phase.POST_SYNC, self.planned_hooks.of(Phase.POST_SYNC))
        limits = self.run.deps.target.wait or (Wait() if after else None)
        if limits:
            self._healthy("everything", self._living(), limits)

    def _healthy(self, what: str, items: Sequence[Desired], limits: Wait) -> None:
        """Wait until these are healthy; the record says for what and since when, so that the next run goes on with what time is left."""
        self.waits.healthy(StateWaitRecord(self.run, what), items, self.applier.stored.generations, limits)

    def _living(self) -> tuple[Desired, ...]:
        """Return what is to live and is ours: not hooks, not what another has where a step would only create it, nor what might fail."""
        left = self._kept()
        rollout = self.inputs.prepared.rollout
        left |= passed_over(rollout, self.journal) if rollout else frozenset()
        found = [item for identity, item in self.planned.desired.items() if item.mode is not Mode.HOOK and identity not in left]
        return tuple(item for item in found if not self.repairs or self.due or item.identity in self.applier.written)

    def _kept(self) -> set[Identity]:
        return {change.identity for change in self.planned.plan.changes if change.action is Action.SKIP}

    def _fail(self, error: AuthorError | QuotaExceeded) -> None:
        """End a failed rollout: run its SyncFail hooks, whose own failure is reported beside the first and never hides it."""
        try:
            with contextlib.suppress(TransientError, OperatorError):  # tidying up hides no failure
                self.hooks.clear(Phase.SYNC)
            self.hooks.phase(Phase.SYNC_FAIL)
        except (AuthorError, OperatorError, NewerHead) as also:
            then = (Problem(each.subject, f"then: {each.message}", each.place, each.fix) for each in also.problems)
            error.problems = (*error.problems, *then)
        self.journal.end(FAILED)


def only_repairs(run: RunContext, inputs: Inputs) -> bool:
    """Whether what a run brings, whose attempt isn't open yet, is recorded already: then live has drifted."""
    settled = run.is_recorded() and run.state.attempt is None and not run.force
    return settled and run.state.digest == inputs.prepared.digest
