"""A run as the record tells it: one entry, or one for each commit that it deployed, which are read as one again.

Law: an object counts once, as `model.rounds` has it. An entry names fifty objects at most: where it had to leave out some, what two entries
wrote is added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from handler.model.plan import DONE, Action
from handler.model.result import Outcome
from handler.model.rounds import both
from handler.state.record import Run

_ACTIONS = frozenset({Action.CREATE, Action.UPDATE, Action.RECREATE, Action.PRUNE})
_WRITES = frozenset(DONE[action] for action in _ACTIONS)


def whole(history: Iterable[Run], run: str) -> Run | None:
    """Return a run by its id as its newest entry, with what the others have written. None: there is none."""
    parts = [each for each in history if each.id == run][::-1]
    if len(parts) < 2:
        return parts[0] if parts else None
    *before, newest = parts
    written = _net(parts)
    did = any(each.outcome == Outcome.APPLIED or _named(each) for each in before)
    return replace(
        newest,
        outcome=str(Outcome.APPLIED) if did and newest.outcome == Outcome.UNCHANGED else newest.outcome,
        started=parts[0].started,
        counts=_counts(parts, written),
        changed=(*(f"{subject} {action}" for subject, action in written.items()), *(each for each in newest.changed if " to " in each)),
        duration=round(sum(each.duration for each in parts), 3),
    )


def _named(run: Run) -> dict[str, Action]:
    """Return what an entry names as written; what is only planned stands there as `Secret/shop/a to prune`."""
    found = (subject.rpartition(" ") for subject in run.changed if " to " not in subject)
    return {subject: Action(word) for subject, _, word in found if word in _ACTIONS}


def _net(parts: Sequence[Run]) -> dict[str, Action]:
    found: dict[str, Action] = {}
    for subject, action in (each for part in parts for each in _named(part).items()):
        found[subject] = both(found[subject], action) if subject in found else action
    return found


def _counts(parts: Sequence[Run], written: Mapping[str, Action]) -> dict[str, int]:
    """Count what was written, and as the newest entry does what was left alone: what an earlier one wrote isn't `unchanged`."""
    *_, newest = parts
    counted = [(word, number) for part in parts for word, number in part.counts.items() if word in _WRITES]
    if sum(number for _, number in counted) == sum(len(_named(part)) for part in parts):
        counted = [(DONE[action], 1) for action in written.values()]
    counted += [(word, number) for word, number in newest.counts.items() if word not in _WRITES]
    settled = sum(subject not in _named(newest) for subject, action in written.items() if action is not Action.PRUNE)
    counts: dict[str, int] = {}
    for word, number in (*counted, (DONE[Action.UNCHANGED], -settled)):
        counts[word] = counts.get(word, 0) + number
    return {word: number for word, number in counts.items() if number > 0}
