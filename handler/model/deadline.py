"""The deadline of this invocation; outgoing calls never exceed it, for a function that is ended by force leaves its Lease held.

It belongs to a thread's context, and to the threads that are handed a part of its work.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LEAST = 1.0  # seconds that are left for a request when the time is over: a Lease is let go by one
_end: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def until(end: float) -> Iterator[None]:
    """Within this, wait for nothing beyond a time in monotonic seconds."""
    before = _end.set(end)
    try:
        yield
    finally:
        _end.reset(before)


def left(seconds: float) -> float:
    """Return how long may be waited: so many seconds, or what is left of the time."""
    end = _end.get()
    return seconds if end == math.inf else min(seconds, max(end - time.monotonic(), LEAST))
