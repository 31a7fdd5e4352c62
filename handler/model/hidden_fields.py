"""Which fields of one object no text may show, whatever they are called: what a Secret says was written into them.

Law: rather too much than too little. An element of a list is known by its name where it has one, for the server orders lists as it likes;
else all elements of that list count, and what holds such a field is hidden as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.model.field_masking import MASKED
from handler.model.manifest import Manifest, at

_Step = str | tuple[str | None]
"""A field, or a list's element by its name; None: any."""
_Tree = dict[_Step, "_Tree"]
WHOLE = ""
"""The JSON pointer to all of an object (RFC 6901, 5)."""


@dataclass(frozen=True, slots=True)
class HiddenFields:
    """The fields of one object. `whole`: all of them."""

    fields: _Tree = field(default_factory=dict)
    whole: bool = False

    @classmethod
    def of(cls, manifest: Manifest) -> HiddenFields:
        """Return those of a declared object."""
        fields: _Tree = {}
        body = manifest.body() if manifest.hidden else {}
        for pointer in sorted(manifest.hidden, key=lambda each: each.count("/")):
            _note(body, pointer, fields)
        return cls(fields, whole=WHOLE in manifest.hidden)

    def __or__(self, other: HiddenFields) -> HiddenFields:
        """Hide what either hides."""
        if self.whole or other.whole:
            return HiddenFields(whole=True)
        if not self.fields or not other.fields:
            return self if self.fields else other
        return HiddenFields(_merged(self.fields, other.fields))

    def hides(self, path: Sequence[Any]) -> bool:
        """Whether the field at a path, or one in it or around it, is hidden. `path`: fields; positions, or (key, value) of elements."""
        return self.whole or (bool(self.fields) and _meets(self.fields, path))

    def told(self, path: Sequence[Any]) -> Sequence[Any]:
        """Return a path up to where a hidden field ends, or to the first element that is named by one: keys within it aren't shown."""
        if self.whole:
            return path[:1]
        for index, step in enumerate(path if self.fields else ()):
            if _ends(self.fields, path[:index]):
                return path[:index]
            if isinstance(step, tuple) and any(_ends(self.fields, (*path[: index + 1], key)) for key, _ in step):
                return path[:index]
        return path


def _merged(one: _Tree, other: _Tree) -> _Tree:
    """Return a tree of both; where one ends, the field is hidden as a whole."""
    if not one or not other:
        return {}
    shared = {key: _merged(one[key], other[key]) for key in one.keys() & other.keys()}
    return {**one, **other, **shared}


def _meets(node: _Tree, path: Sequence[Any]) -> bool:
    return not node or not path or any(_meets(below, path[1:]) for below in _below(node, path[0]))


def _ends(node: _Tree, path: Sequence[Any]) -> bool:
    if not node or not path:
        return not node and not path
    return any(_ends(below, path[1:]) for below in _below(node, path[0]))


def _below(node: _Tree, step: Any) -> Iterator[_Tree]:
    """Yield what a step of a path may lead to: an element without a name may be any."""
    name = dict(step).get("name") if isinstance(step, tuple) else None
    keys: Iterable[_Step] = [step] if isinstance(step, str) else [(None,), (str(name),)] if name is not None else node
    yield from (node[key] for key in keys if key in node and (isinstance(step, str) or isinstance(key, tuple)))


def _note(body: Any, pointer: str, into: _Tree) -> None:
    """Note a field in the tree; one within a hidden one is hidden already."""
    node, tree = body, into
    for step in _steps(pointer):
        key: _Step = step
        if isinstance(node, list):
            node = node[int(step)] if step.isdecimal() and int(step) < len(node) else None
            name = at(node, "name")
            key = (name if isinstance(name, str) else None,)
        else:
            node = at(node, step)
        if key in tree and not tree[key]:
            return
        tree = tree.setdefault(key, {})


def _steps(pointer: str) -> Iterator[str]:
    return (step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def without(manifest: Manifest) -> dict[str, Any]:
    """Return what an object says, its hidden fields masked."""
    body = manifest.body()
    for pointer in filter(None, manifest.hidden):
        *above, last = _steps(pointer)
        node: Any = body
        for step in above:
            node = _at(node, step)
        if isinstance(node, list) and _at(node, last) is not None:
            node[int(last)] = MASKED
        elif isinstance(node, dict) and last in node:
            node[last] = MASKED
    return body


def _at(node: Any, step: str) -> Any:
    if isinstance(node, list):
        return node[int(step)] if step.isdecimal() and int(step) < len(node) else None
    return at(node, step)
