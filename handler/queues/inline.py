"""The queue of one process: jobs coalesce and run on a few threads, one run per target at a time.

A run that only waits for health gives its slot to another thread. When it wakes it goes on at once, beside the run in its slot: what is
left of it is short, and the other thread ends with its work.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from handler.model.event import Job
from handler.queues import Queue
from handler.queues.bulkheads import Bulkheads
from handler.queues.pending import Pending, Work
from handler.queues.run_index import RunIndex

_LOG = logging.getLogger("anneal.queue")


class Inline(Pending, Queue):
    """A `Queue` that runs what it is given. Should `run` raise, that is logged.

    `indexed`: it notes in `runs` what waits; `run` notes there what begins and ends, so that the index stays small.
    """

    def __init__(self, run: Callable[[Work], None], threads: int = 4, bulkheads: Bulkheads | None = None, *, indexed: bool = False) -> None:
        if bulkheads:
            super().__init__(bulkheads.beside)
        else:
            super().__init__()
        self.runs = RunIndex(lock=self._changed)
        self._indexed = indexed
        self._run = run
        self._threads = [threading.Thread(target=self._loop, name=f"run-{number}", daemon=True) for number in range(threads)]

    def start(self) -> None:
        """Start working."""
        for thread in self._threads:
            thread.start()

    def accept(self, work: Work, *, older: bool = False) -> Work:
        """Add a request, as every store does, and note that it waits."""
        with self._changed:
            merged = super().accept(work, older=older)
            if self._indexed:
                self.runs.queued(merged)
            return merged

    def accept_new(self, work: Work) -> str:
        """Add those of the requests that aren't known yet; return the id of the run that the work is in."""
        with self._changed:
            new = work.without([run for run in work.runs if self.runs.find(run)])
            if new:
                self.accept(new)
            entry = self.runs.find(work.run)
            return entry.run if entry else work.run

    def delay(self, work: Work, at: float) -> Work:
        """Keep a request back until `at`, as every store does, and note that it waits again under its id."""
        with self._changed:
            merged = super().delay(work, at)
            if self._indexed:
                self.runs.back(merged)
            return merged

    def accept_due(self, now: float) -> None:
        """Put what was delayed long enough before what waits; no request comes between."""
        with self._changed:
            for work in self.due(now):
                self.accept(replace(work, job=replace(work.job, asked=now)), older=True)

    def put(self, job: Job) -> str:
        """Take a job; return the id of its run."""
        work = Work.of(job)
        self.accept(work)
        return work.run

    def place(self, target: str, *, patient: bool = True) -> WorkerSlot:
        """Return what a run of this target sees of the queue. `patient`: whether it may wait for something to become healthy."""
        return WorkerSlot(self, target, self._spare, patient=patient)

    @property
    def running(self) -> int:
        """How many targets are worked on."""
        return len(self.busy)

    def stop(self, timeout: float) -> tuple[str, ...]:
        """Start no more runs, wait at most `timeout` seconds for those that run; return the targets that still do."""
        self.close()
        self.idle(timeout)
        return self.busy

    def _spare(self, wanted: Callable[[], bool]) -> None:
        threading.Thread(target=self._loop, args=(wanted,), name="run-spare", daemon=True).start()

    def _loop(self, wanted: Callable[[], bool] = lambda: True) -> None:
        while (work := self.take(wanted)) is not None:
            try:
                self._run(work)
            except Exception:  # noqa: BLE001 - a thread that ends here ends the queue
                _LOG.exception("what follows a run has failed", extra={"fields": {"target": work.job.target, "run": work.run}})
            finally:
                self.done(work.job.target)


class WorkerSlot:
    """A run's view of the queue (`QueueView`). Several of its threads may wait at once.

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
