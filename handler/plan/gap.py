"""The gap between git and one live object, field by field, in Rekkoner's four states. Pure.

    declared, live --> fields with who owns each --> a state each --> with the plan's Change: what the next run does about it

Law: what the server calls the same is equal, however it is written. Fields are masked as a plan masks them; of what is masked nothing says
that it equals. Only a look that asks for it pays: equal fields and the server's defaults are counted,
and listed where they are few.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache, reduce
from typing import Any

from handler.model.field_masking import MASKED, is_sensitive, shown
from handler.model.hidden_fields import HiddenFields
from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, GroupKind, Identity
from handler.model.plan import Action, Change, FieldChange
from handler.plan.diff import meaningful, paired, tellable, text_of
from handler.plan.ignore import Ignoring
from handler.plan.managed_fields import Fields, Step, equal, fields_of_element, keyed, managed_fields, union

MOST = 1000  # equal fields and defaults that are listed altogether
_ABSENT = object()
_OURS = (("metadata", "name"), ("metadata", "namespace"), ("metadata", "labels", PART_OF), ("metadata", "annotations", IDENTITY))
"""What makes an object that one and ours: git's author wrote none of it, or can't change it."""
_KEPT = ("finalizers", "ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Metadata by which controllers and the garbage collector do their work (Rekkoner's default list)."""
DEFAULT, FILLED = "has no manager, as the API server's defaults", "within what git declares, by the API server"
NOT_THERE, DROPPED = "isn't there", "the API server doesn't keep it"
MORE = "has more than git declares, and keeps it"
GOES, STAYS = "the next run that compares live removes it", "it stays"
_EMPTY = frozenset({"", "null", "false", "0", '""', "{}", "[]"})
"""What the API server may leave out as it is what holds without it."""
_STEP = re.compile(r"[.[]")
Path = tuple[Step, ...]
Place = tuple[str | int, ...]


class FieldState(StrEnum):
    """How a field stands: declared and live the same, declared and live otherwise, live alone, or changing by itself."""

    EQUAL = "equal"
    DIFFERS = "differs"
    UNDECLARED = "undeclared"
    ITSELF = "itself"


@dataclass(frozen=True, slots=True)
class GapField:
    """One field. `declared`/`live`: masked text, empty: it isn't there; `manager`: who owns it live; `why`: if the state needs a word."""

    path: str
    state: FieldState
    declared: str
    live: str
    manager: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ObjectGap:
    """The fields of one object: those that are listed.

    `equal`: paths of equal ones that aren't, each with whether it is a map or a list; `defaults`: how many of the server's.
    """

    fields: tuple[GapField, ...] = ()
    equal: tuple[tuple[str, bool], ...] = ()
    defaults: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """How many fields stand how, listed or not; every state is named."""
        found = Counter({FieldState.EQUAL: len(self.equal), FieldState.ITSELF: self.defaults})
        found.update(each.state for each in self.fields)
        return {str(state): found[state] for state in FieldState}

    def judged(self, change: Change) -> ObjectGap:
        """Return the gap as the plan sees it: what the server's dry-run changes differs, and nothing else that is declared."""
        if change.action is Action.RECREATE:
            return self
        changed = _Changed.of(change.fields)
        left = [_settled(each) for each in self.fields if not changed.covers(each.path, _holds(each)) and not _is_secret_alike(each)]
        rest = tuple(each for each in self.equal if not changed.covers(*each))
        return replace(self, fields=(*map(_changing, change.fields), *left), equal=rest)


@dataclass(slots=True)
class FieldGaps:
    """Collects the gap of every declared live object that a plan compares. Thread-safe.

    `object`: the one whose equal fields are listed; empty: those of all, while they are few. `most`: how many are listed. `beside`:
    takes undeclared objects of namespaces that aren't exclusive; None: they aren't looked for.
    """

    object: str = ""
    most: int = MOST
    found: dict[Identity, ObjectGap] = field(default_factory=dict, repr=False)
    beside: list[Change] | None = None
    _listed: int = 0

    def see(
        self,
        identity: Identity,
        declared: dict[str, Any],
        live: dict[str, Any],
        ignoring: Ignoring,
        hidden: HiddenFields,
    ) -> None:
        """Note the gap of one object. `hidden`: see `diff.field_changes`."""
        known: Fields = reduce(union, (entry.get("fieldsV1") or {} for entry in managed_fields(live)), {})
        ignored = ignoring.ignored(identity, declared, live)
        look = _Look(identity.group_kind, tuple(ignored), ignoring.made_anew(identity, live), hidden)
        lists = self.object in ("", str(identity)) and self._listed < self.most
        gap = look.gap(keyed(declared, known), live, lists=lists)
        self._listed += len(gap.fields)
        self.found[identity] = gap

    def of(self, change: Change) -> ObjectGap | None:
        """Return the gap of a change's object; None: it wasn't compared."""
        found = self.found.get(change.identity)
        return found.judged(change) if found and change.manifest else None


@dataclass(frozen=True, slots=True)
class _Owner:
    """Who owns something. `within`: not by its own name, but what is around it whole."""

    manager: str
    subresource: str
    fields: Fields
    within: bool = False


@dataclass(frozen=True, slots=True)
class _Leaf:
    path: Path
    place: Place
    declared: Any
    live: Any
    owners: tuple[_Owner, ...]


@dataclass(frozen=True, slots=True)
class _Look:
    kind: GroupKind
    ignored: Sequence[tuple[Place, str]]
    anew: Sequence[Place]
    hidden: HiddenFields

    def gap(self, declared: dict[str, Any], live: dict[str, Any], *, lists: bool) -> ObjectGap:
        owners = tuple(
            _Owner(str(entry.get("manager") or ""), str(entry.get("subresource") or ""), entry.get("fieldsV1") or {})
            for entry in managed_fields(live)
        )
        fields: list[GapField] = []
        same: list[tuple[str, bool]] = []
        defaults = 0
        for leaf in _leaves(meaningful(declared), meaningful(live), owners):
            state, why = self._state(leaf)
            if why in (DEFAULT, FILLED) and not lists:
                defaults += 1
                continue
            text, secret = _text(self.kind, tuple(self.hidden.told(leaf.path)))
            if state is FieldState.EQUAL and (leaf.path in _OURS or secret or self._is_hidden(leaf)):
                continue
            if lists or state is not FieldState.EQUAL:
                fields.append(self._field(leaf, text, state, why))
            else:
                same.append((text, isinstance(leaf.live, dict | list)))
        return ObjectGap(tuple(filter(_is_told, fields)), tuple(same), defaults)

    def _state(self, leaf: _Leaf) -> tuple[FieldState, str]:
        ignored = next((why for place, why in self.ignored if leaf.place[: len(place)] == place), "")
        if ignored:
            return FieldState.ITSELF, ignored
        if leaf.live is _ABSENT:
            return FieldState.DIFFERS, NOT_THERE
        if _has_more(leaf):
            return FieldState.UNDECLARED, MORE
        if leaf.declared is not _ABSENT:
            return FieldState.EQUAL if equal(leaf.declared, leaf.live) else FieldState.DIFFERS, ""
        return _undeclared(leaf)

    def _is_hidden(self, leaf: _Leaf) -> bool:
        return self.hidden.hides(leaf.path) or self._is_anew(leaf)

    def _is_anew(self, leaf: _Leaf) -> bool:
        return any(all(ours == theirs for ours, theirs in zip(leaf.place, place, strict=False)) for place in self.anew)

    def _field(self, leaf: _Leaf, text: str, state: FieldState, why: str) -> GapField:
        declared, live = (shown(self.kind, text, None if value is _ABSENT else value) for value in (leaf.declared, leaf.live))
        if self._is_hidden(leaf):
            declared, live = declared and MASKED, live and MASKED
        return GapField(text, state, declared, live, _owner(leaf), why)


def _is_told(each: GapField) -> bool:
    return each.state is not FieldState.EQUAL or MASKED not in each.declared + each.live


def _undeclared(leaf: _Leaf) -> tuple[FieldState, str]:
    """Say of a field that live alone has whether another manager wrote it, or it is there by itself."""
    if leaf.path[:1] == ("metadata",) and leaf.path[1:2] and leaf.path[1] in _KEPT:
        return FieldState.ITSELF, "kept by controllers"
    others = [owner for owner in leaf.owners if owner.manager != FIELD_MANAGER]
    if not others and not all(owner.within for owner in leaf.owners):
        return FieldState.UNDECLARED, GOES
    if not others:
        return FieldState.ITSELF, FILLED if leaf.owners else DEFAULT
    if all(owner.subresource for owner in others):
        return FieldState.ITSELF, f"written through {others[0].subresource}"
    return FieldState.UNDECLARED, STAYS


def _has_more(leaf: _Leaf) -> bool:
    """Whether a set holds all that git declares of it, and members that are others'."""
    if not (isinstance(leaf.declared, list) and isinstance(leaf.live, list)) or len(leaf.declared) >= len(leaf.live):
        return False
    is_set = any(step.startswith("v:") for owner in leaf.owners for step in owner.fields)
    return is_set and all(any(equal(ours, theirs) for theirs in leaf.live) for ours in leaf.declared)


def _owner(leaf: _Leaf) -> str:
    managers = sorted({owner.manager for owner in leaf.owners}, key=lambda name: (name == FIELD_MANAGER, name))
    return managers[0] if managers else ""


# --- fields
def _leaves(declared: Any, live: Any, owners: tuple[_Owner, ...]) -> list[_Leaf]:
    """Return the fields of two objects, each with its owners; what only one of them has, whole, but for parts with own owners."""
    found: list[_Leaf] = []
    _walk(found, _Leaf((), (), declared, live, owners))
    return found


def _walk(found: list[_Leaf], node: _Leaf) -> None:
    declared, live, owners = node.declared, node.live, node.owners
    if _is_map(declared) and _is_map(live) and not _is_whole(declared, live, owners):
        ours, theirs = ({} if value is _ABSENT else value for value in (declared, live))
        for key in sorted(ours.keys() | theirs.keys()):
            below = theirs.get(key, _ABSENT)
            inner = _narrowed(owners, key, below)
            _walk(found, _Leaf((*node.path, key), (*node.place, key), ours.get(key, _ABSENT), below, inner))
    elif isinstance(declared, list) and isinstance(live, list) and all(isinstance(each, dict) for each in (*declared, *live)) and declared:
        before, after = paired(declared, live)
        positions = {step: index for index, step in enumerate(after)}
        for step in dict.fromkeys([*before, *after]):
            one, other = before.get(step, _ABSENT), after.get(step, _ABSENT)
            place = (*node.place, positions.get(step, len(live)))
            element = _Leaf((*node.path, step), place, one, other, _narrowed(owners, step, other))
            named = isinstance(step, int) and any(isinstance(each, dict) and "name" in each for each in (one, other))
            if named or _ABSENT in (one, other):  # whole: by its name masking knows a secret's value
                found.append(element)
            else:
                _walk(found, element)
    else:
        found.append(node)


@lru_cache(maxsize=16384)
def _text(kind: GroupKind, path: Path) -> tuple[str, bool]:
    """Return a path as text, and whether what lies there may never be shown: objects of one kind have the same paths."""
    text = text_of(tellable(kind, path))
    return text, is_sensitive(kind, text)


def _is_map(value: Any) -> bool:
    return value is _ABSENT or isinstance(value, dict)


def _is_whole(declared: Any, live: Any, owners: Sequence[_Owner]) -> bool:
    """Whether a map is one field: only one side has it, and no manager owns parts of it; or it is empty."""
    if live is _ABSENT or not (declared or live):
        return True
    return declared is _ABSENT and (not live or not any(set(owner.fields) - {"."} for owner in owners))


def _narrowed(owners: tuple[_Owner, ...], step: Step, item: Any) -> tuple[_Owner, ...]:
    """Return of those who own something of a node those who own what lies one step below it; who owns a node whole owns that, too."""
    found = []
    for owner in owners:
        fields = owner.fields
        below = fields and (fields.get(f"f:{step}") if isinstance(step, str) else fields_of_element(fields, item))
        if below is not None:
            found.append(_Owner(owner.manager, owner.subresource, below, within=below is fields))
    return tuple(found)


# --- with the plan
def _settled(each: GapField) -> GapField:
    """Return a field that the plan doesn't change: the server calls equal what is written otherwise, drops it or keeps it."""
    if each.why == GOES:
        return replace(each, state=FieldState.ITSELF, why=FILLED)
    if each.state is not FieldState.DIFFERS:
        return each
    if each.why == NOT_THERE and each.declared not in _EMPTY:
        return replace(each, state=FieldState.ITSELF, why=DROPPED)
    return replace(each, state=FieldState.EQUAL, why="the same to the API server")


def _is_secret_alike(each: GapField) -> bool:
    """Whether a field that the plan doesn't change is masked: nothing says that it equals, or that all of it lives."""
    return (each.state is FieldState.DIFFERS or each.why == MORE) and MASKED in each.declared + each.live


def _changing(change: FieldChange) -> GapField:
    state = FieldState.DIFFERS if change.declared else FieldState.UNDECLARED
    why = GOES if not change.declared else "" if change.live else NOT_THERE
    return GapField(change.path, state, change.declared, change.live, change.manager, why)


@dataclass(frozen=True, slots=True)
class _Changed:
    """What a plan changes: paths, each with whether it is a map or a list; and what is `around` them.

    A key may have dots: beside a text `labels.app` there is another, `labels.app.kubernetes.io/name`. Only a map or a list holds more.
    """

    whole: Mapping[str, bool]
    around: frozenset[str]

    @classmethod
    def of(cls, changes: Sequence[FieldChange]) -> _Changed:
        return cls({each.path: _holds(each) for each in changes}, frozenset(above for each in changes for above in _above(each.path)))

    def covers(self, path: str, holds: bool) -> bool:
        """Whether a change names a field, or what is around or in it. `holds`: whether the field is a map or a list."""
        return path in self.whole or (holds and path in self.around) or any(self.whole.get(above) for above in _above(path))


def _holds(each: GapField | FieldChange) -> bool:
    """Whether a field is a map or a list, as far as its values are shown."""
    return any(text.startswith(("{", "[", MASKED)) for text in (each.declared, each.live))


def _above(path: str) -> Iterator[str]:
    return (path[: found.start()] for found in _STEP.finditer(path))
