"""Which fields that others wrote go when Anneal applies, and what the object is then. Pure.

    managedFields of live --> entries that the table names --> merged into our own entry --> the apply that follows drops what git lacks

Law: what people wrote with kubectl and git doesn't declare goes, at adoption as in drift; so does what a tool wrote that `adopt` names.
What controllers and others wrote stays, and so do status, finalizers, owners, ignored fields, protections from deletion, and the mark of
`kubectl rollout restart`. What goes is in the plan, and the server judges the object without it before the first write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from handler.model.names import FIELD_MANAGER
from handler.plan.field_sets import applied_over, existing, going, parted, paths, without
from handler.plan.owned import Fields, Step, difference, managed_fields, our_entry, union
from handler.plan.ownership import deployed, deployers, marks_of
from handler.plan.prune import PROTECTIONS


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


PEOPLE = (
    Writing("kubectl*", subresources=("", "scale")),
    Writing("before-first-apply", ("Update",)),
    Writing(FIELD_MANAGER, ("Update",)),
)
"""What people wrote: kubectl (1.36) calls itself `kubectl-<command>`, `kubectl` (apply --server-side, scale, cordon, debug) or
`kubectl.exe`, and writes scales as the subresource; its debug containers (`ephemeralcontainers`) and `status` are nobody's declaration.
The API server calls what was written before an object's first server-side apply `before-first-apply`. We ourselves only apply."""

_RESTARTED: tuple[Step, ...] = ("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
_SPARED: tuple[tuple[Step, ...], ...] = (("status",), _RESTARTED, ("metadata", "finalizers"), ("metadata", "ownerReferences"))
"""What stays whoever wrote it: status is never git's, without the mark of a restart all pods would roll once more, and what holds an object
or has it deleted with another isn't taken off by the way."""


@dataclass(frozen=True, slots=True)
class Takeover:
    """What becomes ours: `entries`, the managedFields to write before the apply; `goes`: what then goes, a set of fields."""

    entries: tuple[dict[str, Any], ...]
    goes: Fields

    def after(self, applied: dict[str, Any]) -> dict[str, Any]:
        """Return the object as it will be, from what a dry-run of the apply alone has made of it."""
        return dict(without(applied, self.goes))


def foreseen(live: dict[str, Any], desired: dict[str, Any], taken: Takeover | None) -> dict[str, Any]:
    """Return what an object should become where no dry-run says it: lists are merged as managedFields tell."""
    known: Fields = {}
    for entry in managed_fields(live):
        known = union(known, entry.get("fieldsV1") or {})
    others = [entry.get("fieldsV1") or {} for entry in managed_fields(live) if entry is not our_entry(live)]
    goes = taken.goes if taken else going((our_entry(live) or {}).get("fieldsV1") or {}, desired, others)
    return dict(applied_over(without(live, goes), desired, known or None))


def takeover(
    live: dict[str, Any],
    desired: dict[str, Any],
    *,
    adopted: bool,
    spared: Callable[[], Iterable[Sequence[Step]]] = tuple,
    tools: Collection[str] = (),
) -> Takeover | None:
    """Return what is taken over from others; None where there is nothing.

    Args:
        live: with its managedFields, in the version of `desired`.
        desired: what is applied onto it.
        adopted: it isn't ours yet: what is theirs becomes ours even if git declares all of it, so that it goes once git drops it.
        spared: names paths of live that stay with their owners.
        tools: those that the target adopts: what they deployed becomes ours, and their marks go whoever wrote them.

    """
    deploying = deployers(live, tools)
    ours, marks = our_entry(live), marks_of(live, deploying)
    others = [(entry, _becoming_ours(entry, deploying)) for entry in managed_fields(live) if entry is not ours]
    if not marks and all(part is None for _, part in others):
        return None
    version, staying = (ours or live)["apiVersion"], (*_SPARED, *_protections(live), *spared())
    left, theirs = [], marks
    for entry, part in others:
        spare, taken = _parted(part or {}, live, staying)
        theirs = union(theirs, taken if entry.get("apiVersion") == version else existing(taken, live))
        kept = difference(union(difference(entry.get("fieldsV1") or {}, part or {}), spare), marks)
        left += [{**entry, "fieldsV1": kept}] if kept else []
    kept_by = [entry["fieldsV1"] for entry in left]
    if not adopted and not going(theirs, desired, kept_by):
        return None
    merged = union((ours or {}).get("fieldsV1") or {}, theirs)
    first = {"fieldsType": "FieldsV1", **(ours or {}), "manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": version}
    return Takeover(({**first, "fieldsV1": merged}, *left), going(merged, desired, kept_by))


def _protections(live: dict[str, Any]) -> Iterator[tuple[Step, ...]]:
    """Yield where a live object carries a word about its deletion: people set it there, and a run that drops it could delete it next."""
    for name, _ in PROTECTIONS:
        yield from (("metadata", part, name) for part in ("annotations", "labels") if name in (live["metadata"].get(part) or {}))


def _becoming_ours(entry: dict[str, Any], tools: Collection[str]) -> Fields | None:
    """Return what of an entry becomes ours: of people's all, of a tool's what it deployed; None: nothing."""
    if any(row.covers(entry) for row in PEOPLE):
        return entry.get("fieldsV1") or {}
    return deployed(entry, tools) or None


def _parted(fields: Fields, live: dict[str, Any], spared: Iterable[Sequence[Step]]) -> tuple[Fields, Fields]:
    """Part what stays with its owner from what becomes ours."""
    kept: Fields = {}
    for path in spared:
        piece, fields = parted(fields, live, path)
        kept = union(kept, piece)
    return kept, fields


def undeclared(live: dict[str, Any], desired: dict[str, Any], taken: Takeover | None) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yield (path, manager) of each field that git doesn't declare and another manager keeps; status isn't git's to declare.

    Args:
        live: with its managedFields.
        desired: what is applied onto it.
        taken: what becomes ours: what goes with it isn't yielded.

    """
    for entry in taken.entries[1:] if taken else managed_fields(live):
        if entry.get("manager") != FIELD_MANAGER and entry.get("subresource") != "status":
            _, fields = _parted(entry.get("fieldsV1") or {}, live, (("status",),))
            for path, _ in paths(going(fields, desired, ())):
                yield path, str(entry.get("manager") or "")
