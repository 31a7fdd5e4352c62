"""The model on a FIFO queue: workers are functions, each holds one message and no memory. The engine, the queue's rules and what becomes of
a message are the real ones; the queue is AWS' own text (`tests.fakes.sqs_fifo`).

A worker may die before or after any request, the one that acknowledges included; its message comes again when it isn't hidden any more,
which may also be while it still runs: a queue is no lock.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unittest.mock import patch

from handler.model.backoff import TRANSIENT
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.queues import message, message_outcome
from handler.queues.dead_letters import DeadLetters
from handler.queues.message_outcome import DeadlineEvent, handle
from handler.queues.pending import Work
from handler.queues.sqs import Received, SqsQueue
from handler.state.record import State
from tests.fakes.sqs_fifo import Fifo
from tests.model.convergence import VISIBLE, settle
from tests.model.model import Model
from tests.model.simulated_time import simulated
from tests.model.taking_turns import Killed, Task, TurnTime, sleep, world
from tests.model.targets import SETTINGS, declared
from tests.model.worker_process import Ended, Process

FUNCTION = 300.0
"""Seconds that a function may take."""
HIDDEN = 60.0
"""Seconds that a message is hidden: less than a function may take, so that another gets it meanwhile."""
ENDS = VISIBLE | {Outcome.BUSY}


@dataclass
class Line:
    """The queue, its dead letters, and what was asked of it: by run, the ends that were reported (`told`), and the last one that stood
    in the record (`ends`). `look`: reads a target's record."""

    fifo: Fifo = field(default_factory=lambda: Fifo(now=lambda: world().now, dead=Fifo("dead.fifo", lambda: world().now)))
    asked: dict[str, Job] = field(default_factory=dict)
    told: dict[str, list[Result]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    ends: dict[str, str] = field(default_factory=dict)
    look: Callable[[str], State | None] = lambda _target: None

    def __post_init__(self) -> None:
        self.sqs = SqsQueue(self.fifo.url, self.fifo)

    def put(self, job: Job) -> str:
        """Ask for a run."""
        run = self.sqs.put(job)
        if job.trigger not in ("tick", "drift"):  # of those of one minute one is enough
            self.asked[run] = job
        return run

    def acknowledged(self, received: Received) -> None:
        """Delete a message, and see whether its run had ended by then."""
        work = message.decode(received.body)
        ends = [result.outcome for result in self.told.get(work.run, ())]
        goes_on = any(work.run in each.body for each in self.fifo.messages if each.id != received.id)  # for lack of time, as a new message
        if not set(ends) & ENDS and not goes_on:
            self.broken.append(f"I9: {work.run} is acknowledged after {ends}")
        if work.named and not goes_on and not self.seen(work.run, work.job.target):
            self.broken.append(f"I9: {work.run} is acknowledged, and no record tells of it")
        self.sqs.delete([received])

    def seen(self, run: str, target: str) -> bool:
        """Judge what a record says of a request by name: one end, which stays. Whether it has any.

        Another's `busy` gives way. A push whose message two have in hand is run by both: the record has the end of the later one.
        """
        state = self.look(target)
        found = [each.outcome for each in state.history if each.id == run] if state else []
        before = self.ends.get(run, "")
        pushed = run in self.asked and bool(self.asked[run].deliveries)
        if len(found) > 1 or (found and not pushed and before not in ("", Outcome.BUSY, found[0])):
            self.broken.append(f"I9: {run} ended as {found}, and as {before or 'nothing'} before")
        self.ends |= dict.fromkeys((run,), found[0]) if found else {}
        return bool(found) or state is None


@dataclass(eq=False)
class Taker(Process):
    """A function that takes one message at a time. `acknowledge`, `work_on`: replaced by a planted mistake."""

    line: Line = field(default_factory=Line)
    received: Received | None = None
    handle: Callable[[Taker, Received], None] = lambda taker, received: taker.work_on(received)

    @property
    def notes(self) -> bool:
        """No function remembers anything."""
        return True

    def accept(self, job: Job) -> None:
        """Ask the queue."""
        self.line.put(job)

    def wake(self) -> None:
        """Nothing waits in a function's memory."""

    def begin(self) -> bool:
        """Take the next message, if there is one and none is worked on."""
        if self.main is None:
            found = self.line.sqs.receive(1, 0, HIDDEN)
            self.received = found[0] if found else None
            self.main = Task(self, self._take) if found else None
        return self.main is not None

    def _take(self) -> None:
        assert self.received
        self.handle(self, self.received)
        self.main = self.work = self.received = None

    def work_on(self, received: Received) -> None:
        """Do what the function does: run, then acknowledge what is settled; what can't be read is left alone."""
        try:
            work = message.decode(received.body)
        except ValueError:
            self.line.sqs.postpone([received], TRANSIENT.after(received.count))
            return
        if handle(work, self.run, self.line.put, TurnTime.monotonic() + FUNCTION):
            self.acknowledge(received)
        else:
            self.line.sqs.postpone([received], TRANSIENT.after(received.count))

    def run(self, job: Job, stop: threading.Event) -> Result:
        """Run a job; what ends it early is its deadline."""
        self.stop = stop  # type: ignore[assignment]  # the base has one that turns
        self.work = Work(job, (job.run,))
        result = self.handler.run(job, stop)
        self.line.told.setdefault(job.run, []).append(result)
        self.line.seen(job.run, job.target)
        self.ended.append(Ended(self.work, result))
        return result

    def acknowledge(self, received: Received) -> None:
        """Delete the message; we may die before, after, or never hear of it."""
        order = self._met("acknowledge")
        if order.what == "ok" or order.after:
            self.line.acknowledged(received)
        if order.what == "kill":
            self.dead = True
            raise Killed


@dataclass
class QueueModel(Model):
    """`handle`: what a function does with a message."""

    line: Line = field(default_factory=Line)
    handle: Callable[[Taker, Received], None] = Taker.work_on

    def started(self) -> Process:
        """Start a function; the schedule is another's."""
        self.names += 1
        self.line.look = self.state
        return Taker(
            f"w{self.names}", server=self.server, host=self.host, settings=SETTINGS, sent=self.laws.sent, line=self.line, handle=self.handle
        )

    def check(self) -> None:
        """Ask the laws, those of the queue included."""
        super().check()
        self.failed = bool(self.line.broken)
        assert not self.line.broken, "\n".join(self.line.broken)

    def replay(self, process: Process, target: str, commit: str) -> None:
        """Ask for a commit, or end a pin; over a queue no commit is forced."""
        if commit and declared(self.host.commits[commit], target) is None:
            return
        if commit:
            self.laws.explicit[target].add(commit)
        process.accept(Job(target, "replay", commit=commit, unpin=not commit, force=not commit, actor="ann"))

    def redrive(self) -> None:
        """A person asks for the dead letters again."""
        DeadLetters(self.line.sqs).redrive(lambda _: True, drop_unreadable=True)

    def drain(self) -> None:
        """Let everything that was asked for come to an end."""
        for _ in range(40):
            for process in list(self.workers):
                self.finish(process)
            if not self.line.fifo.messages and not (self.line.fifo.dead and self.line.fifo.dead.messages):
                return
            self.advance(301.0)
            self.redrive()
        raise AssertionError(f"the queue isn't empty: {self.line.fifo.messages}")

    def settle(self) -> None:
        """Nothing goes wrong any more."""
        self.host.down = False
        self.host.show()
        for process in self.workers:
            process.unlucky.clear()
        self.drain()
        settle(self)
        self.drain()


def answered(model: QueueModel) -> None:
    """Whatever was asked for has ended in a way that people see, or is with the worker that holds the target (I9)."""
    for run, job in model.line.asked.items():
        ends = {result.outcome for result in model.line.told.get(run, ())}
        assert ends & ENDS, f"I9: {job.trigger} {run} {[delivery.id for delivery in job.deliveries]} came to {ends or 'nothing'}"
        model.line.seen(run, job.target)
    assert not model.line.broken, model.line.broken


@contextlib.contextmanager
def queued() -> Iterator[None]:
    """Within this, the clocks of the queue's code are the conductor's, too."""

    def wait(deadline: DeadlineEvent, timeout: float | None = None) -> bool:
        assert timeout is not None
        return sleep(min(timeout, max(deadline.at - TurnTime.monotonic(), 0.0)), deadline) or deadline.is_set()

    clocks = patch.object(message_outcome, "time", TurnTime), patch("handler.queues.sqs.time", TurnTime)
    with simulated(), clocks[0], clocks[1], patch.object(DeadlineEvent, "wait", wait):
        yield
