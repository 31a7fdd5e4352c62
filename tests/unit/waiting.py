"""Who waits for the answer to another's question."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest


def joined(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Count the callers that wait for the answer to another's question (`SingleFlight.do`)."""
    count, wait = threading.Semaphore(0), Future[Any].exception

    def counted(self: Future[Any], timeout: float | None = None) -> BaseException | None:
        count.release()
        return wait(self, timeout)

    monkeypatch.setattr(Future, "exception", counted)
    return count
