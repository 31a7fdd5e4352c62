"""Whether an object is ours, and taking over what `kubectl` wrote, and other tools where the target names them.

An object is ours only with our label *and* our identity annotation naming exactly it; a copied label is not enough.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from handler.model.manifest import canonical
from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, Identity
from handler.plan.owned import Fields, managed_fields, our_entry, union, without
from handler.plan.ownership import deployed, deployers, marks_of

_TAKEN_OVER = ("kubectl", "before-first-apply")
"""Prefixes of the managers whose fields become ours on adoption, so that a field deleted in git really goes (k/k#99003)."""


def is_member(live: dict[str, Any], identity: Identity, target: str, applyset: str) -> bool:
    """Whether an object carries our label and our identity, naming exactly it."""
    metadata = live.get("metadata") or {}
    labelled = (metadata.get("labels") or {}).get(PART_OF) == applyset
    return labelled and (metadata.get("annotations") or {}).get(IDENTITY) == identity.mark(target)


def taken_over(live: dict[str, Any], tools: Collection[str] = ()) -> bytes:
    """Return `managedFields` with the entries of other appliers merged into ours, as JSON; empty if there is nothing to take.

    The apply that follows removes every field of the merged set that git doesn't declare, last-applied annotation included. `tools`: those
    whose objects are taken over, too; their marks go whoever wrote them.
    """
    tools = deployers(live, tools)
    entries, ours, marks = managed_fields(live), our_entry(live), marks_of(live, tools)
    theirs = [(entry, _taken(entry, tools)) for entry in entries if entry is not ours]
    taken = [(entry, part) for entry, part in theirs if part is not None]
    if not taken and not marks:
        return b""
    base = ours or {"apiVersion": live.get("apiVersion"), "fieldsType": "FieldsV1", **(taken[-1][0] if taken else {})}
    fields = union(base.get("fieldsV1") or {} if ours else {}, marks)
    for _, part in taken:
        fields = union(fields, part)
    rest = [{**entry, "fieldsV1": left} for entry, part in theirs if (left := without(without(_fields(entry), part or {}), marks))]
    return canonical([{**base, "manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}, *rest])


def _taken(entry: dict[str, Any], tools: Collection[str]) -> Fields | None:
    """Return what of an entry becomes ours: an applier's, or what we wrote otherwise than by an apply; never of a subresource."""
    manager, operation = str(entry.get("manager") or ""), entry.get("operation")
    ours = manager == FIELD_MANAGER and operation != "Apply"
    if not entry.get("subresource") and (ours or manager.startswith(_TAKEN_OVER)):
        return _fields(entry)
    return deployed(entry, tools) or None


def _fields(entry: dict[str, Any]) -> Fields:
    fields: Fields = entry.get("fieldsV1") or {}
    return fields
