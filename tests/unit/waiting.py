"""Waits until something holds that other threads bring about."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

PATIENCE = 60.0


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.01)


def joined(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Count the callers that wait for the answer to another's question (`SingleFlight.do`)."""
    count, wait = threading.Semaphore(0), Future[Any].exception

    def counted(self: Future[Any], timeout: float | None = None) -> BaseException | None:
        count.release()
        return wait(self, timeout)

    monkeypatch.setattr(Future, "exception", counted)
    return count
