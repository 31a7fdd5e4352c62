"""A Rollout document -> its groups and steps. Both dialects of `workflow.kubernetes.io/v1alpha1` are read into one model.

    old   (2021)   fieldComparisons is a list; the steps of a group run all at once
    new   (2025)   fieldComparisons is an object; the steps of a group run one after the other, unless it says `parallel: true`

A document is of the old dialect if some `fieldComparisons` is a list and nothing in it needs the new one (`parallel`, `continueOnError`,
`failure`, a step's `name`, another type of check, an option of an action). An entry of `success` or `failure` is one check by its type.
What makes a step fail stands in its own `failure`, or, as in the newer form, beside a check of `success` or within its `fieldComparisons`.
`checkName` names a check that was given a `name` earlier, else a type that needs no options.
Law: whatever the document holds, the result is a Rollout or ManifestInvalid with every mistake; nothing of it is a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from handler.model.errors import ManifestInvalid, Problem
from handler.model.manifest import Manifest, at, items_at
from handler.model.names import LASTING, Identity
from handler.model.render import Where, nowhere, places
from handler.model.rollout import API_VERSION, KIND, MAX_STEPS, Check, Group, Mode, Phase, Rollout, Step
from handler.model.tree import MAX_PATH, printable
from handler.rollout.interfaces import ActionReader, CheckType, Mistake, SpecError
from handler.rollout.spec_fields import Fields, path, unknown

Keys = Mapping[str, Sequence[Identity]]  # what a Rollout calls them -> the objects: one, or the items of a List
MAX_COMPARISONS = 5_000  # what the checks of one Rollout compare, in all
MAX_NAME = 100
_MAX_MISTAKES = 100
_MAX_KNOWN, _MAX_SEARCHED = 20, 20_000
"""Objects that are named where one isn't known, and among how many the nearest ones are looked for."""
_STEP_KEYS = ("name", "object", "action", "success", "failure", "continueOnError")
_OLD_GROUP, _OLD_STEP = frozenset({"name", "steps"}), frozenset({"object", "action", "success"})
_REPEATABLE = frozenset({Mode.APPLY, Mode.KEEP})  # how a plan may treat an object that several steps name


def read(
    document: Manifest, keys: Keys, actions: Mapping[str, ActionReader], checks: Mapping[str, CheckType], where: Where = nowhere
) -> Rollout:
    """Read a Rollout. Raises ManifestInvalid: every mistake, with its line, its path in the document and the known names.

    `keys`: its names of declared objects; each object of one key has a step of its own. `where`: returns the lines of fields.
    """
    reading = _Reading(keys, actions, Conditions(checks))
    rollout = reading.rollout(document.body(), document.place)
    mistakes = [*reading.mistakes, *reading.conditions.mistakes]
    if mistakes:
        shown = mistakes[:_MAX_MISTAKES]
        placed = zip(shown, places(where, document.place, [mistake.field for mistake in shown]), strict=True)
        problems = [Problem(mistake.field, mistake.message, place, mistake.fix) for mistake, place in placed]
        if len(mistakes) > _MAX_MISTAKES:
            problems.append(Problem("Rollout", f"{len(mistakes) - _MAX_MISTAKES:,} more mistakes are not shown", document.place))
        raise ManifestInvalid(*problems)
    return rollout


def is_old(spec: Any) -> bool:
    """Whether a spec is of the old dialect: it says something in its way, and nothing that only the new one knows."""
    groups = [group for group in items_at(spec, "groups") if isinstance(group, dict)]
    steps = [step for group in groups for step in items_at(group, "steps") if isinstance(step, dict)]
    entries = [entry for step in steps for entry in items_at(step, "success") if isinstance(entry, dict)]
    newer = (
        at(spec, "parallel") is not None
        or any(group.keys() - _OLD_GROUP for group in groups)
        or any(step.keys() - _OLD_STEP for step in steps)
        or any(entry.keys() - {"fieldComparisons"} or isinstance(entry.get("fieldComparisons"), dict) for entry in entries)
    )
    return not newer and any(isinstance(entry.get("fieldComparisons"), list) for entry in entries)


@dataclass(slots=True)
class _Reading:
    keys: Keys
    actions: Mapping[str, ActionReader]
    conditions: Conditions
    mistakes: list[Mistake] = field(default_factory=list)
    seen: dict[Identity, str] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)
    searched: int = 0
    compared: int = 0

    def rollout(self, body: dict[str, Any], place: str) -> Rollout:
        top = Fields(body, "", ("apiVersion", "kind", "metadata", "spec"))
        for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
            if body.get(name) != wanted:
                top.note(name, f"isn't {wanted}", f"write {name}: {wanted}")
        metadata = body.get("metadata")
        named = Fields(metadata, "metadata", tuple(metadata) if isinstance(metadata, dict) else ())
        spec = Fields(body.get("spec"), "spec", ("parallel", "groups"))
        name = named.text("name", "rollout")
        parallel = spec.flag("parallel", default=False)
        raw = spec.items("groups", most=MAX_STEPS)
        if not raw and not spec.mistakes:
            spec.note("groups", "names no group", "write at least one group with one step")
        self._limit(spec, raw)
        self._take(top, named, spec)
        old = is_old(spec.raw)
        groups = _apart([self._group(each, where, number, parallel=old) for number, (each, where) in enumerate(raw, 1)], map(str, Phase))
        if sum(len(group.steps) for group in groups) > MAX_STEPS:
            fix = "name their Lists in fewer steps, or split the target"
            self.mistakes.append(Mistake("spec.groups", f"stand for more than {MAX_STEPS:,} steps, one for each item of a List", fix))
        return Rollout(name, groups, parallel, place)

    def _limit(self, spec: Fields, groups: list[tuple[Any, str]]) -> None:
        count = sum(len(items_at(group, "steps")) for group, _ in groups)
        if count > MAX_STEPS:
            spec.note("groups", f"have {count:,} steps together; at most {MAX_STEPS:,} are read", "split the target")
            groups.clear()

    def _take(self, *read: Fields) -> None:
        self.mistakes += [mistake for fields in read for mistake in fields.mistakes]

    def _group(self, raw: Any, where: str, number: int, *, parallel: bool) -> Group:
        group = Fields(raw, where, ("name", "parallel", "steps"))
        name = group.text("name", f"group {number}", most=MAX_NAME)
        together = group.flag("parallel", default=parallel)
        items = group.items("steps", most=MAX_STEPS)
        if not items and not group.mistakes:
            group.note("steps", "names no step", "write its steps, or remove the group")
        self._take(group)
        steps = [step for each, at_step in items if not self._enough() for step in self._step(each, at_step)]
        return Group(name, _apart(steps), together)

    def _enough(self) -> bool:
        return self.compared > MAX_COMPARISONS or len(self.mistakes) + len(self.conditions.mistakes) > 2 * _MAX_MISTAKES

    def _step(self, raw: Any, where: str) -> Iterator[Step]:
        wanted = at(raw, "action")
        action = self.actions.get(wanted) if isinstance(wanted, str) else None
        own = tuple(action.keys) if action else tuple(raw) if isinstance(raw, dict) else ()
        step = Fields(raw, where, (*_STEP_KEYS, *own, "report"))
        key = step.text("object", required=True, most=MAX_PATH)
        kind = step.text("action", required=True)
        name = step.text("name", _short(key), most=MAX_NAME)
        identities = self._identities(key) if key else ()
        if key and not identities:
            step.note("object", *self._unknown_object(key))
        if kind and action is None:
            step.note("action", *self._unknown_action(kind))
        go_on = step.flag("continueOnError", default=False)
        self.conditions.refuse_reports(step)
        success, failure = self.conditions.read(step)
        judged_by = getattr(action, "judged_by", None)
        success = judged_by(success) if judged_by else success
        self._limit_comparisons(step, (*success, *failure), len(identities))
        if action is not None and action.mode is Mode.DELETE:
            self._without_object(step, kind, (*success, *failure))
        options = self._options(action, step)
        for number, identity in enumerate(identities if action else ()):
            self._repeated(step, identity, kind)
            called = name if len(identities) == 1 else f"{name}[{number}]"
            yield Step(called, key, identity, kind, options, success, failure, go_on, where)
        self._take(step)

    def _limit_comparisons(self, step: Fields, checks: Iterable[Check], objects: int) -> None:
        self.compared += objects * sum(map(_comparisons, checks))
        if self.compared > MAX_COMPARISONS:
            seen = f"with this step the checks of all compare more than {MAX_COMPARISONS:,} values, for each object of a List anew"
            step.note("success" if step.has("success") else "failure", seen, "check what matters most, or split the target")

    def _without_object(self, step: Fields, kind: str, checks: Iterable[Check]) -> None:
        types = self.conditions.types
        for name in dict.fromkeys(each.type for each in checks if not getattr(types[each.type], "without_object", False)):
            usable = [other for other, row in types.items() if getattr(row, "without_object", False)]
            fix = f"there {', '.join(usable)} can be checked; the step itself waits until the object is gone" if usable else "remove it"
            step.note("action", f"{kind} leaves no object that {name} could look at", fix)

    def _options(self, action: ActionReader | None, step: Fields) -> Mapping[str, Any]:
        if action is None:
            return {}
        try:
            return action.read({name: step.raw[name] for name in action.keys if name in step.raw}, step.field)
        except SpecError as error:
            step.add(error)
            return {}

    def _identities(self, key: str) -> Sequence[Identity]:
        """Return the objects of a key: `!0` is the first document, and upstream's keys begin with a slash."""
        plain = key.removeprefix("./").lstrip("/").removesuffix("!0")
        return self.keys.get(key) or self.keys.get(plain) or ()

    def _unknown_object(self, key: str) -> tuple[str, str]:
        known = self.known = self.known or sorted(self.keys)
        self.searched += len(known)
        near = difflib.get_close_matches(key, known, n=1) if self.searched <= _MAX_SEARCHED and len(key) <= MAX_NAME else []
        more = f", and {len(known) - _MAX_KNOWN:,} more" if len(known) > _MAX_KNOWN else ""
        fix = f"known are: {', '.join(printable(each, 200) for each in known[:_MAX_KNOWN])}{more}"
        return f"unknown object {printable(key, 200)!r}", f"did you mean {near[0]}? {fix}" if near else fix

    def _unknown_action(self, action: str) -> tuple[str, str]:
        """Say it in upstream's words, correcting only sure slips: Create doesn't mean Recreate."""
        known = list(self.actions)
        near = difflib.get_close_matches(action, known, n=1, cutoff=0.9)
        seen = f"unknown action {printable(action, 120)!r}: available actions are {', '.join(known)}"
        return seen, f"did you mean {near[0]}?" if near else ""

    def _repeated(self, step: Fields, identity: Identity, kind: str) -> None:
        before = self.seen.get(identity)
        self.seen[identity] = kind
        if before is None or (before == kind and self.actions[kind].mode in _REPEATABLE):
            return
        anew = "" if identity.group_kind in LASTING else ": Recreate deletes an object and creates it anew"
        fix = "one step is enough" if before == kind else f"let one step do all of it{anew}"
        step.note("object", f"{identity} has a step before, which does {before}", fix)


def _comparisons(check: Check) -> int:
    return max((len(value) for value in check.options.values() if isinstance(value, list | tuple)), default=1)


def _short(key: str) -> str:
    return key if len(key) <= MAX_NAME else f"…{key[1 - MAX_NAME :]}"


T = TypeVar("T", Group, Step, Check)


def _apart(items: Iterable[T], reserved: Iterable[str] = ()) -> tuple[T, ...]:
    """Give items of one name numbers: the record knows them by their names."""
    taken = dict.fromkeys(reserved, 1)
    return tuple(replace(item, name=_unique(item.name, taken)) for item in items)


def _unique(name: str, taken: dict[str, int]) -> str:
    taken[name] = times = taken.get(name, 0) + 1
    if times == 1:
        return name
    return _unique(f"{name} ({times})", taken)


MAX_CHECKS = 100  # checks of one step's success, or of its failure
_NESTED = ("failure", "reportTimeout")
_RECORDED = "remove it; `anneal rollout TARGET` and the record (`anneal status TARGET -o json`) say how each step ended, and why"


@dataclass(slots=True)
class Conditions:
    """Reads the checks of one Rollout. `named`: those that have a name of their own, so far."""

    types: Mapping[str, CheckType]
    mistakes: list[Mistake] = field(default_factory=list)
    named: dict[str, Check] = field(default_factory=dict)

    def read(self, step: Fields) -> tuple[tuple[Check, ...], tuple[Check, ...]]:
        """Return what must hold for a step's success, and what ends it as failed."""
        success, failure = [], []
        for raw, where in step.items("success", most=MAX_CHECKS):
            entry = self._entry(raw, where, also=_NESTED)
            success += self._check(entry, may_be_empty=entry.has("failure"))
            for nested in self._nested(entry):
                failure += self._failure(nested.items("failure", most=MAX_CHECKS))
                self.mistakes += nested.mistakes
        failure += self._failure(step.items("failure", most=MAX_CHECKS))
        return _apart(success), _apart(failure)

    def _nested(self, entry: Fields) -> Iterable[Fields]:
        inner = entry.raw.get("fieldComparisons")
        places = [Fields(entry.raw, entry.field, tuple(entry.raw))]
        if isinstance(inner, dict):
            places.append(Fields(inner, path(entry.field, "fieldComparisons"), tuple(inner)))
        for place in places:
            self.refuse_reports(place)
        return places

    def refuse_reports(self, place: Fields) -> None:
        """Note the reports that only a database could take."""
        for name in ("report", "reportTimeout"):
            if place.has(name):
                self.mistakes.append(Mistake(path(place.field, name), "Anneal reports to no database", _RECORDED))

    def _failure(self, items: Iterable[tuple[Any, str]]) -> list[Check]:
        found: list[Check] = []
        for raw, where in items:
            entry = self._entry(raw, where, also=("checkName", "report"))
            self.refuse_reports(entry)
            if entry.has("checkName"):
                found += self._by_name(entry)
            else:
                self._refuse_of_success(entry)
                found += self._check(entry)
        return found

    def _refuse_of_success(self, entry: Fields) -> None:
        for kind, raw in entry.raw.items():
            for name in getattr(self.types.get(kind), "of_success", ()) if isinstance(raw, dict) else ():
                if raw.get(name) is not None:
                    seen = "is of `success`: a check of `failure` ends the step as soon as it holds"
                    fix = "remove it; `for` says how long it must hold"
                    self.mistakes.append(Mistake(path(path(entry.field, kind), name), seen, fix))

    def _entry(self, raw: Any, where: str, also: tuple[str, ...]) -> Fields:
        entry = Fields(raw, where, ("name", *self.types, *also), kind="check")
        self.mistakes += entry.mistakes
        return entry

    def _check(self, entry: Fields, *, may_be_empty: bool = False) -> list[Check]:
        types = [name for name in entry.raw if name in self.types]
        before = len(entry.mistakes)
        name = entry.text("name")
        if len(types) > 1:
            entry.note(types[1], f"stands beside {types[0]}", "write one check an item")
        elif not types and not before and not may_be_empty:
            entry.mistakes.append(Mistake(entry.field, "names no check", f"known are: {', '.join(self.types)}"))
        self.mistakes += entry.mistakes[before:]
        return [check for kind in types[:1] for check in self._read(kind, name, _without_nested(entry.raw[kind]), path(entry.field, kind))]

    def _read(self, kind: str, name: str, raw: Any, where: str) -> list[Check]:
        try:
            check = Check(kind, name or kind, self.types[kind].read({} if raw is None else raw, where))
        except SpecError as error:
            self.mistakes += error.mistakes
            return []
        if name in self.named and self.named[name] != check:
            self.mistakes.append(Mistake(where, f"another check is named {name} already", "give it a name of its own"))
        elif name:
            self.named[name] = check
        return [check]

    def _by_name(self, entry: Fields) -> list[Check]:
        before = len(entry.mistakes)
        name = entry.text("checkName")
        self.mistakes += entry.mistakes[before:]
        others = [other for other in entry.raw if other in self.types]
        where = path(entry.field, "checkName")
        if others:
            self.mistakes.append(Mistake(where, f"stands beside {others[0]}", "write one check an item"))
        if name in self.named:
            return [self.named[name]]
        if name in self.types:
            return self._read(name, "", {}, where)
        if name:
            self.mistakes.append(Mistake(where, *unknown("check", name, [*self.named, *self.types])))
        return []


def _without_nested(raw: Any) -> Any:
    return {name: value for name, value in raw.items() if name not in _NESTED} if isinstance(raw, dict) else raw
