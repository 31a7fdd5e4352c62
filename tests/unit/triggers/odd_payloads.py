"""Payloads with one node replaced by a value of another type, or without it."""

from __future__ import annotations

from typing import Any

DROPPED = object()
ODD: tuple[Any, ...] = (None, True, 7, "", "x" * 5000, [None], {"": 0}, DROPPED)
"""What a node of a payload is replaced by: one of each type of JSON, and what is empty or too long."""


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every node of a document, its own among them."""
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(found for key, value in inner for found in places(value, (*path, key)))]


def with_odd(node: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """Return a document with one node replaced, or dropped."""
    if not path:
        return None if odd is DROPPED else odd
    copied = dict(node) if isinstance(node, dict) else list(node)
    if len(path) == 1 and odd is DROPPED:
        del copied[path[0]]
    else:
        copied[path[0]] = with_odd(node[path[0]], path[1:], odd)
    return copied
