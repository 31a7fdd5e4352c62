"""Each way a run ends is one function: it makes the Result and writes what the record keeps of it (`run.transitions` says what that is).

Law: inside our open attempt it is written in any case, and what persons wrote meanwhile stays. Anything else is a swap, which is dropped
where the record has moved: another run is asked for then, but for a failure, which the Result alone reports.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from handler.engine import rollback
from handler.engine.apply.prune import doubted
from handler.engine.planner import expired_jobs
from handler.engine.planner.desired import Inputs
from handler.engine.planner.planner import Planned
from handler.engine.run import refusals, revision, transitions
from handler.engine.run.context import RunContext
from handler.engine.run.errors import DependencyNotReady, RequestRefused
from handler.engine.run.plan_request import remarks
from handler.model.backoff import TRANSIENT
from handler.model.errors import (
    AnnealError,
    Busy,
    CommitUnproven,
    Moved,
    NewerHead,
    Problem,
    RefNotFound,
    StillDeleting,
    StillWaiting,
)
from handler.model.event import Job
from handler.model.numbers import many
from handler.model.plan import Hold
from handler.model.result import Outcome, Result, wrote
from handler.model.run_event import PlanHeld
from handler.state import run_history
from handler.state.record import Refusal, Run, RunStatus, State
from handler.state.record_format import seconds_of, stamp
from handler.state.record_values import DependencyWait

_LOOK_AGAIN = 15.0  # seconds until the next run is due: after one that may not wait itself, and after a recovery


def commit_only(run: RunContext) -> Result:
    """Record a commit that changes nothing the render reads."""
    result = run.result(Outcome.UNCHANGED, "nothing that it reads changed")
    deliveries = run_history.deliveries(run.state.deliveries, run.job.deliveries)
    charts = run.outside(run.revision.commit).recorded()
    return _end(run, replace(run.state, commit=run.revision.commit, charts=charts, held=None, deliveries=deliveries), result)


def unwritten(run: RunContext, inputs: Inputs, planned: Planned) -> Result:
    """Bring the record up to date after a plan without object writes; write nothing when it is so already, but for deliveries."""
    message = "; ".join(filter(None, (planned.plan.verdict, *remarks(run, inputs, planned.plan), str(run.revision.promotion))))
    result = run.result(Outcome.UNCHANGED, message, planned)
    due, pinned = _due(run, planned), replace(run.state, pin=revision.pin_left(run))
    state = transitions.recorded(pinned, inputs, planned, run.job, recovery=run.recovery, drift_due=due, now=run.deps.clock())
    result = replace(result, next_try=due)
    as_it_was = replace(state, deliveries=run.state.deliveries, health=run.state.health) == run.state
    if as_it_was and (run.revision.behind or run.state.status.phase == "applied"):
        judge(run, state)
        return replace(result, recorded=True)
    return _end(run, replace(state, health=run.health(state, anew=state.commit != run.state.commit)), result)


def judge(run: RunContext, left: State | None = None) -> None:
    """Record how the target does where that has changed; a swap may be dropped. `left`: the record as a plan leaves it."""
    seen = replace(run.state, health=run.health(left or run.state))
    if seen != run.state or not run.deps.store.is_summed(run.stored):
        with contextlib.suppress(Moved, Busy):
            swap(run, seen)


def _due(run: RunContext, planned: Planned) -> float:
    """Return when a drift run is due: after a recovery soon, else as what is left, its grace, or what wasn't due yet at the start asks."""
    if run.recovery:
        return run.deps.clock() + _LOOK_AGAIN
    now, due = run.deps.clock(), seconds_of(run.state.drift_due) if run.state.drift_due else 0.0
    kept = due if due > run.round.started else 0.0
    grace = transitions.grace_due(transitions.unmarked_orphans(planned), now, run.deps.planner.api.server_time())
    asked = (kept, transitions.look_due(run.state, planned, now), grace)
    return min((each for each in asked if each), default=0.0)


def held(run: RunContext, hold: Hold, inputs: Inputs, planned: Planned) -> Result:
    """Record what waits for a person, and the pin that an explicit commit leaves, so that the approval finds it; once."""
    result = run.result(Outcome.HELD, f"held as {hold.id}: {'; '.join(hold.reasons)}", planned)
    once, known = run.deps.once, run.state.held
    if known and (known.id, known.once) == (hold.id, once) and run.state.status.phase == "held":
        judge(run)
        return replace(result, recorded=True)
    seen = replace(run.state, health=run.health(run.state))
    pinned = replace(seen, pin=revision.pin_left(run)) if run.job.commit else seen
    ended = _end(run, transitions.held(pinned, hold, inputs, run.job, run.deps.clock(), once), result)
    if ended.recorded:
        run.deps.announce(PlanHeld(run.job.target, run.run, run.revision.commit, hold))
    return ended


def drift(run: RunContext, planned: Planned) -> Result:
    """Record what changed behind git's back, when that record differs."""
    found = run_history.drift_of(planned.plan.writes)
    writes = len(planned.plan.writes)
    seen = f"{many(writes, 'object')} differ{'s' if writes == 1 else ''} from git"
    result = run.result(Outcome.DRIFTED if writes else Outcome.UNCHANGED, seen, planned)
    orphans = transitions.orphans(run.state, planned, run.deps.clock())
    if (found, orphans) == (run.state.drift, run.state.orphans) and run.state.requested is None:
        judge(run)
        return replace(result, recorded=True)
    deliveries = run_history.deliveries(run.state.deliveries, run.job.deliveries)
    health = run.health(run.state)
    return _end(run, replace(run.state, drift=found, orphans=orphans, requested=None, deliveries=deliveries, health=health), result)


def applied(run: RunContext, inputs: Inputs, planned: Planned, token: str, *, takeover: bool) -> Result:
    """Record a finished run: the commit moves, the attempt closes. Raises LeaseLost when that is another's to say by now."""
    assert run.lease is not None  # noqa: S101 - a run writes under the Lease
    run.lease.check()
    more = (doubted(planned.plan), *remarks(run, inputs, planned.plan))
    message = "; ".join(filter(None, [wrote(planned.plan.writes), *more]))
    result = rollback.rolled_back(run, run.result(Outcome.APPLIED, message, planned))
    now = run.deps.clock()
    due = now + run.deps.lease_duration if takeover else _due(run, planned)
    entry = run.entry(result)

    def change(state: State) -> State:
        moved = transitions.recorded(state, inputs, planned, run.job, recovery=run.recovery, drift_due=due, now=now)
        return _ended(run, replace(moved, health=run.health(moved, anew=True)), result, entry, now)

    run.stored = run.deps.store.write(run.stored, change, token)
    return replace(result, next_try=due, recorded=True)


def failed(run: RunContext, error: AnnealError) -> Result:
    """Record a failure, and the way back or the refusal that follows from it, in one write; an open attempt stays open."""
    refusal = _refusal(run, error)
    back, error = rollback.way_back(run, error), rollback.explained(run, error)
    outcome = Outcome.PRUNING if isinstance(error, StillDeleting) else Outcome.FAILED
    result = run.problem_result(outcome, error)
    now = run.deps.clock()
    if run.stored.state is None or run.job.dry_run or (run.revision.behind and not run.round.opened):
        soon = now + TRANSIENT.first if error.who == "nobody" and not run.job.dry_run else 0.0
        return replace(result, next_try=soon)

    entry = run.entry(result)

    def change(state: State) -> State:
        failed = replace(run_history.failed(state.status, error, now), phase=str(outcome), counts=entry.counts, refusal=refusal)
        status = _judged(run, failed)
        deliveries = run_history.deliveries(state.deliveries, run.job.deliveries)
        pin = state.pin or back  # the head's attempt opens without one: what is there by now is a person's word
        left = replace(expired_jobs.forgotten(state, error), health=run.health(state))
        return replace(left, status=status, history=run_history.append(state.history, entry), deliveries=deliveries, pin=pin)

    state, recorded = _kept(run, change)
    run.round.turned = recorded and back is not None and state.pin is not None and state.pin.automatic  # the record cuts a long reason
    return replace(result, next_try=seconds_of(state.status.next_try) if state.status.next_try else 0.0, recorded=recorded)


def _refusal(run: RunContext, error: AnnealError) -> Refusal | None:
    if run.stored.state is None or run.job.dry_run:
        return None
    return run.state.status.refusal if run.revision.behind else refusals.of(run, error)


def refused_still(run: RunContext) -> Result:
    """Return the end of a run whose commit is refused still. Another commit that reads the same is recorded once."""
    name, state, refusal = run.job.target, run.state, run.state.status.refusal
    assert refusal is not None  # noqa: S101 - asked by the caller
    is_new = refusal.commit != run.revision.commit
    like = f"reads what {refusal.commit[:12]} has read, and is refused as that was" if is_new else "is refused still"
    problem = Problem(f"target {name}", f"{run.revision.commit[:12]} {like}", fix=refusals.awaits(refusal, name))
    result = run.result(Outcome.FAILED, state.status.message)
    result = replace(result, problems=(problem,), who=state.status.who, code=state.status.code, recorded=True)
    seen = replace(state, deliveries=run_history.deliveries(state.deliveries, run.job.deliveries), health=run.health(state))
    if is_new:
        status = replace(state.status, failures=state.status.failures + 1, refusal=replace(refusal, commit=run.revision.commit))
        seen = replace(seen, status=status, history=run_history.append(state.history, run.entry(result)))
    if seen != state or not run.deps.store.is_summed(run.stored):
        with contextlib.suppress(Moved, Busy):
            swap(run, seen)
    return result


def awaiting(run: RunContext, wait: DependencyWait) -> Result:
    """Record that what a run would bring waits for other targets; once, as long as it is for the same reasons."""
    problems = (Problem(f"waiting for {each.target}", each.why, fix=each.fix) for each in wait.on)
    result = run.problem_result(Outcome.WAITING, DependencyNotReady(*problems))
    state, deliveries = run.state, run_history.deliveries(run.state.deliveries, run.job.deliveries)
    seen = replace(state, awaits=wait, health=run.health(state), deliveries=deliveries)
    if (state.awaits, state.status.phase) != (wait, str(Outcome.WAITING)):
        overtaken = state.status.phase == run_history.ROLLING
        return _end(run, replace(seen, status=replace(state.status, phase="")) if overtaken else seen, result)
    if seen != state or not run.deps.store.is_summed(run.stored):
        with contextlib.suppress(Moved, Busy):
            swap(run, seen)
    return replace(result, recorded=True)


def is_mistaken(run: RunContext, error: AnnealError) -> bool:
    """Whether an error says nothing of the target, only of what was asked of it; so does a commit that the branch, or the host, hasn't."""
    named = bool(run.job.commit) and run.revision.commit == run.job.commit and not run.round.opened
    gone = isinstance(error, CommitUnproven) or (isinstance(error, RefNotFound) and revision.never_ran(run))
    return isinstance(error, RequestRefused) or (named and gone)


def rejected(run: RunContext, error: AnnealError) -> Result:
    """Return the end of a request that can't be done; a wait that it ended, and what else was asked, go on in a run of their own."""
    result = replace(run.problem_result(Outcome.REFUSED, error), commit="")
    waits = run.state.attempt is not None and run.state.status.phase in (Outcome.WAITING, run_history.ROLLING)
    if run.job.dry_run or not (waits or _is_asked_for(run)):
        return result
    return replace(result, again=Job(run.job.target, "tick"), again_at=run.deps.clock())


def _is_asked_for(run: RunContext) -> bool:
    with contextlib.suppress(AnnealError):
        return run.lease is not None and not run.lease.release()
    return False


def superseded(run: RunContext, error: NewerHead) -> Result:
    """Record that a newer head (for good) or a pin came while this commit was waited for; its attempt stays open until that is applied."""
    result = run.result(Outcome.SUPERSEDED, str(error))
    entry = run.entry(result)
    goes_on = run.revision.head in ("", run.revision.commit)
    run.record(lambda state: replace(state, waiting=state.waiting if goes_on else None, history=run_history.append(state.history, entry)))
    if goes_on or any(not job.acts for job in run.queue.asked()):
        return replace(result, recorded=True)  # what waits in the queue goes on with it
    again = Job(run.job.target, "push", hint=run.revision.head, actor=run.job.actor)
    return replace(result, recorded=True, again=again, again_at=run.deps.clock())


def waiting(run: RunContext, error: StillWaiting | NewerHead) -> Result:
    """Record that a run may not wait as long as what it applied needs, or was interrupted; the next run goes on with its attempt."""
    due = run.deps.clock() + _LOOK_AGAIN
    result = replace(run.problem_result(Outcome.WAITING, error), next_try=due)
    entry = run.entry(result)

    def change(state: State) -> State:
        # what interrupted it may be refused yet: the entry says superseded only once an attempt for another commit opens
        runs = run_history.append(state.history, entry) if isinstance(error, NewerHead) else state.history
        status = _judged(run, run_history.ended(state.status, result, run.deps.clock()))
        health = run.health(state, anew=True)
        since = state.health.since if health.state == state.health.state else health.since  # it goes on with what time is left
        return replace(state, status=status, history=runs, health=replace(health, since=since))

    run.record(change)
    return replace(result, recorded=True)


def _judged(run: RunContext, status: RunStatus) -> RunStatus:
    return status if run.round.unhealthy is None else replace(status, unhealthy=run.round.unhealthy)


def _kept(run: RunContext, change: transitions.StateChange) -> tuple[State, bool]:
    """Write a failure, and say whether that was possible; where the record can't be written now, the Result alone reports it."""
    state = change(run.state)
    try:
        if run.lease and run.state.attempt and run.state.attempt.token == run.lease.token:
            run.stored = run.deps.store.write(run.stored, change, run.lease.token)
        elif run.lease or not run.state.attempt:
            swap(run, state)
        else:
            return run.state, False
    except AnnealError:
        return state, False
    return run.state, True


def _taken_over(run: RunContext, state: State) -> State:
    """Make a dead holder's open attempt ours; what it had on the wire is looked for by a drift run."""
    assert state.attempt is not None  # noqa: S101 - asked by the caller
    assert run.lease is not None  # noqa: S101 - asked by the caller
    due = stamp(run.deps.clock() + run.deps.lease_duration)
    return replace(state, attempt=replace(state.attempt, token=run.lease.token), drift_due=due)


def _end(run: RunContext, state: State, result: Result) -> Result:
    """Write status and history with the record; a swap that is dropped asks for another run."""
    now = run.deps.clock()
    ended = _ended(run, state, result, run.entry(result), now)
    try:
        swap(run, ended)
    except (Moved, Busy):
        run.deps.lock.request()
        return replace(result, next_try=now + 1)
    return replace(result, recorded=True)


def _ended(run: RunContext, state: State, result: Result, entry: Run, now: float) -> State:
    """Return the state with a run's end; where that only held the recorded commit, how the target stands is said by the refused head."""
    after = transitions.ended(state, result, entry, now)
    if run.revision.behind:
        return replace(after, status=state.status)
    return after if result.code == DependencyNotReady.code else replace(after, awaits=None)


def swap(run: RunContext, state: State) -> None:
    """Create the first record, or swap; under the Lease a dead holder's open attempt becomes ours."""
    token = run.lease.token if run.lease else None
    if not run.stored.uid:
        run.stored = run.deps.store.create(state)
    elif token and state.attempt and state.attempt.token != token:
        run.stored = run.deps.store.swap(run.stored, _taken_over(run, state), token)
    else:
        run.stored = run.deps.store.swap(run.stored, state, token)
