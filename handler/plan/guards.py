"""Whether the whole plan may run. Refusals end the run; holds wait for a person's approval of exactly these changes.

A later plan with the same reads and settings passes if its guarded changes are a subset: a run killed amid an approved deletion goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

from handler.config.settings import Prune
from handler.model.errors import PlanRefused, Problem
from handler.model.manifest import canonical
from handler.model.names import Identity
from handler.model.numbers import many
from handler.model.plan import Action, Change, Hold
from handler.plan.missing_settings import lacking

Key = tuple[str, str, str]


def refuse_empty(target: str, desired: int, members: int, prune: Prune, *, instance: bool) -> None:
    """Raise PlanRefused of a render without objects, unless the target allows it.

    `instance`: of an object for which its template may have nothing to declare; only what would delete its members is refused.
    """
    if desired == 0 and not prune.allow_empty and (members or not instance):
        seen = f"the render declares no object ({many(members, 'live member')} would go)"
        problem = Problem(f"target {target}", seen)
        fix = "set prune: {allowEmpty: true} if that is meant, or correct path and include"
        raise PlanRefused(lacking(problem, target, {"prune.allowEmpty": ("true",)}, fix=fix))


def names_made_anew(changes: Sequence[Change], renamed: Collection[Identity]) -> dict[Key, str]:
    """Return why objects that only another render names otherwise must wait: a run that changes nothing would replace what runs.

    What is approved names none of them: the next render has other names.
    """
    count = sum(change.action is Action.CREATE and change.identity in renamed for change in changes)
    if not count:
        return {}
    seen = f"{many(count, 'object')} {'has' if count == 1 else 'have'} another name at each render, and nothing else has changed"
    return {("render", "names", ""): f"{seen}: the notes say which"}


def hold_for(changes: Sequence[Change], members: int, prune: Prune, reads: str, settings: str, other: Mapping[Key, str]) -> Hold | None:
    """Return why the plan must wait for approval, or None: a deletion above both thresholds, or one that leaves no live member.

    What is approved also names the fields that go of objects that stay. `other`: what else must be approved, each with its reason.
    """
    removals = [change for change in changes if change.removes]
    reasons = list(other.values())
    limit, living = prune.hold_above, members + sum(change.unmarked for change in removals)
    if len(removals) > limit.count and len(removals) > limit.fraction * living:
        share = 100 * len(removals) / living if living else 100
        seen = f"{len(removals)} of {many(living, 'live object')} would be deleted ({share:.0f} %)"
        reasons.append(f"{seen}, above holdAbove {limit.count} and {limit.fraction:.0%}")
    prunes = [change for change in removals if change.action is Action.PRUNE and not change.unmarked]
    is_renamed = members == 1 and any(change.action is Action.CREATE for change in changes)
    if prunes and len(prunes) == members and not is_renamed:
        several = f"all {members} live objects would be deleted, none of them is declared any more"
        reasons.append(several if members > 1 else "the only live object would be deleted, it isn't declared any more")
    if not reasons:
        return None
    keys = tuple(sorted({*other, *(change.key() for change in changes if change.removes or change.drops)}))
    return Hold(hold_id(keys, reads, settings), tuple(reasons), keys)


def hold_id(keys: Sequence[Key], reads: str, settings: str) -> str:
    """Return the short name a person approves by: it changes with the changes and with what they come from."""
    return hashlib.sha256(canonical([sorted(keys), reads, settings])).hexdigest()[:12]


def approved(hold: Hold, keys: Sequence[Key], same_inputs: bool) -> bool:
    """Whether an approval of `keys`, given for the same reads and settings, covers everything that is held."""
    return same_inputs and set(hold.changes) <= set(keys)
