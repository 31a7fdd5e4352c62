"""A Result, an error, a hold: as lines for people and as JSON, and the exit code that each becomes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from handler.cli import diff
from handler.cli.output import Output
from handler.config.value_formats import duration
from handler.model.errors import AnnealError, LeaseError, Problem, Suspended
from handler.model.failure_trace import raised, trace
from handler.model.names import Identity
from handler.model.numbers import counted
from handler.model.plan import PENDING, Change, Gone, Plan
from handler.model.result import IN_SYNC, Outcome, Result

DONE_CODE, FAILED, HELD, BUSY = 0, 1, 3, 4
EXIT: Mapping[Outcome, int] = {
    Outcome.APPLIED: DONE_CODE,
    Outcome.UNCHANGED: DONE_CODE,
    Outcome.PLANNED: DONE_CODE,
    Outcome.DRIFTED: DONE_CODE,
    Outcome.HELD: HELD,
    Outcome.PRUNING: FAILED,
    Outcome.FAILED: FAILED,
    Outcome.BUSY: BUSY,
    Outcome.SUPERSEDED: BUSY,
    Outcome.LAGGING: BUSY,
    Outcome.SUSPENDED: BUSY,
    Outcome.WAITING: BUSY,
    Outcome.ROLLED_BACK: FAILED,
    Outcome.REFUSED: FAILED,
}
_GOOD = IN_SYNC | {Outcome.PLANNED}


Retry = Callable[[Result], str]


def error(output: Output, failure: AnnealError) -> int:
    """Print an error's problems and return the exit code."""
    if output.as_json:
        found = {"outcome": "failed", "code": failure.code, "who": failure.who, "problems": mended(output, failure.problems)}
        output.document(found)
    problems(output, failure.problems)
    return BUSY if isinstance(failure, LeaseError | Suspended) else FAILED


def unexpected(output: Output, failure: Exception) -> int:
    """Print a mistake of ours."""
    seen = raised(failure)
    if output.as_json:
        output.document({"outcome": "failed", "code": "internal", "who": "operator", "problems": [Problem("anneal", seen)]})
    output.line(f"anneal: internal error: {seen}", "bad", err=True)
    if output.verbose:
        for line in trace(failure).splitlines():
            output.note(line)
    return FAILED


def problems(output: Output, found: Iterable[Problem]) -> None:
    """Print problems to standard error: place, subject, message; the way out on its own line."""
    for problem in mended(output, found):
        where = f"{problem.place}: " if problem.place else ""
        output.line(f"{where}{problem.subject}: {problem.message}", "bad", err=True)
        for line in problem.fix.splitlines():
            output.line(f"    {line}", err=True, whole=True)


def mended(output: Output, found: Iterable[Problem]) -> list[Problem]:
    """Return problems with the way out of this command line."""
    return [replace(each.bare(), fix=output.complete(output.way_out(each))) for each in found]


def retried(ended: Result) -> str:
    """Say when a server tries a run again."""
    return f"next {'look' if ended.outcome in IN_SYNC else 'try'} in {until_next(ended)}"


def until_next(ended: Result) -> str:
    """Return how long it is until a run is to be tried again, as `59m7s`."""
    return duration(float(math.ceil(max(ended.next_try - time.time(), 0.0))))


def result(output: Output, ended: Result, way_out: str = "", printed: Collection[Identity] = (), retry: Retry = retried) -> int:
    """Print how a run ended and return the exit code.

    `way_out`: the command that approves, where it isn't `anneal approve`; `printed`: objects whose lines were printed as they were written;
    `retry`: says what becomes of a run that is to be tried again.
    """
    code = EXIT[ended.outcome]
    if output.as_json:
        output.document(facts(ended, output))
        return code
    changes(output, ended, printed)
    if ended.plan and ended.plan.hold and ended.outcome is Outcome.HELD:
        diff.hold(output, ended.target, ended.plan.hold, way_out)
    problems(output, ended.problems)
    output.line(summary(ended, retry), "good" if ended.outcome in _GOOD else "warn" if code != FAILED else "bad")
    for note in ended.plan.notes if ended.plan else ():
        output.detail(f"note: {output.complete(note)}")
    return code


def summary(ended: Result, retry: Retry = retried) -> str:
    """Return a run's end in one line."""
    commit = f" {ended.commit[:12]}" if ended.commit else ""
    text = f"{ended.target}: {ended.outcome}{commit} in {ended.duration:.1f} s"
    if ended.counts:
        text += f": {counted(ended.counts)}"
    said = ended.message
    if ended.counts and ended.outcome is not Outcome.SUPERSEDED:  # they say what was written; what follows stands beside them
        said = said.partition("; ")[2] if ended.outcome in IN_SYNC else ""
    if said and not ended.problems:
        text += f"{';' if ended.counts else ':'} {said}"
    if ended.next_try > time.time():
        text += f"; {retry(ended)}"
    return text


def changes(output: Output, ended: Result, printed: Collection[Identity] = ()) -> None:
    """Print what was done to each object, and of a run that succeeded what git declares and wasn't written; on -v all that it left alone.

    `printed`: objects whose lines were printed as they were written.
    """
    done = {change.identity for change in ended.written}
    plan = ended.plan if ended.outcome in IN_SYNC else None
    left = [change for change in plan.changes if change.identity not in done] if plan else []
    written = [change for change in ended.written if change.identity not in printed]
    for change in (*written, *(each for each in left if output.verbose or each.withheld or each.sibling)):
        diff.done(output, change)


def facts(ended: Result, output: Output | None = None) -> dict[str, Any]:
    """Return a run's end as JSON, without the objects themselves."""
    plan = ended.plan
    return {
        "target": ended.target,
        "outcome": ended.outcome,
        "commit": ended.commit,
        "trigger": ended.trigger,
        "message": ended.message,
        "counts": ended.counts,
        "changes": [
            *(change_facts(change) | {"done": change.done != PENDING} for change in ended.written),
            *(change_facts(change) | {"done": False} for change in ended.left),
        ],
        "kept": [change_facts(change) for change in plan.withheld] if plan else [],
        "held": plan.hold if plan and ended.outcome is Outcome.HELD else None,
        "notes": plan.notes if plan else (),
        "problems": mended(output or Output(), ended.problems),
        "who": ended.who,
        "code": ended.code,
        "duration": ended.duration,
        "run": ended.run,
        "nextTry": ended.next_try or None,
    }


def change_facts(change: Change) -> dict[str, Any]:
    """Return one object's part of a plan as JSON."""
    return {
        "action": change.action,
        "object": str(change.identity),
        "group": change.identity.group,
        "uid": change.uid,
        "resourceVersion": change.resource_version,
        "reason": change.reason,
        "fields": change.fields,
        "undeclared": change.undeclared,
        "place": change.manifest.place if change.manifest else "",
        "deferred": change.deferred,
        "adopted": change.adopted,
        "sibling": change.sibling,
        "finalizers": change.finalizers,
        "terminating": change.terminating,
        "unmarked": change.unmarked,
        "until": change.until,
        "takes": [gone_facts(each) for each in change.takes],
    }


def gone_facts(gone: Gone) -> dict[str, Any]:
    """Return one object that goes because of a run as JSON."""
    return {
        "object": str(gone.identity),
        "group": gone.identity.group,
        "uid": gone.uid,
        "cause": gone.cause,
        "by": str(gone.by) if gone.by else None,
        "counted": gone.counted,
    }


def plan_facts(plan: Plan) -> dict[str, Any]:
    """Return a whole plan as JSON."""
    return {
        "target": plan.target,
        "commit": plan.commit,
        "renderer": plan.renderer,
        "digest": plan.digest(),
        "counts": plan.counts(done=False),
        "removedFields": plan.removed,
        "stages": [[change_facts(change) for change in stage] for stage in plan.stages],
        "relabelled": [change_facts(change) for change in plan.relabelled],
        "prunes": [change_facts(change) for change in plan.prunes],
        "gone": [gone_facts(each) for each in plan.gone],
        "due": [{"group": due.group, "step": due.step, "object": str(due.identity), "action": due.action} for due in plan.due],
        "notes": plan.notes,
        "hold": plan.hold,
        "liveMembers": plan.live_members,
        "outside": plan.outside,
    }
