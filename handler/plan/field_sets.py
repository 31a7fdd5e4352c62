"""Sets of fields, as managedFields spell them (`fieldsV1`, KEP-555), beside the values they speak of: pure algebra for `takeover`.

A set is a tree: `f:<field>`, `k:<list keys>`, `v:<set member>`; `.`: the item itself; an empty tree is a leaf, owned whole. As in
structured-merge-diff (`merge/update.go: prune`) an apply removes what the manager owned before and neither it declares nor another owns,
with all below it; a list element only if the element itself was owned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from handler.plan.managed_fields import MEMBER, Fields, Step, child, element_keys, equal, find_element, keys_of

_ABSENT = object()


def going(owned: Fields, desired: Any, others: Sequence[Fields]) -> Fields:
    """Return which of the owned fields an apply of `desired` removes; a leaf of the answer goes whole. `others`: what others own."""
    found: Fields = {}
    for key, below in owned.items():
        if key == ".":
            continue
        declared, kept = _value(desired, key), [each[key] for each in others if key in each]
        if declared is _ABSENT and not kept and (key.startswith("f:") or not below or "." in below):
            found[key] = {}
        elif below and (declared in (_ABSENT, None) or isinstance(declared, dict | list)):
            inner = going(below, {} if declared in (_ABSENT, None) else declared, kept)
            found |= {key: inner} if inner else {}
    return found


def without(node: Any, gone: Fields) -> Any:
    """Return a value without the fields of a set; what loses its last element becomes null (structured-merge-diff, `typed/remove.go`)."""
    if isinstance(node, dict):
        inner = {key[2:]: below for key, below in gone.items() if key.startswith("f:")}
        left = {key: value for key, value in node.items() if inner.get(key, _ABSENT) != {} or value == []}
        return {key: without(value, inner[key]) if inner.get(key) else value for key, value in left.items()} or (node and None)
    if isinstance(node, list):
        marked = [(item, next((below for key, below in gone.items() if names(key, item)), None)) for item in node]
        return [item if below is None else without(item, below) for item, below in marked if below != {}] or (node and None)
    return node


def applied_over(node: Any, desired: Any, fields: Fields | None) -> Any:
    """Return a value with `desired` declared on it; lists are merged where the set has their elements, else replaced."""
    below = fields or {}
    if isinstance(node, dict) and isinstance(desired, dict) and (fields is None or below):
        return {**node, **{key: applied_over(node.get(key), value, below.get(f"f:{key}")) for key, value in desired.items()}}
    if isinstance(node, list) and isinstance(desired, list):
        kinds = {key[:2] for key in below}
        if "k:" in kinds:
            by = next([name for name, _ in element_keys(key)] for key in below if key.startswith("k:"))
            return _merged(_keyed(node, by), _keyed(desired, by), below)
        if "v:" in kinds:
            return _merged(_keyed(node, None), _keyed(desired, None), below)
    return desired


def _keyed(items: list[Any], by: list[str] | None) -> dict[str, Any]:
    return {json.dumps(keys_of(item, by) if by else item, sort_keys=True): item for item in items if by is None or isinstance(item, dict)}


def _merged(live: dict[str, Any], desired: dict[str, Any], fields: Fields) -> list[Any]:
    """Merge two lists in the order that an apply gives them (structured-merge-diff, `typed/merge.go: visitListItems`)."""
    result, left, right, placed = [], list(live), list(desired), set[str]()
    while left or right:
        if left and left[0] in placed:
            left.pop(0)
        elif left and left[0] not in desired:
            result.append(live[left.pop(0)])
        else:
            name = right.pop(0)
            placed.add(name)
            there = live.get(name, _ABSENT)
            below = next((sub for key, sub in fields.items() if names(key, there)), None)
            result.append(desired[name] if there is _ABSENT else applied_over(there, desired[name], below))
    return result


def keyed(desired: Any, fields: Fields) -> Any:
    """Return a declared value whose list elements have the default keys that git omits, as the set of what we own names them."""
    if isinstance(desired, dict):
        return {name: keyed(value, fields.get(f"f:{name}") or {}) for name, value in desired.items()}
    elements = {element_keys(key): below for key, below in fields.items() if key.startswith("k:")}
    if not isinstance(desired, list) or not elements:
        return desired
    return [_with_keys(item, elements, desired) if isinstance(item, dict) else item for item in desired]


def _with_keys(item: dict[str, Any], elements: dict[tuple[tuple[str, Any], ...], Fields], items: list[Any]) -> dict[str, Any]:

    def fits(keys: tuple[tuple[str, Any], ...]) -> bool:
        return all(equal(item[name], value) if name in item else f"f:{name}" not in elements[keys] for name, value in keys)

    whole = [keys for keys in elements if fits(keys) and all(name in item for name, _ in keys)]
    free = [
        keys for keys in elements if fits(keys) and not any(isinstance(each, dict) and dict(keys).items() <= each.items() for each in items)
    ]
    return next((keyed({**dict(keys), **item}, elements[keys]) for keys in whole or free), item)


def parted(fields: Fields, node: Any, path: Sequence[Step]) -> tuple[Fields, Fields]:
    """Part a set into (what lies at a path of the value, the rest); a leaf above the path goes whole to the first."""
    if not path or not fields:
        return fields, {}
    item = child(node, path[0])
    key = f"f:{path[0]}" if isinstance(path[0], str) else next((key for key in fields if names(key, item)), "")
    if key not in fields:
        return {}, fields
    if len(path) == 1 or not fields[key]:
        return {key: fields[key]}, {other: below for other, below in fields.items() if other != key}
    piece, rest = parted(fields[key], item, path[1:])
    others = {other: below for other, below in fields.items() if other != key}
    return ({key: piece} if piece else {}), ({**others, key: rest} if rest else others)


def existing(fields: Fields, node: Any) -> Fields:
    """Return what of a set there is in a value: a set written in another API version names fields that this one may not have."""
    found: Fields = {}
    for key, below in fields.items():
        value = _value(node, key)
        if key == "." or (value is not _ABSENT and not below):
            found[key] = below
        elif value is not _ABSENT:
            found |= {key: inner} if (inner := existing(below, value)) else {}
    return found


def paths(fields: Fields) -> Iterator[tuple[tuple[Step, ...], Fields]]:
    """Yield each leaf of a set: its path, and the set of it alone."""
    for key, below in fields.items():
        if key == ".":
            continue
        step: Step = key[2:] if key.startswith("f:") else (element_keys(key) if key.startswith("k:") else ((MEMBER, json.loads(key[2:])),))
        if set(below) - {"."}:
            yield from (((step, *path), {key: only}) for path, only in paths(below))
        else:
            yield (step,), {key: below}


def picked(node: Any, fields: Fields) -> Any:
    """Return of a value what a set names; of list elements their keys, too."""
    if not set(fields) - {"."}:
        return node
    if isinstance(node, list):
        found = [(key, below, item) for key, below in fields.items() for item in node if names(key, item)]
        return [{**dict(element_keys(key)), **picked(item, below)} if key.startswith("k:") else item for key, below, item in found]
    return {key[2:]: picked(node[key[2:]], below) for key, below in fields.items() if key[2:] in node}


def at_path(node: Any, path: Sequence[Step]) -> Any:
    """Return the value at a path; None where there is nothing."""
    for step in path:
        node = child(node, step)
    return node


def names(key: str, item: Any) -> bool:
    """Whether a key of a set names this list element."""
    if key.startswith("v:"):
        return equal(json.loads(key[2:]), item)
    return key.startswith("k:") and find_element([item], element_keys(key)) is not None


def _value(node: Any, key: str) -> Any:
    if key.startswith("f:"):
        return node.get(key[2:], _ABSENT) if isinstance(node, dict) else _ABSENT
    if not isinstance(node, list):
        return _ABSENT
    return next((item for item in node if names(key, item)), _ABSENT)
