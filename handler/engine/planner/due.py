"""Whether a run carries a rollout out: its hooks, and the steps of its Rollout. A drift repair only writes.

Law: a rollout is due when the rendered set isn't the recorded one, when forced, or when the last one was of another set or hasn't ended
well. What is done of the one under way isn't done twice. A recovery runs neither hooks nor steps, whatever is forced.
"""

from __future__ import annotations

from dataclasses import replace

from handler.model.advice import advice
from handler.model.plan import Due
from handler.model.rollout import Phase, Rollout
from handler.plan.hooks import PlannedHooks
from handler.plan.rollout import PlannedRollout
from handler.state.record import Progress, State

DONE, FAILED, SKIPPED = "done", "failed", "skipped"  # how a step, a hook or a whole rollout ends


def is_due(state: State, digest: str, *, force: bool) -> bool:
    """Whether the rollout of a rendered set is to be carried out. `digest`: of that set; `force`: it is asked for again."""
    if recovers(state):
        return False
    known = state.rollout
    begun = known is not None and (known.digest != digest or known.outcome != DONE)
    return force or begun or state.digest != digest


def carries_out(state: State, digest: str, planned_hooks: PlannedHooks, rollout: Rollout | None, *, force: bool) -> bool:
    """Whether a run of a rendered set carries out hooks or steps."""
    return (planned_hooks.runs or rollout is not None) and is_due(state, digest, force=force)


def recovers(state: State) -> bool:
    """Whether the record was missing although members live, and nothing has been applied whole since. A first run's attempt denies it."""
    return bool(state.kinds) and not state.commit and (state.attempt is None or state.attempt.recovery)


def left_out(state: State, planned_hooks: PlannedHooks, planned_rollout: PlannedRollout, target: str) -> str:
    """Say what a recovery doesn't carry out of a rendered set; empty: nothing is missing."""
    if not recovers(state) or not (planned_hooks.runs or planned_rollout.rollout):
        return ""
    return advice("its hooks and steps are not carried out, for the state was missing: anneal apply {} does that", target)


def all_due(planned_hooks: PlannedHooks, planned_rollout: PlannedRollout, state: State, digest: str, *, force: bool) -> tuple[Due, ...]:
    """Return what a run carries out of a rendered set's rollout, in order; nothing, if it isn't due."""
    if not is_due(state, digest, force=force):
        return ()
    known = done(state, digest, force=force)
    hooks = planned_hooks.due(known)
    late = tuple(due for due in hooks if due.group in (Phase.POST_SYNC, Phase.SYNC_FAIL))
    return (*(due for due in hooks if due not in late), *_steps_due(planned_rollout, state, digest, force=force), *late)


def _steps_due(planned_rollout: PlannedRollout, state: State, digest: str, *, force: bool) -> tuple[Due, ...]:
    """Return the due steps: those that haven't ended, well or badly; one under way with its recorded mark."""
    begun = under_way(state, digest, force=force)
    known = begun.steps if begun else ()
    marks = {(step.group, step.step): step.mark for step in known}
    ended = {(step.group, step.step) for step in known if step.outcome}
    return tuple(replace(due, mark=marks.get((due.group, due.step), "")) for due in planned_rollout.due(ended))


def token(known: Progress | None) -> str:
    """Name a rollout on what it creates; empty: none is under way. One of the version before is known by its set and its second."""
    return f"{known.digest[:12]} {known.id or known.started}" if known else ""


def done(state: State, digest: str, *, force: bool) -> frozenset[tuple[str, str]]:
    """Return (group, step) of what an earlier run of this very rollout has done; a rollout begun anew has done nothing."""
    known = under_way(state, digest, force=force)
    return frozenset((step.group, step.step) for step in known.steps if step.outcome in (DONE, SKIPPED)) if known else frozenset()


def under_way(state: State, digest: str, *, force: bool) -> Progress | None:
    """Return the rollout that a run continues, also a forced one after a kill, for its hooks may still run; None: it begins anew."""
    known = state.rollout
    if known is None or known.digest != digest or known.outcome:
        return None
    return None if force and any(step.outcome == FAILED for step in known.steps) else known
