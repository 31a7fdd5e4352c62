"""Whether there is anything to do, before anything is rendered: what most runs of a tick come to.

Law: whatever is open, asked for or due (an attempt, a phase that must be ended, a pin to set or to lift, an approval, a drift run, a
recovery, other settings) has a run look closer. `summary_shortcuts` says yes only where `unchanged` does.
"""

from __future__ import annotations

from dataclasses import replace

from handler.engine.run import push_lag, transitions
from handler.engine.run.context import RunContext
from handler.engine.run.revision import pin_left
from handler.engine.summary_shortcuts import UNSETTLED
from handler.model.result import Outcome, Result
from handler.state.record import State
from handler.state.record_format import seconds_of


def unchanged(run: RunContext) -> Result | None:
    """Return the end of a run that finds nothing new, or None."""
    state = run.state
    busy = run.drift or run.force or run.job.dry_run or state.attempt or state.former or run.recovery or (state.approval and state.held)
    if busy or state.status.phase in UNSETTLED or pin_left(run) != state.pin or not run.is_recorded():
        return None
    due = seconds_of(state.drift_due) if state.drift_due else 0.0
    message = "; ".join(filter(None, (f"{_shown(run)} is applied", str(run.revision.promotion))))
    return _unarrived(run) or replace(run.result(Outcome.UNCHANGED, message), next_try=due, recorded=True)


def _shown(run: RunContext) -> str:
    return f"{run.tag} ({run.revision.commit[:12]})" if run.tag else run.revision.commit[:12]


def _unarrived(run: RunContext) -> Result | None:
    """Return the end of a run without a Lease whose hint isn't the head: the host may show it a moment later, or never."""
    if run.lease or not push_lag.is_missed(run.job, run.revision.named, run.deps.target.revision):
        return None
    outcome, message, seconds = push_lag.verdict(run.job, run.revision.named, transitions.deployed(run.state))
    return replace(run.result(outcome, message), next_try=run.deps.clock() + seconds if seconds else 0.0)


def _only_waits(state: State) -> bool:
    """Whether nothing stands in the way of another commit but that it might have to wait for other targets, as the last one does."""
    return state.awaits is not None and state.status.phase == Outcome.WAITING and state.held is None


def same_reads(run: RunContext) -> bool:
    """Whether the new commit changes nothing that the render read (monorepos)."""
    state = run.state
    special = run.drift or run.force or run.job.dry_run or run.recovery or run.job.commit or state.pin or state.approval
    unsettled = state.attempt or state.former or (state.status.phase in UNSETTLED and not _only_waits(state))
    if special or unsettled or not state.reads or state.settings != run.deps.settings:
        return False
    tree = run.deps.preparer.tree(run.revision.commit)
    run.round.commit = run.titled(tree.commit)
    return run.reads_on(tree, state.reads_paths, run.revision.commit).digest() == state.reads
