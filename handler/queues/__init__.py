"""Jobs wait here between the door and the run: one plain one per target, the newest wins, and behind one another what was asked by name.

The law of the room: a target is serial, targets are parallel, and losing everything in memory is harmless, because the
start-up tick looks at every target again. `inline` runs jobs in this process; `outbox` and `inbox` are the two ends of the
Unix-domain socket over which the web process hands its jobs to the worker process; `sqs` keeps jobs at AWS, as `message`s, for
functions and for several containers; `message_outcome` says what becomes of a message after its run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from handler.model.event import Job


class Queue(Protocol):
    """The port between whatever asks for runs and whatever runs them."""

    def put(self, job: Job) -> str:
        """Take a job, and return the id of the run it will be in. Never waits for a run; raises SenderError where it can't be taken now."""

    def put_all(self, jobs: Sequence[Job]) -> tuple[str, ...]:
        """Take the jobs of one request; return the ids of their runs, in the same order."""
