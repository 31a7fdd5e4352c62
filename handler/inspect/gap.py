"""The gap of one target: how each object that git declares, or that lives without that, stands against git; and each of its fields.

    equal        live is as git declares it                  differs     the next run that compares live would write it
    missing      git declares it, and it isn't there         itself      left alone, or gone by itself
    undeclared   it lives, and git doesn't declare it: an orphan (`orphans` says what becomes of it)

Law: an object's state is what the next run finds of what git declares; fields that git doesn't declare and that stay change none.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from handler.inspect.look import Look, Seen
from handler.inspect.signs import ObjectState
from handler.model.plan import Action, Change, Due, Gone
from handler.plan.gap import MOST, FieldState, GapField, ObjectGap

FIELDS = 200  # fields of one object that are listed
LOST = 1000  # objects that go beside the listed ones


@dataclass(frozen=True, slots=True)
class GapObject:
    """One object. `action`: what the next run does with it; `deletes`: the live one goes; `held`: once that is approved.

    `counts`: of all its fields; `omitted`: how many of them `fields` leaves out.
    """

    object: str
    group: str
    uid: str
    place: str
    state: ObjectState
    action: str
    deletes: bool
    held: bool
    reason: str
    sibling: str
    adopted: bool
    terminating: str
    finalizers: tuple[str, ...]
    counts: dict[str, int]
    fields: tuple[GapField, ...]
    omitted: int


@dataclass(frozen=True, slots=True)
class LostObject:
    """A live object that goes beside those: with others, or by a hook. `held`: once that is approved."""

    action: str
    object: str
    group: str
    uid: str
    reason: str
    held: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """The gap of a target. `counts`: objects by state; `fields`: fields by state; `omitted`: how many objects `objects` leaves out.

    `lost`: what goes beside them.
    """

    seen: Seen
    counts: dict[str, int]
    fields: dict[str, int]
    objects: tuple[GapObject, ...]
    due: tuple[Due, ...]
    lost: tuple[LostObject, ...]
    omitted: int = 0

    @property
    def differs(self) -> bool:
        """Whether the next run would write something."""
        return any(each.action in (Action.CREATE, Action.UPDATE, Action.RECREATE, Action.PRUNE) for each in self.objects)

    def of(self, name: str) -> Gap:
        """Return it with the objects of this name alone; what is counted stays."""
        return replace(self, objects=tuple(each for each in self.objects if each.object == name))


def gap_of(look: Look) -> Gap:
    """Make the gap of a look."""
    fields = max(look.ask.most - MOST, 0) + FIELDS
    objects = sorted((_object(look, change, fields) for change in look.changes), key=_order)
    states, counted = Counter(each.state for each in objects), Counter[str]()
    for each in objects:
        counted.update(each.counts)
    return Gap(
        seen=Seen.of(look),
        counts={str(state): states[state] for state in ObjectState},
        fields={str(state): counted[state] for state in FieldState},
        objects=tuple(objects),
        due=look.result.plan.due if look.result.plan else (),
        lost=tuple(_lost(look, gone) for gone in look.result.plan.lost[:LOST]) if look.result.plan else (),
    )


def _lost(look: Look, gone: Gone) -> LostObject:
    action, _, uid = gone.key()
    return LostObject(action, str(gone.identity), gone.identity.group, uid, gone.why, (action, uid) in look.held)


def _order(each: GapObject) -> tuple[int, str, str]:
    return list(ObjectState).index(each.state), each.object, each.group


def _object(look: Look, change: Change, most: int) -> GapObject:
    found = look.gaps.of(change)
    gap = found or ObjectGap()
    state = _state(change, compared=found is not None)
    fields = sorted(gap.fields, key=lambda each: (_FIRST.index(each.state), each.path))[:most]
    uncompared = change.action is Action.UNCHANGED and state is ObjectState.ITSELF
    return GapObject(
        object=str(change.identity),
        group=change.identity.group,
        uid=change.uid,
        place=change.manifest.place if change.manifest else "",
        state=state,
        action=str(change.action),
        deletes=change.removes,
        held=look.holds(change),
        reason=change.reason or ("only created where it is missing" if uncompared else ""),
        sibling=change.sibling,
        adopted=change.adopted,
        terminating=change.terminating,
        finalizers=change.finalizers,
        counts=gap.counts,
        fields=tuple(fields),
        omitted=sum(gap.counts.values()) - len(fields),
    )


_FIRST = (FieldState.DIFFERS, FieldState.UNDECLARED, FieldState.ITSELF, FieldState.EQUAL)
_STATES = {Action.CREATE: ObjectState.MISSING, Action.UPDATE: ObjectState.DIFFERS, Action.RECREATE: ObjectState.DIFFERS}


def _state(change: Change, *, compared: bool) -> ObjectState:
    if change.manifest is None or change.action is Action.PRUNE:
        return ObjectState.UNDECLARED
    if change.action is Action.UNCHANGED:
        return ObjectState.EQUAL if compared else ObjectState.ITSELF
    return _STATES.get(change.action, ObjectState.ITSELF)
