"""What a retired target writes of an object that stays: its marks go, and its fields are no manager's any more. Pure.

Law: one patch, on exactly the version that was read. An object without any entry of managedFields would belong to `before-first-apply` at
the next apply, which then meets conflicts: where ours is the only one it stays, and owns what no applied object has, `generateName`.
"""

from __future__ import annotations

from typing import Any

from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, Identity, uid_and_version
from handler.model.plan import Action, Change, FieldChange
from handler.plan.inventory import Membership, is_member

_EMPTY: dict[str, Any] = {"f:metadata": {"f:generateName": {}}}
_MARKS = (("labels", PART_OF), ("annotations", IDENTITY))


def let_go(identity: Identity, live: dict[str, Any], reason: str) -> Change:
    """Return the change of a member that stays without our marks. `reason`: why it stays."""
    found = [(part, key, str((live["metadata"].get(part) or {}).get(key) or "")) for part, key in _MARKS]
    fields = tuple(FieldChange(f"metadata.{part}.{key}", "", was, FIELD_MANAGER) for part, key, was in found)
    return Change(Action.UPDATE, identity, *uid_and_version(live), f"let go: {reason}", fields, marks_only=True)


def patch(live: dict[str, Any], identity: Identity, ours: Membership) -> list[dict[str, Any]] | None:
    """Return the JSON patch (RFC 6902) that lets go of a live object, as it was read; None: it isn't ours any more."""
    if not is_member(live, identity, ours):
        return None
    entries = live["metadata"].get("managedFields") or []
    left = [entry for entry in entries if entry.get("manager") != FIELD_MANAGER]
    own = [{**entry, "operation": "Update", "fieldsV1": _EMPTY} for entry in entries if entry.get("manager") == FIELD_MANAGER][:1]
    removed = [{"op": "remove", "path": f"/metadata/{part}/{key.replace('/', '~1')}"} for part, key in _MARKS]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": left or own},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
        *removed,
    ]
