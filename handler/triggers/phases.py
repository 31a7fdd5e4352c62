"""When targets are due where no process lives long enough to keep a schedule: a pure function of the name and the clock.

Law: whoever asks, and whenever, the moments of a target are the same: its phase, which follows from its name, and every interval after it.
Windows that touch share no moment and lose none, so an event that comes twice asks for the same again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable


def due_between(names: Iterable[str], interval: float, start: float, end: float) -> tuple[str, ...]:
    """Return those of the names that have a moment in `start` <= t < `end`, both in seconds since the epoch; `interval` in seconds."""
    return tuple(name for name in names if _moments(name, interval, end) > _moments(name, interval, start))


def _moments(name: str, interval: float, before: float) -> int:
    """Count the moments of a name before a time."""
    phase = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) / 2**64
    return math.ceil(before / interval - phase)
