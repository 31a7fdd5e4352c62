"""One run of several rounds, reported as one: what all of them wrote, each object once.

first        then         the run
created      configured   created       it wasn't there before
pruned       created      recreated     and so is what was recreated and written again
anything     pruned       pruned        a deletion is never hidden
configured   configured   configured    each field from what it was to what it is
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from handler.model.numbers import many
from handler.model.plan import Action, Change, FieldChange, tally
from handler.model.result import ONLY_PLANNED, Outcome, Result


def summed(rounds: Sequence[Result]) -> Result:
    """Return the end of a run from the ends of its rounds, the first first.

    It ends as its last round does; where that found nothing to do and an earlier one did something, it is `applied`. Hold, problems and
    the next try are the last round's; id and cause are the first's.
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
    for word, number in tally(left, done=outcome not in ONLY_PLANNED).items():
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
    found = {field.path: field for field in before}
    for field in after:
        was = found.get(field.path)
        found[field.path] = replace(field, live=was.live, manager=was.manager) if was else field
    return tuple(found.values())


def wrote(changes: Sequence[Change]) -> str:
    """Say what was written: `3 objects written, 2 pruned`."""
    pruned = sum(change.action is Action.PRUNE for change in changes)
    written = len(changes) - pruned
    if not pruned:
        return f"{many(written, 'object')} written"
    return f"{many(written, 'object')} written, {pruned} pruned" if written else f"{many(pruned, 'object')} pruned"


def _message(rounds: Sequence[Result], outcome: Outcome, before: Sequence[Change], written: Sequence[Change]) -> str:
    """Return what the rounds have done together; a failure keeps its words, for the counts say the rest."""
    last = rounds[-1]
    if outcome is not Outcome.APPLIED:
        return f"{last.message}; before that, {wrote(before)}" if before and not last.problems else last.message
    applied = next((each for each in reversed(rounds) if each.outcome is Outcome.APPLIED), last)
    more = applied.message.removeprefix(wrote(applied.written)) if applied.outcome is Outcome.APPLIED else ""
    return wrote(written) + more
