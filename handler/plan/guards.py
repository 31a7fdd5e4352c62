"""Whether the whole plan may run. Refusals end the run; holds wait for a person's approval of exactly these changes.

A later plan with the same reads and settings passes if its guarded changes are a subset: a run killed amid an approved deletion goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

from handler.config.settings import Prune, Target
from handler.model.errors import PlanRefused, Problem
from handler.model.manifest import canonical
from handler.model.names import Identity
from handler.model.numbers import many
from handler.model.plan import SAID, Action, Cause, Change, Hold, Plan
from handler.plan.admission import Desired
from handler.plan.missing_settings import lacking

Key = tuple[str, str, str]
_RENAME = "or take the annotations off that make it a hook, or give the hook another name"


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


def hold_for(plan: Plan, members: int, prune: Prune, reads: str, settings: str, other: Mapping[Key, str]) -> Hold | None:
    """Return why a plan must wait for approval, or None: what goes is above both thresholds, or it leaves no live member.

    Counted is whatever goes because of the run (`Plan.gone`), not only what it deletes itself. What is approved also names the fields that
    go of objects that stay. `members`: those that live; `other`: what else must be approved, each with its reason.
    """
    gone = [each for each in plan.gone if each.counted]
    reasons = list(other.values())
    limit, living = prune.hold_above, members + sum(not each.is_member for each in gone)
    if len(gone) > limit.count and len(gone) > limit.fraction * living:
        share = 100 * len(gone) / living if living else 100
        seen = f"{len(gone)} of {many(living, 'live object')} would be deleted ({share:.0f} %)"
        reasons.append(f"{seen}, above holdAbove {limit.count} and {limit.fraction:.0%}")
    lost = sum(each.is_member and not each.returns for each in gone)
    is_renamed = members == 1 and any(change.action is Action.CREATE for change in plan.changes)
    if lost >= members > 0 and not is_renamed:
        ends = {each.cause for each in gone} == {Cause.UNDECLARED}
        several = f"all {members} live objects would be deleted" + (", none of them is declared any more" if ends else "")
        one = "the only live object would be deleted" + (", it isn't declared any more" if ends else "")
        reasons.append(several if members > 1 else one)
    if not reasons:
        return None
    lost_fields = {change.key() for change in plan.changes if change.removes or change.drops}
    keys = tuple(sorted({*other, *lost_fields, *(each.key() for each in plan.lost)}))
    return Hold(hold_id(keys, reads, settings), tuple(reasons), keys)


def lost_though_off(plan: Plan, target: Target, desired: Mapping[Identity, Desired]) -> list[Problem]:
    """Return why a plan is refused: all that would go although the target prunes nothing, whatever would take it.

    `desired`: what git declares, and where.
    """
    if target.prune.enabled:
        return []
    found: list[Problem] = []
    for each in (each for each in plan.gone if each.counted):
        item = desired.get(each.by or each.identity)
        seen = f"would be deleted, and prune is off: {SAID[each.cause]}"
        problem = Problem(str(each.identity), seen, item.manifest.place if item else "")
        ways_out = (_RENAME if each.cause is Cause.HOOK else "or take the change back that deletes it",)
        found.append(lacking(problem, target.name, {"prune.enabled": ("true",)}, ways_out))
    return found


def hold_id(keys: Sequence[Key], reads: str, settings: str) -> str:
    """Return the short name a person approves by: it changes with the changes and with what they come from."""
    return hashlib.sha256(canonical([sorted(keys), reads, settings])).hexdigest()[:12]


def approved(hold: Hold, keys: Sequence[Key], same_inputs: bool) -> bool:
    """Whether an approval of `keys`, given for the same reads and settings, covers everything that is held."""
    return same_inputs and set(hold.changes) <= set(keys)
