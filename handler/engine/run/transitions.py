"""What the state is after something: an attempt opened, a commit recorded, a plan held, a run ended. Pure: State in, State out.

Law: `attempt` opens before the first object write and closes when the commit moves; `kinds` and `namespaces` only grow, but for a drift
run that looked everywhere, wrote nothing, and found no member of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from handler.engine.health.target_health import apart
from handler.engine.planner import due, expired_jobs
from handler.engine.planner.desired import Inputs
from handler.engine.planner.due import DONE, FAILED, SKIPPED, recovers
from handler.engine.planner.planner import Planned
from handler.model.errors import AuthorError
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.plan import Action, Hold
from handler.model.render import UPGRADED
from handler.model.result import IN_SYNC, Outcome, Result, TargetStanding
from handler.model.run_event import OpenWait, RunPhase
from handler.plan.admission import NAMESPACE
from handler.state import run_history
from handler.state.record import Approval, Attempt, HeldPlan, NamedRequest, Orphan, Pin, Progress, Run, RunStatus, State
from handler.state.record_format import seconds_of, stamp
from handler.state.record_values import AS_CONFIGURED, RunOnce
from handler.state.summary import drifted

StateChange = Callable[[State], State]
_DIGEST = 16  # characters of a digest that tell two deployments of one target apart
_SOON, _LATEST = 15.0, 300.0
_ONLY_SHOWN = (Outcome.PLANNED, Outcome.BUSY, Outcome.SUSPENDED)
"""Ends at which a commit was looked at and neither deployed nor refused."""


def widened(state: State, desired: Iterable[Identity], planned: Planned) -> State:
    """Return the superset that must be written before the first object is."""
    identities = list(desired)
    kinds = {identity.group_kind for identity in identities} | planned.present
    return replace(state, kinds=state.kinds | kinds, namespaces=state.namespaces | _namespaces_of(identities))


def opened(state: State, inputs: Inputs, planned: Planned, token: str, pin: Pin | None, now: float, *, force: bool = False) -> State:
    """Return the state with an open attempt: written before the first object write. `force`: what failed is asked for once more."""
    attempt = Attempt(inputs.commit.sha, inputs.reads, inputs.settings, token, stamp(now), _back(state.attempt, inputs.commit.sha, pin))
    attempt = replace(attempt, recovery=recovers(state))
    digest = state.digest if state.digest == inputs.prepared.digest else ""  # from now on what lives isn't what was recorded
    rollout = None if _comes_anew(state, inputs.prepared.digest) else state.rollout
    waiting = state.waiting if state.waiting and state.waiting.commit == attempt.commit else None
    wide = expired_jobs.opened(widened(state, planned.desired, planned), planned.plan.changes, planned.desired, planned.given)
    if state.attempt and state.attempt.commit != attempt.commit:
        wide = replace(wide, history=run_history.overtaken(state.history, state.attempt.commit, attempt.commit))
    closed, known = tuple(sorted({*state.health.closed, *inputs.prepared.closed})), state.health
    judged = stamp(now) if known.state else known.judged  # a watch doesn't vouch for it from now on; the plan has looked at it a moment ago
    wide = replace(wide, health=replace(known, judged=judged, closed=closed))
    wide = replace(wide, repository=inputs.repository)  # from now on it is this one's: `StateStore.at_home` has compared it
    if attempt.commit != state.commit:  # else it only mends what is recorded: a newer head is refused all the same
        wide = replace(wide, status=replace(wide.status, refusal=None))
    if force or (state.attempt and state.attempt.commit != attempt.commit):  # what was said of an earlier wait isn't said of this one
        wide = replace(wide, status=replace(wide.status, unhealthy=()))
    installed = UPGRADED if _upgrades(state, inputs) else state.installed
    wide = replace(
        wide, installed=installed, attempt=attempt, pin=pin, held=None, requested=None, waiting=waiting, digest=digest, rollout=rollout
    )
    return _rolling(wide, inputs, now, force=force)


def _upgrades(state: State, inputs: Inputs) -> bool:
    """Whether a release is from now on not as it was installed, also where another attempt, or a way back, follows this one."""
    installs = inputs.prepared.rendered.installs
    return bool(installs) and (recovers(state) or state.installed not in ("", installs))


def _rolling(state: State, inputs: Inputs, now: float, *, force: bool) -> State:
    """Say in an attempt's phase that it carries a rollout out; what follows one that was left, and carries none out, isn't it any more."""
    prepared, status = inputs.prepared, state.status
    if due.carries_out(state, prepared.digest, prepared.planned_hooks, prepared.rollout, force=force):
        begins = force and status.phase == Outcome.FAILED
        return replace(state, status=run_history.rolling(status, now), waiting=None if begins else state.waiting)
    if status.phase == run_history.ROLLING:
        return replace(state, status=replace(status, phase=str(Outcome.APPLIED) if state.commit else "", since=stamp(now)))
    return state


def lingering(state: State, lines: Sequence[str], before: RunStatus, now: float, first: Identity | None = None) -> State:
    """Return the state of a run that waits until something is gone; without `lines` all of it is, and the status is as `before`."""
    if lines:
        return replace(state, status=run_history.lingering(state.status, lines, now, first))
    message = "" if before.phase == run_history.PRUNING else before.message  # it was an earlier run's, of what is gone by now
    again = replace(state.status, phase=before.phase, since=before.since, message=message, code=before.code, who=before.who, lingers=None)
    return replace(state, status=again) if state.status.phase == run_history.PRUNING else state


def _comes_anew(state: State, digest: str) -> bool:
    """Whether a set whose rollout failed is brought once more: something else was recorded since, or the way back from it was left."""
    failed = state.rollout is not None and (state.rollout.digest, state.rollout.outcome) == (digest, FAILED)
    return failed and (state.attempt is None or bool(state.attempt.back))


def _back(before: Attempt | None, commit: str, pin: Pin | None) -> str:
    if before is None or pin is None or not pin.automatic or pin.commit != commit:
        return ""
    return before.back or (before.commit if before.commit != commit else "")


def recorded(state: State, inputs: Inputs, planned: Planned, job: Job, *, recovery: bool, drift_due: float, now: float) -> State:
    """Return the state after everything is applied and pruned: the commit moves.

    A recovery doesn't record reads and settings, so that the next run plans fully under the guards. `drift_due`: when a drift run must
    look for what a dead holder still had on the wire, in seconds since the epoch; 0: never.
    """
    desired = tuple(sorted(planned.desired))
    installed = UPGRADED if _upgrades(state, inputs) else state.installed or inputs.prepared.rendered.installs
    state = expired_jobs.recorded(widened(state, desired, planned), planned.plan.changes, planned.desired, planned.given)
    if job.drift and not planned.plan.writes and _looked_everywhere(state, planned):
        kinds = planned.present | {identity.group_kind for identity in desired}
        kept = {change.identity.namespace for change in planned.plan.prunes if change.identity.namespace and not change.unmarked}
        state = replace(state, kinds=frozenset(kinds), namespaces=_namespaces_of(desired) | kept)
    skipped = {change.identity for change in planned.plan.changes if change.action is Action.SKIP}
    still = {change.identity for change in planned.plan.changes if not change.writes}.intersection(state.health.closed)
    return replace(
        state,
        commit=inputs.commit.sha,
        repository=inputs.repository,
        path=inputs.path,
        reads="" if recovery else inputs.reads,
        settings="" if recovery else inputs.settings,
        reads_paths=tuple(path for path, _ in inputs.prepared.reads.paths),
        digest=inputs.prepared.digest,
        renderer=inputs.prepared.rendered.renderer,
        installed=installed,
        charts=inputs.charts,
        declared=desired,
        health=replace(state.health, apart=apart(planned.desired, skipped), closed=tuple(sorted(inputs.prepared.closed | still))),
        attempt=None,
        waiting=None,
        held=None,
        approval=None,
        requested=state.requested if state.attempt else None,  # its attempt has answered what was asked before that opened
        drift=(),
        drift_due=stamp(drift_due) if drift_due else "",
        rollout=_carried_out(state.rollout, inputs.prepared.digest, now),
        orphans=orphans(state, planned, now),
        deliveries=run_history.deliveries(state.deliveries, job.deliveries),
    )


def _carried_out(known: Progress | None, digest: str, now: float) -> Progress | None:
    """End the rollout in the write that records its commit: a kill between two would have it carried out again."""
    if known is None or known.outcome:
        return known
    return replace(known, finished=stamp(now), outcome=DONE if known.digest == digest else SKIPPED)


def _looked_everywhere(state: State, planned: Planned) -> bool:
    """Whether the LISTs reached every namespace where members can be: one that left the whitelist may be out of reach."""
    return planned.scopes is None or state.namespaces <= set(planned.scopes)


def _namespaces_of(identities: Iterable[Identity]) -> frozenset[str]:
    items = list(identities)
    named = {item.namespace for item in items if item.namespace}
    return frozenset(named | {item.name for item in items if item.group_kind == NAMESPACE})


def orphans(state: State, planned: Planned, now: float) -> tuple[Orphan, ...]:
    """Return what lives and isn't declared, keeping when each was first seen: what is ours, then what lives in exclusive namespaces.

    The canary of a rollout under way isn't one.
    """
    before = [orphan for orphan in state.orphans if not orphan.unmarked]
    known = {orphan.uid: orphan for orphan in before}
    found = (change for change in planned.plan.prunes if not change.unmarked)
    kept = [change for change in found if change.action is Action.SKIP and not change.of_step]
    looked = planned.scopes
    unseen = [each for each in before if looked is not None and each.identity.namespace and each.identity.namespace not in looked]
    seen = (replace(known.get(each.uid, Orphan(each.uid, each.identity, stamp(now))), sibling=each.sibling) for each in kept)
    return (*seen, *unseen, *unmarked_orphans(planned))


def unmarked_orphans(planned: Planned) -> tuple[Orphan, ...]:
    """Return what a record keeps of exclusive namespaces, but for what a plan, as it came out, has deleted."""
    gone = {change.uid for change in planned.plan.prunes if change.unmarked and change.action is Action.PRUNE}
    return tuple(each for each in planned.exclusive.orphans if each.uid not in gone)


def grace_due(found: Iterable[Orphan], now: float, server: float) -> float:
    """Return when a drift run is due to delete an orphan whose grace is over, 15 s from now at the soonest; 0: none has an end.

    `now`: by the clock of records; `server`: by the API server's, which decides: where that is behind, it is waited for.
    """
    end = min((seconds_of(each.until) for each in found if each.until), default=0.0)
    return now + max(end - server, _SOON) if 0.0 < end <= now + _SOON else end


def look_due(state: State, planned: Planned, now: float) -> float:
    """Return when what is left to siblings, or is being deleted, must be looked at again (15 s to 5 min from now); 0: nothing is."""
    left = {change.uid for change in planned.plan.prunes if change.is_left}
    since = min((seconds_of(orphan.since) for orphan in state.orphans if orphan.uid in left and orphan.sibling), default=now)
    begun = [
        *([since] if left else []),
        *(seconds_of(change.terminating) for change in planned.plan.changes if change.terminating and change.action is not Action.PRUNE),
    ]
    looks = [now + min(max(now - each, _SOON), _LATEST) for each in begun]
    return min(looks or ([now + _LATEST] if planned.given else [0.0]))  # `given`: kept for a sibling until it has noted it


def held(state: State, hold: Hold, inputs: Inputs, job: Job, now: float, once: RunOnce = AS_CONFIGURED) -> State:
    """Return the state of a plan that waits for a person; the same plan again changes nothing. `once`: see `Dependencies`."""
    since = state.held.since if state.held and state.held.id == hold.id else stamp(now)
    waiting = HeldPlan(hold.id, hold.reasons, hold.changes, inputs.commit.sha, inputs.reads, inputs.settings, since, once)
    approval = state.approval if inputs.are_of(state.approval) else None
    return replace(state, held=waiting, approval=approval, deliveries=run_history.deliveries(state.deliveries, job.deliveries))


def ended(state: State, result: Result, entry: Run, now: float) -> State:
    """Return the state with the run's status and its entry in the history."""
    counted = replace(result, counts=dict(entry.counts))
    made = entry.commit == state.commit and result.outcome in IN_SYNC | {Outcome.ROLLED_BACK}
    deployment = replace(entry, digest=state.digest[:_DIGEST]) if made else entry
    return replace(state, status=run_history.ended(state.status, counted, now), history=run_history.append(state.history, deployment))


def deployed(state: State) -> frozenset[str]:
    """Return the commits that a target is or was on, or that it refused, as far as its record goes back."""
    return frozenset({state.commit, *(run.commit for run in state.history if run.outcome not in _ONLY_SHOWN)})


def approve(state: State, by: str, now: float) -> State:
    """Return the state with a person's yes to exactly what is held."""
    if state.held is None:
        return state
    waiting = state.held
    return replace(state, approval=Approval(waiting.id, waiting.reads, waiting.settings, waiting.changes, by, stamp(now)))


def asked(state: State, job: Job, pin: Pin | None, now: float, *, corrects: bool) -> State:
    """Return the state with what the Lease's holder must do next: approval, pin, unpin, force, drift; what was asked before stays.

    `corrects`: the target's drift is corrected; where it is only reported, or ignored, the holder isn't asked to look for it, as it would
    write what it finds.
    """
    drift = job.drift and corrects
    if job.approve and state.held and state.held.id == job.approve:
        state = approve(state, job.actor, now)
    if pin or job.unpin or job.commit:
        state = replace(state, pin=pin)
    if job.force or drift:
        before = state.requested or NamedRequest("", "")
        wanted = NamedRequest(job.actor or job.trigger, stamp(now), job.force or before.force, drift or before.drift)
        state = replace(state, requested=wanted)
    return state


def standing(state: State | None, result: Result, now: float) -> TargetStanding | None:
    """Sum up a state as a run has left it; None where none was read."""
    if state is None:
        return None
    refused = state.status.refusal is not None
    last = next((run for run in state.history if run.outcome in IN_SYNC and not (refused and run.started >= state.status.since)), None)
    recorded = seconds_of(last.started) + last.duration if last else 0.0
    return TargetStanding(
        failures=state.status.failures,
        next_try=seconds_of(state.status.next_try) if state.status.next_try else 0.0,
        succeeded=now if result.outcome in IN_SYNC and not refused else recorded,
        refused=refused,
        held=state.held is not None,
        suspended=state.suspension(now) is not None,
        pinned=state.pin is not None,
        rolled_back=state.pin is not None and state.pin.automatic,
        waiting=waiting_since(state),
        orphans=len(state.orphans),
        drifted=drifted(state),
        health=state.health.state,
    )


def waiting_since(state: State) -> float:
    """Return since when a target waits; 0: it doesn't. What was seen to fail is waited for no longer, however early that was."""
    failed = (state.status.phase, state.status.who) == (str(Outcome.FAILED), AuthorError.who)
    waits = state.waiting and state.attempt and not state.waiting.over and not failed
    return seconds_of(state.waiting.since) if state.waiting and waits else 0.0


def phase(state: State, run: str) -> RunPhase:
    """Return the event of a record that a run with an open attempt has written: its phase, and what it waits for."""
    waits = []
    if state.waiting and not state.waiting.over:
        waits.append(OpenWait(state.waiting.what, state.status.unhealthy))
    if state.attempt and state.status.phase == run_history.PRUNING:
        waits.append(OpenWait("deletions", tuple(state.status.message.splitlines())))
    steps = state.rollout.steps if state.rollout and state.attempt else ()
    begun = (step for step in steps if step.started and not step.outcome)
    waits += [OpenWait(f"{step.group}, {step.step}", (" ".join(step.message.split()),) if step.message else ()) for step in begun]
    commit = state.attempt.commit if state.attempt else state.commit
    return RunPhase(state.target, run, commit, state.status.phase, waiting_since(state), tuple(waits))
