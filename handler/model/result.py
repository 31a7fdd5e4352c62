"""How a run ended: what CLI, queue, history and feedback all report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce

from handler.model.errors import Problem
from handler.model.event import Job
from handler.model.numbers import many
from handler.model.plan import DONE, LOST, PENDING, Action, Change, FieldChange, Gone, Plan, tally


class Outcome(StrEnum):
    """The end of a run."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    HELD = "held"
    PRUNING = "pruning"
    FAILED = "failed"
    BUSY = "busy"
    SUPERSEDED = "superseded"
    LAGGING = "lagging"
    SUSPENDED = "suspended"
    DRIFTED = "drifted"
    PLANNED = "planned"
    WAITING = "waiting"
    ROLLED_BACK = "rolled-back"
    REFUSED = "refused"


ONLY_PLANNED = frozenset({Outcome.HELD, Outcome.PLANNED, Outcome.DRIFTED})
"""Ends at which a plan is only a plan: its counts say what is still to do."""
IN_SYNC = frozenset({Outcome.APPLIED, Outcome.UNCHANGED})  # ends at which the target equals git
FAILURES = frozenset({Outcome.FAILED, Outcome.PRUNING, Outcome.ROLLED_BACK})  # ends at which it doesn't because something failed
INTERNAL = "internal"  # the code of a run that ended as none of our errors


@dataclass(frozen=True, slots=True)
class TargetStanding:
    """How a target stands after a run, for metrics and alerts.

    `failures` in a row; `next_try`, `succeeded`, `waiting` (since when) in seconds since the epoch, 0: none; `orphans`, `drifted`: objects.
    `health`: a `HealthState`, empty: never judged. `refused`: a commit is, until what that follows from changes.
    """

    failures: int = 0
    next_try: float = 0.0
    succeeded: float = 0.0
    refused: bool = False
    held: bool = False
    suspended: bool = False
    pinned: bool = False
    rolled_back: bool = False
    waiting: float = 0.0
    orphans: int = 0
    drifted: int = 0
    health: str = ""


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """The end of one round, for the commit that it aimed at."""

    commit: str
    outcome: Outcome
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One run's end. `duration` in seconds; `who` must act if it failed: `operator | author | sender | nobody`.

    `plan`: the newest; `written`: what the run has changed, each object once. `standing`: as the run left the target; None: no state could
    be read. `again`: what this run leaves to another one from `again_at` on, in seconds since the epoch: a look for a pushed commit that
    the git host doesn't show yet. `recorded`: the target's state has this end. `moved`: it has another commit than before
    the run. `ends`: of its rounds, where it had several. `generation`: of an instance's object that it was of; 0: unknown.
    `owes`: the record was seen to have an end of a commit that its git host doesn't show yet.
    """

    target: str
    outcome: Outcome
    commit: str = ""
    trigger: str = ""
    message: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    who: str = ""
    code: str = ""
    duration: float = 0.0
    run: str = ""
    plan: Plan | None = None
    written: tuple[Change, ...] = ()
    next_try: float = 0.0
    standing: TargetStanding | None = None
    again: Job | None = None
    again_at: float = 0.0
    recorded: bool = False
    moved: bool = False
    ends: tuple[RoundEnd, ...] = ()
    generation: int = 0
    owes: bool = False

    @property
    def rounds(self) -> tuple[RoundEnd, ...]:
        """The ends of all its rounds, the first first."""
        return self.ends or (RoundEnd(self.commit, self.outcome, self.code, self.message),)

    @property
    def left(self) -> tuple[Change, ...]:
        """What is planned and not done."""
        return self.plan.writes if self.plan and self.outcome in ONLY_PLANNED else ()

    @property
    def losing(self) -> tuple[Gone, ...]:
        """What would go with that, or by hooks, beside what would be pruned and recreated."""
        return self.plan.lost if self.plan and self.outcome in ONLY_PLANNED else ()


def summed(rounds: Sequence[Result]) -> Result:
    """Return the end of a run from the ends of its rounds, the first first, with what all of them wrote.

        first        then         the run
        created      configured   created       it wasn't there before
        pruned       created      recreated     and so is what was recreated and written again
        anything     pruned       pruned        a deletion is never hidden
        configured   configured   configured    each field from what it was to what it is

    It ends as its last round does; where that found nothing to do and an earlier one did something, it is `applied`.
    """
    first, last = rounds[0], rounds[-1]
    if len(rounds) == 1:
        return last
    before = reduce(net, (each.written for each in rounds[:-1]))
    written = net(before, last.written)
    did = bool(before) or any(each.outcome is Outcome.APPLIED for each in rounds[:-1])
    outcome = Outcome.APPLIED if did and last.outcome is Outcome.UNCHANGED else last.outcome
    plan = last.plan
    if plan is None and last.outcome is Outcome.UNCHANGED:
        plan = next((each.plan for each in reversed(rounds) if each.plan and each.outcome is Outcome.APPLIED), None)
    if plan:
        plan = replace(plan, notes=tuple(dict.fromkeys(note for each in rounds if each.plan for note in each.plan.notes)))
    mine = {change.identity for change in written}
    left = [change for change in plan.changes if change.identity not in mine or outcome in ONLY_PLANNED] if plan else []
    counts = tally(written)
    by_hooks = [gone for due in plan.due for gone in due.gone] if plan and outcome in ONLY_PLANNED else []
    for word, number in tally(left, done=outcome not in ONLY_PLANNED, also=by_hooks).items():
        counts[word] = counts.get(word, 0) + number
    return replace(
        last,
        outcome=outcome,
        trigger=first.trigger,
        run=first.run,
        message=_message(rounds, outcome, before, written),
        counts=counts,
        plan=plan,
        written=written,
        duration=round(sum(each.duration for each in rounds), 3),
        ends=tuple(end for each in rounds for end in each.rounds),
    )


def net(earlier: Sequence[Change], later: Sequence[Change]) -> tuple[Change, ...]:
    """Return what two rounds have written together, each object once."""
    found = {change.identity: change for change in earlier}
    for change in later:
        before = found.get(change.identity)
        found[change.identity] = _joined(before, change) if before else change
    return tuple(found.values())


def _joined(before: Change, after: Change) -> Change:
    action = both(before.action, after.action)
    if action is Action.UPDATE:
        return replace(after, fields=_fields(before.fields, after.fields))
    return replace(after, action=action, fields=() if action is Action.CREATE else after.fields)


def both(before: Action, after: Action) -> Action:
    """Return what two writes of one object are together."""
    if after is Action.PRUNE:
        return after
    if before in (Action.PRUNE, Action.RECREATE):
        return Action.RECREATE
    return before if before is Action.CREATE else after


def _fields(before: Sequence[FieldChange], after: Sequence[FieldChange]) -> tuple[FieldChange, ...]:
    found = {change.path: change for change in before}
    for change in after:
        was = found.get(change.path)
        found[change.path] = replace(change, live=was.live, manager=was.manager) if was else change
    return tuple(found.values())


def wrote(changes: Sequence[Change]) -> str:
    """Say what was written: `3 objects written, 2 pruned, 1 deleting, 1 lost`."""
    pruned, pending = (sum(change.done == word for change in changes) for word in (DONE[Action.PRUNE], PENDING))
    written, lost = len(changes) - pruned - pending, sum(gone.counted for change in changes for gone in change.takes)
    told = [f"{written} written"] if written or not (pruned or pending) else []
    told += [f"{pruned} pruned"] if pruned else []
    told += [f"{pending} {PENDING}"] if pending else []
    told += [f"{lost} {LOST}"] if lost else []
    number, _, rest = ", ".join(told).partition(" ")
    return f"{many(int(number), 'object')} {rest}"


def _message(rounds: Sequence[Result], outcome: Outcome, before: Sequence[Change], written: Sequence[Change]) -> str:
    last = rounds[-1]
    if outcome is not Outcome.APPLIED:
        return f"{last.message}; before that, {wrote(before)}" if before and not last.problems else last.message
    applied = next((each for each in reversed(rounds) if each.outcome is Outcome.APPLIED), last)
    more = applied.message.removeprefix(wrote(applied.written)) if applied.outcome is Outcome.APPLIED else ""
    return wrote(written) + more
