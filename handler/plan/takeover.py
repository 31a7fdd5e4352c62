"""Which fields that others wrote go when Anneal applies, and what the object is then. Pure.

    managedFields of live --> entries that the table names --> merged into our own entry --> the apply that follows drops what git lacks

Law: what people wrote with kubectl and git doesn't declare goes, at adoption as in drift; so does what a tool wrote that `adopt` names.
What the server filled in for another choice goes (`union_defaults`). What controllers and others wrote stays, and so do status,
finalizers, owners, ignored fields, protections from deletion, and the mark of `kubectl rollout restart`. What goes is in the plan, and the
server judges the object without it before the first write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from handler.model.names import FIELD_MANAGER
from handler.plan.managed_fields import (
    Fields,
    Step,
    applied_over,
    common,
    difference,
    existing,
    going,
    keyed,
    managed_fields,
    our_entry,
    parted,
    paths,
    union,
    without,
)
from handler.plan.ownership import deployed, deployers, tool_marks
from handler.plan.prune import PROTECTIONS
from handler.plan.union_defaults import superseded


@dataclass(frozen=True, slots=True)
class Writing:
    """One row: entries by a manager (`*`: any that begins so), an operation and a subresource, whose fields are git's to declare."""

    manager: str
    operations: tuple[str, ...] = ("Apply", "Update")
    subresources: tuple[str, ...] = ("",)

    def covers(self, entry: dict[str, Any]) -> bool:
        """Whether an entry of managedFields is of this row."""
        manager, subresource = str(entry.get("manager") or ""), str(entry.get("subresource") or "")
        named = manager == self.manager or (self.manager.endswith("*") and manager.startswith(self.manager[:-1]))
        return named and entry.get("operation") in self.operations and subresource in self.subresources


PEOPLE = (Writing("kubectl*", subresources=("", "scale")), Writing(FIELD_MANAGER, ("Update",)))
"""What people wrote: kubectl (1.36) calls itself `kubectl-<command>`, `kubectl` (apply --server-side, scale, cordon, debug) or
`kubectl.exe`, and writes scales as the subresource; its debug containers (`ephemeralcontainers`) and `status` aren't declarations. We
ourselves only apply.
"""
UNKNOWN = Writing("before-first-apply", ("Update",))
"""What was there when an object without managedFields was applied for the first time. The API server empties them where it can't convert
them, so this says nothing of who wrote it: of this row ours is only what git declares, or declared when we applied it; the rest stays.
"""

_PEOPLE = tuple(row.manager.removesuffix("*") for row in PEOPLE)
"""How their managers begin: of most entries that is all that need be known."""

_RESTARTED: tuple[Step, ...] = ("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
_SPARED: tuple[tuple[Step, ...], ...] = (("status",), _RESTARTED, ("metadata", "finalizers"), ("metadata", "ownerReferences"))
"""What stays whatever wrote it: status is never git's, without the restart annotation all pods would roll once more, and finalizers and
owner references aren't removed in passing.
"""


@dataclass(frozen=True, slots=True)
class Takeover:
    """What becomes ours: `entries`, the managedFields to write before the apply; `goes`: what then goes, a set of fields."""

    entries: tuple[dict[str, Any], ...]
    goes: Fields

    def after(self, applied: dict[str, Any]) -> dict[str, Any]:
        """Return the object as it will be, from what a dry-run of the apply alone has made of it."""
        return dict(without(applied, self.goes))


def dropped(live: dict[str, Any], desired: dict[str, Any], taken: Takeover | None) -> Fields:
    """Return the fields of a live object that go when `desired` is applied onto it, by managedFields."""
    if taken:
        return taken.goes
    ours = our_entry(live) or {}
    others = [_here(entry, entry.get("fieldsV1") or {}, live) for entry in managed_fields(live) if entry is not ours]
    own = _here(ours, ours.get("fieldsV1") or {}, live)
    return going(own, keyed(desired, own), others)


def foreseen(live: dict[str, Any], desired: dict[str, Any], taken: Takeover | None) -> dict[str, Any]:
    """Return the object that an apply leaves where no dry-run shows it: lists are merged by managedFields."""
    known: Fields = {}
    for entry in managed_fields(live):
        known = union(known, _here(entry, entry.get("fieldsV1") or {}, live))
    return dict(applied_over(without(live, dropped(live, desired, taken)), keyed(desired, known), known or None))


def takeover(
    live: dict[str, Any],
    desired: dict[str, Any],
    *,
    adopted: bool,
    spared: Callable[[], Iterable[Sequence[Step]]] = tuple,
    tools: Collection[str] = (),
) -> Takeover | None:
    """Return what is taken over from others as `desired` is applied onto `live`; None where there is nothing.

    `adopted`: it isn't ours yet: fields of others become ours, so that they go once git drops them. `spared`: paths that stay with their
    owners. `tools`: the adopted ones: fields that they deployed become ours, their marks go.
    """
    deploying = deployers(live, tools) if tools else ()
    ours, marks = our_entry(live) or {}, tool_marks(live, deploying) if deploying else {}
    defaults = superseded(live, desired)
    recorded = ours.get("fieldsV1") or {}
    own = _here(ours, recorded, live)
    found = [(entry, _becoming_ours(entry, deploying, own, desired)) for entry in managed_fields(live) if entry is not ours]
    if not marks and not defaults and all(part is None for _, part in found):
        return None
    if difference(recorded, own):
        return None  # the apply moves ours first: the server alone knows what these fields are in live's version
    staying = (*_SPARED, *_protections(live), *spared())
    divided = [(entry, *_divided(entry, part or {}, live, staying)) for entry, part in found]
    theirs = reduce(union, (taken for _, taken, _ in divided), union(marks, defaults))
    left = [{**entry, "fieldsV1": rest} for entry, _, kept in divided if (rest := difference(kept, marks))]
    kept_by, desired = [_here(entry, entry["fieldsV1"], live) for entry in left], keyed(desired, own)
    if not adopted and not going(theirs, desired, kept_by):
        return None
    merged = union(own, theirs)
    first = {"fieldsType": "FieldsV1", **ours, "manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": live["apiVersion"]}
    return Takeover(({**first, "fieldsV1": merged}, *left), going(merged, desired, kept_by))


def _divided(entry: dict[str, Any], part: Fields, live: dict[str, Any], staying: Iterable[Sequence[Step]]) -> tuple[Fields, Fields]:
    taken = _here(entry, _parted(part, live, staying), live)
    return taken, difference(entry.get("fieldsV1") or {}, taken)


def _here(entry: dict[str, Any], fields: Fields, live: dict[str, Any]) -> Fields:
    return fields if entry.get("apiVersion") == live["apiVersion"] else existing(fields, live)


def _protections(live: dict[str, Any]) -> Iterator[tuple[Step, ...]]:
    """Yield where a live object carries a word about its deletion: a run that drops it could delete the object next."""
    for name, _ in PROTECTIONS:
        yield from (("metadata", part, name) for part in ("annotations", "labels") if name in (live["metadata"].get(part) or {}))


def _becoming_ours(entry: dict[str, Any], tools: Collection[str], own: Fields, desired: dict[str, Any]) -> Fields | None:
    if UNKNOWN.covers(entry):
        fields = entry.get("fieldsV1") or {}
        return union(existing(fields, keyed(desired, fields)), common(fields, own)) or None
    if str(entry.get("manager") or "").startswith(_PEOPLE) and any(row.covers(entry) for row in PEOPLE):
        return entry.get("fieldsV1") or {}
    return (deployed(entry, tools) or None) if tools else None


def _parted(fields: Fields, live: dict[str, Any], spared: Iterable[Sequence[Step]]) -> Fields:
    for path in spared:
        _, fields = parted(fields, live, path)
    return fields


def undeclared(live: dict[str, Any], desired: dict[str, Any], taken: Takeover | None) -> Iterator[tuple[tuple[Step, ...], str, str]]:
    """Yield (path, manager, version) of each field, but for status, that git doesn't declare and another manager keeps.

    `version`: empty where live has that path, else the API version that alone knows it. `taken`: what becomes ours.
    """
    ours = taken.entries[0] if taken else our_entry(live) or {}
    desired = keyed(desired, _here(ours, ours.get("fieldsV1") or {}, live))
    for entry in taken.entries[1:] if taken else managed_fields(live):
        if entry.get("manager") == FIELD_MANAGER or entry.get("subresource") == "status":
            continue
        fields, manager = _parted(entry.get("fieldsV1") or {}, live, (("status",),)), str(entry.get("manager") or "")
        here = _here(entry, fields, live)
        yield from ((path, manager, "") for path, _ in paths(going(here, desired, ())))
        yield from ((path, manager, str(entry.get("apiVersion"))) for path, _ in paths(difference(fields, here)))
