"""A run's view of the queue: other requests for its target, and its worker slot."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from handler.model.event import Job


class QueueView(Protocol):
    """The queue, as one run sees it."""

    def asked(self) -> tuple[Job, ...]:
        """Return the requests that wait in this process for the run's target, the oldest first."""

    def resting(self) -> AbstractContextManager[float]:
        """Release the worker slot while waiting for health; yields the most seconds allowed."""


class NoQueue:
    """No other request in this process: a command, a test, a function."""

    def asked(self) -> tuple[Job, ...]:
        """Return nothing."""
        return ()

    def resting(self) -> AbstractContextManager[float]:
        """Keep the slot, without a bound."""
        return nullcontext(math.inf)


ALONE = NoQueue()
