"""The walk of `managedFields`: is what we own live exactly what git declares, in value and in extent?

`fieldsV1` (KEP-555, structured-merge-diff) spells a set of paths as nested keys: `f:<field>`, `k:<list keys as JSON>`,
`v:<set member as JSON>`, `i:<index>`, `.` for the item itself; an empty mapping is a leaf, owned whole.
A yes is certain; a no only means that the server must be asked (defaults inside a leaf, dropped empty values, quantities).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from handler.model.names import FIELD_MANAGER, group_of

Fields = dict[str, Any]
Step = str | int | tuple[tuple[str, Any], ...]
"""A field, a position in a list, or a list element by its keys; the member of a set has the key MEMBER."""
MEMBER = ""
_KEY_DEFAULTS = {"protocol": "TCP"}
"""List keys the API server fills in before it names an element: container and service ports."""
_UNOWNED_ROOT = ("apiVersion", "kind")
_UNOWNED_METADATA = ("name", "namespace")


def our_entry(live: dict[str, Any]) -> dict[str, Any] | None:
    """Return our apply entry of an object, or None."""
    for entry in managed_fields(live):
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply" and not entry.get("subresource"):
            return entry
    return None


def managed_fields(live: Mapping[str, Any]) -> list[dict[str, Any]]:
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
    if not fields or set(fields) == {"."}:
        return equal(desired, live)
    if isinstance(desired, dict):
        return isinstance(live, dict) and _same_map(fields, desired, live)
    if isinstance(desired, list):
        return isinstance(live, list) and _same_list(fields, desired, live)
    return False


def equal(one: Any, other: Any) -> bool:
    """Compare two JSON values whole; a boolean is not a number, at any depth."""
    if one != other:
        return False
    if isinstance(one, dict):
        return all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return all(equal(value, found) for value, found in zip(one, other, strict=True))
    return isinstance(one, bool) == isinstance(other, bool)


def _same_map(fields: Fields, desired: dict[str, Any], live: dict[str, Any]) -> bool:
    owned = {key[2:]: sub for key, sub in fields.items() if key != "."}
    if owned.keys() != desired.keys():
        return False
    return all(key in live and _same(sub, desired[key], live[key]) for key, sub in owned.items())


def _same_list(fields: Fields, desired: list[Any], live: list[Any]) -> bool:
    """As many elements of a list that is merged by key or as a set are owned as are declared."""
    elements = [key for key in fields if key != "."]
    if len(elements) != len(desired):
        return False
    return all(_same_element(element, fields[element], desired, live) for element in elements)


def _same_element(element: str, fields: Fields, desired: list[Any], live: list[Any]) -> bool:
    if element.startswith("v:"):
        value = json.loads(element[2:])
        return any(equal(value, item) for item in desired) and any(equal(value, item) for item in live)
    if not element.startswith("k:"):
        return False
    keys = element_keys(element)
    declared, found = find_element(desired, keys), find_element(live, keys)
    return declared is not None and found is not None and _same_map(fields, declared, found)


@lru_cache(maxsize=4096)
def element_keys(element: str) -> tuple[tuple[str, Any], ...]:
    """Read `k:{"containerPort":80,"protocol":"TCP"}`."""
    return tuple(json.loads(element[2:]).items())


def _has_keys(item: Any, keys: Sequence[tuple[str, Any]]) -> bool:
    return isinstance(item, dict) and all(item.get(key, _KEY_DEFAULTS.get(key)) == value for key, value in keys)


def keys_of(item: dict[str, Any], names: Iterable[str]) -> tuple[tuple[str, Any], ...]:
    """Return the keys by which an element is named, defaults filled in."""
    return tuple((name, item.get(name, _KEY_DEFAULTS.get(name))) for name in names)


def find_element(items: Iterable[Any], keys: Sequence[tuple[str, Any]]) -> dict[str, Any] | None:
    """Return the element with these keys."""
    return next((item for item in items if _has_keys(item, keys)), None)


def union(first: Fields, second: Fields) -> Fields:
    """Return the set of paths in either. Where one owns a field whole and the other parts of it, both stays said (`.`)."""
    merged = dict(first)
    for key, theirs in second.items():
        ours = merged.get(key)
        if ours and theirs:
            merged[key] = union(ours, theirs)
        elif ours is None or theirs == ours:
            merged[key] = theirs
        else:
            merged[key] = {".": {}, **ours, **theirs}
    return merged


def difference(fields: Fields, gone: Fields) -> Fields:
    """Return the set of paths that aren't in another; a leaf of the other takes all below itself along."""
    left: Fields = {}
    for key, sub in fields.items():
        rest = difference(sub, gone[key]) if sub and gone.get(key) else sub
        if key not in gone or (gone[key] and (rest or not sub)):
            left[key] = rest
    return left


def owners(live: Mapping[str, Any], path: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield (manager, subresource) of every entry that owns what lies at a path."""
    for entry in managed_fields(live):
        if _owns(entry.get("fieldsV1") or {}, live, path):
            yield str(entry.get("manager") or ""), str(entry.get("subresource") or "")


def is_ours_alone(live: Mapping[str, Any], path: Sequence[Any]) -> bool:
    """Whether a field is as we have applied it, and no other manager's: one that changes it owns it from then on."""
    return {manager for manager, _ in owners(live, path)} == {FIELD_MANAGER}


def _owns(fields: Fields, node: Any, path: Sequence[Any]) -> bool:
    for step in path:
        if not fields:
            return True
        node = child(node, step)
        sub = fields.get(f"f:{step}") if isinstance(step, str) else _fields_of_element(fields, node)
        if sub is None:
            return False
        fields = sub
    return True


def _fields_of_element(fields: Fields, item: Any) -> Fields | None:
    for key in fields:
        named = key.startswith("k:") and _has_keys(item, element_keys(key))
        if named or (key.startswith("v:") and equal(json.loads(key[2:]), item)):
            return dict(fields[key])
    return None


def child(node: Any, step: Any) -> Any:
    """Go one step of a path down; None where there is nothing."""
    if isinstance(step, str):
        return node.get(step) if isinstance(node, dict) else None
    if not isinstance(node, list):
        return None
    if isinstance(step, int):
        return node[step] if step < len(node) else None
    if step[0][0] == MEMBER:
        return next((item for item in node if equal(item, step[0][1])), None)
    return find_element(node, step)


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
