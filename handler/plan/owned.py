"""The walk of `managedFields`: is what we own live exactly what git declares, in value and in extent?

`fieldsV1` (KEP-555, structured-merge-diff) spells a set of paths as nested keys: `f:<field>`, `k:<list keys as JSON>`,
`v:<set member as JSON>`, `i:<index>`, `.` for the item itself; an empty mapping is a leaf, owned whole.
A yes is certain; a no only means that the server must be asked (defaults inside a leaf, dropped empty values, quantities).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from handler.model.names import FIELD_MANAGER

Fields = dict[str, Any]
KEY_DEFAULTS = {"protocol": "TCP"}
"""List keys the API server fills in before it names an element: container and service ports."""
_UNOWNED_ROOT = ("apiVersion", "kind")
_UNOWNED_METADATA = ("name", "namespace")


def our_entry(live: dict[str, Any], manager: str = FIELD_MANAGER) -> dict[str, Any] | None:
    """Return our apply entry of an object, or None."""
    for entry in managed_fields(live):
        if entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource"):
            return entry
    return None


def managed_fields(live: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every entry of an object."""
    entries: list[dict[str, Any]] = (live.get("metadata") or {}).get("managedFields") or []
    return entries


def is_same(desired: dict[str, Any], live: dict[str, Any]) -> bool:
    """Whether the fields we own live equal the desired ones in value and in extent."""
    entry = our_entry(live)
    if entry is None or not live.get("apiVersion") == entry.get("apiVersion") == desired.get("apiVersion"):
        return False
    declared = {key: value for key, value in desired.items() if key not in _UNOWNED_ROOT}
    metadata = {key: value for key, value in desired["metadata"].items() if key not in _UNOWNED_METADATA}
    declared = {**declared, "metadata": metadata} if metadata else {key: declared[key] for key in declared if key != "metadata"}
    return _same(entry.get("fieldsV1") or {}, declared, live)


def _same(fields: Fields, desired: Any, live: Any) -> bool:
    """Compare one node."""
    if not fields or set(fields) == {"."}:
        return _is_leaf_equal(desired, live)
    if isinstance(desired, dict):
        return isinstance(live, dict) and _same_map(fields, desired, live)
    if isinstance(desired, list):
        return isinstance(live, list) and _same_list(fields, desired, live)
    return False


def _is_leaf_equal(desired: Any, live: Any) -> bool:
    """Compare whole; a boolean is not a number."""
    return bool(desired == live) and isinstance(desired, bool) == isinstance(live, bool)


def _same_map(fields: Fields, desired: dict[str, Any], live: dict[str, Any]) -> bool:
    """Compare a mapping: the same keys are owned as are declared, and each is equal."""
    owned = {key[2:]: sub for key, sub in fields.items() if key != "."}
    if owned.keys() != desired.keys():
        return False
    return all(key in live and _same(sub, desired[key], live[key]) for key, sub in owned.items())


def _same_list(fields: Fields, desired: list[Any], live: list[Any]) -> bool:
    """Compare a list that is merged by key or as a set: as many elements are owned as are declared."""
    elements = [key for key in fields if key != "."]
    if len(elements) != len(desired):
        return False
    return all(_same_element(element, fields[element], desired, live) for element in elements)


def _same_element(element: str, fields: Fields, desired: list[Any], live: list[Any]) -> bool:
    """Compare one element named by its keys or by itself."""
    if element.startswith("v:"):
        value = json.loads(element[2:])
        return value in desired and value in live
    if not element.startswith("k:"):
        return False
    keys = element_keys(element)
    declared, found = find_element(desired, keys), find_element(live, keys)
    return declared is not None and found is not None and _same_map(fields, declared, found)


@lru_cache(maxsize=4096)
def _parsed_keys(element: str) -> tuple[tuple[str, Any], ...]:
    return tuple(json.loads(element[2:]).items())


def element_keys(element: str) -> tuple[tuple[str, Any], ...]:
    """Read `k:{"containerPort":80,"protocol":"TCP"}`."""
    return _parsed_keys(element)


def find_element(items: list[Any], keys: tuple[tuple[str, Any], ...]) -> dict[str, Any] | None:
    """Return the element with these keys, an absent key counting as its default."""
    for item in items:
        if isinstance(item, dict) and all(item.get(key, KEY_DEFAULTS.get(key)) == value for key, value in keys):
            return item
    return None


def union(first: Fields, second: Fields) -> Fields:
    """Return the set of paths in either."""
    merged = dict(first)
    for key, sub in second.items():
        merged[key] = union(merged[key], sub) if key in merged else sub
    return merged


def owners(live: dict[str, Any], path: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    """Yield (manager, subresource) of every entry that owns a path.

    Path elements: a str is a field, a tuple of (key, value) pairs names a list element, anything else is a set member.
    """
    for entry in managed_fields(live):
        if _owns(entry.get("fieldsV1") or {}, path):
            yield str(entry.get("manager") or ""), str(entry.get("subresource") or "")


def _owns(fields: Fields, path: tuple[Any, ...]) -> bool:
    """Whether a path lies in a set; a leaf owns everything below itself."""
    for step in path:
        if not fields:
            return True
        sub = _descend(fields, step)
        if sub is None:
            return False
        fields = sub
    return True


def _descend(fields: Fields, step: Any) -> Fields | None:
    """Go one step down, or return None."""
    if isinstance(step, str):
        return fields.get(f"f:{step}")
    if isinstance(step, tuple):
        wanted = set(step)
        return next((sub for key, sub in fields.items() if key.startswith("k:") and wanted <= set(element_keys(key))), None)
    return fields.get(f"v:{json.dumps(step)}")
