"""Our fields of a live object, recorded in another API version than git writes: when their record is rewritten first. Pure.

An apply moves our entry of managedFields to its own version by itself, and the server converts what the other entries name. It can't
where an entry's version lacks a field that the object has (a CRD without conversion gained it), and answers no apply at all; and an entry
of a version that isn't served any more it forgets, so that what git drops would stay for ever. There the entries are moved before the
apply, as Flux' MigrateAPIVersion does.
"""

from __future__ import annotations

from typing import Any

from handler.model.names import FIELD_MANAGER, group_of
from handler.plan.owned import Fields, managed_fields, our_entry, owners

Object = dict[str, Any]


def recorded_in(live: Object) -> str:
    """Return the API version in which our fields are recorded; empty: nothing is ours."""
    return str((our_entry(live) or {}).get("apiVersion") or "")


def migrated(live: Object, api_version: str) -> list[Object]:
    """Return managedFields with every entry of another version of the kind moved to this one."""
    group = group_of(api_version)
    return [
        {**entry, "apiVersion": api_version} if group_of(str(entry.get("apiVersion") or "")) == group else entry
        for entry in managed_fields(live)
    ]


def foreseen(live: Object, desired: Object) -> Object:
    """Return what an apply makes of a live object, as far as that can be known without the server: it takes lists whole."""
    return dict(_applied(live, desired, (our_entry(live) or {}).get("fieldsV1") or {}, live, ()))


def _applied(node: Any, desired: Any, ours: Fields, live: Object, path: tuple[str, ...]) -> Any:
    """Merge one mapping: declared fields are set, and what we own and git no longer declares goes, unless another owns it, too."""
    if not isinstance(desired, dict) or not isinstance(node, dict):
        return desired
    left = {key: value for key, value in node.items() if key in desired}
    for key, value in node.items():
        if key in desired:
            continue
        fields = ours.get(f"f:{key}")
        if fields is None or _is_shared(live, (*path, key)):
            left[key] = value
        elif fields and isinstance(value, dict) and (kept := _applied(value, {}, fields, live, (*path, key))):
            left[key] = kept
    return left | {key: _applied(node.get(key), value, ours.get(f"f:{key}") or {}, live, (*path, key)) for key, value in desired.items()}


def _is_shared(live: Object, path: tuple[str, ...]) -> bool:
    return any(manager != FIELD_MANAGER for manager, _ in owners(live, path))
