"""Which fields of one object no text may show, whatever they are called: what a Secret says was written into them.

Law: rather too much than too little. An element of a list is known by its name where it has one, for the server orders lists as it likes;
else all elements of that list count, and what holds such a field is hidden as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.model.field_masking import MASKED
from handler.model.manifest import at

_Step = str | tuple[str | None]
"""A field, or a list's element by its name; None: any."""


@dataclass(frozen=True, slots=True)
class HiddenFields:
    """The fields of one object. `values`: what git declares in them."""

    paths: tuple[tuple[_Step, ...], ...] = ()
    values: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, body: Mapping[str, Any], pointers: Iterable[str]) -> HiddenFields:
        """Make them of JSON pointers into an object."""
        found = [_read(body, pointer) for pointer in pointers]
        return cls(tuple(path for path, _ in found), tuple(str(value) for _, value in found if not isinstance(value, bool | None)))

    def hides(self, path: Sequence[Any]) -> bool:
        """Whether the field at a path, or one in it or around it, is hidden. `path`: fields; positions, or (key, value) of elements."""
        return any(all(map(_same, known, path)) for known in self.paths)

    def told(self, path: Sequence[Any]) -> Sequence[Any]:
        """Return a path up to the first element that is named by a hidden field."""
        for index, step in enumerate(path):
            keys = [key for key, _ in step] if isinstance(step, tuple) else []
            if any(len(known) == index + 2 and all(map(_same, known, (*path[: index + 1], key))) for key in keys for known in self.paths):
                return path[:index]
        return path


def _same(known: _Step, step: Any) -> bool:
    if isinstance(known, str) or isinstance(step, str):
        return bool(known == step)
    name = dict(step).get("name") if isinstance(step, tuple) else None
    return bool(known[0] is None or name is None or name == known[0])


def _read(body: Any, pointer: str) -> tuple[tuple[_Step, ...], Any]:
    path: list[_Step] = []
    node = body
    for step in _steps(pointer):
        if isinstance(node, list):
            node = node[int(step)] if step.isdecimal() and int(step) < len(node) else None
            name = at(node, "name")
            path.append((name if isinstance(name, str) else None,))
        else:
            node = at(node, step)
            path.append(step)
    return tuple(path), node


def _steps(pointer: str) -> Iterator[str]:
    return (step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def without(body: Any, pointers: Iterable[str]) -> Any:
    """Return an object with these of its fields masked; nothing of the given one is changed."""
    for pointer in pointers:
        body = _masked(body, [*_steps(pointer)])
    return body


def _masked(node: Any, steps: Sequence[str]) -> Any:
    if not steps:
        return MASKED
    if isinstance(node, list):
        return [_masked(each, steps[1:]) if str(index) == steps[0] else each for index, each in enumerate(node)]
    if not isinstance(node, dict) or steps[0] not in node:
        return node
    return {**node, steps[0]: _masked(node[steps[0]], steps[1:])}
