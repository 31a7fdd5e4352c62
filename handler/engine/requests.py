"""What a person asks of a target, written into its record: for this run, or for whoever holds the Lease."""

from __future__ import annotations

from dataclasses import replace

from handler.engine.run import revision, transitions
from handler.engine.run.context import RunContext
from handler.engine.run.errors import RequestRefused


def ask(run: RunContext) -> None:
    """Write what a person asked into the state, for us or for whoever holds the Lease.

    Force stands there from now on, and isn't ours alone any more: whoever opens the next attempt honours it, once. It stays ours where it
    vouches for a commit.

    Raises:
        RequestRefused: what is to be approved isn't held any more, or the commit is none that this target ran.
        RefNotFound: the host doesn't have a forced commit: whoever holds the Lease couldn't hold to its pin either.

    """
    held = run.state.held
    if run.job.approve and (held is None or held.id != run.job.approve) and not _is_approved(run):
        seen = f"held now: {held.id}" if held else "nothing is held"
        fix = f"anneal status {run.job.target}"
        raise RequestRefused.of(f"target {run.job.target}", f"can't approve {run.job.approve}; {seen}", fix=fix)
    if run.job.commit and not run.goal:
        revision.choose(run)
    if run.job.commit and revision.never_ran(run):
        run.rooms.preparer.tree(run.goal)
    pin = revision.pin_left(run) if run.job.commit else None
    initial = None if run.stored.uid else run.state
    run.stored = run.rooms.store.update(lambda state: transitions.asked(state, run.job, pin, run.rooms.clock()), initial)
    if run.job.force and not run.job.commit:
        run.job, run.forced = replace(run.job, force=False), True


def _is_approved(run: RunContext) -> bool:
    """Tell whether it is approved already."""
    return run.state.approval is not None and run.state.approval.id == run.job.approve
