"""Whether a plan's text is the whole truth: judged by what kubectl reads before and after, never by Anneal's own words."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import Any

from handler.model.plan import FieldChange
from tests.e2e.documents import Document

_ABSENT = object()
_NOTHING = (_ABSENT, None)
_KEPT = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid")
_REVISION = "deployment.kubernetes.io/revision"
_ORDER = "[order]"
_ELEMENT = re.compile(r"\[([^\]]*)\]")


def content(body: Document) -> Document:
    """Return an object without what the server and its controllers keep for themselves."""
    found = {key: value for key, value in copy.deepcopy(body).items() if key != "status"}
    metadata = {key: value for key, value in found["metadata"].items() if key not in _KEPT}
    metadata.get("annotations", {}).pop(_REVISION, None)
    return {**found, "metadata": {key: value for key, value in metadata.items() if value != {}}}


def untold(before: Document, after: Document, fields: Sequence[FieldChange]) -> list[str]:
    """Return what a plan of these fields left out of a change, or showed wrongly.

    Each named field must differ, and be there before and after as the plan says; without them both must be equal.
    """
    was, becomes = content(before), content(after)
    wrong = []
    for field in fields:
        if field.path.endswith(_ORDER):
            wrong += [] if _sorted(was, field.path) != _sorted(becomes, field.path) else [f"told: {field}"]
            continue
        old, new = _cut(was, field.path), _cut(becomes, field.path)
        if old == new or (old in _NOTHING) == bool(field.live) or (new in _NOTHING) == bool(field.declared):
            wrong.append(f"told: {field}, was {old!r}, is {new!r}")
    wrong += [f"untold: {path}: {old!r} -> {new!r}" for path, old, new in _differences("", _pruned(was), _pruned(becomes))]
    return wrong


def _pruned(node: Any) -> Any:
    """Return a value without what was cut, and without the maps and lists that this has left empty: nothing in them differs."""
    if isinstance(node, dict):
        found = {key: _pruned(value) for key, value in node.items()}
        return {key: value for key, value in found.items() if value not in ({}, [])}
    return [_pruned(item) for item in node if item is not _ABSENT] if isinstance(node, list) else node


def _differences(path: str, was: Any, becomes: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(was, dict) and isinstance(becomes, dict):
        keys = sorted(was.keys() | becomes.keys())
        return [each for key in keys for each in _differences(f"{path}.{key}", was.get(key), becomes.get(key))]
    return [] if was == becomes else [(path, was, becomes)]


def _sorted(node: Any, path: str) -> list[str]:
    """Put the list at a path into one order; return the order that it had."""
    items = _reached(node, path.removesuffix(_ORDER))
    before = [json.dumps(item, sort_keys=True) for item in items]
    items.sort(key=lambda item: str(item.get("name", item) if isinstance(item, dict) else item))
    return before


def _reached(node: Any, path: str) -> Any:
    """Return what a path names in a value."""
    path = path.removeprefix(".")
    if not path:
        return node
    if isinstance(node, dict):
        key = next(key for key in sorted(node, key=len, reverse=True) if path == key or path.startswith((f"{key}.", f"{key}[")))
        return _reached(node[key], path[len(key) :])
    match = _ELEMENT.match(path)
    assert match
    index = _index(node, match[1])
    assert index is not None
    return _reached(node[index], path[match.end() :])


def _cut(node: Any, path: str) -> Any:
    """Take what a path names out of a value, and return it; keys may hold dots themselves."""
    path = path.removeprefix(".")
    if isinstance(node, dict):
        for key in sorted(node, key=len, reverse=True):
            if path == key:
                return node.pop(key)
            if path.startswith((f"{key}.", f"{key}[")):
                return _cut(node[key], path[len(key) :])
    match = _ELEMENT.match(path) if isinstance(node, list) else None
    if not match:
        return _ABSENT
    index = _index(node, match[1])
    if index is None:
        return _ABSENT
    if match.end() < len(path):
        return _cut(node[index], path[match.end() :])
    found, node[index] = node[index], _ABSENT  # in its place, so that the positions of the others stay
    return found


def _index(items: list[Any], named: str) -> int | None:
    """Return which element `name=web,protocol=TCP` or a position names."""
    if named.isdecimal():
        return int(named) if int(named) < len(items) else None
    pairs = [part.partition("=")[::2] for part in named.split(",")]
    named_so = (all(isinstance(item, dict) and str(item.get(key)) == value for key, value in pairs) for item in items)
    return next((index for index, fits in enumerate(named_so) if fits), None)
