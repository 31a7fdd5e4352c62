"""What ends a wait before its time: a newer head, a request, a pause, a lost Lease, the worker's end.

Law: a request in this process ends it at once, one on the Lease at its next renewal; git host and record are read by all waits at the same
moments, so that targets of one repository share an answer. A head that changes nothing of this run's inputs ends no wait, nor does one
that waits itself for other targets: it is looked at again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from handler.engine.run import revision
from handler.engine.run.context import RunContext
from handler.engine.run.push_lag import WAITS
from handler.engine.run.readiness_look import obstacles
from handler.model.errors import AnnealError, AuthorError, NewerHead
from handler.model.event import Job
from handler.model.quotation import quoted
from handler.state.record import Pin

HEAD_EVERY = 10.0  # seconds between two looks at the git host and at the record without a request in this process


@dataclass(slots=True)
class Interrupts:
    """Looks around for one run that waits, under its open attempt; several of its threads may ask."""

    run: RunContext
    _pin: Pin | None = field(init=False)
    _asked: tuple[Job, ...] = ()
    _requested: str = ""
    _next: float = field(init=False)
    _again: list[float] = field(default_factory=list)
    _passed: str = ""
    _ended: AnnealError | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._pin = self.run.state.pin
        self._next = _moment(time.monotonic()) + HEAD_EVERY
        self._requested = self.run.lease.requested if self.run.lease else ""

    def look(self) -> None:
        """Ask, several times a second, whether we may go on. Raises NewerHead, Stopping, Suspended, LeaseLost: no."""
        self.run.fence()
        if self._ended is not None:
            raise self._ended
        if self._lock.acquire(blocking=False):
            try:
                self._look_around()
            except AnnealError as error:
                self._ended = error
                raise
            finally:
                self._lock.release()

    def _look_around(self) -> None:
        now = time.monotonic()
        asked = self.run.queue.asked()
        requested = self.run.lease.requested if self.run.lease else ""
        news, is_requested, due = asked != self._asked, requested != self._requested, now >= self._next
        if not (news or is_requested or due or (self._again and now >= self._again[0])):
            return
        since = _since(asked, self.run.deps.slack) if news else math.inf
        self._asked, self._requested = asked, requested
        self._next = _moment(now) + HEAD_EVERY
        other = next((job for job in asked if _is_for_another(job)), None)
        if other:
            seen = f"something else was asked for while this commit was waited for ({_described(other)})"
            error = NewerHead.of(f"target {self.run.job.target}", seen)
            error.asked = True
            raise error
        if is_requested or due:
            self._look_at_record()
        self._look_at_head(_moment(now) if due and not (news or is_requested) else since)
        self._look_soon(now, asked, news=news)

    def _look_soon(self, now: float, asked: Sequence[Job], *, news: bool) -> None:
        shown = ("", self.run.revision.commit, self.run.revision.head, self._passed)
        if news and any(job.hint not in shown for job in asked):
            self._again = [now + wait for wait in WAITS]
        elif self._again:
            self._again = [at for at in self._again if at > now]

    def _look_at_record(self) -> None:
        found = self.run.refresh()
        if found.pin != self._pin:
            seen = f"pinned to {found.pin.commit[:12]} by {quoted(found.pin.by)}" if found.pin else "unpinned"
            raise NewerHead.of(f"target {self.run.job.target}", f"it was {seen} while this commit was waited for")

    def _look_at_head(self, since: float) -> None:
        run = self.run
        try:
            head = revision.newest(run, since)
            if head in ("", run.revision.head, run.revision.commit, self._passed) or not self._is_news(head):
                self._passed = head
                return
            if head != run.state.commit and obstacles(run.deps, head, since):
                run.elsewhere.pop(head, None)
                return
        except AnnealError:
            return  # what can't be asked says nothing
        waited, run.revision = run.revision.head, replace(run.revision, head=head)
        raise NewerHead.of(f"target {run.job.target}", f"the head moved from {waited[:12]} to {head[:12]} while it was waited for")

    def _is_news(self, head: str) -> bool:
        """Whether a head changes this run's inputs, or ends its pin; a refused head is reported by its own run."""
        run = self.run
        if self._pin is not None:
            return not revision.holds(run, self._pin, head)
        try:
            tree = run.deps.preparer.tree(head)
        except AuthorError:
            return True
        if run.round.reads is None:
            return True
        is_news = False
        try:
            is_news = run.round.reads.on(tree, run.outside(head).ask) != run.round.reads
        finally:
            if not is_news:
                run.elsewhere.pop(head, None)  # else each such head's charts and indexes are held for the length of the wait
        return is_news


def _moment(now: float) -> float:
    """Return the last common moment of all waits, in monotonic seconds."""
    return now // HEAD_EVERY * HEAD_EVERY


def _since(asked: Sequence[Job], slack: float) -> float:
    return max((job.since(slack) for job in asked), default=math.inf)


def _described(job: Job) -> str:
    what = f"commit {job.commit[:12]}" if job.commit else "a rollback" if job.rollback else "the end of a pin"
    return f"{what}, by {job.actor}" if job.actor else what


def _is_for_another(job: Job) -> bool:
    return bool(job.commit or job.rollback or job.unpin) and not job.dry_run
