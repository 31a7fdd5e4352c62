"""Waits until something holds that other threads bring about."""

from __future__ import annotations

import threading
from collections.abc import Callable


def until(holds: Callable[[], bool]) -> None:
    for _ in range(3000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came to hold")
