"""Which fields git declares of one object, found by the paths by which a plan calls them (`handler.plan.diff.text_of`). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any

from handler.model.field_masking import shown
from handler.model.names import GroupKind
from handler.plan.diff import names_of

_KEY_END, _ELEMENT_END = re.compile(r"[.\[]|\Z"), re.compile(r"\]")
_NESTED = (dict, list)
_MOST_ENDS, _MOST_WAYS = 64, 500
"""Where a key may end, and where a path may lead: a hostile object has millions, and what isn't found isn't shown."""


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """What git declares of a field. `known`: how many characters of its path lead to what is declared; `text`: its value as it is shown.

    `is_nested`: it is a map or list. `value`: itself; None: none is declared.
    """

    known: int
    text: str = ""
    is_nested: bool = False
    value: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class DeclaredFields:
    """The fields of one object. `body`: what git declares of it; empty: nothing."""

    kind: GroupKind
    body: Mapping[str, Any]
    _elements: dict[int, dict[str, Any]] = field(default_factory=dict)

    def at(self, path: str) -> DeclaredField:
        """Return what is declared of a field, or of what holds it: then `known` is shorter than the path, and there is no text."""
        known, value = max(islice(self._ways(self.body, path, 0), _MOST_WAYS), key=itemgetter(0))
        if known < len(path):
            return DeclaredField(known)
        return DeclaredField(known, shown(self.kind, path, value), isinstance(value, _NESTED), value)

    def _ways(self, node: Any, path: str, at: int) -> Iterator[tuple[int, Any]]:
        """Yield where a path leads, step by step: a key may hold dots, so that there may be several ways."""
        yield at, node
        for end, below in self._below(node, path, at):
            yield from self._ways(below, path, end)

    def _below(self, node: Any, path: str, at: int) -> Iterator[tuple[int, Any]]:
        is_element = path.startswith("[", at)
        if isinstance(node, list) and is_element:
            named = self._named(node)
            ends = (found.end() for found in islice(_ELEMENT_END.finditer(path, at), _MOST_ENDS))
            yield from ((end, named[path[at:end]]) for end in ends if path[at:end] in named)
        elif isinstance(node, Mapping) and is_element:  # as the API server calls a key of a map
            ends = (found.end() for found in islice(_ELEMENT_END.finditer(path, at), _MOST_ENDS))
            yield from ((end, node[path[at + 1 : end - 1]]) for end in ends if path[at + 1 : end - 1] in node)
        elif isinstance(node, Mapping) and (at == 0 or path.startswith(".", at)):
            start = at + (at > 0)
            ends = (found.start() for found in islice(_KEY_END.finditer(path, start), _MOST_ENDS))
            yield from ((end, node[path[start:end]]) for end in ends if path[start:end] in node)

    def _named(self, items: Sequence[Any]) -> Mapping[str, Any]:
        """Return a list's elements by all that a plan may call them."""
        found = self._elements.get(id(items))
        if found is None:
            found = self._elements[id(items)] = {name: item for at, item in enumerate(items) for name in names_of(item, at)}
        return found
