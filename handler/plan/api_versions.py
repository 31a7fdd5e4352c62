"""Our fields of a live object, recorded in another API version than git writes: when their record is rewritten first. Pure.

An apply moves our entry of managedFields to its own version by itself, and the server converts what the other entries name. It can't
where an entry's version lacks a field that the object has (a CRD without conversion gained it), and answers no apply at all; and an entry
of a version that isn't served any more it forgets, so that what git drops would stay for ever. There the entries are moved before the
apply, as Flux' MigrateAPIVersion does.
"""

from __future__ import annotations

from typing import Any

from handler.model.names import group_of
from handler.plan.managed_fields import managed_fields, our_entry

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
