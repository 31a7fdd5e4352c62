"""What a run leaves to a later one, in words: notes of its plan, and told again at its end, beside what it has written."""

from __future__ import annotations

from collections.abc import Sequence

from handler.engine.planner.due import left_out
from handler.engine.planner.inputs import Inputs
from handler.engine.run.context import RunContext
from handler.model.numbers import many
from handler.model.plan import Plan

KEPT = "the state was missing; the next run prunes"
"""Why a recovery keeps what it would prune otherwise."""


def remarks(run: RunContext, inputs: Inputs, plan: Plan) -> tuple[str, ...]:
    """Return what is to be told of a plan, or of what it came to."""
    prepared, target = inputs.prepared, run.job.target
    return tuple(filter(None, (left_out(run.state, prepared.hooked, prepared.rolled, target), _kept(plan, target), _terminating(plan))))


def _kept(plan: Plan, target: str) -> str:
    """Say what a recovery keeps although git doesn't declare it; empty: nothing."""
    kept = sum(change.reason == KEPT for change in plan.prunes)
    if not kept:
        return ""
    seen = f"{many(kept, 'object')} that git doesn't declare {'is' if kept == 1 else 'are'} kept, for the state was missing"
    return f"{seen}: anneal plan {target} shows after this run what the next one prunes"


def _terminating(plan: Plan) -> str:
    """Say which declared objects are being deleted; empty: none."""
    return "; ".join(
        f"{change.identity} is being deleted{_held(change.finalizers)}: it is created again once it is gone"
        for change in plan.changes
        if change.terminating
    )


def _held(finalizers: Sequence[str]) -> str:
    return f" (finalizers: {', '.join(finalizers)})" if finalizers else ""
