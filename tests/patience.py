"""How tests wait for what is to come: with the patience of all (`infra.patience`). No test is judged by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from infra.patience import PATIENCE

__all__ = ["PATIENCE", "until"]

T = TypeVar("T")


def until(holds: Callable[[], T | None], what: str | Callable[[], str] = "it never came to hold") -> T:
    """Ask until the answer is true, and return it; `what` says what never was, in words or by a question asked then.

    It is asked at once and often, then up to ten times a second: what is asked may cost as much as what is waited for.
    """
    end, pause = time.monotonic() + PATIENCE, 0.01
    while not (found := holds()):
        assert time.monotonic() < end, what if isinstance(what, str) else what()
        time.sleep(pause)
        pause = min(pause * 1.2, 0.1)
    return found
