"""When two JSON values are the same, and which is less: 1 is 1.0, true is no 1, "1" is no 1."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def same(left: Any, right: Any) -> bool:
    """Compare two JSON values."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return _family(left) == _family(right) and bool(left == right)


def ordered(left: Any, order: str, right: Any) -> bool:
    """Whether `left < right` and its like: of two numbers, or of two texts by their characters."""
    family = _family(left)
    return family in (float, str) and family == _family(right) and ORDERS[order](left, right)


def _family(value: Any) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
