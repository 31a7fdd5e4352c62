"""Jobs wait here between the door and the run: one plain one per target, the newest wins, and behind one another what was asked by name.

Law: a target is serial, targets are parallel, and losing all in memory is harmless, for the start-up tick looks at every target again.
`inline` runs jobs in this process; the web process's `outbox` hands them to the worker's `inbox`; `sqs` keeps them at AWS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from handler.model.event import Job


class Queue(Protocol):
    """The port between what asks for runs and what runs them."""

    def put(self, job: Job) -> str:
        """Take a job, and return the id of the run it will be in. Never waits for a run; raises SenderError where it can't be taken now."""

    def put_all(self, jobs: Sequence[Job]) -> tuple[str, ...]:
        """Take the jobs of one request; return the ids of their runs, in the same order. Raises as `put` does."""
        return tuple(self.put(job) for job in jobs)
