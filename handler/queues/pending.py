"""What waits, coalesced: at most one entry per target beside the one being worked on, so memory is bounded by the targets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from handler.model.event import Job
from handler.model.names import run_id

May = Callable[[Collection[str]], Callable[[str], bool]]

MAX_RUNS = 100
"""Ids remembered of requests that were merged into one run."""


@dataclass(frozen=True, slots=True)
class Work:
    """A job and the ids of the requests it answers, the oldest first: that one is the run's id, whatever is merged into it later."""

    job: Job
    runs: tuple[str, ...]

    @classmethod
    def of(cls, job: Job) -> Work:
        """Give a job its run id."""
        return cls(job, (run_id(job.target),))

    @property
    def run(self) -> str:
        """The id its result is reported under."""
        return self.runs[0]

    def merged(self, newer: Work) -> Work:
        """Coalesce with a newer request of the same target."""
        first, *others = *self.runs, *newer.runs
        return Work(self.job.merged(newer.job), (first, *others[1 - MAX_RUNS :]))

    def again(self) -> Work:
        """Return the same requests, to be answered after one more look at the git host."""
        return replace(self, job=replace(self.job, looks=self.job.looks + 1))

    def without(self, known: Collection[str]) -> Work | None:
        """Return what is left when these requests are somebody else's: none of them was a push, and what they asked goes with them."""
        left = tuple(run for run in self.runs if run not in known)
        if len(left) == len(self.runs):
            return self
        plain = replace(self.job, trigger="push", commit="", force=False, dry_run=False, approve="", unpin=False)
        return Work(plain, left) if left else None


class Pending:
    """A thread-safe store of what waits; a target that is being worked on isn't handed out again before `done`.

    `may`: given the targets being worked on, returns what tells whether another may be, too.
    """

    def __init__(self, may: May = lambda _: lambda _: True) -> None:
        self._may = may
        self._waiting: dict[str, Work] = {}  # in the order of first arrival: nobody starves
        self._busy: dict[str, Work] = {}
        self._closed = False
        self._changed = threading.Condition()

    def put(self, work: Work) -> Work:
        """Add a request; return what now waits: the request itself, or one that waited already and has taken it in."""
        with self._changed:
            older = self._waiting.get(work.job.target)
            self._waiting[work.job.target] = merged = older.merged(work) if older else work
            self._changed.notify()
            return merged

    def take(self) -> Work | None:
        """Wait for the next request of a target that nobody works on; None once closed."""
        with self._changed:
            while not self._closed:
                may = self._may(self._busy.keys())
                target = next((name for name in self._waiting if name not in self._busy and may(name)), None)
                if target is not None:
                    work = self._busy[target] = self._waiting.pop(target)
                    return work
                self._changed.wait()
            return None

    def done(self, target: str) -> None:
        """Say that nobody works on a target any more."""
        with self._changed:
            self._busy.pop(target, None)
            self._changed.notify_all()

    def find(self, request: str) -> Work | None:
        """Return what waits or is worked on that a request is in."""
        with self._changed:
            return next((work for work in (*self._waiting.values(), *self._busy.values()) if request in work.runs), None)

    def idle(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until nothing is worked on and, unless closed, nothing waits; say whether that was reached."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy and (self._closed or not self._waiting), timeout)

    def close(self) -> None:
        """Hand out nothing more; what still waits is dropped."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def busy(self) -> tuple[str, ...]:
        """The targets being worked on, sorted."""
        with self._changed:
            return tuple(sorted(self._busy))

    @property
    def waiting(self) -> int:
        """How many targets have something that waits."""
        with self._changed:
            return len(self._waiting)
