"""Values as JSON: dataclasses become mappings with Kubernetes' camelCase keys. Pure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from handler.model.names import GroupKind, Identity

V = TypeVar("V")
_PLAIN = frozenset({str, int, float, bool, type(None)})
"""What is JSON as it is, and most of what is written."""
ANSWER = 3_000_000
"""Characters that the lists of one answer may have, as JSON."""


def plain(value: Any) -> Any:
    """Return JSON of a value: identities and kinds as people write them, sets sorted, bytes left out."""
    kind: Any = type(value)  # a type that mypy takes for a key
    fields = _fields(kind)
    if fields is not None:
        return {key: item if type(item := getattr(value, name)) in _PLAIN else plain(item) for name, key in fields}
    if isinstance(value, Identity | GroupKind):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=json.dumps)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, bytes) else str(value) if isinstance(value, str) else value


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, str], ...] | None:
    """Return the fields of a dataclass that becomes a mapping; None: it becomes none."""
    if issubclass(kind, Identity | GroupKind) or not dataclasses.is_dataclass(kind):
        return None
    return tuple((item.name, camel(item.name)) for item in dataclasses.fields(kind))


def fitting(items: Iterable[V], most: int = ANSWER) -> Iterator[V]:
    """Yield items, as long as the JSON of all of them has `most` characters at most."""
    left = most
    for item in items:
        left -= len(json.dumps(plain(item)))
        if left < 0:
            return
        yield item


def camel(name: str) -> str:
    """`drift_interval` -> `driftInterval`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
