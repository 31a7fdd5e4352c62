"""Waiting work: per target one plain job, into which all plain ones are coalesced, and the named requests, each for itself.

A push whose commit the git host doesn't show yet is delayed here, too, until it is looked for again. A plan on a pull request waits like a
target's plain job, under a name of its own. Memory is bounded by the targets and their pull requests, and by the number of unfinished named
requests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from handler.model.event import NAMED, Job
from handler.model.names import run_id

May = Callable[[Collection[str]], Callable[[str], bool]]

RESTING = 64
"""Runs at most that rest: each keeps a thread, a Lease and its watches. One more ends as `waiting`, and is gone on with later."""
MAX_RUNS = 100
"""Ids remembered of requests that were merged into one run; named ones are all remembered, for their sender waits for the end."""


@dataclass(frozen=True, slots=True)
class Work:
    """A job and the ids of the requests it answers, the oldest first: that one is the run's id.

    `named`: those that a person or a pipeline asked for; the others are pushes and ticks. `actors`: who asked, by id, where that isn't the
    job's actor.
    """

    job: Job
    runs: tuple[str, ...]
    named: tuple[str, ...] = ()
    actors: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, job: Job) -> Work:
        """Give a job its run id."""
        run = run_id(job.target)
        return cls(job, (run,), (run,) if job.trigger in NAMED else ())

    @property
    def run(self) -> str:
        """The id its result is reported under."""
        return self.runs[0]

    @property
    def asked(self) -> tuple[tuple[str, str], ...]:
        """What was asked by name, each with who asked."""
        known = dict(self.actors)
        return tuple((run, known.get(run, self.job.actor)) for run in self.named)

    def begun(self) -> Job:
        """Return the job as a run gets it: it knows its id, and who else waits for its end."""
        return replace(self.job, run=self.run, named=self.asked, joined=self.runs[1:])

    def merged(self, newer: Work) -> Work:
        """Coalesce with a newer request of the same target; both are plain."""
        return self._with(newer, self.job.merged(newer.job))

    def shared(self, newer: Work) -> Work | None:
        """Return both as one if the newer one asks for exactly the same again, else None."""
        asked = min(self.job.asked, newer.job.asked) and max(self.job.asked, newer.job.asked)
        again = replace(newer.job, asked=asked)
        return self._with(newer, again) if replace(self.job, asked=asked) == again else None

    def again(self) -> Work:
        """Return the same requests, to be answered after one more look at the git host."""
        return replace(self, job=replace(self.job, looks=self.job.looks + 1))

    def without(self, known: Collection[str]) -> Work | None:
        """Return what is left when these requests are another run's: a push, where none of the others was asked by name."""
        left = tuple(run for run in self.runs if run not in known)
        if len(left) == len(self.runs) or not left:
            return self if left else None
        named = tuple(run for run in self.named if run not in known)
        if named or not self.named:
            return Work(self.job, left, named, self.actors)
        job, last = self.job, self.job.deliveries[-1:]
        pushed = Job(job.target, "push", job.hint, actor=last[0].actor if last else "", deliveries=job.deliveries)
        return Work(replace(pushed, looks=job.looks, asked=job.asked), left)

    def log_fields(self) -> dict[str, Any]:
        """Return what a log line says of a request that isn't run: who asked for what, under which id."""
        asked = self.named or self.runs
        return {"target": self.job.target, "run": asked[0], "requests": asked[1:], "actor": self.job.actor, "acts": self.job.acts}

    def _with(self, newer: Work, job: Job) -> Work:
        first, *others = dict.fromkeys((*self.runs, *newer.runs))
        named = tuple(dict.fromkeys((*self.named, *newer.named)))
        dropped = set(islice((run for run in others if run not in set(named)), max(len(others) + 1 - MAX_RUNS, 0)))
        actors = tuple((run, who) for run, who in {**dict(newer.asked), **dict(self.asked)}.items() if who != job.actor)
        return Work(job, (first, *(run for run in others if run not in dropped)), named, actors)


class Pending:
    """A thread-safe store of what waits; a target that is being worked on isn't handed out again before `done`.

    Named requests are handed out in order, one after the other; the plain job keeps the place it had first. A run that rests has its
    target, and no place. Delayed work is kept back, at most one a target, until it is `due` or a newer push takes it along.

    `may`: given the targets being worked on, returns what says whether another may be, too. Times are monotonic seconds.
    """

    def __init__(self, may: May = lambda _: lambda _: True) -> None:
        self._may = may
        self._waiting: dict[str, list[Work]] = {}  # targets that were handed out go to the end: none starves
        self._delayed: dict[str, tuple[float, Work]] = {}
        self._busy: dict[str, Work] = {}
        self._resting: set[str] = set()
        self._closed = False
        self._changed = threading.Condition()  # of an RLock: `Inline` and its index take it again

    def accept(self, work: Work, *, older: bool = False) -> Work:
        """Add a request; return what now waits: the request itself, or one that waited already and has taken it in.

        One with `acts` is taken in only by another that asks for the same. A push takes along what is delayed of its target; a request that
        names no commit doesn't, for it would waste an early look. `older`: it was asked before what waits.
        """
        with self._changed:
            if work.job.hint and not work.job.acts and not older:
                work = self._with_delayed(work)
            queue = self._waiting.setdefault(work.job.target, [])
            place = _place(queue, work)
            if place is None:
                queue.insert(0 if older else len(queue), work)
                merged = work
            else:
                merged = queue[place] = _joined(work, queue[place]) if older else _joined(queue[place], work)
            self._changed.notify()
            return merged

    def delay(self, work: Work, at: float) -> Work:
        """Keep a request back until `at`, with what is delayed of its target already; return both as one."""
        with self._changed:
            merged = self._with_delayed(work)
            self._delayed[work.job.target] = at, merged
            return merged

    def due(self, now: float) -> tuple[Work, ...]:
        """Return, once, what was delayed long enough."""
        with self._changed:
            found = [target for target, (at, _) in self._delayed.items() if at <= now]
            return tuple(self._delayed.pop(target)[1] for target in found)

    def next_due(self) -> float:
        """Return when delayed work is due next; infinity: there is none."""
        with self._changed:
            return min((at for at, _ in self._delayed.values()), default=float("inf"))

    def _with_delayed(self, work: Work) -> Work:
        _, older = self._delayed.pop(work.job.target, (0.0, None))
        return older.merged(work) if older else work

    def take(self, wanted: Callable[[], bool] = lambda: True) -> Work | None:
        """Wait for the next request of a target that isn't worked on; None once closed, or not `wanted` any more."""
        with self._changed:
            while not self._closed and wanted():
                may = self._may(self._busy.keys() - self._resting)
                target = next((name for name in self._waiting if name not in self._busy and may(name)), None)
                if target is not None:
                    work, *left = self._waiting.pop(target)
                    if left:
                        self._waiting[target] = left
                    self._busy[target] = work
                    return work
                self._changed.wait()
            return None

    def done(self, target: str) -> None:
        """Say that a target isn't worked on any more."""
        with self._changed:
            self._busy.pop(target, None)
            self._changed.notify_all()

    def asked(self, target: str) -> tuple[Job, ...]:
        """Return what waits of a target, the oldest first."""
        with self._changed:
            return tuple(work.job for work in self._waiting.get(target, ()))

    def rest(self, target: str) -> bool:
        """Give away the place of a target that is worked on and only waits; False where too many rest already."""
        with self._changed:
            if len(self._resting) >= RESTING:
                return False
            self._resting.add(target)
            self._changed.notify_all()
            return True

    def wake(self, target: str) -> None:
        """Say that a target is worked on again, beside the run that has its place now."""
        with self._changed:
            self._resting.discard(target)
            self._changed.notify_all()

    def find(self, request: str) -> Work | None:
        """Return what waits or is worked on that a request is in."""
        with self._changed:
            waiting = (work for queue in self._waiting.values() for work in queue)
            return next((work for work in (*waiting, *self._busy.values()) if request in work.runs), None)

    def idle(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until nothing is worked on and, unless closed, nothing waits; say whether that was reached."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy and (self._closed or not self._waiting), timeout)

    def close(self) -> tuple[Work, ...]:
        """Hand out nothing more; return what still waits or is delayed, and is dropped."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            waiting = (work for queue in self._waiting.values() for work in queue)
            return *waiting, *(work for _, work in self._delayed.values())

    @property
    def busy(self) -> tuple[str, ...]:
        """The targets being worked on, sorted."""
        with self._changed:
            return tuple(sorted(self._busy))

    @property
    def resting(self) -> tuple[str, ...]:
        """Those of them that only wait, sorted."""
        with self._changed:
            return tuple(sorted(self._resting))

    @property
    def open(self) -> int:
        """Number of targets with a request that waits or is under way."""
        with self._changed:
            return len(self._waiting.keys() | self._busy.keys())

    @property
    def waiting(self) -> int:
        """Number of targets with a request that needs a worker slot."""
        with self._changed:
            return len(self._waiting.keys() - self._resting)


def _place(queue: list[Work], work: Work) -> int | None:
    """Index of the waiting request to merge with, or None."""
    if not work.job.acts:
        plain = (place for place, waiting in enumerate(queue) if not waiting.job.acts and waiting.job.is_plan == work.job.is_plan)
        return next(plain, None)
    return len(queue) - 1 if queue and queue[-1].shared(work) else None


def _joined(older: Work, newer: Work) -> Work:
    return older.shared(newer) or older.merged(newer)
