"""Waits until something holds that other threads bring about."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.01)
