"""`managedFields`: is what we own live exactly what git declares, in value and in extent; and the algebra of such sets of fields.

`fieldsV1` (KEP-555, structured-merge-diff) spells a set of paths as nested keys: `f:<field>`, `k:<list keys as JSON>`,
`v:<set member as JSON>`, `i:<index>`, `.` for the item itself; an empty mapping is a leaf, owned whole.
A yes is certain; a no only means that the server must be asked (defaults inside a leaf, dropped empty values, quantities). As in
structured-merge-diff (`merge/update.go: prune`) an apply removes what the manager owned before and neither it declares nor another owns,
with all below it; a list element only if the element itself was owned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from handler.model.names import FIELD_MANAGER, group_of

Fields = dict[str, Any]
Step = str | int | tuple[tuple[str, Any], ...]
"""A field, a position in a list, or a list element by its keys; the member of a set has the key MEMBER."""
MEMBER = ""
KEY_DEFAULTS = {"protocol": "TCP"}  # list keys the API server fills in before it names an element: container and service ports
_UNOWNED_ROOT = ("apiVersion", "kind")
_UNOWNED_METADATA = ("name", "namespace")


def our_entry(live: Mapping[str, Any], manager: str = FIELD_MANAGER) -> dict[str, Any] | None:
    """Return our apply entry of an object, or another manager's, or None."""
    for entry in managed_fields(live):
        if entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource"):
            return entry
    return None


def managed_fields(live: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every entry of an object."""
    entries: list[dict[str, Any]] = (live.get("metadata") or {}).get("managedFields") or []
    return entries


def is_same(desired: dict[str, Any], live: dict[str, Any], manager: str = FIELD_MANAGER) -> bool:
    """Whether the fields we (or another manager) own live equal the desired ones in value and in extent."""
    entry = our_entry(live, manager)
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
    elements = [key for key in fields if key != "."]
    if len(elements) != len(desired):
        return False
    places = [_same_element(element, fields[element], desired, live) for element in elements]
    found = [live_place for _, live_place in sorted(place for place in places if place)]
    return len(found) == len(desired) and found == sorted(found)  # an apply puts them into the declared order


def _same_element(element: str, fields: Fields, desired: list[Any], live: list[Any]) -> tuple[int, int] | None:
    """Return an element's positions, declared and live; None: it isn't the same, or that isn't certain."""
    if element[:2] not in ("k:", "v:"):
        return None
    keyed_by = element_keys(element) if element[0] == "k" else None
    fits = partial(_has_keys, keys=keyed_by) if keyed_by else partial(equal, json.loads(element[2:]))
    declared, found = (next((place for place, item in enumerate(items) if fits(item)), None) for items in (desired, live))
    if declared is None or found is None or (keyed_by and not _same_map(fields, desired[declared], live[found])):
        return None
    return declared, found


@lru_cache(maxsize=4096)
def element_keys(element: str) -> tuple[tuple[str, Any], ...]:
    """Read `k:{"containerPort":80,"protocol":"TCP"}`."""
    return tuple(json.loads(element[2:]).items())


def _has_keys(item: Any, keys: Sequence[tuple[str, Any]]) -> bool:
    return isinstance(item, dict) and all(item.get(key, KEY_DEFAULTS.get(key)) == value for key, value in keys)


def keys_of(item: dict[str, Any], names: Iterable[str]) -> tuple[tuple[str, Any], ...]:
    """Return the keys by which an element is named, defaults filled in."""
    return tuple((name, item.get(name, KEY_DEFAULTS.get(name))) for name in names)


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


def common(fields: Fields, other: Fields) -> Fields:
    """Return the paths that both sets have; a leaf has nothing below itself here: it may be a map that was declared empty."""
    found = {key: common(below, other[key]) for key, below in fields.items() if key in other}
    return {key: below for key, below in found.items() if below or fields[key] == other[key]}


def owners(live: Mapping[str, Any], path: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield (manager, subresource) of every entry that owns what lies at a path."""
    for entry in managed_fields(live):
        if _owns(entry.get("fieldsV1") or {}, live, path):
            yield str(entry.get("manager") or ""), str(entry.get("subresource") or "")


def is_ours_alone(live: Mapping[str, Any], path: Sequence[Any]) -> bool:
    """Whether a field is as we have applied it, and no other manager's: one that changes it owns it from then on."""
    return {manager for manager, _ in owners(live, path)} == {FIELD_MANAGER}


def is_applied(live: Mapping[str, Any], path: Sequence[Any]) -> bool:
    """Whether our own apply, and no other write under our name, owns what lies at a path, or a part of that.

    A map that it left empty is a leaf, too: what others have put into it since is theirs.
    """
    fields: Fields = (our_entry(live) or {}).get("fieldsV1") or {}
    return bool(fields) and (_owns(fields, live, path, whole=False) or (_owns(fields, live, path) and is_ours_alone(live, path)))


def _owns(fields: Fields, node: Any, path: Sequence[Any], *, whole: bool = True) -> bool:
    """Whether a set has what lies at a path. `whole`: a leaf has all that lies below it."""
    for step in path:
        if not fields:
            return whole
        node = child(node, step)
        sub = fields.get(f"f:{step}") if isinstance(step, str) else fields_of_element(fields, node)
        if sub is None:
            return False
        fields = sub
    return True


def fields_of_element(fields: Fields, item: Any) -> Fields | None:
    """Return what of a set lies in one element of a list; None: nothing."""
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
