"""`success` and `failure` of a step -> Checks.

An entry is one check by its type (`fieldComparisons`, `prometheus`, …), with a `name` if another entry is to speak of it. What makes a
step fail stands in its own `failure`, or, as upstream's newer form has it, beside a check of `success` or within its `fieldComparisons`:
all of it ends the step. `checkName` names a check that was given a `name` earlier in the same Rollout, else a type that needs no options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from handler.model.rollout import Check
from handler.rollout.interfaces import CheckType, Mistake, SpecError
from handler.rollout.spec_fields import Fields, path, unknown

MAX_CHECKS = 100
"""Checks of one step's success, or of its failure."""
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
        for raw, at in step.items("success", most=MAX_CHECKS):
            entry = self._entry(raw, at, also=_NESTED)
            success += self._check(entry, may_be_empty=entry.has("failure"))
            for nested in self._nested(entry):
                failure += self._failure(nested.items("failure", most=MAX_CHECKS))
                self.mistakes += nested.mistakes
        failure += self._failure(step.items("failure", most=MAX_CHECKS))
        return _named_apart(success), _named_apart(failure)

    def _nested(self, entry: Fields) -> Iterable[Fields]:
        """Return where upstream's newer form lets failures of an entry stand; what it would report to a database is refused."""
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
        for raw, at in items:
            entry = self._entry(raw, at, also=("checkName", "report"))
            self.refuse_reports(entry)
            if entry.has("checkName"):
                found += self._by_name(entry)
            else:
                self._refuse_of_success(entry)
                found += self._check(entry)
        return found

    def _refuse_of_success(self, entry: Fields) -> None:
        """Note the keys of a check that mean nothing under `failure`."""
        for kind, raw in entry.raw.items():
            for name in getattr(self.types.get(kind), "of_success", ()) if isinstance(raw, dict) else ():
                if raw.get(name) is not None:
                    seen = "is of `success`: a check of `failure` ends the step as soon as it holds"
                    fix = "remove it; `for` says how long it must hold"
                    self.mistakes.append(Mistake(path(path(entry.field, kind), name), seen, fix))

    def _entry(self, raw: Any, at: str, also: tuple[str, ...]) -> Fields:
        """Take one entry of a list of checks."""
        entry = Fields(raw, at, ("name", *self.types, *also), kind="check")
        self.mistakes += entry.mistakes
        return entry

    def _check(self, entry: Fields, *, may_be_empty: bool = False) -> list[Check]:
        """Read the one check of an entry."""
        types = [name for name in entry.raw if name in self.types]
        before = len(entry.mistakes)
        name = entry.text("name")
        if len(types) > 1:
            entry.note(types[1], f"stands beside {types[0]}", "write one check an item")
        elif not types and not before and not may_be_empty:
            entry.mistakes.append(Mistake(entry.field, "names no check", f"known are: {', '.join(self.types)}"))
        self.mistakes += entry.mistakes[before:]
        return [check for kind in types[:1] for check in self._read(kind, name, _without_nested(entry.raw[kind]), path(entry.field, kind))]

    def _read(self, kind: str, name: str, raw: Any, at: str) -> list[Check]:
        """Have a check read by its row; one that was refused is none."""
        try:
            check = Check(kind, name or kind, self.types[kind].read({} if raw is None else raw, at))
        except SpecError as error:
            self.mistakes += error.mistakes
            return []
        if name in self.named and self.named[name] != check:
            self.mistakes.append(Mistake(at, f"another check is named {name} already", "give it a name of its own"))
        elif name:
            self.named[name] = check
        return [check]

    def _by_name(self, entry: Fields) -> list[Check]:
        """Return the check that `checkName` names."""
        before = len(entry.mistakes)
        name = entry.text("checkName")
        self.mistakes += entry.mistakes[before:]
        others = [other for other in entry.raw if other in self.types]
        at = path(entry.field, "checkName")
        if others:
            self.mistakes.append(Mistake(at, f"stands beside {others[0]}", "write one check an item"))
        if name in self.named:
            return [self.named[name]]
        if name in self.types:
            return self._read(name, "", {}, at)
        if name:
            self.mistakes.append(Mistake(at, *unknown("check", name, [*self.named, *self.types])))
        return []


def _without_nested(raw: Any) -> Any:
    """Return a check's options without what isn't its own."""
    return {name: value for name, value in raw.items() if name not in _NESTED} if isinstance(raw, dict) else raw


def _named_apart(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Number the checks of one list that would be called the same."""
    taken: dict[str, int] = {}
    found = []
    for check in checks:
        taken[check.name] = times = taken.get(check.name, 0) + 1
        found.append(check if times == 1 else Check(check.type, f"{check.name} ({times})", check.options))
    return tuple(found)
