"""The clock by which a run measures its waits: set from the wall once, then it goes on by itself, whatever is done to the wall clock.

Law: what counts how long something has lasted within a run, or is stamped to be counted from, uses `Context.clock`, which is one of these;
what says when something is due for others, who have only the wall clock, uses `Rooms.clock`.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class SteadyClock:
    """Seconds since the epoch that pass evenly: they never go back and never leap."""

    def __init__(self, wall: Callable[[], float]) -> None:
        """Begin at what `wall` shows now, in seconds since the epoch."""
        self._ahead = wall() - time.monotonic()

    def __call__(self) -> float:
        """Return the time."""
        return time.monotonic() + self._ahead
