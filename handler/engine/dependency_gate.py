"""The gate of `dependsOn`: what a run would bring that isn't recorded yet waits until the targets that this one depends on are ready.

    a new head, or new settings      waits, whatever asks for it: a push, a tick, a person's `apply`, an approval
    the recorded commit              never waits: drift is corrected, what was begun for it is mended
    what an open attempt has begun   is finished first, also where a newer head waits
    a commit named by a person       never waits, nor does a pinned one, or a rollback
    a commit that reads the same     is recorded

Law: a run that waits writes no object, opens no attempt, and writes the record only where that doesn't say so yet. A dependency's run that
records wakes it (`handler.app.wakes`); each tick looks again.
"""

from __future__ import annotations

from dataclasses import replace

from handler.engine import health_look, outcomes, shortcuts
from handler.engine.planner.desired import Inputs
from handler.engine.planner.planner import Planned
from handler.engine.run import revision
from handler.engine.run.context import RunContext
from handler.engine.run.readiness_look import obstacles
from handler.model.errors import AuthorError, CommitUnproven
from handler.model.result import Outcome, Result
from handler.state.record import State
from handler.state.record_format import stamp
from handler.state.record_values import DependencyWait


def ended(run: RunContext) -> Result | None:
    """Return the end of a run whose commit waits for dependencies; None: it goes on, perhaps only to hold the recorded commit.

    A dependency may record between the look at it and our write, and wake nothing then: after a first write it is looked at again.
    """
    wait = None if run.job.dry_run else waits(run)
    is_new = wait is not None and not _is_known(run.state, wait)
    if wait is None or (is_new and shortcuts.same_reads(run)):
        return None
    if begun := _begun(run):
        run.revision = replace(run.revision, commit=begun)
        return None
    holds = revision.holds_recorded(run)
    if not holds or (is_new and run.state.attempt is None):
        if not holds and run.state.attempt is None:
            health_look.look(run)
        result = outcomes.awaiting(run, wait)
        if not (is_new and result.recorded):
            return result
        if waits(run) is None:
            return None
        if not holds:
            return result
    run.revision = replace(run.revision, commit=run.state.commit, behind=True)
    return None


def ended_before(run: RunContext) -> Result | None:
    """Return the end of a run that finds an attempt open, and the record saying that what has overtaken it waits; no Lease is taken."""
    known = run.state.awaits
    return ended(run) if known and known.is_for(run.revision.commit, run.deps.settings) else None


def waits(run: RunContext) -> DependencyWait | None:
    """Return what a run's commit waits for; None: nothing. Each dependency's record is read, and the head of its revision."""
    if not run.deps.awaited or not _is_new(run):
        return None
    found = obstacles(run.deps, run.revision.head, run.job.since(run.deps.slack))
    if not found:
        return None
    wait, before = DependencyWait(run.revision.commit, run.deps.settings, stamp(run.deps.clock()), found), run.state.awaits
    return replace(wait, since=before.since) if before and _is_known(run.state, wait) else wait


def noted(run: RunContext, inputs: Inputs, planned: Planned) -> Planned:
    """Return a dry run's plan with a note of each dependency that a run would wait for."""
    same = (run.state.reads, run.state.settings) == (inputs.reads, inputs.settings)
    wait = None if same else waits(run)
    notes = (f"a run would wait for {each.advised}" for each in (wait.on if wait else ()))
    return replace(planned, plan=replace(planned.plan, notes=(*planned.plan.notes, *notes)))


def _begun(run: RunContext) -> str:
    """Return the commit that an open attempt has half brought, where it can be finished; empty: there is none."""
    begun = run.state.attempt
    if begun is None or begun.commit == run.state.commit or begun.settings != run.deps.settings:
        return ""
    try:
        run.deps.preparer.tree(begun.commit)
        run.deps.preparer.prove(begun.commit, run.revision.head)
    except (AuthorError, CommitUnproven):  # the host has it no longer, it was signed by none, or the branch leads elsewhere by now
        return ""
    return begun.commit


def _is_known(state: State, wait: DependencyWait) -> bool:
    known = state.awaits
    return known is not None and known.is_for(wait.commit, wait.settings) and state.status.phase == Outcome.WAITING


def _is_new(run: RunContext) -> bool:
    """Whether the run aims at a head, or at settings, that aren't recorded, and weren't begun; a recovery has recorded no settings."""
    state, commit, settings = run.state, run.revision.commit, run.deps.settings
    if run.job.commit or commit != run.revision.head:
        return False
    begun = state.attempt is not None and (state.attempt.commit, state.attempt.settings) == (commit, settings)
    return not begun and (state.commit != commit or state.settings not in ("", settings))
