"""The queue of one process: jobs coalesce and run on a few threads, one run per target at a time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from handler.model.event import Job
from handler.queues.bulkheads import Bulkheads
from handler.queues.pending import Pending, Work
from handler.queues.worker_slot import WorkerSlot

_LOG = logging.getLogger("anneal.queue")


class Inline:
    """A `Queue` that runs what it is given. Should `run` raise, that is logged, and its thread goes on with the next."""

    def __init__(self, run: Callable[[Work], None], threads: int = 4, lanes: Bulkheads | None = None) -> None:
        self._run = run
        self._pending = Pending(lanes.beside) if lanes else Pending()
        self._threads = [threading.Thread(target=self._loop, name=f"run-{number}", daemon=True) for number in range(threads)]

    def start(self) -> None:
        """Start working."""
        for thread in self._threads:
            thread.start()

    def put(self, job: Job) -> str:
        """Take a job; return the id of its run."""
        work = Work.of(job)
        self.accept(work)
        return work.run

    def put_all(self, jobs: Sequence[Job]) -> tuple[str, ...]:
        """Take jobs, one after the other; return the ids of their runs."""
        return tuple(self.put(job) for job in jobs)

    def accept(self, work: Work, *, older: bool = False) -> Work:
        """Take a job that already has an id; return what now waits, this one in it. `older`: it was asked before what waits."""
        return self._pending.put(work, older=older)

    def place(self, target: str, *, patient: bool = True) -> WorkerSlot:
        """Return what a run of this target sees of the queue. `patient`: whether it may wait for something to become healthy."""
        return WorkerSlot(self._pending, target, self._spare, patient=patient)

    @property
    def waiting(self) -> int:
        """How many targets have something that waits."""
        return self._pending.waiting

    @property
    def busy(self) -> tuple[str, ...]:
        """The targets that are worked on."""
        return self._pending.busy

    @property
    def resting(self) -> tuple[str, ...]:
        """Those of them whose runs only wait, and have no place."""
        return self._pending.resting

    @property
    def running(self) -> int:
        """How many targets are worked on."""
        return len(self._pending.busy)

    def close(self) -> tuple[Work, ...]:
        """Start no more runs; return what waited for one."""
        return self._pending.close()

    def stop(self, timeout: float) -> tuple[str, ...]:
        """Start no more runs, wait at most `timeout` seconds for those that run; return the targets that still do."""
        self._pending.close()
        self._pending.idle(timeout)
        return self._pending.busy

    def _spare(self, wanted: Callable[[], bool]) -> None:
        """Work in the place of a run that rests."""
        threading.Thread(target=self._loop, args=(wanted,), name="run-spare", daemon=True).start()

    def _loop(self, wanted: Callable[[], bool] = lambda: True) -> None:
        while (work := self._pending.take(wanted)) is not None:
            try:
                self._run(work)
            except Exception:  # noqa: BLE001 - a thread that ends here ends the queue
                _LOG.exception("what follows a run has failed", extra={"fields": {"target": work.job.target, "run": work.run}})
            finally:
                self._pending.done(work.job.target)
