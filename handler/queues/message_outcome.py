"""Which ends of a run acknowledge a message, and how a function works on one.

Law: a message is acknowledged when the target's record shows its end, or when another worker goes on with it. Any other comes again, later
and later, until it is a dead letter. A plan of a pull request has no record: another try of it is another message. A queue is no lock: two
may work on one message.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from handler.model.errors import Busy, Stopping
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.queues.pending import Work

MARGIN = 20.0
"""Seconds before its deadline at which a run must end: it finishes the request it is at, and releases its Lease. A request that takes
longer is given up in time (`handler.model.deadline`)."""

_STANDING = frozenset({Outcome.SUPERSEDED, Outcome.SUSPENDED, Outcome.BUSY, Outcome.REFUSED})
"""Ends of a push that leave the record as it is, for it says why already; what was asked by name needs an entry all the same."""

Run = Callable[[Job, threading.Event], Result]


def settles(work: Work, result: Result, *, cut: bool = False) -> bool:
    """Whether a request has come to its end, and its message can be acknowledged. `cut`: the run was stopped before it had.

    A tick or drift run is always asked again. What another worker's Lease refused is that worker's; a run that lost its Lease, or was cut
    short, goes on with the next worker. Everything else has ended when the record shows it.
    """
    if _is_asked_again(work):
        return True
    if work.job.is_plan:
        return result.code != Stopping.code
    unfinished = result.outcome is Outcome.BUSY and (cut or result.code != Busy.code)
    if unfinished or result.outcome is Outcome.LAGGING:
        return False
    return result.recorded or (result.outcome in _STANDING and not work.named)


def early(work: Work) -> float:
    """Return for how many more seconds a plan that is tried again must wait; 0 or less: it is time."""
    return work.job.moment - time.time() if work.job.is_plan else 0.0


def _is_asked_again(work: Work) -> bool:
    job = work.job
    return job.trigger in ("tick", "drift") and not (work.named or job.hint or job.deliveries or job.acts)


class DeadlineEvent(threading.Event):
    """Set by itself at a time in monotonic seconds; no thread watches it."""

    def __init__(self, at: float) -> None:
        super().__init__()
        self.at = at

    def is_set(self) -> bool:
        """Whether the time has come."""
        return super().is_set() or time.monotonic() >= self.at

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the time has come, at most `timeout` seconds; say whether it has."""
        left = max(self.at - time.monotonic(), 0.0)
        super().wait(left if timeout is None else min(left, timeout))
        return self.is_set()


def handle(work: Work, run: Run, again: Callable[[Job], object], deadline: float) -> bool:
    """Run a request to its end; return whether its message can be acknowledged. Raises SenderError, of `again`.

    What the git host doesn't show yet is looked for again here while there is time, else by a new message (`again`), as a plan always is.
    `run`: has `MARGIN` seconds once its event is set; `deadline`: monotonic seconds at which this must have returned.
    """
    stop = DeadlineEvent(deadline - MARGIN)
    settled: bool | None = None
    left: Work | None = work
    while left is not None:
        work = left
        result = run(replace(work.begun(), asked=time.monotonic()), stop)
        left, at = _left(work, result)
        if result.outcome is not Outcome.LAGGING:
            done = settles(work, result, cut=stop.is_set())
            if settled is None:
                settled = done
            elif not done and left is None:  # a look for what the message's own run left; that one has ended
                again(replace(work.job, run=work.run))
        if left is not None and (left.job.is_plan or stop.wait(max(at - time.time(), 0.0))):
            again(replace(left.job, run=left.run))
            left, settled = None, True if settled is None else settled
    return bool(settled)


def _left(work: Work, result: Result) -> tuple[Work | None, float]:
    """Return what a run leaves to a later look at the git host, and when that is (epoch seconds)."""
    if result.outcome is Outcome.LAGGING:
        return work.again(), result.next_try
    return (Work.of(result.again) if result.again else None), result.again_at
