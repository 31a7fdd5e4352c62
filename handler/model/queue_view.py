"""A run's view of the queue: other requests for its target, and its worker slot."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from handler.model.event import Job


class QueueView(Protocol):
    """The queue, as one run sees it."""

    def asked(self) -> tuple[Job, ...]:
        """Return what waits in this process's queue for the run's target, the oldest first."""

    def resting(self) -> AbstractContextManager[float]:
        """Leave the run's place among those that work to another one while it only waits; gives for how many seconds it may, at most."""


class NoQueue:
    """No other request in this process: a command, a test, a function."""

    def asked(self) -> tuple[Job, ...]:
        """Return nothing."""
        return ()

    def resting(self) -> AbstractContextManager[float]:
        """Keep the place, for as long as it takes."""
        return nullcontext(math.inf)


ALONE = NoQueue()
