"""Which fields git declares of one object, found by the paths by which a plan calls them (`handler.plan.diff.text_of`). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.model.field_masking import shown
from handler.model.names import GroupKind
from handler.plan.diff import names_of

_KEY_END, _ELEMENT_END = re.compile(r"[.\[]|\Z"), re.compile(r"\]")
_NESTED = (dict, list)


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """What git declares of a field. `known`: how many characters of its path lead to what is declared; `text`: its value as it is shown.

    `is_nested`: it is a map or list.
    """

    known: int
    text: str = ""
    is_nested: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredFields:
    """The fields of one object. `body`: what git declares of it; empty: nothing."""

    kind: GroupKind
    body: Mapping[str, Any]
    _elements: dict[int, dict[str, Any]] = field(default_factory=dict)

    def at(self, path: str) -> DeclaredField:
        """Return what is declared of a field, or of what holds it: then `known` is shorter than the path, and there is no text."""
        known, value = self._found(self.body, path, 0)
        if known < len(path):
            return DeclaredField(known)
        return DeclaredField(known, shown(self.kind, path, value), isinstance(value, _NESTED))

    def _found(self, node: Any, path: str, at: int) -> tuple[int, Any]:
        """Follow a path as far as it leads: where a key holds dots, more than one way may be tried."""
        best = at, node
        for end, below in self._below(node, path, at):
            way = self._found(below, path, end)
            best = way if way[0] > best[0] else best
        return best

    def _below(self, node: Any, path: str, at: int) -> Iterator[tuple[int, Any]]:
        if isinstance(node, list):
            named = self._named(node) if path.startswith("[", at) else {}
            ends = (found.end() for found in _ELEMENT_END.finditer(path, at))
            yield from ((end, named[path[at:end]]) for end in ends if path[at:end] in named)
        elif isinstance(node, Mapping) and (at == 0 or path.startswith(".", at)):
            start = at + (at > 0)
            ends = (found.start() for found in _KEY_END.finditer(path, start))
            yield from ((end, node[path[start:end]]) for end in ends if path[start:end] in node)
        elif isinstance(node, Mapping) and path.startswith("[", at):  # as the API server calls a key of a map
            ends = (found.end() for found in _ELEMENT_END.finditer(path, at))
            yield from ((end, node[path[at + 1 : end - 1]]) for end in ends if path[at + 1 : end - 1] in node)

    def _named(self, items: Sequence[Any]) -> Mapping[str, Any]:
        """Return a list's elements by all that a plan may call them."""
        found = self._elements.get(id(items))
        if found is None:
            found = self._elements[id(items)] = {name: item for at, item in enumerate(items) for name in names_of(item, at)}
        return found
