"""Who owns which field: sets of paths, what an apply and an update make of them (KEP-555), and their spelling as `fieldsV1`.

All lists of the served kinds are atomic, so a path is a tuple of field names, and a list is a leaf.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.fakes.apiserver.bodies import copied

Path = tuple[str, ...]
Paths = frozenset[Path]
Owner = tuple[str, str]
"""Manager and operation: `("anneal", "Apply")`."""
Owners = Mapping[Owner, Paths]

_UNOWNED = ("apiVersion", "kind", "status")
_UNOWNED_METADATA = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields", "generation"}
)
_ABSENT = object()


class Conflict(Exception):
    """An apply without force met fields of others that differ."""

    def __init__(self, managers: Iterable[str]) -> None:
        super().__init__(", ".join(sorted(set(managers))))


def leaves(body: dict[str, Any]) -> Paths:
    """Return every path of an object that a manager may own."""
    own = {key: value for key, value in body.items() if key not in (*_UNOWNED, "metadata")}
    metadata = {key: value for key, value in body["metadata"].items() if key not in _UNOWNED_METADATA}
    return frozenset(_leaves({**own, "metadata": metadata} if metadata else own))


def _leaves(node: dict[str, Any], above: Path = ()) -> Iterable[Path]:
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*above, key))
        elif value is not None:
            yield (*above, key)


def value_at(body: Any, path: Path) -> Any:
    for step in path:
        if not isinstance(body, dict) or step not in body:
            return _ABSENT
        body = body[step]
    return body


def _put(body: dict[str, Any], path: Path, value: Any) -> None:
    for step in path[:-1]:
        body = body.setdefault(step, {})
    body[path[-1]] = copied(value)


def _drop(body: dict[str, Any], path: Path) -> None:
    """Remove a field; the map that held it stays, empty."""
    parent = value_at(body, path[:-1])
    if isinstance(parent, dict):
        parent.pop(path[-1], None)


def applied(live: dict[str, Any] | None, owners: Owners, config: dict[str, Any], manager: str, *, force: bool) -> tuple[Any, Owners]:
    """Return the object and its owners after a server-side apply. Raises Conflict without force."""
    me: Owner = (manager, "Apply")
    wanted = leaves(config)
    changed = {path for path in wanted if value_at(live, path) != value_at(config, path)}
    others = {owner: paths for owner, paths in owners.items() if owner != me}
    in_the_way = [owner[0] for owner, paths in others.items() if paths & changed]
    if in_the_way and not force:
        raise Conflict(in_the_way)
    others = {owner: paths - changed for owner, paths in others.items()}
    kept = frozenset().union(*others.values())
    made = copied(live) if live else {key: config[key] for key in ("apiVersion", "kind")} | {"metadata": {}}
    for path in owners.get(me, frozenset()) - wanted - kept:
        _drop(made, path)
    for path in wanted:
        _put(made, path, value_at(config, path))
    return made, {owner: paths for owner, paths in {**others, me: wanted}.items() if paths}


def updated(live: dict[str, Any] | None, owners: Owners, body: dict[str, Any], manager: str) -> Owners:
    """Return the owners after a create, a PUT or another patch: what changed is the writer's, what is gone has no owner."""
    me: Owner = (manager, "Update")
    before = leaves(live) if live else frozenset()
    after = leaves(body)
    changed = {path for path in after if value_at(live, path) != value_at(body, path)}
    found = {owner: paths - changed - (before - after) for owner, paths in owners.items()}
    found[me] = found.get(me, frozenset()) | changed
    return {owner: paths for owner, paths in found.items() if paths}


def spelled(owners: Owners, api_version: str, time: str) -> list[dict[str, Any]]:
    """Write owners as `managedFields`."""
    return [
        {"manager": manager, "operation": operation, "apiVersion": api_version, "time": time, "fieldsType": "FieldsV1"}
        | {"fieldsV1": _nested(paths)}
        for (manager, operation), paths in owners.items()
    ]


def read(entries: Iterable[dict[str, Any]]) -> Owners:
    """Read `managedFields`; `.` (the map itself) has no owner here."""
    return {(entry["manager"], entry["operation"]): frozenset(_flat(entry["fieldsV1"])) for entry in entries}


def _nested(paths: Paths) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for path in sorted(paths):
        node = made
        for step in path:
            node = node.setdefault(f"f:{step}", {})
    return made


def _flat(node: dict[str, Any], above: Path = ()) -> Iterable[Path]:
    for key, below in node.items():
        if key != ".":
            path = (*above, key[2:])
            yield from _flat(below, path) if set(below) - {"."} else (path,)
