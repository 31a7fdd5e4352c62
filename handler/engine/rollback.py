"""Going back: which commit, and what the record says of it. A rollback is a run like any other, of an older commit that is pinned.

Law: never a loop. Only the head is rolled back from, and only to the recorded commit; what fails on the way back stays failed, pinned and
visible. Failure and pin are one write, so any process ends in the same place: the pin says where to, the open attempt from where.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from handler.engine.run.context import RunContext
from handler.engine.run.errors import ROLLOUT_FAILURES, RequestRefused
from handler.model.advice import advice
from handler.model.errors import AnnealError, CommitUnproven, Problem, QuotaExceeded, RolloutFailed, TransientError
from handler.model.names import FIELD_MANAGER
from handler.model.result import Outcome, Result
from handler.state.record import Pin, State
from handler.state.record_format import stamp

TRIGGER = "rollback"
_DEPLOYED = (Outcome.APPLIED, Outcome.UNCHANGED, Outcome.ROLLED_BACK)


# --- by itself
def way_back(run: RunContext, error: AnnealError) -> Pin | None:
    """Return the pin by which a failed rollout is rolled back; None: it isn't, and `explained` may say why."""
    if not _fails(run, error) or run.state.commit in ("", run.revision.commit):
        return None
    preparer = run.deps.preparer
    beside = preparer.beside(path for path, _ in run.round.reads.paths) if run.round.reads else ()
    try:
        preparer.prove(run.state.commit, run.revision.head)
        away = preparer.reads_at(run.revision.commit, beside)
    except AnnealError:
        return None  # tried again by a tick: a pin that doesn't know what it holds against, or to what it leads, holds nothing
    why = error.problems[0] if error.problems else error
    return Pin(
        run.state.commit,
        away,
        FIELD_MANAGER,
        f"rollback: {run.revision.commit[:12]} failed: {why}",
        stamp(run.deps.clock()),
        automatic=True,
        beside=beside,
    )


def _fails(run: RunContext, error: AnnealError) -> bool:
    return (
        run.deps.target.rollback.on_failure
        and run.round.opened
        and run.revision.commit == run.revision.head
        and isinstance(error, ROLLOUT_FAILURES)
    )


def explained(run: RunContext, error: AnnealError) -> AnnealError:
    """Return an error with a note beside it: that the rollback has failed, or that there is no commit to roll back to."""
    if run.stored.state is None or run.job.dry_run or isinstance(error, TransientError):
        return error
    name, state = run.job.target, run.state
    if (back := _from(state)) and state.pin and run.revision.commit == state.pin.commit:
        fix = advice("push what mends it, or name another commit: anneal rollback {} --to SHA", name)
        seen = f"the rollback from {back[:12]} to {run.revision.commit[:12]} has failed; it stays as it is"
        return type(error)(Problem(f"target {name}", seen, fix=fix), *error.problems)
    if _fails(run, error) and state.commit in ("", run.revision.commit):
        seen = "there is nothing to roll back to: no other commit was deployed whole"
        return type(error)(*error.problems, Problem(f"target {name}", seen))
    if _fails(run, error):
        with contextlib.suppress(TransientError):
            return _unproven(run, error)
    return error


def _unproven(run: RunContext, error: AnnealError) -> AnnealError:
    """Return an error with why the recorded commit is no way back, where the branch doesn't lead to it (any more)."""
    try:
        run.deps.preparer.prove(run.state.commit, run.revision.head)
    except CommitUnproven as unproven:
        fix = advice("push what mends it; or, in a shell: anneal apply {} --commit SHA --force", run.job.target)
        said = f"the rollback to {run.state.commit[:12]} fails"
        back = (replace(each, message=f"{said}: {each.message}", fix=fix) for each in unproven.problems)
        return type(error)(*back, *error.problems)
    return error


def _from(state: State) -> str:
    """Return from which commit an automatic rollback is under way; empty: none is."""
    attempt, pin = state.attempt, state.pin
    if attempt is None or pin is None or not pin.automatic:
        return ""
    return attempt.back or (attempt.commit if attempt.commit != pin.commit else "")


def rolled_back(run: RunContext, result: Result) -> Result:
    """Return the end of a run whose attempt is about to be closed, as the end of a rollback where it is one."""
    back, pin = run.state.attempt.back if run.state.attempt else "", run.state.pin
    if not back or pin is None:
        return result
    name, why = run.job.target, pin.reason.removeprefix("rollback: ")
    problem = Problem(
        f"target {name}",
        f"{why}; rolled back to {run.revision.commit[:12]}",
        fix=advice("push what mends it; once more: anneal unpin {}", name),
    )
    entry = next((each for each in run.state.history if (each.commit, each.outcome) == (back, Outcome.FAILED)), None)
    full = f"{back[:12]} failed: {entry.message}" if entry and entry.message else why  # a pin's reason has room for its beginning only
    cause = QuotaExceeded if entry and entry.code == QuotaExceeded.code else RolloutFailed
    return replace(
        result,
        outcome=Outcome.ROLLED_BACK,
        trigger=TRIGGER,
        message=str(problem),
        problems=(replace(problem, message=f"{full}; rolled back to {run.revision.commit[:12]}"),),
        who=cause.who,
        code=cause.code,
    )


# --- by hand
def resolve(run: RunContext) -> None:
    """Name the commit that a person's rollback goes to, once for the whole run. Raises RequestRefused: there is none."""
    if not run.job.rollback or run.job.commit:
        return
    commit = _under_way(run) or before(run.state)
    if not commit:
        fix = advice("name a commit: anneal rollback {} --to SHA", run.job.target)
        raise RequestRefused.of(f"target {run.job.target}", "its history names no earlier deployment to go back to", fix=fix)
    run.job = replace(run.job, commit=commit)


def _under_way(run: RunContext) -> str:
    """Return where an open attempt goes back to already, or where this very request has: a message may come twice."""
    pin = run.state.pin
    mine = bool(run.job.run) and pin is not None and pin.reason.endswith(f" {run.job.run}")
    return pin.commit if pin is not None and (run.state.attempt is not None or mine) else ""


def before(state: State) -> str:
    """Return what was deployed before what is being deployed, or is; empty: nothing that the record knows.

    A commit that rendered to the same is one deployment with the one before; one that had nothing to write needn't be.
    """
    if state.attempt and state.commit not in ("", state.attempt.commit):
        return state.commit
    deployed = [run for run in state.history if run.outcome in _DEPLOYED and run.commit]
    same = {state.commit}
    for run, older in zip(deployed, [*deployed, None][1:], strict=True):
        if run.commit not in same:
            return run.commit
        if older is not None and run.outcome == Outcome.UNCHANGED and run.digest in (older.digest, ""):
            same.add(older.commit)
    return ""
