"""One worker process of the model: a handler with memory of its own, its queue, and its way to the cluster and the git host.

At each request it parks; the conductor's order says what happens to that request. A killed process does nothing any more: its memory is
gone, what it had on the wire lands or doesn't, and another process is started in its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import urllib3

from handler.app.build import Handler, Options
from handler.config.secrets import Secrets
from handler.config.settings import Settings
from handler.model.errors import GitUnavailable
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.queues.pending import Pending, Work
from tests.fakes.apiserver import ApiServer, Call, FakeConnection
from tests.fakes.apiserver.connection import Reply
from tests.fakes.git_host import GitHost, HostSource
from tests.fakes.sandbox import InProcess
from tests.model.taking_turns import START, Killed, Machine, Task, TurnEvent, TurnTime, here, sleep, world

T = TypeVar("T")

STATUSES = {
    "409": (409, "Conflict", "the object has been modified"),
    "429": (429, "TooManyRequests", "please try again later"),
    "500": (500, "InternalError", "etcdserver: leader changed"),
    "503": (503, "ServiceUnavailable", "the server is currently unable to handle the request"),
}


@dataclass(frozen=True)
class Order:
    """What happens to a request: nothing bad, a status, silence, a reset, or the end of its sender; before or after it took effect."""

    what: str = "ok"
    after: bool = False

    def __call__(self, do: Callable[[], Reply], call: Call) -> Reply:
        if self.what == "ok":
            return do()
        if self.after:
            do()
        if self.what in STATUSES:
            status, reason, message = STATUSES[self.what]
            body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": status}
            return status, body, {"Retry-After": "1"} if status == 429 else {}
        if self.what == "silence":
            sleep(call.silence)
            raise urllib3.exceptions.ReadTimeoutError(None, call.asked.path, "no answer")  # type: ignore[arg-type]  # its pool is not read
        raise urllib3.exceptions.ProtocolError("connection reset")


OK = Order()
KILL_BEFORE, KILL_AFTER = Order("kill"), Order("kill", after=True)


@dataclass
class Ended:
    """How a run ended, and for which requests."""

    work: Work
    result: Result


@dataclass(eq=False)
class Process(Machine):
    """`sent`: called with each request when it goes out. `unlucky`: what its next renewals meet; `trace`: its last requests."""

    server: ApiServer = field(default=None)  # type: ignore[assignment]  # always given
    host: GitHost = field(default_factory=GitHost)
    settings: Settings = field(default=None)  # type: ignore[assignment]  # always given
    sent: Callable[[Process, Call], None] = lambda process, call: None
    main: Task | None = None
    work: Work | None = None
    ended: list[Ended] = field(default_factory=list)
    accepted: list[Job] = field(default_factory=list)
    retries: dict[str, float] = field(default_factory=dict)
    unlucky: list[Order] = field(default_factory=list)
    trace: deque[str] = field(default_factory=lambda: deque(maxlen=60))

    def __post_init__(self) -> None:
        self.pending = Pending()
        self.stop = TurnEvent()
        source = HostSource(self.host, self._git, TurnTime.monotonic)
        options = Options(sources={target.name: source for target in self.settings.targets}, notes=self.notes, clock=TurnTime.time)
        self.handler = Handler(self.settings, Secrets(), InProcess(), {}, options)  # type: ignore[arg-type]  # its one method that is called
        connection = FakeConnection(self.server, self._way)
        self.handler._connection = lambda target: connection  # type: ignore[method-assign]  # the seam
        self.handler._holder = self.name

    @property
    def notes(self) -> bool:
        """Whether it leaves entries as those on a queue do; each other one does, so that both are tried."""
        return self.name[-1] in "02468"

    # --- the queue
    def accept(self, job: Job) -> None:
        """Take a job."""
        self.accepted.append(job)
        self._put(self._taken(Work.of(job)))

    def _taken(self, work: Work) -> Work:
        return replace(work, job=replace(work.job, asked=world().now - self.slept))

    def _put(self, work: Work, *, older: bool = False) -> None:
        self.pending.accept(work, older=older)

    def wake(self) -> None:
        """Put what has waited long enough back into the queue: what the git host didn't show, and retries."""
        for work in self.pending.due(world().now):
            self._put(self._taken(work), older=True)
        for target in [target for target, at in self.retries.items() if at <= world().now]:
            del self.retries[target]
            self._put(self._taken(Work.of(Job(target, "tick"))))

    def begin(self) -> bool:
        """Start on the next job, if there is one and none is worked on."""
        if self.main is None and self.pending.waiting:
            self.work = self.pending.take()
            self.main = Task(self, self._run)
        return self.main is not None

    def _run(self) -> None:
        assert self.work
        job = self.work.job
        result = self.handler.run(replace(job, run=self.work.run), self.stop)
        self.pending.done(job.target)
        if result.outcome is Outcome.LAGGING:
            self.pending.delay(self.work.again(), world().now + max(result.next_try - TurnTime.time(), 0.0))
        else:
            self.ended.append(Ended(self.work, result))
            self._retry(job.target, result)
        if result.again:
            self.accepted.append(result.again)  # it ends for itself
            self.pending.delay(Work.of(result.again), world().now + max(result.again_at - TurnTime.time(), 0.0))
        self.main = self.work = None

    def _retry(self, target: str, result: Result) -> None:
        self.retries.pop(target, None)
        if result.next_try:
            self.retries[target] = world().now + max(result.next_try - TurnTime.time(), 0.0)

    # --- the way out
    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        if here() is None:
            return do()
        self.sent(self, call)
        order = self._met(call)
        if order.what == "kill":
            if order.after:
                do()
            self.dead = True
            raise Killed
        return order(do, call)

    def _git(self, asked: str) -> None:
        order = self._met(asked)
        if order.what == "kill":
            self.dead = True
            raise Killed
        if order.what != "ok":
            raise GitUnavailable.of("git host", "broke off")

    def _met(self, what: Any) -> Order:
        task = here()
        if task is None:
            return OK
        if self.dead:
            raise Killed
        task.meets = what
        order = task.park()
        task.meets = None
        asked = f"{what.asked.method} {what.asked.path} {dict(what.asked.query)}" if isinstance(what, Call) else what
        self.trace.append(f"{world().now - START:9.1f} {self.name} {task.name}: {asked} -> {order or OK}")
        assert isinstance(order, Order | None)
        return order or OK

    @property
    def renewals(self) -> list[Task]:
        """Its threads that renew Leases."""
        return [task for task in self.tasks if task is not self.main]

    def kill(self) -> None:
        """End whatever it does."""
        self.dead = True
        for task in list(self.tasks):
            while not task.ended:
                task.resume(KILL_BEFORE)
        self.main = None
