"""Numbers of things as people write them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_WHOLE = re.compile(r"[+-]?[0-9]+")
_BITS = 63


def many(number_of: int, what: str) -> str:
    """`1 replica`, `3 replicas`."""
    return f"{number_of} {what}{'' if number_of == 1 else 's'}"


def whole(text: str) -> int:
    """Read a whole number as Go's `strconv.Atoi` does, as Argo CD and Helm read theirs: ASCII digits, 64 bits. Raises ValueError."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("no whole number")
    number = int(text)
    if not -(2**_BITS) <= number < 2**_BITS:
        raise ValueError("no number of 64 bits")
    return number


def counted(counts: Mapping[str, int]) -> str:
    """Return counts as `3 configured, 1 pruned`."""
    return ", ".join(f"{number} {word}" for word, number in counts.items()) or "nothing"
