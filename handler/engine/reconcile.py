"""The one place where the stages meet: one target, one request, from the state read to the state written.

    read the state; resolve the branch head        the payload's commit is a hint, the git host decides
    nothing new, or refused still?                 -> ends after a few reads
    a target that it depends on isn't ready?       -> waits; what is recorded is held all the same
    fetch; the same reads?                         -> record the commit
    render, admit, plan                            no writer is in hand yet
    that failed beside another run?                -> plan once more, under the Lease
    nothing to write?                              -> the record alone, if it differs
    a guard holds, or the CLI's user says no?      -> held until a person approves; planned
    take the Lease; state or head moved?           -> plan once more, from that head
    open the attempt, apply, prune, record         the commit moves last (`relocation`: what was another record's)
    release; asked for meanwhile?                  -> again

Everything can be repeated: the next run finishes or repairs a killed one. An open attempt is found at the start: then the Lease is taken
before planning. Errors are recorded and become a Result; only mistakes of ours are raised.
"""

from __future__ import annotations

import contextlib
import threading
import time
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial

from handler.cluster.api import stalled
from handler.engine import canary_cleanup, dependency_gate, health_look, outcomes, relocation, requests, rollback, shortcuts
from handler.engine.planner.desired import Inputs
from handler.engine.planner.planner import Planned
from handler.engine.run import plan_request, push_lag, revision, transitions
from handler.engine.run.context import Round, RunContext
from handler.engine.run.dependencies import Dependencies
from handler.engine.run.errors import NotPromoted, masked_error
from handler.model.errors import (
    AnnealError,
    Busy,
    CommitUnproven,
    LeaseLost,
    Moved,
    NewerHead,
    ServerPinned,
    StillWaiting,
    Stopping,
    Suspended,
)
from handler.model.event import Job
from handler.model.names import run_id
from handler.model.queue_view import ALONE, QueueView
from handler.model.result import IN_SYNC, Outcome, Result
from handler.model.run_event import HealthChanged

_TRIES = 3
_UNRECORDED = {LeaseLost: Outcome.BUSY, Suspended: Outcome.SUSPENDED, ServerPinned: Outcome.FAILED, NotPromoted: Outcome.WAITING}
"""Errors that leave no word in the record: another has it, a person does, it is for another cluster, or nothing is due yet."""


@dataclass(frozen=True, slots=True)
class Lookahead:
    """What was decided without the Lease, and on which state and head; both must still hold under it."""

    version: str
    revision: str
    inputs: Inputs
    planned: Planned


def reconcile(deps: Dependencies, job: Job, stop: threading.Event | None = None, queue: QueueView = ALONE) -> Result:
    """Run one target once, and again for whatever was asked for meanwhile: one run, of several rounds then. Raises no AnnealError.

    `job`: its commit is explicit, its hint is not trusted. `stop`: ends the run at the next write; the next run goes on. `queue`: the run's
    view of other requests and of its worker slot. The Result says how it ended, and what all its rounds wrote.
    """
    stop, name = stop or threading.Event(), job.run or run_id(job.target)
    run = RunContext(deps, job, stop, name, Round(deps.clock()), queue)
    since = time.monotonic()
    try:
        result = copy_context().run(_unlocked, run)
    except Busy as error:
        result = run.problem_result(Outcome.BUSY, masked_error(requests.busy(run, error)))
    except AnnealError as error:
        result = _ended_by(run, error)
    finally:
        try:
            relocation.free(run)
        finally:
            if run.lease:
                run.lease.hand_over()
    result = requests.noted(run, job, run.whole(result))
    if run.stored.state is not None:
        deps.preparer.recorded = run.stored.state.commit, time.monotonic()
    _announce_health(run)
    standing = transitions.standing(run.stored.state, result, deps.clock())
    seconds = round(time.monotonic() - since, 3)
    return replace(_looking_on(run, job, result), duration=seconds, standing=standing, moved=_has_moved(run))


def _has_moved(run: RunContext) -> bool:
    return run.was is not None and run.stored.state is not None and run.stored.state.commit != run.was.commit


def _announce_health(run: RunContext) -> None:
    state, was = run.stored.state, run.was
    if state is not None and was is not None and state.health.state != was.health.state:
        run.deps.announce(HealthChanged(run.job.target, was.health.state, state.health.state, state.health.worst, run.run))


def _looking_on(run: RunContext, job: Job, result: Result) -> Result:
    """Return a run's end with when it is looked at again: for a commit that may be proven by then, and for a push that isn't shown yet."""
    due = run.revision.promotion.due
    result = replace(result, next_try=min(filter(None, (result.next_try, due)))) if due else result
    if run.stored.state is None:
        return result
    again = push_lag.later(job, result, run.revision.named, run.deps.target.revision, transitions.deployed(run.state))
    return replace(result, again=again, again_at=run.deps.clock() + push_lag.WAITS[job.looks]) if again else result


def _ended_by(run: RunContext, error: AnnealError) -> Result:
    """Turn an error into the run's end; a lost Lease, a pinned server, a pause and our own shutdown record nothing."""
    masked_error(error, run.closed)  # before anything of it is kept or returned
    unrecorded = next((outcome for kind, outcome in _UNRECORDED.items() if isinstance(error, kind)), None)
    if unrecorded:
        return run.problem_result(unrecorded, error)
    if isinstance(error, NewerHead) and not error.asked:
        return outcomes.superseded(run, error)
    if isinstance(error, StillWaiting | NewerHead):
        return outcomes.waiting(run, error)
    if isinstance(error, Stopping) or (run.stop.is_set() and error.who == "nobody"):
        return replace(run.problem_result(Outcome.BUSY, error), code=Stopping.code)
    return outcomes.rejected(run, error) if outcomes.is_mistaken(run, error) else outcomes.failed(run, canary_cleanup.withdrawn(run, error))


def _unlocked(run: RunContext) -> Result:
    stalled.set(run.stalls)
    run.read()
    ended = requests.ended_before(run)
    if ended:
        return ended
    rollback.resolve(run)
    if not run.job.dry_run:
        if run.job.approve or run.job.unpin:
            requests.ask(run)
        run.raise_if_suspended()
    if run.state.attempt and not run.job.dry_run and not run.deps.agrees:
        return _refused_meanwhile(run) or _locked(run, None)  # where a person is asked first, the Lease isn't held meanwhile
    revision.choose(run)
    unchanged = shortcuts.unchanged(run)
    if unchanged and unchanged.outcome is Outcome.UNCHANGED:
        health_look.look(run)
        outcomes.judge(run)
    ended = unchanged or _refused_still(run) or dependency_gate.ended(run)
    if ended:
        return ended
    run.look_for_members()
    return _look(run)


def _refused_still(run: RunContext) -> Result | None:
    if not run.revision.refused or run.revision.behind or (run.state.attempt and canary_cleanup.known(run.state)):
        return None
    if run.state.attempt is None:
        health_look.look(run)
    return outcomes.refused_still(run)


def _refused_meanwhile(run: RunContext) -> Result | None:
    """Return the end of a run that finds an attempt open, and what has overtaken it refused or waiting still; the Lease isn't asked for."""
    if run.state.status.refusal is None and run.state.awaits is None:
        return None
    with contextlib.suppress(AnnealError):  # it is met again under the Lease, and recorded
        revision.choose(run)
        return _refused_still(run) or dependency_gate.ended_before(run)
    return None


def _look(run: RunContext, *, again: bool = True) -> Result:
    if shortcuts.same_reads(run):
        return outcomes.commit_only(run)
    if unproven := _unproven(run):
        return unproven
    inputs = run.inputs()
    try:
        planned = plan_request.plan(run, inputs)
    except AnnealError:
        if not (again and _is_beside_another(run)):
            raise
    else:
        return _ended_by_plan(run, inputs, planned) or _carried_out(run, inputs, planned)
    return _look_again(run)


def _unproven(run: RunContext) -> Result | None:
    """Return the end of a run that holds a recorded pin to which the branch doesn't lead. Raises CommitUnproven: it had more to do."""
    try:
        revision.prove(run)
    except CommitUnproven as error:
        if run.force or run.job.dry_run or run.state.attempt or run.state.pin is None or not run.is_recorded():
            raise
        return replace(run.result(Outcome.UNCHANGED, f"held as it is: {error.problems[0].message}"), recorded=True)
    return None


def _is_beside_another(run: RunContext) -> bool:
    """Whether another run has written since the state was read, or may do so now."""
    # The API server counts an object against its quota before it shows it: a dry-run in that moment is refused.
    with contextlib.suppress(AnnealError):  # the failure that is asked about is the one to report
        fresh = run.deps.store.read()
        moved = fresh.resource_version != run.stored.resource_version
        return moved or (fresh.state is not None and fresh.state.attempt is not None)
    return False


def _look_again(run: RunContext) -> Result:
    """Judge anew what failed beside another run: under the Lease, which no dry-run takes and no question to a person holds."""
    if not (run.job.dry_run or run.deps.agrees):
        return _locked(run, None)
    run.read()
    if not run.job.dry_run:
        run.raise_if_suspended()
    run.look_for_members()
    revision.choose(run)
    return shortcuts.unchanged(run) or dependency_gate.ended(run) or _look(run, again=False)


def _carried_out(run: RunContext, inputs: Inputs, planned: Planned) -> Result:
    first = not run.stored.uid or run.job.commit
    if not (run.state.attempt or run.state.former or planned.plan.works or first):
        return outcomes.unwritten(run, inputs, planned)
    if not _is_agreed(run, planned):
        return run.result(Outcome.PLANNED, planned=planned)
    look = Lookahead(run.version, run.revision.commit, inputs, planned)
    return _locked(run, None if run.state.attempt else look)


def _is_agreed(run: RunContext, planned: Planned) -> bool:
    """Whether a plan may be carried out, as the CLI's user says; the way back from a failed rollout isn't asked about."""
    agrees = run.deps.agrees
    return agrees is None or not planned.plan.works or run.job.trigger == "rollback" or agrees(planned.plan)


def _ended_by_plan(run: RunContext, inputs: Inputs, planned: Planned) -> Result | None:
    if run.job.dry_run:
        return run.result(Outcome.PLANNED, planned=dependency_gate.noted(run, inputs, planned))
    if run.only_reports(inputs):
        return outcomes.drift(run, planned)
    hold = run.hold(planned, inputs)
    return outcomes.held(run, hold, inputs, planned) if hold else None


def _locked(run: RunContext, look: Lookahead | None) -> Result:
    deps = run.deps
    run.lease = deps.lock.acquire(wait=deps.lease_duration * 1.2, requested=partial(requests.ask, run), stop=run.stop)
    relocation.hold(run)
    while True:
        try:
            result = _rounds(run, look)
        except LeaseLost:
            raise
        except AnnealError as error:
            result = _ended_by(run, error)
        if not _goes_on(run, result):
            return result
        look = None
        run.again(result)


def _goes_on(run: RunContext, result: Result) -> bool:
    """Whether to run again: to go back, and when a run was requested meanwhile (one without prune leaves it to a tick)."""
    if run.lease is None or run.stop.is_set():
        return False
    if run.round.turned:
        return True
    if result.outcome in (Outcome.ROLLED_BACK, Outcome.REFUSED, Outcome.PLANNED):
        return False  # what was asked for meanwhile runs next: nothing may hide how this one ended
    if run.recovery and result.outcome in IN_SYNC:
        return False  # what it has kept is pruned by a run of its own, whose plan shows it; a request that came meanwhile is left to that
    with contextlib.suppress(AnnealError):  # trouble with the Lease changes nothing of what is done: `hand_over` frees it
        return run.job.prune and not run.lease.release() and run.lease.take_request()
    return False


def _rounds(run: RunContext, look: Lookahead | None) -> Result:
    """Try a round again whose state a person changed in the moment before its attempt opened."""
    for _ in range(_TRIES):
        result = _round(run, look)
        if result:
            return result
        look = None
    raise Moved.of(f"target {run.job.target}", f"its state changed {_TRIES} times before the attempt could open")


def _round(run: RunContext, look: Lookahead | None) -> Result | None:
    """One round under the Lease: read and resolve again, plan again if either moved, then write; None if the state moved again."""
    run.round.opened, run.round.written = False, tuple
    run.read(certain=True)
    repeated = requests.ended_before(run)
    if repeated:
        return repeated
    run.raise_if_suspended()
    revision.choose(run)
    still = _refused_still(run)
    if still:
        return still
    if look is None or (look.version, look.revision) != (run.version, run.revision.commit):
        idle = shortcuts.unchanged(run) or dependency_gate.ended(run) or _unproven(run)
        if idle:
            return idle
        inputs = run.inputs()
        look = Lookahead(run.version, run.revision.commit, inputs, plan_request.plan(run, inputs))
        ended = _ended_by_plan(run, look.inputs, look.planned)
        if ended:
            return ended
    if not look.planned.plan.works and run.stored.uid and not run.state.attempt and relocation.is_claimed(run):
        return relocation.finish(run, outcomes.unwritten(run, look.inputs, look.planned), look.planned)
    return _write(run, look) if _is_agreed(run, look.planned) else run.result(Outcome.PLANNED, planned=look.planned)


def _write(run: RunContext, look: Lookahead) -> Result | None:
    from handler.engine.rollout_runner.runner import RolloutRunner, only_repairs

    assert run.lease is not None  # noqa: S101 - a round runs under the Lease
    token = run.lease.token
    repairs = only_repairs(run, look.inputs)
    takeover = run.state.attempt is not None and run.state.attempt.token != token
    pin, now = revision.pin_left(run), run.deps.clock()
    state = transitions.opened(run.state, look.inputs, look.planned, token, pin, now, force=run.force)
    state = state if run.revision.behind else replace(state, awaits=None)
    try:
        run.stored = run.deps.store.swap(run.stored, state, token) if run.stored.uid else run.deps.store.create(state)
    except Moved:
        return None
    run.round.opened = True
    relocation.claim(run)
    relabelled = relocation.relabel(run, look.planned)
    walk = RolloutRunner(run, look.inputs, look.planned, repairs)
    run.round.written = lambda: (*relabelled, *walk.written())
    planned = replace(look.planned, plan=replace(walk.go(), relabelled=relabelled))
    return relocation.finish(run, outcomes.applied(run, look.inputs, planned, token, takeover=takeover), planned)
