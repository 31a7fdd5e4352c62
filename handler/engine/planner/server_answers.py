"""What comes of asking the server about one object, and what its refusals mean; above all, that something the object names is missing.

Law: an object is deferred only for what the server's own words miss and this run creates earlier. Any other refusal is final.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from handler.config.settings import Target
from handler.engine.planner.dead_webhooks import DeadWebhooks
from handler.model.errors import AccessDenied, ApiRefused, Problem
from handler.model.names import Identity
from handler.model.plan import Change
from handler.model.rollout import Mode
from handler.plan import missing_objects
from handler.plan.admission import CRD, Desired
from handler.plan.compare import Comparison
from handler.plan.quoted_refusal import told_refusal
from handler.plan.write_order import WriteOrder

Finding = Change | Problem | AccessDenied
"""What comes of one object: a change, a mistake of its author's, or a right that the operator must give."""
NO_DRY_RUN = "does not support dry run"
_DENIED = re.compile(r"admission webhook \"|\bdenied (?:the )?request\b")
"""How an admission webhook or policy begins: no schema says that."""
_BY_SCHEMA = frozenset({400, 404, 422})


def placed(error: ApiRefused | AccessDenied, item: Desired) -> list[Finding]:
    """Return a refusal with the place of its object; who must act stays what it was."""
    said = told_refusal(error, item.manifest).problems
    problems = [Problem(str(item.identity), p.message, item.manifest.place, p.fix) for p in said]
    return [type(error)(*problems)] if isinstance(error, AccessDenied) else [*problems]


def is_unasked(error: ApiRefused | AccessDenied) -> bool:
    """Whether a refusal is that of a right, so that it says nothing of the object; a webhook's or policy's says something."""
    return isinstance(error, AccessDenied) and not _DENIED.search(error.words)


def is_by_schema(error: ApiRefused | AccessDenied, *statuses: int) -> bool:
    """Whether a refusal may be a schema's or a validation's, with one of these statuses (none: any of theirs); admission's isn't."""
    return isinstance(error, ApiRefused) and error.status in (statuses or _BY_SCHEMA) and not _DENIED.search(error.words)


@dataclass(slots=True)
class MissingDependencies:
    """Knows what one run creates. `absent`: what isn't there yet; `written`: what this run has written so far; `dead`: what goes first."""

    target: Target
    comparison: Comparison
    coming: WriteOrder
    notes: list[str]
    dead: DeadWebhooks
    absent: frozenset[Identity] = frozenset()
    written: Collection[Identity] = frozenset()

    def first(self, item: Desired, error: ApiRefused | AccessDenied) -> Identity | None:
        """Return the missing object that a refusal names, if this run creates all of them before this one; note it."""
        found = self.named(item, error)
        if not found or not all(need and self.coming.is_before(need, item.identity) for _, need in found):
            return None
        self.notes.append(f"{item.identity}: checked by the server once {found[0][1]} exists")
        return found[0][1]

    def named(self, item: Desired, error: ApiRefused | AccessDenied) -> list[tuple[missing_objects.MissingObject, Identity | None]]:
        """Return each missing object that a refusal names, with the object of this run that creates it; None: this run has none."""
        if isinstance(error, AccessDenied):
            return []
        created = [one for identity, one in self.comparison.desired.items() if identity in self.absent or identity in self._new_hooks]
        return [(each, missing_objects.among(each, item, created)) for each in missing_objects.read(error.words)]

    @property
    def _new_hooks(self) -> set[Identity]:
        """The hooks that this run creates: they have a place in it, and nothing lives under their names."""
        hooks = {identity for identity, item in self.comparison.desired.items() if item.mode is Mode.HOOK}
        return (hooks & self.coming.places.keys()) - self.comparison.hooks.keys()

    def mistakes(self, item: Desired, error: ApiRefused | AccessDenied) -> list[Finding]:
        """Return a refusal as its author's mistakes, or as rights that are missing; with the way out where something named is."""
        found = placed(error, item)
        for each, need in self.named(item, error):
            if not missing_objects.is_told(each, item):
                continue
            if each.is_namespace and not need:
                found = [missing_objects.without_namespace(each, self.target, one) if isinstance(one, Problem) else one for one in found]
                continue
            fix = missing_objects.put_before(need, item.identity) if need else missing_objects.declare(each, item)
            found = [replace(one, fix=one.fix or fix) if isinstance(one, Problem) else one for one in found]
        return found

    def changing_crd(self, item: Desired) -> Identity | None:
        """Return the CRD of an object when this run still changes it: the server judges by the old one until then."""
        changing = (self.comparison.undecided.keys() | self.comparison.unowned.keys()) - set(self.written)
        return next((need for need in item.needs if need.group_kind == CRD and need in changing), None)
