"""A plan as a person reads it: without what the target's Secrets hold, in git or live, wherever it is repeated.

    Secrets of the commit (`commit_mask`), live ones that the plan's LISTs met --> a mask --> every text of a copy of the plan

Law: the plan that is carried out stays as it is, for approvals name what goes of an object by its value; only what is read is a copy.
Masks are made at the first text: a run whose plan isn't read pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from handler.config.secret_mask import Mask
from handler.engine.run.commit_mask import CommitMask, living
from handler.model.field_masking import MASKED
from handler.model.names import Identity
from handler.model.plan import Change, FieldChange, Plan
from handler.model.result import Result
from handler.plan.diff import hidden_alike

_TEXTS = 1 << 14  # texts that are remembered masked: paths of fields are alike


@dataclass(slots=True)
class ShownPlan:
    """Masks what is shown of one plan. `mask`: the commit's; `secrets`: the live ones; `named`: objects whose names texts may say.

    `unread`: namespaces whose Secrets can't be read: then no field's value is shown.
    """

    mask: Callable[[str], str]
    secrets: Mapping[Identity, dict[str, Any]] = field(default_factory=dict, repr=False)
    named: Iterable[Identity] = ()
    unread: tuple[str, ...] = ()
    _hides: Callable[[str], str] | None = field(default=None, repr=False)

    def text(self, text: str) -> str:
        """Return a text without what the Secrets hold."""
        if self._hides is None:
            self._hides = lru_cache(_TEXTS)(live_mask(self.mask, self.secrets, self.named))
        return self._hides(text)

    def value(self, text: str) -> str:
        """Return a field's value in the same way."""
        return text and MASKED if self.unread else self.text(text)

    def result(self, result: Result) -> Result:
        """Return a run's end with its plan, and what it has written, masked."""
        return replace(result, plan=self.plan(result.plan) if result.plan else None, written=self.changes(result.written))

    def plan(self, plan: Plan) -> Plan:
        """Return the plan masked; what is held keeps its name."""
        hold = plan.hold and replace(plan.hold, reasons=self._texts(plan.hold.reasons))
        stages, relabelled = tuple(self.changes(stage) for stage in plan.stages), self.changes(plan.relabelled)
        plan = replace(plan, stages=stages, relabelled=relabelled)
        return replace(plan, prunes=self.changes(plan.prunes), notes=self._texts(plan.notes), hold=hold)

    def changes(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Return changes masked."""
        return tuple(
            replace(
                each,
                reason=self.text(each.reason),
                finalizers=self._texts(each.finalizers),
                fields=tuple(map(self._field, each.fields)),
                undeclared=tuple(map(self._field, each.undeclared)),
            )
            for each in changes
        )

    def _field(self, each: FieldChange) -> FieldChange:
        declared, live = hidden_alike(each.declared, each.live, self.value)
        return FieldChange(self.text(each.path), declared, live, self.text(each.manager))

    def _texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self.text, texts))


def live_mask(mask: Callable[[str], str], secrets: Mapping[Identity, dict[str, Any]], named: Iterable[Identity]) -> Callable[[str], str]:
    """Return a mask that also hides what live Secrets hold; their parts that are called like an object of `named` stay."""
    return CommitMask(mask, (), Mask.of(living(tuple(secrets.values()), named))) if secrets else mask
