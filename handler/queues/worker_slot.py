"""The place of one run among those that work: while it only waits for health, another thread works in its place.

A run that wakes goes on at once, beside the run in its place: what is left of it is short, and the other one's thread ends with its work.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from handler.model.event import Job
from handler.queues.pending import Pending


class WorkerSlot:
    """A `Meanwhile` of a run. Several of its threads may wait at once.

    Args:
        pending: what waits in this process.
        target: the run's.
        spare: works on what waits, in a thread of its own, as long as what it is given says so.
        patient: whether the run may wait at all; one that keeps its target's next messages from us may not.

    """

    def __init__(self, pending: Pending, target: str, spare: Callable[[Callable[[], bool]], None], *, patient: bool = True) -> None:
        self._pending = pending
        self._target = target
        self._spare = spare
        self._patient = patient
        self._waits = 0
        self._rest: object | None = None
        self._lock = threading.Lock()

    def asked(self) -> tuple[Job, ...]:
        """Return what waits for the run's target, the oldest first."""
        return self._pending.asked(self._target)

    @contextmanager
    def resting(self) -> Iterator[float]:
        """Leave the place while the run only waits; gives for how many seconds it may."""
        self._enter()
        try:
            yield math.inf if self._rest else 0.0
        finally:
            self._leave()

    def _enter(self) -> None:
        with self._lock:
            self._waits += 1
            if self._waits > 1 or not self._patient:
                return
            if self._pending.rest(self._target):
                rest = self._rest = object()
                self._spare(lambda: self._rest is rest)

    def _leave(self) -> None:
        with self._lock:
            self._waits -= 1
            if self._waits or self._rest is None:
                return
            self._rest = None
        self._pending.wake(self._target)
