"""How long tests wait for what is to come: one patience of them all, so large that only what never comes meets it.

No test is judged by the clock. ANNEAL_TEST_PATIENCE is a factor, for a machine that is slower still.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0 * float(os.environ.get("ANNEAL_TEST_PATIENCE", "1"))
"""Seconds."""


def until(holds: Callable[[], T | None], what: str | Callable[[], str] = "it never came to hold") -> T:
    """Ask until the answer is true, and return it; `what` says what never was, in words or by a question asked then."""
    end = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < end, what if isinstance(what, str) else what()
        time.sleep(0.01)
    return found
