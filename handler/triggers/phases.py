"""When targets are due where no process lives long enough to keep a schedule: a pure function of the name and the clock.

Law: whoever asks, and whenever, the moments of a target are the same: its phase, which follows from its name, and every interval after it.
Windows that touch share no moment and lose none, so an event that comes twice asks for the same again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable


def due_between(names: Iterable[str], interval: float, start: float, end: float) -> dict[str, float]:
    """Return those of the names that have a moment in `start` <= t < `end`, each with its last one there.

    Times are in seconds since the epoch, `interval` in seconds.
    """
    found: dict[str, float] = {}
    for name in names:
        phase = fraction(name)
        count = _moments(phase, interval, end)
        if count > _moments(phase, interval, start):
            found[name] = (count - 1 + phase) * interval
    return found


def _moments(phase: float, interval: float, before: float) -> int:
    """Count the moments of a phase (a share of the interval) before a time."""
    return math.ceil(before / interval - phase)


def fraction(*parts: str) -> float:
    """Return a number from 0 to 1 that is always the same for these words."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:8]) / 2**64
